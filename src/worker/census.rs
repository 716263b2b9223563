//! How many clients there are in the whole process.

use std::collections::HashMap;
use std::net::IpAddr;
// Locked once when a client comes and once when it goes, and only where `clients_per_address` is set.
#[allow(clippy::disallowed_types)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::units::{Limit, Mode};

/// Counts clients over all workers, so that `client_connections`, `max_clients` and `clients_per_address` hold exactly.
/// Touched once when a client comes and once when it goes, never for a request.
#[derive(Debug)]
pub struct Census {
    all: Count,
    /// For how many there are descriptors.
    room: AtomicU32,
    last_id: AtomicU64,
}

/// Clients of one pool, and how many there may be. A reload can change the limits: who is there stays.
#[derive(Debug)]
pub struct Seats {
    all: Count,
    address_limit: SharedLimit,
    #[allow(clippy::disallowed_types)] // see above
    by_address: Mutex<HashMap<IpAddr, u32>>,
}

/// What became of a new client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Its number, unique in this process; `None`: there is no room for it.
    pub id: Option<u64>,
    /// `client_connections` or `max_clients` was met, enforced or not.
    pub over_clients: bool,
    /// `clients_per_address` was met, enforced or not.
    pub over_address: bool,
}

#[derive(Debug)]
struct Count {
    taken: AtomicU32,
    limit: SharedLimit,
}

/// A limit that one thread sets and others read: its mode, then its bound.
#[derive(Debug)]
struct SharedLimit(AtomicU64);

/// Whether one more was counted, and whether the limit was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Free,
    Over,
    Refused,
}

impl Census {
    /// Nobody; `limit` is `max_clients`, and for `room` clients there are descriptors.
    pub fn new(limit: Limit<u32>, room: u32) -> Self {
        Self { all: Count::new(limit), room: AtomicU32::new(room), last_id: AtomicU64::new(0) }
    }

    /// Another `max_clients` and another number of descriptors from now on.
    pub fn set_limit(&self, limit: Limit<u32>, room: u32) {
        self.all.limit.set(limit);
        self.room.store(room, Ordering::Relaxed);
    }

    /// Lets one more client of a pool in, if there is room; `address` if the pool wants it. Pair with [`Census::leave`]
    /// if it got a number.
    pub fn enter(&self, pool: &Seats, address: Option<IpAddr>) -> Admission {
        let (all, of_pool) = (self.enter_room(), pool.all.enter());
        let of_address = address.map_or(Room::Free, |address| pool.enter_from(address));
        let mut admission = Admission {
            id: None,
            over_clients: all != Room::Free || of_pool != Room::Free,
            over_address: of_address != Room::Free,
        };
        if [all, of_pool, of_address].contains(&Room::Refused) {
            // What was counted is taken back; what was refused was not counted.
            if all != Room::Refused {
                self.all.leave();
            }
            if of_pool != Room::Refused {
                pool.all.leave();
            }
            if of_address != Room::Refused {
                address.into_iter().for_each(|address| pool.leave_from(address));
            }
        } else {
            admission.id = Some(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        }
        admission
    }

    /// A place in the process. Clients past the descriptors would take those of the connections to their servers.
    fn enter_room(&self) -> Room {
        let room = self.all.enter();
        if room != Room::Refused && self.all.taken.load(Ordering::Relaxed) > self.room.load(Ordering::Relaxed)
        {
            self.all.leave();
            return Room::Refused;
        }
        room
    }

    /// A client of a pool is gone; `address` as it came in with.
    pub fn leave(&self, pool: &Seats, address: Option<IpAddr>) {
        address.into_iter().for_each(|address| pool.leave_from(address));
        pool.all.leave();
        self.all.leave();
    }
}

impl Default for Seats {
    /// No limit.
    fn default() -> Self {
        Self::new(Limit::off(), Limit::off())
    }
}

impl Seats {
    /// All free, with `client_connections` and `clients_per_address`.
    pub fn new(clients: Limit<u32>, per_address: Limit<u32>) -> Self {
        Self {
            all: Count::new(clients),
            address_limit: SharedLimit::new(per_address),
            by_address: Default::default(),
        }
    }

    /// Other limits from now on. Who came while addresses were not counted is not.
    pub fn set_limits(&self, clients: Limit<u32>, per_address: Limit<u32>) {
        self.all.limit.set(clients);
        self.address_limit.set(per_address);
    }

    /// Whether clients are counted by their addresses.
    pub fn wants_address(&self) -> bool {
        self.address_limit.now().bound().is_some()
    }

    fn enter_from(&self, address: IpAddr) -> Room {
        let mut clients = self.by_address.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let taken = clients.entry(origin(address)).or_default();
        let room = room(&self.address_limit.now(), *taken);
        if room != Room::Refused {
            *taken += 1;
        }
        room
    }

    fn leave_from(&self, address: IpAddr) {
        let mut clients = self.by_address.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(taken) = clients.get_mut(&origin(address)) {
            *taken -= 1;
            if *taken == 0 {
                clients.remove(&origin(address));
            }
        }
    }
}

impl Count {
    fn new(limit: Limit<u32>) -> Self {
        Self { taken: AtomicU32::new(0), limit: SharedLimit::new(limit) }
    }

    fn enter(&self) -> Room {
        let room = room(&self.limit.now(), self.taken.fetch_add(1, Ordering::Relaxed));
        if room == Room::Refused {
            self.leave();
        }
        room
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SharedLimit {
    fn new(limit: Limit<u32>) -> Self {
        let shared = Self(AtomicU64::new(0));
        shared.set(limit);
        shared
    }

    fn set(&self, limit: Limit<u32>) {
        let mode = match limit.mode {
            Mode::Off => 0,
            Mode::Observe => 1,
            Mode::Enforce => 2,
        };
        self.0.store(mode << 32 | u64::from(limit.at), Ordering::Relaxed);
    }

    fn now(&self) -> Limit<u32> {
        let packed = self.0.load(Ordering::Relaxed);
        let mode = match packed >> 32 {
            0 => Mode::Off,
            1 => Mode::Observe,
            _ => Mode::Enforce,
        };
        Limit { at: packed as u32, mode }
    }
}

/// For one more beside those who have taken a place.
fn room(limit: &Limit<u32>, taken: u32) -> Room {
    if !limit.is_met(taken) {
        Room::Free
    } else if limit.only_counts() {
        Room::Over
    } else {
        Room::Refused
    }
}

/// What counts as one address: of IPv6 the first 64 bits, since whoever has one such address has all that share them.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) >> 64 << 64).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn who_was_refused_takes_no_place() {
        let census = Census::new(Limit::enforced(100), u32::MAX);
        let seats = Seats::new(Limit::enforced(3), Limit::enforced(2));
        let [a, b] = [address("10.0.0.1"), address("10.0.0.2")];
        assert!(census.enter(&seats, a).id.is_some() && census.enter(&seats, a).id.is_some());
        let third = census.enter(&seats, a);
        assert_eq!((third.id, third.over_clients, third.over_address), (None, false, true));
        assert!(census.enter(&seats, b).id.is_some());
        let fourth = census.enter(&seats, b);
        assert_eq!((fourth.id, fourth.over_clients), (None, true));
        census.leave(&seats, a);
        assert!(census.enter(&seats, a).id.is_some());
        [a, a, b].into_iter().for_each(|address| census.leave(&seats, address));
        assert!(seats.by_address.lock().unwrap().is_empty());
        assert_eq!([&census.all, &seats.all].map(|count| count.taken.load(Ordering::Relaxed)), [0, 0]);
    }

    #[test]
    fn whoever_has_no_descriptor_is_refused() {
        let census = Census::new(Limit::off(), 2);
        let seats = Seats::default();
        assert!((0..2).all(|_| census.enter(&seats, None).id.is_some()));
        assert_eq!(census.enter(&seats, None).id, None);
        census.leave(&seats, None);
        assert!(census.enter(&seats, None).id.is_some());
        assert_eq!(census.enter(&seats, None).id, None);
    }

    #[test]
    fn a_limit_that_only_counts_refuses_nobody() {
        let census = Census::new(Limit::off(), u32::MAX);
        let observe = Limit { at: 1, mode: Mode::Observe };
        let seats = Seats::new(observe, observe);
        let first = census.enter(&seats, address("2001:db8::1"));
        assert!(first.id.is_some() && !first.over_clients && !first.over_address);
        let second = census.enter(&seats, address("2001:db8::2"));
        assert!(second.id.is_some() && second.over_clients && second.over_address, "one /64 is one address");
        seats.set_limits(Limit::enforced(2), Limit::off());
        assert!(!seats.wants_address());
        assert_eq!(census.enter(&seats, None).id, None);
    }
}
