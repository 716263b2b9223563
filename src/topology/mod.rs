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
