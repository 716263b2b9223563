//! Counters: each defined once, written by one thread and read by others.
//!
//! A worker owns one [`PoolBlock`] per pool and one [`ServerBlock`] per server, and adds with a relaxed load and
//! store (no read-modify-write). The control thread holds the same `Arc`s and sums them when asked.

mod histogram;
mod metric;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use histogram::{CommandTimes, Histogram, MOST_COMMANDS, Snapshot};
pub use metric::{Scope, Unit, families, metrics_reference, time_families};

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
    /// Time spent, in microseconds; only goes up.
    Spent,
    /// A part of a whole, in millionths; goes up and down.
    Share,
    /// A histogram of microseconds.
    Time,
}

/// Name, kind and meaning of one cell, as docs and stats show it.
#[derive(Clone, Copy, Debug)]
pub struct Definition {
    /// twemproxy's name where the meaning is the same.
    pub name: &'static str,
    /// The name as a metric, where it isn't made from `name`.
    pub metric: Option<&'static str>,
    /// What it counts.
    pub kind: Kind,
    /// One line.
    pub help: &'static str,
}

macro_rules! given {
    () => {
        None
    };
    ($name:literal) => {
        Some($name)
    };
}

macro_rules! block {
    ($(#[$doc:meta])* $block:ident {
        $($name:ident $(as $metric:literal)?: $kind:ident, $help:literal;)*
    } $(times { $($time:ident: $time_help:literal;)* })? $(also { $($also:ident: $type:ty, $also_help:literal;)* })?) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $block {
            $(#[doc = $help] pub $name: Cell,)*
            $($(#[doc = $time_help] pub $time: Histogram,)*)?
            $($(#[doc = $also_help] pub $also: $type,)*)?
        }

        impl $block {
            /// All cells of this block, in the order of [`Self::cells`].
            pub const DEFINITIONS: &'static [Definition] =
                &[$(Definition {
                    name: stringify!($name),
                    metric: given!($($metric)?),
                    kind: Kind::$kind,
                    help: $help,
                },)*];

            /// All histograms of this block, in the order of [`Self::times`].
            pub const TIMES: &'static [Definition] = &[$($(Definition {
                name: stringify!($time),
                metric: None,
                kind: Kind::Time,
                help: $time_help,
            },)*)?];

            /// All histograms, in the order of [`Self::TIMES`].
            pub fn times(&self) -> impl Iterator<Item = &Histogram> {
                let times: &[&Histogram] = &[$($(&self.$time,)*)?];
                times.to_vec().into_iter()
            }

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
        client_total as "client_connections_opened": Counter, "client connections accepted, refused ones included";
        scripts_loaded: Counter, "scripts that the proxy gave to a server that lacked them";
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
        client_requests: Counter, "requests of clients, whatever became of them";
        subscriptions as "client_subscriptions": Gauge, "channels and patterns that clients are subscribed to, each once for each client";
        messages as "messages_delivered": Counter, "messages of channels and patterns given to clients, each once for each client";
        slow_requests: Counter, "requests that took as long as `slowlog_slower_than` or longer";
    } times {
        write_seconds: "writing to the client: from the turn in which replies came until all that was ready for the client had been taken by its socket; one value for each time that nothing was left";
    } also {
        commands: CommandTimes, "from admission to reply, by command";
    }
}

block! {
    /// What one worker counts for one server.
    ServerBlock {
        server_eof: Counter, "connections that the server closed";
        server_err: Counter, "connections lost to another error";
        server_timedout: Counter, "connections given up after the timeout";
        server_connections: Gauge, "established connections";
        server_total as "connections_opened": Counter, "connections established since start";
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
        subscriptions: Gauge, "channels and patterns subscribed to at the server, one for all clients of a worker";
        subscription_gaps: Counter, "times a connection with subscriptions was lost: clients may have missed messages";
        failed_attempts: Gauge, "consecutive failures: attempts to connect, lost connections, timeouts";
        failing_since: Timestamp, "when the first failure of this run happened; 0 while there is none";
        last_success: Timestamp, "when a reply last ended a run of failures or was last noted (at most once a second)";
    } times {
        queue_seconds: "in the proxy: from a request's admission until it was written to the server";
        answer_seconds: "waiting for the server: from there until the reply came, or the request was given up";
    }
}

block! {
    /// What one worker counts for itself.
    WorkerBlock {
        clients: Gauge, "open client connections of this worker";
        clients_total as "clients_opened": Counter, "client connections that came to this worker, refused ones included";
        generation: Gauge, "number of the generation that this worker works with";
        loop_seen_at as "loop_seen": Timestamp, "when the worker's event loop last came around; it does at least once a second";
        loop_late as "loop_late_seconds": Spent, "how much later than they were due the loop's ticks came, added up: time in which it was busy";
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
        drained: Gauge, "1 while an operator keeps the server out with PROXY DRAIN";
        banned_until: Timestamp, "when an operator's PROXY BAN of the server ends; 0: there is none";
    }
}

block! {
    /// Where a server stands in its pool now; control sets it when it is asked.
    ServerPlaceBlock {
        live: Gauge, "1 while the server owns its keys, 0 while it is ejected or drained";
        ring_share: Share, "the part of the pool's hash values that leads to the server now, in millionths";
    }
}

block! {
    /// The process as the system sees it; control sets it when it is asked. The names are those that all programs use.
    ProcessBlock {
        start_time as "start_time_seconds": Timestamp, "when the process started";
        cpu as "cpu_seconds": Spent, "processor time used, in user and in system mode";
        resident_memory_bytes: Gauge, "memory in use, as the system counts it";
        open_fds: Gauge, "open file descriptors";
        max_fds: Gauge, "most file descriptors that may be open";
    }
}

block! {
    /// shardwise as a whole; control sets it when it is asked.
    ProxyBlock {
        workers: Gauge, "worker threads";
        generation: Gauge, "number of the generation of configuration and topology that is in use, from 1";
        draining: Gauge, "1 once the process is going down";
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
    let blocks = [ServerBlock::DEFINITIONS, ServerHealthBlock::DEFINITIONS, ServerPlaceBlock::DEFINITIONS];
    in_order(&blocks, &TWEMPROXY_SERVER)
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
