//! How many keys have another server in one topology than in another.

use std::fmt;

use super::{Draw, Owner, Ring, Topology};
use crate::config::{Distribution, Pool};

/// The keys of a pool that move between two topologies. Servers are the same when their names are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moves {
    /// None.
    Nothing,
    /// This part of them, in percent; of a ring it is exact for a hash that spreads well, else drawn from
    /// [`SAMPLES`].
    Percent(f64),
    /// All, since they are looked for in another database of the same servers.
    Database,
    /// Keys have no place with `distribution: random`.
    Nowhere,
}

/// Hash values, or keys, that are drawn where the two rings cannot be laid over each other.
pub const SAMPLES: u32 = 65_536;

impl Moves {
    /// Compares two topologies, each with the pool that it is of.
    pub fn between(old: (&Pool, &Topology), new: (&Pool, &Topology)) -> Self {
        let ((old_pool, old), (new_pool, new)) = (old, new);
        if [old_pool, new_pool].iter().any(|pool| pool.distribution == Distribution::Random) {
            let same = old_pool.distribution == new_pool.distribution;
            return if same { Self::Nothing } else { Self::Nowhere };
        }
        if old_pool.redis_db != new_pool.redis_db {
            return Self::Database;
        }
        let names = Names { old: old_pool, new: new_pool };
        let percent = match (&old.owner, &new.owner) {
            (Owner::Ring(Ring::Ketama(a)), Owner::Ring(Ring::Ketama(b))) if old.hash == new.hash => {
                names.laid_over(a, b)
            }
            _ => names.sampled(old, new),
        };
        if percent == 0.0 { Self::Nothing } else { Self::Percent(percent) }
    }

    /// Whether every key stays where it is.
    pub fn is_none(self) -> bool {
        self == Self::Nothing
    }
}

impl fmt::Display for Moves {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("no key moves"),
            Self::Percent(percent) if *percent < 0.01 => f.write_str("less than 0.01% of the keys move"),
            Self::Percent(percent) => write!(f, "{percent:.2}% of the keys move"),
            Self::Database => f.write_str("100% of the keys move (another redis_db)"),
            Self::Nowhere => f.write_str("keys have no place with distribution: random"),
        }
    }
}

struct Names<'a> {
    old: &'a Pool,
    new: &'a Pool,
}

impl Names<'_> {
    /// Exact: between two neighbouring points of either ring all hash values have the same two owners.
    fn laid_over(&self, a: &super::Continuum, b: &super::Continuum) -> f64 {
        let mut ends: Vec<u32> = a.points().chain(b.points()).map(|(value, _)| value).collect();
        ends.push(u32::MAX);
        ends.sort_unstable();
        ends.dedup();
        let mut moved = 0;
        let mut from = 0;
        for end in ends {
            if self.old.servers[a.server(end).index()].name != self.new.servers[b.server(end).index()].name {
                moved += u64::from(end) + 1 - from;
            }
            from = u64::from(end) + 1;
        }
        100.0 * moved as f64 / 2f64.powi(32)
    }

    fn sampled(&self, old: &Topology, new: &Topology) -> f64 {
        let draw = Draw::seeded(1);
        let moved = (0..SAMPLES).filter(|_| {
            let key = format!("{:08x}{:08x}", draw.below(u32::MAX), draw.below(u32::MAX));
            let name = |topology: &Topology, pool: &Pool| {
                topology.server(key.as_bytes(), &draw).map(|server| pool.servers[server.index()].name.clone())
            };
            name(old, self.old) != name(new, self.new)
        });
        100.0 * moved.count() as f64 / f64::from(SAMPLES)
    }
}
