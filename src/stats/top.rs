//! The heaviest of many, in little memory.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The names with the greatest weights of a stream, by the space-saving algorithm (Metwally et al., 2005): whoever has more
/// than 1/[`Top::KEPT`] of the whole weight is there, and its weight is at most `error` too much.
#[derive(Debug, Default)]
pub struct Top {
    /// Hashes of pool and name, apart so that looking through them touches little memory.
    ids: Vec<u64>,
    heavy: Vec<Heavy>,
    total: u64,
}

/// One name and what it weighs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heavy {
    /// Number of its pool.
    pub pool: u32,
    /// The first [`Top::SHOWN`] bytes of its name.
    pub name: Box<[u8]>,
    /// Everything that was added for it, and `error`.
    pub weight: u64,
    /// What may have been added for others.
    pub error: u64,
    /// The most that was added at once.
    pub largest: u64,
}

impl Top {
    /// Names at once; the lightest makes place for a new one.
    pub const KEPT: usize = 128;

    /// Bytes of a name that are kept to be shown. Names are told apart by all of theirs.
    pub const SHOWN: usize = 256;

    /// Adds `weight` to a name of a pool.
    pub fn add(&mut self, pool: u32, name: &[u8], weight: u64) {
        self.total = self.total.saturating_add(weight);
        let id = id(pool, name);
        let shown = || name[..name.len().min(Self::SHOWN)].into();
        if let Some(at) = self.ids.iter().position(|one| *one == id) {
            let heavy = &mut self.heavy[at];
            heavy.weight = heavy.weight.saturating_add(weight);
            heavy.largest = heavy.largest.max(weight);
        } else if self.ids.len() < Self::KEPT {
            self.ids.push(id);
            self.heavy.push(Heavy { pool, name: shown(), weight, error: 0, largest: weight });
        } else if let Some(at) = (0..self.heavy.len()).min_by_key(|at| self.heavy[*at].weight) {
            let error = self.heavy[at].weight;
            self.ids[at] = id;
            let weight_now = error.saturating_add(weight);
            self.heavy[at] = Heavy { pool, name: shown(), weight: weight_now, error, largest: weight };
        }
    }

    /// All that are kept, in no order.
    pub fn heavy(&self) -> &[Heavy] {
        &self.heavy
    }

    /// The weight of everything, kept or not.
    pub fn total(&self) -> u64 {
        self.total
    }
}

/// The hash is the same in all threads and is not keyed: somebody who works out two names of one hash sees them as one.
fn id(pool: u32, name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (pool, name).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_heavy_is_found_among_many_and_its_error_is_known() {
        let mut top = Top::default();
        for i in 0..100_000_u32 {
            top.add(0, format!("light:{i}").as_bytes(), 1);
            if i % 10 == 0 {
                top.add(0, b"heavy", 2);
            }
        }
        assert_eq!((top.total(), top.heavy().len()), (120_000, Top::KEPT));
        let heavy = top.heavy().iter().max_by_key(|one| one.weight).unwrap();
        assert_eq!(&*heavy.name, b"heavy");
        assert!(heavy.weight >= 20_000 && heavy.weight - heavy.error <= 20_000, "{heavy:?}");
        assert!(heavy.error <= 120_000 / Top::KEPT as u64, "{heavy:?}");
    }

    #[test]
    fn pools_and_long_names_are_told_apart_and_the_largest_is_remembered() {
        let mut top = Top::default();
        let long = |end: u8| [vec![b'k'; 1000], vec![end]].concat();
        for (pool, name, weight) in [(1, long(1), 5), (2, long(1), 7), (1, long(2), 9), (1, long(1), 4)] {
            top.add(pool, &name, weight);
        }
        let told: Vec<_> = top.heavy().iter().map(|one| (one.pool, one.weight, one.largest)).collect();
        assert_eq!(told, [(1, 9, 5), (2, 7, 7), (1, 9, 9)]);
        assert!(top.heavy().iter().all(|one| one.name.len() == Top::SHOWN));
    }
}
