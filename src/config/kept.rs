//! What of one configuration is still there in the next: pools and servers, known by their names.

use std::collections::HashMap;

use super::{Config, Pool};

/// For each pool of the new configuration, in its order, where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// By the new index.
    pub pools: Vec<KeptPool>,
}

/// A pool of the new configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPool {
    /// The index that the pool of its name had; `None`: it is new.
    pub was: Option<usize>,
    /// For each of its servers, the index that the server of that name had in that pool.
    pub servers: Vec<Option<usize>>,
}

impl Kept {
    /// Compares by name.
    pub fn between(old: &Config, new: &Config) -> Self {
        let known = places(old.pools.iter().map(|pool| pool.name.as_str()));
        let kept = |pool: &Pool| {
            let was = known.get(pool.name.as_str()).copied();
            let before = was.map_or(&[][..], |was| &old.pools[was].servers);
            let known = places(before.iter().map(|server| server.name.as_str()));
            let servers = pool.servers.iter().map(|server| known.get(server.name.as_str()).copied());
            KeptPool { was, servers: servers.collect() }
        };
        Self { pools: new.pools.iter().map(kept).collect() }
    }

    /// Makes something for every pool of the new configuration: from what the old one had there, or anew.
    pub fn carry<T, U>(&self, old: &[T], mut make: impl FnMut(&KeptPool, Option<&T>) -> U) -> Vec<U> {
        self.pools.iter().map(|pool| make(pool, pool.was.and_then(|was| old.get(was)))).collect()
    }
}

impl KeptPool {
    /// Makes something for every server of the pool: from what the old one had there, or anew.
    pub fn carry<T, U>(&self, old: &[T], mut make: impl FnMut(Option<&T>) -> U) -> Vec<U> {
        self.servers.iter().map(|was| make(was.and_then(|was| old.get(was)))).collect()
    }
}

fn places<'a>(names: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    names.zip(0..).collect()
}
