//! How fast a client may go: a token bucket, and pauses.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Requests that a client may still send at once; they come back at a steady rate (`client_rate`).
#[derive(Debug)]
pub struct Bucket {
    /// A second, and most that it holds.
    rate: f64,
    /// How many it held, and when.
    held: Cell<(f64, Instant)>,
}

/// Wrong passwords in a row that cost nothing.
const FREE_FAILURES: u32 = 3;
/// The pause behind the next one; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest.
const LONGEST_DOUBLINGS: u32 = 6;

impl Bucket {
    /// A full one.
    pub fn new(rate: u32, now: Instant) -> Self {
        let rate = f64::from(rate.max(1));
        Self { rate, held: Cell::new((rate, now)) }
    }

    /// Takes one. The error: how long it takes until there is one.
    pub fn take(&self, now: Instant) -> Result<(), Duration> {
        let (held, then) = self.held.get();
        let since = now.saturating_duration_since(then).as_secs_f64();
        let held = (held + since * self.rate).min(self.rate);
        if held >= 1.0 {
            self.held.set((held - 1.0, now));
            return Ok(());
        }
        self.held.set((held, now));
        Err(Duration::from_secs_f64((1.0 - held) / self.rate).max(Duration::from_millis(1)))
    }

    /// Gives one back that was taken for nothing.
    pub fn put_back(&self) {
        let (held, then) = self.held.get();
        self.held.set((held + 1.0, then));
    }
}

/// How long a client waits before its next request is looked at, after so many wrong passwords in a row.
pub fn penalty(failures: u32) -> Option<Duration> {
    let beyond = failures.checked_sub(FREE_FAILURES)?;
    Some(FIRST_PAUSE * 2u32.pow(beyond.min(LONGEST_DOUBLINGS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_rate_and_no_more() {
        let start = Instant::now();
        let bucket = Bucket::new(10, start);
        assert_eq!((0..20).filter(|_| bucket.take(start).is_ok()).count(), 10, "as many at once");
        assert_eq!(bucket.take(start), Err(Duration::from_millis(100)));
        let later = start + Duration::from_millis(250);
        assert_eq!((0..20).filter(|_| bucket.take(later).is_ok()).count(), 2);
        let much_later = start + Duration::from_secs(3600);
        assert_eq!((0..20).filter(|_| bucket.take(much_later).is_ok()).count(), 10);
        bucket.put_back();
        assert_eq!((0..20).filter(|_| bucket.take(much_later).is_ok()).count(), 1);
        // A clock that seems to go back gives nothing.
        assert!(bucket.take(start).is_err());
    }

    #[test]
    fn wrong_passwords_cost_more_and_more_time_up_to_a_bound() {
        assert_eq!([0, 2].map(penalty), [None, None]);
        let pauses = [3, 4, 5, 9, 1000].map(|failures| penalty(failures).unwrap().as_millis());
        assert_eq!(pauses, [100, 200, 400, 6400, 6400]);
    }
}
