//! How long to wait before the next attempt to connect.

use std::time::Duration;

/// 50 ms, doubling to 1 s, each ±20% so that many proxies do not knock at once.
#[derive(Debug)]
pub struct Backoff {
    failures: u32,
    seed: u64,
}

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);

impl Backoff {
    /// `seed` makes the jitter of one connection differ from another's.
    pub fn new(seed: u64) -> Self {
        Self { failures: 0, seed: seed.wrapping_mul(2) | 1 }
    }

    /// The wait after one more failure.
    pub fn after_failure(&mut self) -> Duration {
        let wait = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        // xorshift64: any spread will do.
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let percent = 80 + (self.seed % 41) as u32;
        wait * percent / 100
    }

    /// Whether the last attempt failed.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// The server answered.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_to_a_second_with_jitter() {
        let mut backoff = Backoff::new(7);
        for base in [50, 100, 200, 400, 800, 1000, 1000, 1000] {
            let wait = backoff.after_failure().as_millis();
            assert!((base * 8 / 10..=base * 12 / 10).contains(&wait), "{wait} ms for {base} ms");
        }
        backoff.reset();
        assert!(backoff.after_failure().as_millis() <= 60);
    }
}
