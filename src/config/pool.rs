//! One pool, typed.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::command::CommandSet;
use crate::hash;
use crate::units::{Limit, Listen, Secret};

use super::names::named;
use super::server::Server;

/// One pool: an address for clients, and the servers behind it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// Top-level key of the file.
    pub name: String,
    /// `listen`: where clients connect.
    pub listen: Listen,
    /// `servers`, sorted by name, shorter names first: this order is the `ServerIx` of a generation.
    pub servers: Vec<Server>,
    /// `hash`, `hash_tag`, `hash_char`: how a key becomes 32 bits.
    pub hash: hash::KeyHash,
    /// `distribution`.
    pub distribution: Distribution,
    /// `timeout`; `None`: never (also for 0).
    pub timeout: Option<Duration>,
    /// `backlog` of listen(2). Default 512.
    pub backlog: u32,
    /// `client_connections`: most clients at once over all workers.
    pub client_connections: Limit<u32>,
    /// `tcpkeepalive`, on the connections of clients; those of servers always have it.
    pub tcpkeepalive: bool,
    /// `reuseport`: each worker binds its own socket.
    pub reuseport: bool,
    /// `redis_auth` or the content of `redis_auth_file`: for clients and servers.
    pub redis_auth: Option<Secret>,
    /// `redis_db`: SELECTed on every server connection when not 0.
    pub redis_db: u32,
    /// `databases`: clients may SELECT 0 to one less. Default 16.
    pub databases: NonZeroU32,
    /// `preconnect`: connect to all servers at start.
    pub preconnect: bool,
    /// `auto_eject_hosts`.
    pub auto_eject_hosts: bool,
    /// `server_connections`: connections to each server per worker. Default 1.
    pub server_connections: NonZeroU32,
    /// `server_retry_timeout`: how long an ejected server stays out at least. Default 30 s.
    pub server_retry_timeout: Duration,
    /// `server_failure_limit`: consecutive failures until ejection. Default 2 (0 is 1).
    pub server_failure_limit: NonZeroU32,
    /// `proxy_protocol`. Default off.
    pub proxy_protocol: ProxyProtocol,
    /// `ping`. Default reject.
    pub ping: Ping,
    /// `readmit`. Default probe.
    pub readmit: Readmit,
    /// `probe_interval`: time between two probes of an ejected server. Default 1 s.
    pub probe_interval: Duration,
    /// `probe_rise`: answered probes in a row that bring an ejected server back. Default 1.
    pub probe_rise: NonZeroU32,
    /// `max_ejected`: most of the servers that are ejected at once, in percent. Default 100: all but the last.
    pub max_ejected: u32,
    /// `read_only`: writes are answered with -READONLY.
    pub read_only: bool,
    /// `learn_commands`: servers are asked which commands they know.
    pub learn_commands: bool,
    /// `commands`: those that clients are refused; `None`: all are taken.
    pub commands: Option<CommandSet>,
    /// `max_pending`: requests of one client that may be dispatched and unanswered. Default 1024.
    pub max_pending: Limit<u32>,
    /// `out_soft`: bytes of unsent replies of one client at which its requests are no longer dispatched. Default 1 MiB.
    pub out_soft: Limit<usize>,
    /// `out_hard`: bytes of unsent replies at which the client is closed. Default 1 GiB.
    pub out_hard: Limit<usize>,
    /// `out_stall`: how long a client over `out_soft` may take no byte before it is closed. Default 60 s.
    pub out_stall: Limit<Duration>,
    /// `server_queue`: bytes that wait for one server connection at which its requests fail. Default 64 MiB.
    pub server_queue: Limit<usize>,
    /// `client_rate`: requests a second of one client, and as many at once after a pause. Default off.
    pub client_rate: Limit<u32>,
    /// `clients_per_address`: most clients at once from one IP address. Default off.
    pub clients_per_address: Limit<u32>,
    /// `idle_timeout`: how long a client that awaits nothing may be silent. Default off.
    pub idle_timeout: Limit<Duration>,
    /// `first_request_timeout`: how long a new client may take to send a whole request. Default off.
    pub first_request_timeout: Limit<Duration>,
    /// `max_bulk`: longest argument in bytes. Default and most 512 MiB.
    pub max_bulk: usize,
    /// `max_args`: most arguments of one request. Default and most 1,048,576.
    pub max_args: u32,
    /// `max_inline`: longest inline command in bytes. Default and most 64 KiB.
    pub max_inline: usize,
    /// `connect_timeout` for server connections. Default 1 s.
    pub connect_timeout: Duration,
    /// `max_leases`: connections to each server that clients may have for themselves at once, over all workers. Default 1,000.
    pub max_leases: NonZeroU32,
}

impl Pool {
    /// Whether `server` of this pool keeps its connections as `other` of `next`, the same pool in another
    /// configuration: address, credentials, database and everything else that was decided when they were opened are equal.
    pub fn connects_alike(&self, server: &Server, next: &Self, other: &Server) -> bool {
        let decided = |pool: &Self| {
            (
                pool.redis_db,
                pool.timeout,
                pool.connect_timeout,
                pool.server_connections,
                pool.server_failure_limit,
            )
        };
        server.name == other.name
            && server.endpoint == other.endpoint
            && self.redis_auth == next.redis_auth
            && decided(self) == decided(next)
    }
}

/// How servers share the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// Consistent hashing, libmemcached's points.
    Ketama,
    /// hash mod slots.
    Modula,
    /// Any server, drawn anew for each key.
    Random,
}

/// What PING gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ping {
    /// An unknown-command error that names this setting.
    Reject,
    /// `+PONG`, or the given message.
    Reply,
}

/// Whether connections begin with a header of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// They begin with a request.
    Off,
    /// With a header of version 1 or 2, all of them.
    V1V2,
}

/// How an ejected server comes back after `server_retry_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readmit {
    /// When it has answered a PING of the proxy's own.
    Probe,
    /// At once, as twemproxy does.
    Optimistic,
}

named!(Distribution { Ketama = "ketama", Modula = "modula", Random = "random" });
named!(Ping { Reject = "reject", Reply = "reply" });
named!(ProxyProtocol { Off = "off", V1V2 = "v1v2" });
named!(Readmit { Probe = "probe", Optimistic = "optimistic" });
