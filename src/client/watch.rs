//! What an operator may ask of one worker's clients, and tell them: off the path of a request but for two comparisons.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::conn::ClientConn;
use super::monitor::{self, Monitor};
use super::tally::Tally;
use crate::command::Call;
use crate::exchange::Took;
use crate::resp::Protocol;

/// Of all clients of one worker.
#[derive(Debug)]
pub struct Watch {
    /// The latest slow requests, the oldest first; [`SLOW_KEPT`] at most.
    slow: RefCell<VecDeque<SlowRequest>>,
    /// Microseconds from which on a request is slow; `u64::MAX`: none is.
    slower_than: Cell<u64>,
    /// The second in which slow requests were last remembered, and how many were.
    lately: Cell<(u32, usize)>,
    /// Until when requests of clients wait where they are.
    paused_until: Cell<Option<Instant>>,
    /// Operators that see requests.
    monitors: RefCell<Vec<Monitor>>,
    /// There are any: all that a request costs without them is one look at this.
    monitored: Cell<bool>,
    /// Hot and big keys.
    pub tally: Tally,
}

/// Slow requests that each worker remembers; older ones are forgotten.
pub const SLOW_KEPT: usize = 128;

/// Slow requests remembered within one second. When everything is slow, noting it all would make it slower still; the rest is counted
/// only.
const SLOW_PER_SECOND: usize = 32;

/// A request that took long.
#[derive(Clone, Debug)]
pub struct SlowRequest {
    /// When its reply came, microseconds since 1970.
    pub at: u64,
    /// Name of its pool.
    pub pool: String,
    /// Index of its command.
    pub command: u16,
    /// Microseconds from admission until it was written to the server.
    pub queue: u64,
    /// Microseconds from there until its reply, or the last part of it, came.
    pub answer: u64,
    /// The server, or the slowest one.
    pub server: String,
    /// Whose it was.
    pub client: u64,
    /// Where that client came from.
    pub address: String,
    /// What that client calls itself.
    pub name: String,
}

/// One client, as CLIENT LIST tells it.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    /// CLIENT ID.
    pub id: u64,
    /// Name of its pool.
    pub pool: String,
    /// Where it came from.
    pub address: String,
    /// Where it came to.
    pub local_address: String,
    /// What it calls itself.
    pub name: String,
    /// Since it connected.
    pub age: Duration,
    /// Since it last said something.
    pub idle: Duration,
    /// Index of its latest command; `u16::MAX`: none yet.
    pub command: u16,
    /// Requests that are not answered yet.
    pub pending: usize,
    /// Bytes of replies that its socket has not taken yet.
    pub unsent: usize,
    /// Bytes of requests that are here and wait.
    pub unread: usize,
    /// Channels, patterns and shard channels that it is subscribed to.
    pub subscriptions: [usize; 3],
    /// Its database.
    pub db: u32,
    /// What it speaks: RESP2 or RESP3.
    pub protocol: Protocol,
}

impl Watch {
    /// Requests are slow from `slower_than` microseconds on; the keys of one request in `hot_keys` are looked at.
    pub fn new(slower_than: u64, hot_keys: u32) -> Self {
        Self {
            slow: RefCell::default(),
            slower_than: Cell::new(slower_than),
            lately: Cell::default(),
            paused_until: Cell::new(None),
            monitors: RefCell::default(),
            monitored: Cell::new(false),
            tally: Tally::new(hot_keys),
        }
    }

    /// Whether a request that took so many microseconds is slow.
    #[inline]
    pub fn is_slow(&self, micros: u64) -> bool {
        micros >= self.slower_than.get()
    }

    /// Requests are slow from so many microseconds on.
    pub fn set_slower_than(&self, micros: u64) {
        self.slower_than.set(micros);
    }

    /// The slow requests that are remembered, the oldest first.
    pub fn slow(&self) -> Vec<SlowRequest> {
        self.slow.borrow().iter().cloned().collect()
    }

    /// Forgets the slow requests.
    pub fn forget_slow(&self) {
        self.slow.borrow_mut().clear();
    }

    /// Requests of clients wait until then; `None`: no longer.
    pub fn pause(&self, until: Option<Instant>) {
        self.paused_until.set(until);
    }

    /// Whether requests wait now.
    #[inline]
    pub fn is_paused(&self) -> bool {
        self.paused_until.get().is_some()
    }

    /// When the pause ends, if there is one.
    pub fn paused_until(&self) -> Option<Instant> {
        self.paused_until.get()
    }

    /// An operator sees requests from now on, until it goes.
    pub fn monitor(&self, monitor: Monitor) {
        self.monitors.borrow_mut().push(monitor);
        self.monitored.set(true);
    }

    /// Whether an operator sees requests.
    #[inline]
    pub fn is_monitored(&self) -> bool {
        self.monitored.get()
    }

    /// Shows a call to the operators that watch.
    #[cold]
    pub(super) fn show(&self, call: &Call<'_>, db: u32, client: &ClientConn) {
        if !monitor::is_shown(call) {
            return;
        }
        let mut monitors = self.monitors.borrow_mut();
        monitors.retain(|monitor| !monitor.is_gone());
        self.monitored.set(!monitors.is_empty());
        for one in monitors.iter() {
            one.see(|| monitor::line(call, db, &client.address(), SystemTime::now()));
        }
    }

    /// Whether a slow request of this second (since the worker started) may still be remembered.
    pub(super) fn has_room(&self, second: u32) -> bool {
        let (last, count) = self.lately.get();
        let count = if last == second { count + 1 } else { 1 };
        self.lately.set((second, count));
        count <= SLOW_PER_SECOND
    }

    /// Remembers a slow request.
    #[cold]
    pub(super) fn note_slow(&self, client: &ClientConn, command: u16, took: &Took<'_>) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut slow = self.slow.borrow_mut();
        if slow.len() >= SLOW_KEPT {
            slow.pop_front();
        }
        slow.push_back(SlowRequest {
            at: since.as_micros() as u64,
            pool: client.pool().config().name.clone(),
            command,
            queue: took.queue,
            answer: took.answer,
            server: took.server.to_string(),
            client: client.id(),
            address: client.address(),
            name: client.name(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With 5,000 busy clients every request takes longer than 10 ms: each was noted, address, names and all.
    #[test]
    fn when_everything_is_slow_little_of_it_is_noted() {
        let watch = Watch::new(10_000, 0);
        for second in 0..3 {
            let noted = (0..50_000).filter(|_| watch.has_room(second)).count();
            assert_eq!(noted, SLOW_PER_SECOND);
        }
    }
}
