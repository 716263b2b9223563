//! Who owns a key.

use std::sync::Arc;

use crate::config::Config;

/// Index of a pool inside one generation (`Config::pools`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolIx(pub u16);

/// Index of a server inside one pool of one generation (`Pool::servers`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerIx(pub u16);

/// Everything that workers share, immutable; a new one is published as a whole.
#[derive(Debug)]
pub struct Generation {
    /// Counts up from 1.
    pub number: u64,
    /// The configuration it was made from.
    pub config: Arc<Config>,
    /// Owner of the keys of each pool, by `PoolIx`.
    pub pools: Vec<Topology>,
}

/// The owners of one pool's keys now.
#[derive(Debug)]
pub struct Topology {}

// === Placeholder: the real one comes with its own branch. ===

impl Generation {
    /// The first generation: every server live.
    pub fn first(config: Arc<Config>) -> Self {
        let pools = config.pools.iter().map(|_| Topology {}).collect();
        Self { number: 1, config, pools }
    }

    /// The next generation: in one pool only the servers marked `true` own keys.
    pub fn with_live(&self, _pool: PoolIx, _live: &[bool]) -> Self {
        let pools = self.config.pools.iter().map(|_| Topology {}).collect();
        Self { number: self.number + 1, config: self.config.clone(), pools }
    }
}

/// Where a key goes, and why.
#[derive(Debug)]
pub struct Explanation(String);

impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// Explains where `key` goes.
pub fn explain(pool: &crate::config::Pool, _topology: &Topology, key: &[u8]) -> Explanation {
    let server = &pool.servers[key.len() % pool.servers.len()];
    Explanation(format!("key={} server={}", key.escape_ascii(), server.name))
}
