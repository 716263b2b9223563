//! Memory for what waits, of the whole process: one bound over all buffers together.
//!
//! Counted are replies that clients haven't taken, requests that are here in part or wait for their turn, requests that servers
//! haven't taken, and replies that are here in part. Each worker counts for itself and tells the others in steps, so that counting
//! touches no shared memory on the common path, on which nothing waits for longer than a turn.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::units::Limit;

/// `max_buffers`, and how much of it is in use. Shared by all workers.
#[derive(Debug, Default)]
pub struct Budget {
    bytes: AtomicI64,
    /// Who has something in it: clients, and connections to servers.
    holders: AtomicI64,
    at: AtomicU64,
    only_counts: AtomicBool,
    spent: AtomicBool,
}

/// What one worker has in the budget.
#[derive(Debug, Default)]
pub struct Account {
    budget: Arc<Budget>,
    /// Not told to the budget yet.
    bytes: Cell<i64>,
    holders: Cell<i64>,
}

/// What one holder has in the budget; it gives all of it back when it is dropped.
#[derive(Debug, Default)]
pub struct Charge {
    account: Option<Rc<Account>>,
    bytes: usize,
}

/// A worker tells the others when it has taken or given back so much.
const STEP: i64 = 64 << 10;

impl Budget {
    /// Nothing in use; `limit` in bytes.
    pub fn new(limit: Limit<usize>) -> Self {
        let budget = Self::default();
        budget.set_limit(limit);
        budget
    }

    /// Another limit from now on; what is in use stays.
    pub fn set_limit(&self, limit: Limit<usize>) {
        self.only_counts.store(limit.only_counts(), Ordering::Relaxed);
        self.at.store(limit.bound().map_or(u64::MAX, |bytes| bytes as u64), Ordering::Relaxed);
        self.judge(self.bytes.load(Ordering::Relaxed));
    }

    /// Bytes in use, as far as the workers have told: at most 64 KiB each are missing.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0) as u64
    }

    fn add(&self, bytes: i64, holders: i64) {
        self.holders.fetch_add(holders, Ordering::Relaxed);
        self.judge(self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes);
    }

    fn judge(&self, bytes: i64) {
        let spent = bytes.max(0) as u64 >= self.at.load(Ordering::Relaxed);
        // Read by everyone: written only when it changes.
        if self.spent.load(Ordering::Relaxed) != spent {
            self.spent.store(spent, Ordering::Relaxed);
        }
    }
}

impl Account {
    /// A worker's account, empty.
    pub fn new(budget: Arc<Budget>) -> Self {
        Self { budget, bytes: Cell::new(0), holders: Cell::new(0) }
    }

    /// One holder had `before` bytes and has `now`.
    #[inline]
    pub fn change(&self, before: usize, now: usize) {
        if before != now {
            let bytes = self.bytes.get() + now as i64 - before as i64;
            self.bytes.set(bytes);
            self.holders.set(self.holders.get() + i64::from(now > 0) - i64::from(before > 0));
            if bytes.abs() >= STEP {
                self.tell();
            }
        }
    }

    #[cold]
    fn tell(&self) {
        self.budget.add(self.bytes.take(), self.holders.take());
    }

    /// Whether there is a limit, and it is met, in effect or only observed.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.budget.spent.load(Ordering::Relaxed)
    }

    /// With the budget spent: whether a holder of `bytes` has its fair part, and must not get more. That part is the mean of what
    /// all have, so that there is always one who has to stop, and it is never one of those who take little.
    pub fn is_due(&self, bytes: usize) -> bool {
        let holders = self.budget.holders.load(Ordering::Relaxed).max(1) as u64;
        bytes > 0 && bytes as u64 >= self.budget.bytes() / holders
    }

    /// Whether one message of so many bytes could never be taken.
    pub fn exceeds(&self, bytes: usize) -> bool {
        bytes as u64 >= self.budget.at.load(Ordering::Relaxed)
    }

    /// Whether so many bytes more can't be taken now.
    pub fn lacks(&self, bytes: usize) -> bool {
        let at = self.budget.at.load(Ordering::Relaxed);
        self.budget.bytes().saturating_add(bytes as u64) > at
    }

    /// Whether what is beyond the limit is only counted.
    pub fn only_counts(&self) -> bool {
        self.budget.only_counts.load(Ordering::Relaxed)
    }
}

impl Charge {
    /// The holder has `bytes` now.
    #[inline]
    pub fn set(&mut self, account: &Rc<Account>, bytes: usize) {
        if self.bytes != bytes {
            account.change(self.bytes, bytes);
            self.bytes = bytes;
            self.account = (bytes > 0).then(|| Rc::clone(account));
        }
    }

    /// The holder has nothing any more.
    #[inline]
    pub fn clear(&mut self) {
        if let Some(account) = self.account.take() {
            account.change(std::mem::take(&mut self.bytes), 0);
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Mode;

    const MB: usize = 1 << 20;

    fn worker(budget: &Arc<Budget>) -> Rc<Account> {
        Rc::new(Account::new(Arc::clone(budget)))
    }

    #[test]
    fn whoever_has_most_stops_first_and_who_has_little_goes_on() {
        let budget = Arc::new(Budget::new(Limit::enforced(10 * MB)));
        let (one, other) = (worker(&budget), worker(&budget));
        let mut charges = [Charge::default(), Charge::default(), Charge::default()];
        charges[0].set(&one, 6 * MB);
        charges[1].set(&other, 2 * MB);
        assert!(!one.is_spent() && !other.is_spent());
        assert!(!one.lacks(MB) && one.lacks(3 * MB) && !one.exceeds(9 * MB) && one.exceeds(10 * MB));
        charges[2].set(&other, 3 * MB);
        assert!(one.is_spent() && other.is_spent(), "one bound for all workers");
        assert_eq!([6, 2, 3].map(|mb| one.is_due(mb * MB)), [true, false, false]);
        charges[0].set(&one, MB);
        assert!(!one.is_spent());
        drop(charges);
        assert_eq!((budget.bytes(), budget.holders.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn without_a_limit_it_is_never_spent() {
        let budget = Arc::new(Budget::new(Limit::off()));
        let account = worker(&budget);
        let mut charge = Charge::default();
        charge.set(&account, 100 * MB);
        assert!(!account.is_spent() && !account.lacks(100 * MB));
        budget.set_limit(Limit { at: MB, mode: Mode::Observe });
        assert!(account.is_spent() && account.only_counts());
    }

    #[test]
    fn small_changes_stay_with_the_worker() {
        let budget = Arc::new(Budget::new(Limit::enforced(MB)));
        let account = worker(&budget);
        let mut charge = Charge::default();
        (0..100).for_each(|n| charge.set(&account, n % 2 * 1000));
        assert_eq!(budget.bytes(), 0);
        charge.set(&account, 2 * MB);
        assert_eq!(budget.bytes(), 2 * MB as u64);
    }
}
