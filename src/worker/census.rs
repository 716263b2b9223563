//! How many clients there are in the whole process.

use std::collections::HashMap;
use std::net::IpAddr;
// Locked once when a client comes and once when it goes, and only where `clients_per_address` is set.
#[allow(clippy::disallowed_types)]
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::config::Config;
use crate::units::Limit;

/// Counts clients over all workers, so that `client_connections`, `max_clients` and `clients_per_address` hold exactly.
/// Touched once when a client comes and once when it goes, never for a request.
#[derive(Debug)]
pub struct Census {
    /// By `PoolIx`.
    pools: Vec<PoolCount>,
    all: Count,
    last_id: AtomicU64,
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
struct PoolCount {
    clients: Count,
    by_address: ByAddress,
}

#[derive(Debug)]
struct Count {
    now: AtomicU32,
    limit: Limit<u32>,
}

#[derive(Debug)]
struct ByAddress {
    limit: Limit<u32>,
    #[allow(clippy::disallowed_types)] // see above
    clients: Mutex<HashMap<IpAddr, u32>>,
}

/// Whether one more was counted, and whether the limit was met.
enum Room {
    Free,
    Over,
    Refused,
}

impl Census {
    /// Nobody, with the limits of `config`.
    pub fn new(config: &Config) -> Self {
        let pools = config.pools.iter().map(|pool| PoolCount {
            clients: Count::new(pool.client_connections),
            by_address: ByAddress { limit: pool.clients_per_address, clients: Default::default() },
        });
        Self {
            pools: pools.collect(),
            all: Count::new(config.process.max_clients),
            last_id: AtomicU64::new(0),
        }
    }

    /// Whether clients of a pool are counted by their addresses.
    pub fn wants_address(&self, pool: usize) -> bool {
        self.pools[pool].by_address.limit.bound().is_some()
    }

    /// Lets one more client of a pool in, if there is room. Pair with [`Census::leave`] if it got a number.
    pub fn enter(&self, pool: usize, address: Option<IpAddr>) -> Admission {
        let mut admission = Admission { id: None, over_clients: false, over_address: false };
        let of_pool = &self.pools[pool];
        for count in [&self.all, &of_pool.clients] {
            match count.enter() {
                Room::Free => {}
                Room::Over => admission.over_clients = true,
                Room::Refused => {
                    admission.over_clients = true;
                    if std::ptr::eq(count, &of_pool.clients) {
                        self.all.leave();
                    }
                    return admission;
                }
            }
        }
        match address.map_or(Room::Free, |address| of_pool.by_address.enter(address)) {
            Room::Free => {}
            Room::Over => admission.over_address = true,
            Room::Refused => {
                admission.over_address = true;
                of_pool.clients.leave();
                self.all.leave();
                return admission;
            }
        }
        admission.id = Some(self.last_id.fetch_add(1, Ordering::Relaxed) + 1);
        admission
    }

    /// A client of a pool is gone.
    pub fn leave(&self, pool: usize, address: Option<IpAddr>) {
        if let Some(address) = address {
            self.pools[pool].by_address.leave(address);
        }
        self.pools[pool].clients.leave();
        self.all.leave();
    }
}

impl Count {
    fn new(limit: Limit<u32>) -> Self {
        Self { now: AtomicU32::new(0), limit }
    }

    fn enter(&self) -> Room {
        if !self.limit.is_met(self.now.fetch_add(1, Ordering::Relaxed)) {
            Room::Free
        } else if self.limit.only_counts() {
            Room::Over
        } else {
            self.leave();
            Room::Refused
        }
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ByAddress {
    fn enter(&self, address: IpAddr) -> Room {
        let mut clients = self.clients.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = clients.entry(origin(address)).or_default();
        let met = self.limit.is_met(*now);
        if met && !self.limit.only_counts() {
            return Room::Refused;
        }
        *now += 1;
        if met { Room::Over } else { Room::Free }
    }

    fn leave(&self, address: IpAddr) {
        let mut clients = self.clients.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(now) = clients.get_mut(&origin(address)) {
            *now -= 1;
            if *now == 0 {
                clients.remove(&origin(address));
            }
        }
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
    use crate::units::Mode;

    fn census(settings: &str) -> Census {
        let yaml =
            format!("alpha: {{listen: '127.0.0.1:1', redis: true, servers: ['127.0.0.1:2:1'], {settings}}}");
        Census::new(&Config::parse(&yaml, std::path::Path::new("x.yml"), |_| None).unwrap())
    }

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn who_was_refused_takes_no_place() {
        let census = census("client_connections: 3, clients_per_address: 2");
        let [a, b] = [address("10.0.0.1"), address("10.0.0.2")];
        assert!(census.enter(0, a).id.is_some() && census.enter(0, a).id.is_some());
        let third = census.enter(0, a);
        assert_eq!((third.id, third.over_clients, third.over_address), (None, false, true));
        assert!(census.enter(0, b).id.is_some());
        let fourth = census.enter(0, b);
        assert_eq!((fourth.id, fourth.over_clients), (None, true));
        census.leave(0, a);
        assert!(census.enter(0, a).id.is_some());
        [a, a, b].into_iter().for_each(|address| census.leave(0, address));
        assert!(census.pools[0].by_address.clients.lock().unwrap().is_empty());
        assert_eq!(census.all.now.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_limit_that_only_counts_refuses_nobody() {
        let census = census("client_connections: 1 observe, clients_per_address: 1 observe");
        assert_eq!(census.pools[0].clients.limit.mode, Mode::Observe);
        let first = census.enter(0, address("::1"));
        assert!(first.id.is_some() && !first.over_clients && !first.over_address);
        let second = census.enter(0, address("::2"));
        assert!(second.id.is_some() && second.over_clients && second.over_address, "one /64 is one address");
    }
}
