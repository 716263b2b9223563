//! How many clients, and how many leases of each server, there are in the whole process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::backend::LeaseLimit;
use crate::config::{self, Config};

/// Counts clients over all workers, so that `client_connections` and `max_clients` hold exactly. Touched once when a
/// client comes and once when it goes, never for a request.
#[derive(Debug)]
pub struct Census {
    /// By `PoolIx`.
    pools: Vec<Count>,
    all: Count,
    /// By `PoolIx` and `ServerIx`.
    leases: Vec<Vec<Arc<LeaseLimit>>>,
    last_id: AtomicU64,
}

#[derive(Debug)]
struct Count {
    now: AtomicU32,
    limit: u32,
}

impl Census {
    /// Nobody, with the limits of `config`.
    pub fn new(config: &Config) -> Self {
        let limit = |limit: Option<std::num::NonZeroU32>| Count {
            now: AtomicU32::new(0),
            limit: limit.map_or(u32::MAX, std::num::NonZeroU32::get),
        };
        Self {
            pools: config.pools.iter().map(|pool| limit(pool.client_connections)).collect(),
            leases: config.pools.iter().map(leases).collect(),
            all: limit(config.process.max_clients),
            last_id: AtomicU64::new(0),
        }
    }

    /// Lets one more client of a pool in, if there is room: its number, unique in this process. Pair with
    /// [`Census::leave`].
    pub fn enter(&self, pool: usize) -> Option<u64> {
        if !self.all.enter() {
            return None;
        }
        if !self.pools[pool].enter() {
            self.all.leave();
            return None;
        }
        Some(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// Counts the leases of a server over all workers.
    pub fn leases(&self, pool: usize, server: usize) -> Arc<LeaseLimit> {
        Arc::clone(&self.leases[pool][server])
    }

    /// A client of a pool is gone.
    pub fn leave(&self, pool: usize) {
        self.pools[pool].leave();
        self.all.leave();
    }
}

fn leases(pool: &config::Pool) -> Vec<Arc<LeaseLimit>> {
    pool.servers.iter().map(|_| Arc::new(LeaseLimit::new(pool.max_leases.get()))).collect()
}

impl Count {
    fn enter(&self) -> bool {
        let room = self.now.fetch_add(1, Ordering::Relaxed) < self.limit;
        if !room {
            self.leave();
        }
        room
    }

    fn leave(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }
}
