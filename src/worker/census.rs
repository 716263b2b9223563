//! How many clients there are in the whole process.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Counts clients over all workers, so that `client_connections` and `max_clients` hold exactly. Touched once when a
/// client comes and once when it goes, never for a request.
#[derive(Debug)]
pub struct Census {
    all: Seats,
    last_id: AtomicU64,
}

/// Clients of one pool, or of all, and how many there may be. A reload can change the limit: who is there stays.
#[derive(Debug)]
pub struct Seats {
    taken: AtomicU32,
    limit: AtomicU32,
}

impl Census {
    /// Nobody; `limit` is `max_clients`.
    pub fn new(limit: Option<NonZeroU32>) -> Self {
        Self { all: Seats::new(limit), last_id: AtomicU64::new(0) }
    }

    /// Another `max_clients` from now on.
    pub fn set_limit(&self, limit: Option<NonZeroU32>) {
        self.all.set_limit(limit);
    }

    /// Lets one more client of a pool in, if there is room: its number, unique in this process. Pair with
    /// [`Census::leave`].
    pub fn enter(&self, pool: &Seats) -> Option<u64> {
        if !self.all.enter() {
            return None;
        }
        if !pool.enter() {
            self.all.leave();
            return None;
        }
        Some(self.last_id.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// A client of a pool is gone.
    pub fn leave(&self, pool: &Seats) {
        pool.leave();
        self.all.leave();
    }
}

impl Default for Seats {
    /// No limit.
    fn default() -> Self {
        Self::new(None)
    }
}

impl Seats {
    /// All free; `limit` is `client_connections`, or `max_clients`.
    pub fn new(limit: Option<NonZeroU32>) -> Self {
        let seats = Self { taken: AtomicU32::new(0), limit: AtomicU32::new(u32::MAX) };
        seats.set_limit(limit);
        seats
    }

    /// Another limit from now on.
    pub fn set_limit(&self, limit: Option<NonZeroU32>) {
        self.limit.store(limit.map_or(u32::MAX, NonZeroU32::get), Ordering::Relaxed);
    }

    fn enter(&self) -> bool {
        let room = self.taken.fetch_add(1, Ordering::Relaxed) < self.limit.load(Ordering::Relaxed);
        if !room {
            self.leave();
        }
        room
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}
