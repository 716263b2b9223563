//! What changes between two configurations.

use std::fmt;

use super::length_first;
use super::{Config, Pool, Server};

/// One difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A process-wide setting.
    Process(&'static str),
    /// A pool that wasn't there.
    PoolAdded(String),
    /// A pool that isn't there any more.
    PoolRemoved(String),
    /// A setting of a pool that stays.
    Setting {
        /// The pool.
        pool: String,
        /// The key.
        key: &'static str,
    },
    /// A server that wasn't there.
    ServerAdded {
        /// The pool.
        pool: String,
        /// The server's name.
        server: String,
    },
    /// A server that isn't there any more.
    ServerRemoved {
        /// The pool.
        pool: String,
        /// The server's name.
        server: String,
    },
    /// The address of a server that stays.
    ServerMoved {
        /// The pool.
        pool: String,
        /// The server's name.
        server: String,
    },
    /// The weight of a server that stays.
    ServerWeight {
        /// The pool.
        pool: String,
        /// The server's name.
        server: String,
    },
}

/// All differences: process-wide ones, then pool by pool. Where a file was read from and its warnings are none.
pub fn diff(old: &Config, new: &Config) -> Vec<Change> {
    let mut changes = process(old, new);
    for pair in pairs(&old.pools, &new.pools, |pool| &pool.name) {
        match pair {
            Pair::Old(pool) => changes.push(Change::PoolRemoved(pool.name.clone())),
            Pair::New(pool) => changes.push(Change::PoolAdded(pool.name.clone())),
            Pair::Both(old, new) => {
                changes.extend(settings(old, new));
                changes.extend(servers(old, new));
            }
        }
    }
    changes
}

// === impl Change ===

impl Change {
    /// Whether a reload can't bring it about.
    pub fn needs_restart(&self) -> bool {
        matches!(self, Self::Process("threads" | "log_format"))
    }

    /// Whether keys of a pool that stays may be looked for on another server than before.
    pub fn moves_keys(&self) -> bool {
        match self {
            Self::Setting { key, .. } => {
                matches!(*key, "hash" | "hash_tag" | "hash_char" | "distribution" | "redis_db")
            }
            Self::ServerAdded { .. } | Self::ServerRemoved { .. } | Self::ServerWeight { .. } => true,
            Self::ServerMoved { .. } | Self::Process(_) | Self::PoolAdded(_) | Self::PoolRemoved(_) => false,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process(key) => write!(f, "{}.{key} changed", super::PROCESS_SECTION)?,
            Self::PoolAdded(pool) => write!(f, "pool {pool:?} added")?,
            Self::PoolRemoved(pool) => write!(f, "pool {pool:?} removed")?,
            Self::Setting { pool, key } => write!(f, "pool {pool:?}: {key} changed")?,
            Self::ServerAdded { pool, server } => write!(f, "pool {pool:?}: server {server:?} added")?,
            Self::ServerRemoved { pool, server } => write!(f, "pool {pool:?}: server {server:?} removed")?,
            Self::ServerMoved { pool, server } => {
                write!(f, "pool {pool:?}: address of server {server:?} changed")?
            }
            Self::ServerWeight { pool, server } => {
                write!(f, "pool {pool:?}: weight of server {server:?} changed")?
            }
        }
        if self.needs_restart() { f.write_str(" (needs a restart)") } else { Ok(()) }
    }
}

/// The names of those fields that differ. All fields must be named, here or as left out, so none is forgotten.
macro_rules! changed {
    ($type:ident, $old:expr, $new:expr, [$($field:ident),* $(,)?], left out: [$($rest:ident),* $(,)?]) => {{
        let $type { $($field: _,)* $($rest: _,)* } = $new;
        let mut names = Vec::new();
        $(if $old.$field != $new.$field { names.push(stringify!($field)); })*
        names
    }};
}

fn process(old: &Config, new: &Config) -> Vec<Change> {
    use super::Process;

    let (old, new) = (&old.process, &new.process);
    let names = changed!(Process, old, new, [threads, max_clients, drain_timeout, log_format], left out: []);
    names.into_iter().map(Change::Process).collect()
}

fn settings(old: &Pool, new: &Pool) -> Vec<Change> {
    use crate::hash::KeyHash;

    let mut names = changed!(
        Pool, old, new,
        [
            listen, distribution, timeout, backlog, client_connections, tcpkeepalive, reuseport, redis_auth, redis_db,
            preconnect, auto_eject_hosts, server_connections, server_retry_timeout, server_failure_limit, ping,
            readmit, read_only, connect_timeout, max_pending, out_soft, out_hard, max_bulk, max_args, max_inline,
        ],
        left out: [name, servers, hash]
    );
    for field in changed!(KeyHash, old.hash, new.hash, [algorithm, char_sign, tag], left out: []) {
        names.push(match field {
            "algorithm" => "hash",
            "char_sign" => "hash_char",
            _ => "hash_tag",
        });
    }
    names.into_iter().map(|key| Change::Setting { pool: new.name.clone(), key }).collect()
}

fn servers(old: &Pool, new: &Pool) -> Vec<Change> {
    let mut changes = Vec::new();
    let pool = || new.name.clone();
    for pair in pairs(&old.servers, &new.servers, |server| &server.name) {
        match pair {
            Pair::Old(gone) => {
                changes.push(Change::ServerRemoved { pool: pool(), server: gone.name.clone() });
            }
            Pair::New(come) => changes.push(Change::ServerAdded { pool: pool(), server: come.name.clone() }),
            Pair::Both(old, new) => {
                let Server { name: _, pname: _, endpoint, weight } = new;
                if old.endpoint != *endpoint {
                    changes.push(Change::ServerMoved { pool: pool(), server: new.name.clone() });
                }
                if old.weight != *weight {
                    changes.push(Change::ServerWeight { pool: pool(), server: new.name.clone() });
                }
            }
        }
    }
    changes
}

/// An item by name in one of two lists, or in both.
enum Pair<'a, T> {
    Old(&'a T),
    New(&'a T),
    Both(&'a T, &'a T),
}

/// Merges two lists that are in twemproxy's order of names.
fn pairs<'a, T>(
    mut old: &'a [T],
    mut new: &'a [T],
    name: impl Fn(&T) -> &String + 'a,
) -> impl Iterator<Item = Pair<'a, T>> {
    std::iter::from_fn(move || {
        let order = match (old.first(), new.first()) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => length_first(name(old), name(new)),
        };
        let from_old = if order.is_le() { old.split_off_first() } else { None };
        let from_new = if order.is_ge() { new.split_off_first() } else { None };
        match (from_old, from_new) {
            (Some(old), Some(new)) => Some(Pair::Both(old, new)),
            (Some(old), None) => Some(Pair::Old(old)),
            (None, Some(new)) => Some(Pair::New(new)),
            (None, None) => None,
        }
    })
}
