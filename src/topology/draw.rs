//! Chance, for `distribution: random`.

use std::cell::Cell;

/// A source of draws that one worker owns: cheap, repeatable from its seed, and not meant for secrets.
///
/// Marsaglia's xorshift with 64 bits of state.
#[derive(Clone, Debug)]
pub struct Draw {
    /// Never 0, which xorshift wouldn't leave.
    state: Cell<u64>,
}

impl Draw {
    /// Starts from `seed`; equal seeds give equal draws. Workers take different ones.
    pub fn seeded(seed: u64) -> Self {
        // An odd multiplier and one more bit: neighbouring seeds get far-apart states, and none gets 0.
        Self { state: Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1) }
    }

    /// A number below `bound`, all about equally often; 0 if `bound` is 0.
    #[inline]
    pub fn below(&self, bound: u32) -> u32 {
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.set(state);
        // The high half is the better one; scaling it costs no division.
        (((state >> 32) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_below_the_bound_and_spread() {
        for seed in [0, 1, 2, u64::MAX] {
            let draw = Draw::seeded(seed);
            let mut seen = [0; 7];
            for _ in 0..7_000 {
                seen[draw.below(7) as usize] += 1;
            }
            assert!(seen.iter().all(|&count| (800..1_200).contains(&count)), "seed {seed}: {seen:?}");
        }
        assert_eq!(Draw::seeded(1).below(0), 0);
        assert_eq!(Draw::seeded(1).below(1), 0);
    }

    #[test]
    fn equal_seeds_draw_alike_and_others_don_t() {
        let run = |seed| {
            let draw = Draw::seeded(seed);
            (0..20).map(|_| draw.below(1_000)).collect::<Vec<_>>()
        };
        assert_eq!(run(5), run(5));
        assert_ne!(run(5), run(6));
        assert_ne!(run(0), run(1));
    }
}
