//! Counters: each defined once, written by one thread and read by others.
//!
//! A worker owns one [`PoolBlock`] per pool and one [`ServerBlock`] per server, and adds with a relaxed load and
//! store (no read-modify-write). The control thread holds the same `Arc`s and sums them when asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread writes and others read. Gauges are counters that also go down.
#[derive(Debug, Default)]
pub struct Cell(AtomicU64);

impl Cell {
    /// Adds `n`. Only the owning thread may call it: concurrent additions would be lost.
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// Subtracts `n` from a gauge. Only the owning thread.
    pub fn sub(&self, n: u64) {
        self.add(n.wrapping_neg());
    }

    /// Sets a gauge or a timestamp. Only the owning thread.
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    /// The value now, from any thread.
    pub fn value(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only goes up.
    Counter,
    /// Goes up and down; 0 when nothing is there.
    Gauge,
    /// A point in time, microseconds since 1970; 0: never.
    Timestamp,
}

/// Name, kind and meaning of one cell, as docs and stats show it.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// twemproxy's name where the meaning is the same.
    pub name: &'static str,
    /// What it counts.
    pub kind: Kind,
    /// One line.
    pub help: &'static str,
}

macro_rules! block {
    ($(#[$doc:meta])* $block:ident { $($name:ident: $kind:ident, $help:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $block {
            $(#[doc = $help] pub $name: Cell,)*
        }

        impl $block {
            /// All cells of this block, in the order of [`Self::cells`].
            pub const DEFINITIONS: &'static [Definition] =
                &[$(Definition { name: stringify!($name), kind: Kind::$kind, help: $help },)*];

            /// All cells, in the order of [`Self::DEFINITIONS`].
            pub fn cells(&self) -> impl Iterator<Item = &Cell> {
                [$(&self.$name,)*].into_iter()
            }
        }
    };
}

block! {
    /// What one worker counts for one pool.
    PoolBlock {
        client_eof: Counter, "client connections closed after the client's EOF";
        client_err: Counter, "client connections closed for any other reason";
        client_connections: Gauge, "open client connections";
        forward_error: Counter, "error replies made by the proxy for client requests";
        fragments: Counter, "parts that multi-key requests were split into";
        client_total: Counter, "client connections accepted, refused ones included";
        client_refused: Counter, "client connections refused by client_connections, max_clients or clients_per_address";
        reply_cut: Counter, "client connections closed because a server failed in the middle of a large reply";
        auth_failures: Counter, "wrong passwords";
        over_client_connections: Counter, "times client_connections or max_clients was met, enforced or observed";
        over_clients_per_address: Counter, "times clients_per_address was met, enforced or observed";
        over_max_pending: Counter, "times max_pending was met, enforced or observed";
        over_out_soft: Counter, "times out_soft was met, enforced or observed";
        over_out_hard: Counter, "times out_hard was met, enforced or observed";
        over_out_stall: Counter, "times out_stall was met, enforced or observed";
        over_client_rate: Counter, "times client_rate was met, enforced or observed";
        over_idle_timeout: Counter, "times idle_timeout was met, enforced or observed";
        over_first_request_timeout: Counter, "times first_request_timeout was met, enforced or observed";
    }
}

block! {
    /// What one worker counts for one server.
    ServerBlock {
        server_eof: Counter, "connections that the server closed";
        server_err: Counter, "connections lost to another error";
        server_timedout: Counter, "connections given up after the timeout";
        server_connections: Gauge, "established connections";
        server_total: Counter, "connections established since start";
        requests: Counter, "requests forwarded, each part of a split one counted";
        request_bytes: Counter, "bytes of them";
        responses: Counter, "replies received for them";
        response_bytes: Counter, "bytes of them";
        over_server_queue: Counter, "requests that met server_queue, enforced or observed";
        in_queue: Gauge, "requests waiting to be written";
        in_queue_bytes: Gauge, "bytes of them";
        out_queue: Gauge, "requests written and awaiting their reply";
        out_queue_bytes: Gauge, "bytes of them";
        leases: Gauge, "connections that one client has for itself: transactions, blocking commands";
        leases_refused: Counter, "requests refused because of max_leases";
        failed_attempts: Gauge, "consecutive failures: attempts to connect, lost connections, timeouts";
        failing_since: Timestamp, "when the first failure of this run happened; 0 while there is none";
        last_success: Timestamp, "when a reply last ended a run of failures or was last noted (at most once a second)";
    }
}

block! {
    /// What one worker counts for itself.
    WorkerBlock {
        clients: Gauge, "open client connections of this worker";
        clients_total: Counter, "client connections that came to this worker, refused ones included";
        generation: Gauge, "number of the generation that this worker works with";
    }
}

/// The cells of one worker, for control to sum. The shape is that of the configuration: pools, and their servers.
#[derive(Debug)]
pub struct WorkerStats {
    /// Its own.
    pub own: Arc<WorkerBlock>,
    /// By `PoolIx`.
    pub pools: Vec<PoolStats>,
}

/// The cells of one pool in one worker.
#[derive(Clone, Debug)]
pub struct PoolStats {
    /// The pool's own.
    pub pool: Arc<PoolBlock>,
    /// By `ServerIx`.
    pub servers: Vec<Arc<ServerBlock>>,
}

impl WorkerStats {
    /// Zeroes for pools with so many servers each.
    pub fn new(servers: impl IntoIterator<Item = usize>) -> Self {
        let pool = |servers| PoolStats {
            pool: Arc::default(),
            servers: (0..servers).map(|_| Arc::default()).collect(),
        };
        Self { own: Arc::default(), pools: servers.into_iter().map(pool).collect() }
    }
}

block! {
    /// What control counts for one pool.
    PoolHealthBlock {
        server_ejects: Counter, "times a server was ejected";
    }
}

block! {
    /// How a pool's clients are spread over the workers; control sets it when it is asked.
    PoolSpreadBlock {
        client_connections_most: Gauge, "open client connections of the worker that has most of this pool's";
        client_connections_least: Gauge, "open client connections of the worker that has fewest of them";
    }
}

block! {
    /// What control notes of one server.
    ServerHealthBlock {
        server_ejected_at: Timestamp, "when the server was last ejected, microseconds since 1970; 0: never";
    }
}

/// twemproxy's numbers of a pool, in its order.
pub const TWEMPROXY_POOL: [&str; 6] =
    ["client_eof", "client_err", "client_connections", "server_ejects", "forward_error", "fragments"];

/// twemproxy's numbers of a server, in its order.
pub const TWEMPROXY_SERVER: [&str; 13] = [
    "server_eof",
    "server_err",
    "server_timedout",
    "server_connections",
    "server_ejected_at",
    "requests",
    "request_bytes",
    "responses",
    "response_bytes",
    "in_queue",
    "in_queue_bytes",
    "out_queue",
    "out_queue_bytes",
];

/// All numbers of a pool in the order in which they are shown: twemproxy's, then our own.
pub fn pool_definitions() -> Vec<Definition> {
    let blocks = [PoolBlock::DEFINITIONS, PoolHealthBlock::DEFINITIONS, PoolSpreadBlock::DEFINITIONS];
    in_order(&blocks, &TWEMPROXY_POOL)
}

/// All numbers of a server in the order in which they are shown: twemproxy's, then our own.
pub fn server_definitions() -> Vec<Definition> {
    in_order(&[ServerBlock::DEFINITIONS, ServerHealthBlock::DEFINITIONS], &TWEMPROXY_SERVER)
}

fn in_order(blocks: &[&[Definition]], first: &[&str]) -> Vec<Definition> {
    let mut all: Vec<Definition> = blocks.concat();
    all.sort_by_key(|definition| position(first, definition.name));
    all
}

/// Where a number stands among `first`; behind them all if it isn't there.
fn position(first: &[&str], name: &str) -> usize {
    first.iter().position(|one| *one == name).unwrap_or(first.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(definitions: &[Definition]) -> Vec<&'static str> {
        definitions.iter().map(|definition| definition.name).collect()
    }

    #[test]
    fn every_number_of_twemproxy_comes_first_and_in_its_order() {
        let pool = names(&pool_definitions());
        assert_eq!(pool[..TWEMPROXY_POOL.len()], TWEMPROXY_POOL);
        assert!(pool.contains(&"client_refused"));
        let server = names(&server_definitions());
        assert_eq!(server[..TWEMPROXY_SERVER.len()], TWEMPROXY_SERVER);
        assert!(server.contains(&"server_total"));
    }

    #[test]
    fn gauges_go_down_again() {
        let cell = Cell::default();
        cell.add(5);
        cell.sub(5);
        assert_eq!(cell.value(), 0);
    }
}
