//! How long a client has been silent, or hasn't taken what is due to it. All in seconds of the worker's tick.

use std::cell::Cell;
use std::time::Duration;

use super::conn::{Closed, Phase};
use crate::config::Pool;
use crate::stats::{Cell as Counter, PoolBlock};
use crate::units::Limit;

/// When a client last did what.
#[derive(Debug)]
pub struct Ages {
    /// It connected.
    joined: u32,
    /// It sent something, or closed its side.
    pub(super) heard: Cell<u32>,
    /// Its full socket took something, or became full.
    pub(super) took: Cell<u32>,
    /// Whether it has sent a whole request.
    pub(super) asked: Cell<bool>,
    /// Bounds that are met and have been counted.
    pub(super) noted: Cell<u8>,
}

/// What is on its way to a client now.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    /// The tick.
    pub now: u32,
    /// Requests that are not answered.
    pub pending: usize,
    /// Bytes that have not left.
    pub unsent: usize,
    /// Its socket is full. What waits behind an earlier reply isn't the client's to take yet.
    pub full: bool,
    /// It is subscribed to something: it may be silent as long as it likes.
    pub listens: bool,
}

/// Bits of [`Ages::noted`].
pub(super) const MAX_PENDING: u8 = 1;
pub(super) const OUT_SOFT: u8 = 2;
pub(super) const OUT_HARD: u8 = 4;
const OUT_STALL: u8 = 8;
const IDLE: u8 = 16;
const FIRST: u8 = 32;
pub(super) const MAX_BUFFERS: u8 = 64;

/// How long a client that has closed its side waits for what is due, where the pool's timeout doesn't say more: a
/// server that hangs must not keep it for ever.
const LAST_WAIT: Duration = Duration::from_secs(60);

impl Ages {
    /// Of a client that comes now.
    pub(super) fn new(tick: u32) -> Self {
        Self {
            joined: tick,
            heard: Cell::new(tick),
            took: Cell::new(tick),
            asked: Cell::new(false),
            noted: Cell::new(0),
        }
    }

    /// Counts that a bound is met, once until its bit is cleared.
    pub(super) fn note(&self, bound: u8, counter: &Counter) {
        if self.noted.get() & bound == 0 {
            self.noted.set(self.noted.get() | bound);
            counter.add(1);
        }
    }

    /// Why the client has to go now, if it has.
    pub(super) fn overstayed(
        &self,
        phase: Phase,
        due: Due,
        pool: &Pool,
        stats: &PoolBlock,
    ) -> Option<Closed> {
        let since = |then: u32| Duration::from_secs(u64::from(due.now.saturating_sub(then)));
        let (silent, untaken) = (since(self.heard.get()), since(self.took.get()));
        match phase {
            Phase::Over(_) => return None,
            Phase::Closing(_) => {
                let wait = LAST_WAIT.max(pool.timeout.unwrap_or_default() * 2);
                return (silent > wait && untaken > wait).then_some(Closed::Unanswered);
            }
            Phase::Open | Phase::Draining(_) | Phase::Leaving => {}
        }
        let stalls = due.full && pool.out_soft.is_met(due.unsent);
        let idles = due.pending == 0 && due.unsent == 0 && !due.listens;
        let overdue = |applies: bool, limit: &Limit<Duration>, time, bit: u8, counter| {
            if !applies || !limit.is_met(time) {
                self.noted.set(self.noted.get() & !bit);
                return false;
            }
            self.note(bit, counter);
            !limit.only_counts()
        };
        let first = &pool.first_request_timeout;
        if overdue(stalls, &pool.out_stall, untaken, OUT_STALL, &stats.over_out_stall) {
            Some(Closed::Stalled)
        } else if overdue(
            !self.asked.get(),
            first,
            since(self.joined),
            FIRST,
            &stats.over_first_request_timeout,
        ) || overdue(idles, &pool.idle_timeout, silent, IDLE, &stats.over_idle_timeout)
        {
            Some(Closed::Idle)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn pool(settings: &str) -> Pool {
        let yaml =
            format!("alpha: {{listen: '127.0.0.1:1', redis: true, servers: ['127.0.0.1:2:1'], {settings}}}");
        Config::parse(&yaml, std::path::Path::new("x.yml"), |_| None).unwrap().pools.remove(0)
    }

    fn due(now: u32, pending: usize, unsent: usize) -> Due {
        Due { now, pending, unsent, full: unsent > 0, listens: false }
    }

    /// A server without a timeout hung, and clients that had closed their side long ago stayed, each with a descriptor.
    #[test]
    fn a_client_that_has_closed_its_side_does_not_wait_for_ever() {
        let (pool, stats, ages) = (pool("timeout: 40000"), PoolBlock::default(), Ages::new(0));
        ages.heard.set(10);
        let closing = Phase::Closing(Closed::Eof);
        let at = |now| ages.overstayed(closing, due(now, 1, 0), &pool, &stats);
        assert_eq!(at(90), None, "twice the timeout is 80 s");
        assert_eq!(at(91), Some(Closed::Unanswered));
        ages.took.set(80);
        assert_eq!([at(91), at(160)], [None; 2], "it still takes what comes");
        assert_eq!(at(161), Some(Closed::Unanswered));
    }

    #[test]
    fn only_a_client_over_its_soft_bound_that_takes_nothing_stalls() {
        let (pool, stats, ages) = (pool("out_soft: 1kb, out_stall: 5s"), PoolBlock::default(), Ages::new(0));
        let at = |now, unsent| ages.overstayed(Phase::Open, due(now, 0, unsent), &pool, &stats);
        assert_eq!([at(4, 2_000), at(100, 1_000)], [None; 2]);
        assert_eq!(at(5, 2_000), Some(Closed::Stalled));
        ages.took.set(5);
        assert_eq!(at(9, 2_000), None);
        assert_eq!(stats.over_out_stall.value(), 1);
    }

    /// Replies that came early stood behind one whose server slept, longer than `out_stall` after the client's socket had last been
    /// full, if ever: it was closed, although it took all that it could get.
    #[test]
    fn what_waits_for_an_earlier_reply_is_no_stall() {
        let (pool, stats, ages) = (pool("out_soft: 1kb, out_stall: 5s"), PoolBlock::default(), Ages::new(0));
        let waits = Due { full: false, ..due(100, 1, 2_000) };
        assert_eq!(ages.overstayed(Phase::Open, waits, &pool, &stats), None);
        assert_eq!(stats.over_out_stall.value(), 0);
    }

    #[test]
    fn what_is_observed_is_counted_once_each_time() {
        let (pool, stats, ages) = (pool("idle_timeout: 2s observe"), PoolBlock::default(), Ages::new(0));
        for now in [2, 3, 4] {
            assert_eq!(ages.overstayed(Phase::Open, due(now, 0, 0), &pool, &stats), None);
        }
        assert_eq!(stats.over_idle_timeout.value(), 1);
        ages.heard.set(4);
        for now in [5, 6, 7] {
            assert_eq!(ages.overstayed(Phase::Open, due(now, 0, 0), &pool, &stats), None);
        }
        assert_eq!(stats.over_idle_timeout.value(), 2);
    }
}
