//! Pools as the configuration would give them, for tests and benches that need no file.

use std::num::NonZeroU32;
use std::time::Duration;

use shardwise::config::{Distribution, Ping, Pool, ProxyProtocol, Readmit, Server};
use shardwise::hash::KeyHash;
use shardwise::units::{Endpoint, Limit, Listen};

/// A pool with twemproxy's defaults. Its servers are put in the configuration's order: shorter names first.
pub fn pool(hash: KeyHash, distribution: Distribution, mut servers: Vec<Server>) -> Pool {
    servers.sort_by(|a, b| (a.name.len(), &a.name).cmp(&(b.name.len(), &b.name)));
    let some = |n| NonZeroU32::new(n).expect("not 0");
    Pool {
        name: "alpha".to_owned(),
        listen: Listen::Tcp { host: "127.0.0.1".to_owned(), port: 22_121 },
        servers,
        hash,
        distribution,
        timeout: None,
        backlog: 512,
        client_connections: Limit::off(),
        tcpkeepalive: false,
        reuseport: false,
        redis_auth: None,
        redis_db: 0,
        databases: some(16),
        preconnect: false,
        auto_eject_hosts: false,
        server_connections: some(1),
        server_retry_timeout: Duration::from_secs(30),
        server_failure_limit: some(2),
        proxy_protocol: ProxyProtocol::Off,
        ping: Ping::Reject,
        readmit: Readmit::Probe,
        probe_interval: Duration::from_secs(1),
        probe_rise: NonZeroU32::MIN,
        max_ejected: 100,
        read_only: false,
        learn_commands: true,
        commands: None,
        max_pending: Limit::enforced(1_024),
        out_soft: Limit::enforced(1 << 20),
        out_hard: Limit::enforced(1 << 30),
        out_stall: Limit::enforced(Duration::from_secs(60)),
        server_queue: Limit::enforced(64 << 20),
        client_rate: Limit::off(),
        clients_per_address: Limit::off(),
        idle_timeout: Limit::off(),
        first_request_timeout: Limit::off(),
        max_bulk: 512 << 20,
        max_args: 1 << 20,
        max_inline: 64 << 10,
        connect_timeout: Duration::from_secs(1),
        max_leases: some(1_000),
    }
}

/// A server named `name` on loopback.
pub fn server(name: &str, port: u16, weight: u32) -> Server {
    Server {
        name: name.to_owned(),
        pname: format!("127.0.0.1:{port}:{weight}"),
        endpoint: Endpoint::Tcp { host: "127.0.0.1".to_owned(), port },
        weight: NonZeroU32::new(weight).expect("weights are not 0"),
    }
}

/// Servers s0, s1, … of these weights.
#[allow(dead_code)] // Not every test file needs it.
pub fn servers(weights: &[u32]) -> Vec<Server> {
    (0..).zip(weights).map(|(at, &weight)| server(&format!("s{at}"), 6_380 + at, weight)).collect()
}
