//! Redis Cluster's table of slots.

use std::fmt;

use super::ServerIx;
use crate::hash::SLOTS;

/// The server of each slot, for those that have one.
#[derive(Clone, PartialEq, Eq)]
pub struct SlotMap {
    /// [`SLOTS`] long.
    servers: Box<[Option<ServerIx>]>,
}

/// A range that isn't one of slots: it goes beyond the last slot, or its ends are the wrong way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSlots {
    /// First slot as given.
    pub first: u16,
    /// Last slot as given.
    pub last: u16,
}

// === impl SlotMap ===

impl SlotMap {
    /// The table in which no slot has a server.
    pub fn unassigned() -> Self {
        Self { servers: vec![None; usize::from(SLOTS)].into() }
    }

    /// Gives the slots from `first` to `last`, both included, to `server`, whoever had them.
    pub fn assign(&mut self, first: u16, last: u16, server: ServerIx) -> Result<(), BadSlots> {
        let bad = BadSlots { first, last };
        if first > last {
            return Err(bad);
        }
        self.servers.get_mut(usize::from(first)..=usize::from(last)).ok_or(bad)?.fill(Some(server));
        Ok(())
    }

    /// The server of `slot`, if it has one.
    #[inline]
    pub fn server(&self, slot: u16) -> Option<ServerIx> {
        self.servers.get(usize::from(slot)).copied().flatten()
    }

    /// The slots that have a server, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u16, ServerIx)> {
        (0..SLOTS).zip(&self.servers).filter_map(|(slot, server)| Some((slot, (*server)?)))
    }
}

impl fmt::Debug for SlotMap {
    /// How many slots are assigned; the table itself would bury a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlotMap({} of {SLOTS} slots assigned)", self.iter().count())
    }
}

// === impl BadSlots ===

impl fmt::Display for BadSlots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{} is no range of slots between 0 and {}", self.first, self.last, SLOTS - 1)
    }
}

impl std::error::Error for BadSlots {}

#[cfg(test)]
mod tests {
    use super::super::{Draw, Group, Topology};
    use super::*;

    #[test]
    fn keys_go_to_the_server_of_their_slot() {
        let mut slots = SlotMap::unassigned();
        slots.assign(0, 8_191, ServerIx(0)).expect("a range");
        slots.assign(8_192, 12_000, ServerIx(1)).expect("a range");
        let topology = Topology::with_slots(slots, vec![true, true]);
        let draw = Draw::seeded(1);

        assert_eq!(topology.group(b"{user1000}.following", &draw), Some(Group::Slot(3_443)));
        assert_eq!(topology.server(b"{user1000}.following", &draw), Some(ServerIx(0)));
        assert_eq!(topology.group(b"foo{}{bar}", &draw), Some(Group::Slot(8_363)));
        assert_eq!(topology.server(b"foo{}{bar}", &draw), Some(ServerIx(1)));
        // "foo" is in slot 12182, which nobody has.
        assert_eq!(topology.group(b"foo", &draw), Some(Group::Slot(12_182)));
        assert_eq!(topology.server(b"foo", &draw), None);

        let share = topology.share();
        assert_eq!(share.len(), 2);
        assert!(
            (share[0] - 50.0).abs() < 1e-6 && (share[1] - 100.0 * 3_809.0 / 16_384.0).abs() < 1e-6,
            "{share:?}"
        );
    }

    #[test]
    fn a_moved_slot_changes_hands_and_fingerprint() {
        let mut slots = SlotMap::unassigned();
        slots.assign(0, SLOTS - 1, ServerIx(0)).expect("all slots");
        let before = Topology::with_slots(slots.clone(), vec![true, true]);
        slots.assign(42, 42, ServerIx(1)).expect("one slot");
        assert_eq!((slots.server(41), slots.server(42)), (Some(ServerIx(0)), Some(ServerIx(1))));
        let after = Topology::with_slots(slots, vec![true, true]);
        assert_ne!(before.fingerprint(), after.fingerprint());
    }

    #[test]
    fn ranges_are_checked_before_anything_changes() {
        let mut slots = SlotMap::unassigned();
        for (first, last) in [(0, SLOTS), (SLOTS, SLOTS), (5, 4), (0, u16::MAX)] {
            assert_eq!(slots.assign(first, last, ServerIx(0)), Err(BadSlots { first, last }));
        }
        assert_eq!(slots, SlotMap::unassigned());
        assert_eq!(slots.server(SLOTS), None);
    }
}
