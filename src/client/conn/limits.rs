//! The bounds of one client: what is past them waits, or ends its connection.

use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::{ClientConn, Hold};
use crate::client::ages::{Due, MAX_BUFFERS, MAX_PENDING, OUT_HARD, OUT_SOFT};
use crate::client::pace::Bucket;

impl ClientConn {
    /// Parsed is not dispatched: past these bounds the client's requests wait where they are.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let config = self.pool.config();
        let pending = config.max_pending.is_met(self.outbox.pending() as u32);
        let unsent = self.outbox.charge();
        let soft = config.out_soft.is_met(unsent);
        if pending || soft {
            return self.is_held(pending, soft);
        }
        let account = &self.pool.turn.buffers.account;
        if unsent > 0 && account.is_spent() && !account.only_counts() {
            // It is not asked for more before it has taken what is there.
            return true;
        }
        self.ages.noted.set(self.ages.noted.get() & !(MAX_PENDING | OUT_SOFT));
        false
    }

    /// Whether one of the bounds that are met is enforced. Each is counted once until it is no longer met.
    #[cold]
    pub(super) fn is_held(&self, pending: bool, soft: bool) -> bool {
        let (config, stats) = (self.pool.config(), &self.pool.stats);
        if pending {
            self.ages.note(MAX_PENDING, &stats.over_max_pending);
        }
        if soft {
            self.ages.note(OUT_SOFT, &stats.over_out_soft);
        }
        (pending && !config.max_pending.only_counts()) || (soft && !config.out_soft.only_counts())
    }

    /// Whether the process lacks the memory for the replies that wait for this client, `unsent` bytes.
    pub(super) fn is_past_budget(&self, unsent: usize) -> bool {
        let account = &self.pool.turn.buffers.account;
        account.is_spent() && account.is_due(unsent) && self.is_refused_memory()
    }

    /// Whether the process lacks the memory for the rest of a request, of which `kept` bytes are here and `missing` aren't.
    pub(super) fn has_no_room(&self, kept: usize, missing: usize) -> bool {
        let account = &self.pool.turn.buffers.account;
        let lacks = account.exceeds(missing) || (account.lacks(missing) && account.is_due(kept + missing));
        lacks && self.is_refused_memory()
    }

    #[cold]
    fn is_refused_memory(&self) -> bool {
        self.ages.note(MAX_BUFFERS, &self.pool.stats.over_max_buffers);
        !self.pool.turn.buffers.account.only_counts()
    }

    /// Whether the next request must wait for its time.
    pub(super) fn is_too_fast(&self, bucket: &Bucket) -> bool {
        let Err(wait) = bucket.take(Instant::now()) else { return false };
        self.pool.stats.over_client_rate.add(1);
        if self.pool.config().client_rate.only_counts() {
            return false;
        }
        self.pause_for(wait);
        true
    }

    /// Looks at no further request for so long.
    pub(super) fn pause_for(&self, time: Duration) {
        self.pause.replace(Some(Box::pin(tokio::time::sleep(time))));
        self.hold.set(Some(Hold::Time));
        self.wake();
    }

    pub(super) fn poll_pause(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut pause = self.pause.borrow_mut();
        if pause.as_mut().is_some_and(|sleep| sleep.as_mut().poll(cx).is_pending()) {
            return Poll::Pending;
        }
        *pause = None;
        Poll::Ready(())
    }

    /// Ends the connection now if it has overstayed one of its times; called about once a second.
    pub fn sweep(&self) {
        let unsent = self.outbox.unsent();
        let due = Due {
            now: self.pool.turn.tick.get(),
            pending: self.outbox.pending(),
            unsent,
            full: self.blocked.get(),
            listens: self.subscriptions() != [0; 3],
        };
        if let Some(closed) =
            self.ages.overstayed(self.phase.get(), due, &self.pool.config(), &self.pool.stats)
        {
            let pool = &*self.pool.config().name;
            tracing::debug!(client = self.id, pool, reason = %closed, unsent, "a client has overstayed its time");
            self.end(closed);
        }
    }

    /// Whether `out_hard`, which is met, is enforced.
    #[cold]
    pub(super) fn is_past_hard(&self) -> bool {
        self.ages.note(OUT_HARD, &self.pool.stats.over_out_hard);
        !self.pool.config().out_hard.only_counts()
    }
}
