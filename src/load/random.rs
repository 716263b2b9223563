//! Random numbers for keys and mixes: fast and repeatable, not unpredictable.

/// Marsaglia's xorshift64* generator.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Streams of different seeds start far apart, those of neighbouring seeds too.
    pub fn new(seed: u64) -> Self {
        // One step of splitmix64; the state must not be 0.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((z ^ (z >> 31)).max(1))
    }

    /// One of 0…`n`-1; 0 if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d);
        // The high half of a product is uniform enough, without a division.
        ((u128::from(bits) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_about_equally_often_and_a_seed_repeats() {
        let mut counts = [0; 10];
        let mut random = Random::new(7);
        (0..10_000).for_each(|_| counts[random.below(10) as usize] += 1);
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
        assert_eq!(Random::new(0).below(1), 0);
        let drawn = |seed| Random::new(seed).below(1 << 60);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
    }
}
