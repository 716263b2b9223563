//! A point in time that costs nothing to compare.

use std::ops::{Add, AddAssign, Sub};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Microseconds since the first time that this process was told.
///
/// Every request has two of these and three differences are taken of them; with [`Instant`], seconds and nanoseconds apart, the
/// differences alone were a twentieth of the instructions of a pipelined request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(u64);

static START: OnceLock<Instant> = OnceLock::new();

impl Moment {
    /// What a clock says. Before the first one is told it is that one.
    pub fn at(instant: Instant) -> Self {
        let start = *START.get_or_init(|| instant);
        Self(instant.saturating_duration_since(start).as_micros() as u64)
    }

    /// Microseconds from `earlier` until then; 0 if they are the wrong way round.
    #[inline]
    pub fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The time from `earlier` until then.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.micros_since(earlier))
    }

    /// For timers.
    pub fn instant(self) -> Instant {
        let start = START.get().expect("a moment is made of a time that was told");
        *start + Duration::from_micros(self.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time.as_micros() as u64)
    }
}

impl AddAssign<Duration> for Moment {
    fn add_assign(&mut self, time: Duration) {
        *self = *self + time;
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    /// Not before the start.
    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(time.as_micros() as u64))
    }
}
