//! What one thread counts, handed on in samples.

use hdrhistogram::Histogram;

use super::fault::Faults;

/// Latencies are kept in nanoseconds, to three digits, up to a minute; what is longer counts as a minute.
const LONGEST_NS: u64 = 60_000_000_000;
/// Steps below which latencies need not be told apart, in nanoseconds.
const SHORTEST_NS: u64 = 256;

/// Counts since the last sample.
#[derive(Debug)]
pub struct Tally {
    /// Latencies of requests that were answered as they should be.
    pub latency: Histogram<u64>,
    /// All other requests, and attempts to connect, by kind.
    pub faults: Faults,
    /// When the last reply came, in nanoseconds of the turn's clock.
    pub last_reply: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self { latency: latencies(), faults: Faults::default(), last_reply: 0 }
    }
}

impl Tally {
    /// One request answered as it should be.
    #[inline]
    pub fn answered(&mut self, nanoseconds: u64) {
        self.latency.saturating_record(nanoseconds);
    }

    /// Adds a sample.
    pub fn merge(&mut self, sample: &Self) {
        self.faults.merge(&sample.faults);
        self.last_reply = self.last_reply.max(sample.last_reply);
        // Both have the same bounds, so that nothing can be out of range.
        let _ = self.latency.add(&sample.latency);
    }
}

/// An empty histogram of latencies in nanoseconds.
pub fn latencies() -> Histogram<u64> {
    Histogram::new_with_bounds(SHORTEST_NS, LONGEST_NS, 3)
        .expect("the bounds are constants that the crate accepts")
}
