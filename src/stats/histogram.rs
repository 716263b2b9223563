//! How often something took how long: one thread adds, others read.
//!
//! Buckets are log-linear: eight to each power of two, from 1 µs to a minute, so that a value is known to an eighth.
//! Adding is an index, computed without a branch that depends on the value's size, and two plain stores.

use std::sync::OnceLock;

use super::Cell;

/// Buckets to a power of two.
const STEPS: u64 = 8;
/// log2 of `STEPS`.
const STEP_BITS: u32 = 3;
/// Values from 2 to this power of microseconds on, 67 seconds, share the last bucket.
const TOP_BITS: u32 = 26;
const BUCKETS: usize = (TOP_BITS - STEP_BITS + 1) as usize * STEPS as usize + 1;

/// Most commands that can have a histogram of their own.
pub const MOST_COMMANDS: usize = 1024;

/// A histogram of microseconds.
pub struct Histogram {
    buckets: [Cell; BUCKETS],
    /// Microseconds.
    sum: Cell,
}

/// What one or several histograms held at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    counts: Vec<u64>,
    /// Sum of all values, in microseconds.
    pub sum: u64,
}

/// A histogram for each command that was used, by the command's index.
pub struct CommandTimes {
    /// Made when a command is first used: most never are.
    histograms: Box<[OnceLock<Box<Histogram>>]>,
}

// === impl Histogram ===

impl Histogram {
    /// Adds a value. Only the owning thread may call it.
    #[inline]
    pub fn record(&self, micros: u64) {
        self.buckets[bucket(micros)].add(1);
        self.sum.add(micros);
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| Cell::default()), sum: Cell::default() }
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut snapshot = Snapshot::default();
        snapshot.add(self);
        write!(f, "Histogram(count {}, sum {} µs)", snapshot.count(), snapshot.sum)
    }
}

#[inline]
fn bucket(micros: u64) -> usize {
    let capped = micros.min(1 << TOP_BITS);
    if capped < STEPS {
        return capped as usize;
    }
    let power = capped.ilog2();
    let step = (capped >> (power - STEP_BITS)) & (STEPS - 1);
    (u64::from(power - STEP_BITS + 1) * STEPS + step) as usize
}

/// The least value that is beyond a bucket.
fn end(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < STEPS {
        return bucket + 1;
    }
    let shift = bucket / STEPS - 1;
    (STEPS + bucket % STEPS + 1) << shift
}

// === impl Snapshot ===

impl Default for Snapshot {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], sum: 0 }
    }
}

impl Snapshot {
    /// Adds what a histogram holds now.
    pub fn add(&mut self, histogram: &Histogram) {
        for (count, cell) in self.counts.iter_mut().zip(&histogram.buckets) {
            *count += cell.value();
        }
        self.sum = self.sum.wrapping_add(histogram.sum.value());
    }

    /// Adds what another snapshot holds.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum = self.sum.wrapping_add(other.sum);
    }

    /// Each bucket: the least number of microseconds beyond it, and how many values it has.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().enumerate().map(|(bucket, count)| (end(bucket), *count))
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many are less than 2 to this power of microseconds.
    pub fn below_power(&self, power: u32) -> u64 {
        let buckets = bucket(1 << power.min(TOP_BITS));
        self.counts[..buckets].iter().sum()
    }

    /// A bound in microseconds that this part (0…1) of the values doesn't exceed, an eighth too high at most; 0 when
    /// there is none.
    pub fn quantile(&self, part: f64) -> u64 {
        let count = self.count();
        let wanted = ((count as f64 * part).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (bucket, n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= wanted {
                return end(bucket);
            }
        }
        0
    }
}

// === impl CommandTimes ===

impl Default for CommandTimes {
    fn default() -> Self {
        Self { histograms: (0..MOST_COMMANDS).map(|_| OnceLock::new()).collect() }
    }
}

impl CommandTimes {
    /// Adds a call of the command with this index. Only the owning thread.
    #[inline]
    pub fn record(&self, command: u16, micros: u64) {
        if let Some(place) = self.histograms.get(usize::from(command)) {
            place.get_or_init(Box::default).record(micros);
        }
    }

    /// The commands that were used, with their histograms.
    pub fn used(&self) -> impl Iterator<Item = (u16, &Histogram)> {
        let used = (0..).zip(&self.histograms);
        used.filter_map(|(command, place)| Some((command, &**place.get()?)))
    }
}

impl std::fmt::Debug for CommandTimes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.used()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn snapshot(values: &[u64]) -> Snapshot {
        let histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        let mut snapshot = Snapshot::default();
        snapshot.add(&histogram);
        snapshot
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        for i in 0..BUCKETS - 1 {
            assert_eq!(bucket(end(i) - 1), i);
            assert_eq!(bucket(end(i)), i + 1);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_and_bounds_of_a_few_values() {
        let snapshot = snapshot(&[1, 2, 3, 100, 100_000]);
        assert_eq!((snapshot.count(), snapshot.sum), (5, 100_106));
        assert_eq!(snapshot.quantile(0.5), 4);
        assert!((100_000..=112_500).contains(&snapshot.quantile(0.99)));
        assert_eq!((snapshot.below_power(0), snapshot.below_power(2), snapshot.below_power(7)), (0, 3, 4));
        assert_eq!(super::Snapshot::default().quantile(0.99), 0);
    }

    proptest! {
        #[test]
        fn a_quantile_is_an_eighth_too_high_at_most(mut values in prop::collection::vec(0_u64..60_000_000, 1..50), part in 0.0..1.0) {
            let found = snapshot(&values).quantile(part);
            values.sort_unstable();
            let rank = ((values.len() as f64 * part).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            prop_assert!(found > exact && found <= exact + exact / 8 + 1, "{found} for {exact}");
        }
    }
}
