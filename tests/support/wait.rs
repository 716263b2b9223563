//! Bounded waiting.

use std::time::{Duration, Instant};

/// How long a test waits for what should happen at once: generous, since two slow cores may run many tests.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Time between two looks.
const STEP: Duration = Duration::from_millis(5);

/// Looks until `condition` holds; panics with `what` when it doesn't within `limit`.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, condition: impl FnMut() -> bool) {
    assert!(poll(limit, condition), "waited {limit:?} in vain for: {what}");
}

/// Looks until `condition` holds; whether it did within `limit`.
pub fn poll(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(STEP);
    }
}
