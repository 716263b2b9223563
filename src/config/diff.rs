//! What changes between two configurations.

use std::fmt;

use crate::units::Quoted;

use super::{Config, Pool, Server, length_first};

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
        match self {
            Self::Process(key) => matches!(*key, "threads" | "log_format" | "metrics" | "admin" | "handover"),
            // The sockets of one address must all have the option from the start.
            Self::Setting { key, .. } => *key == "reuseport",
            _ => false,
        }
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
            Self::PoolAdded(pool) => write!(f, "pool {} added", Quoted(pool))?,
            Self::PoolRemoved(pool) => write!(f, "pool {} removed", Quoted(pool))?,
            Self::Setting { pool, key } => write!(f, "pool {}: {key} changed", Quoted(pool))?,
            Self::ServerAdded { pool, server } => {
                write!(f, "pool {}: server {} added", Quoted(pool), Quoted(server))?;
            }
            Self::ServerRemoved { pool, server } => {
                write!(f, "pool {}: server {} removed", Quoted(pool), Quoted(server))?;
            }
            Self::ServerMoved { pool, server } => {
                write!(f, "pool {}: address of server {} changed", Quoted(pool), Quoted(server))?;
            }
            Self::ServerWeight { pool, server } => {
                write!(f, "pool {}: weight of server {} changed", Quoted(pool), Quoted(server))?;
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
    let names = changed!(
        Process, old, new,
        [
            threads, max_clients, max_buffers, drain_timeout, log_format, metrics, admin, admin_password, slowlog_slower_than,
            hot_keys,             reload_on_hup, reload_on_change, handover,
        ],
        left out: []
    );
    names.into_iter().map(Change::Process).collect()
}

fn settings(old: &Pool, new: &Pool) -> Vec<Change> {
    use crate::hash::KeyHash;

    let mut names = changed!(
        Pool, old, new,
        [
            listen, distribution, timeout, backlog, client_connections, tcpkeepalive, reuseport, redis_auth, redis_db, databases,
            preconnect, auto_eject_hosts, server_connections, server_retry_timeout, server_failure_limit, proxy_protocol, ping,
            readmit, probe_interval, probe_rise, max_ejected, read_only, learn_commands, commands, connect_timeout, max_leases, max_pending, out_soft,
            out_hard, out_stall, server_queue, client_rate, clients_per_address, idle_timeout, first_request_timeout, max_bulk,
            max_args, max_inline,
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn config(pools: &[(&str, &str)]) -> Config {
        let pools = pools.iter().zip(1..).map(|((name, rest), port)| {
            format!("{name}: {{listen: 127.0.0.1:{port}, redis: true, {rest}}}\n")
        });
        let text: String = pools.collect();
        Config::parse(&text, Path::new("a.yml"), |_| None).unwrap_or_else(|errors| panic!("{errors}"))
    }

    fn told(old: &[(&str, &str)], new: &[(&str, &str)]) -> Vec<String> {
        diff(&config(old), &config(new)).iter().map(Change::to_string).collect()
    }

    #[test]
    fn pools_and_servers_come_and_go() {
        let old = [("a", "servers: [h:1:1 one, h:2:1 two, h:3:1 three]"), ("b", "servers: [h:1:1]")];
        let new = [("a", "servers: [h:9:1 two, h:3:5 three, h:4:1 four]"), ("cc", "servers: [h:1:1]")];
        assert_eq!(
            told(&old, &new),
            [
                "pool 'a': server 'one' removed",
                "pool 'a': address of server 'two' changed",
                "pool 'a': server 'four' added",
                "pool 'a': weight of server 'three' changed",
                "pool 'b' removed",
                "pool 'cc' added",
            ]
        );
    }

    #[test]
    fn settings_are_named_by_their_keys() {
        let old = [("a", "hash: md5, servers: [h:1:1]")];
        let new = [("a", "hash: murmur, hash_tag: '{}', timeout: 5, redis_auth: x, servers: [h:1:1]")];
        assert_eq!(
            told(&old, &new),
            [
                "pool 'a': timeout changed",
                "pool 'a': redis_auth changed",
                "pool 'a': hash changed",
                "pool 'a': hash_tag changed",
            ]
        );
    }

    #[test]
    fn what_moves_keys_and_what_needs_a_restart() {
        let setting = |key| Change::Setting { pool: "a".to_owned(), key };
        assert!(setting("hash_tag").moves_keys() && !setting("timeout").moves_keys());
        let (pool, server) = ("a".to_owned(), "b".to_owned());
        assert!(Change::ServerAdded { pool: pool.clone(), server: server.clone() }.moves_keys());
        // A named server keeps its keys wherever it moves.
        assert!(!Change::ServerMoved { pool, server }.moves_keys());
        assert!(
            Change::Process("threads").needs_restart() && !Change::Process("drain_timeout").needs_restart()
        );
        assert_eq!(Change::Process("threads").to_string(), "shardwise.threads changed (needs a restart)");
    }
}
