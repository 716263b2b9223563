//! The hash modulo the sum of weights.

use super::{Member, ServerIx};

/// As many slots as the weights add up to; each server has its weight of them, one after the other.
///
/// Slots are kept as runs, so that a weight of a thousand million costs no more than one of 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// Where each server's run ends: ascending, not empty; the last is the number of slots, ≥ 1.
    ends: Vec<u64>,
    /// Whose run it is; as long as `ends`.
    servers: Vec<ServerIx>,
}

/// A server's slots on a [`Wheel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) server: ServerIx,
    pub(super) length: u64,
}

impl Wheel {
    /// The wheel of `members`, in their order.
    ///
    /// # Panics
    ///
    /// If there are none.
    pub(super) fn new(members: &[Member<'_>]) -> Self {
        assert!(!members.is_empty(), "a wheel has at least one server");
        let mut end = 0;
        let ends = members.iter().map(|member| {
            end += u64::from(member.weight.get());
            end
        });
        Self { ends: ends.collect(), servers: members.iter().map(|member| member.server).collect() }
    }

    /// The server of a hash value.
    #[inline]
    pub fn server(&self, hash: u32) -> ServerIx {
        let slot = self.slot(hash);
        self.servers[self.ends.partition_point(|&end| end <= slot)]
    }

    /// The slot of a hash value.
    #[inline]
    pub fn slot(&self, hash: u32) -> u64 {
        u64::from(hash) % self.slots()
    }

    /// How many slots there are.
    #[inline]
    pub fn slots(&self) -> u64 {
        self.ends[self.ends.len() - 1]
    }

    /// The servers in slot order, with their weights.
    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .zip(&self.servers)
            .map(|((start, end), &server)| Run { server, length: end - start })
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    fn wheel(weights: &[u32]) -> Wheel {
        let members = (0..).map(ServerIx).zip(weights).map(|(server, &weight)| Member {
            server,
            label: "",
            weight: NonZeroU32::new(weight).expect("a weight"),
        });
        Wheel::new(&members.collect::<Vec<_>>())
    }

    #[test]
    fn each_server_has_its_weight_of_consecutive_slots() {
        let wheel = wheel(&[1, 2, 1]);
        let servers: Vec<u16> = (0..9).map(|hash| wheel.server(hash).0).collect();
        assert_eq!(servers, [0, 1, 1, 2, 0, 1, 1, 2, 0]);
    }

    #[test]
    fn weights_beyond_32_bits_in_sum_are_kept_apart() {
        let wheel = wheel(&[u32::MAX, u32::MAX, 7]);
        assert_eq!(wheel.slots(), 2 * u64::from(u32::MAX) + 7);
        assert_eq!(wheel.server(0), ServerIx(0));
        assert_eq!(wheel.server(u32::MAX - 1), ServerIx(0));
        assert_eq!(wheel.server(u32::MAX), ServerIx(1));
    }
}
