//! What the integration tests stand on: real servers, the proxy itself, and a raw RESP client.
//!
//! Everything runs on loopback, on ports that are reserved across test processes ([`Port`]), in temporary
//! folders, and ends with the value that owns it, even when the test process is killed. Waiting is always a
//! bounded poll on a condition ([`wait_until`]), never a fixed sleep.
#![allow(dead_code, unused_imports)] // each test binary uses a part
#![allow(clippy::disallowed_methods)] // one bounded poll sleeps between its looks

mod fake_server;
mod nutcracker;
mod ports;
mod process;
mod random;
mod redis;
mod resp;
mod shards;
mod shardwise;
mod wait;

pub use fake_server::{FakeServer, Gate, Peer};
pub use nutcracker::Nutcracker;
pub use ports::Port;
pub use process::{Process, locate};
pub use random::Random;
pub use redis::Redis;
pub use resp::{Resp, Sender, Value, encode};
pub use shards::Shards;
pub use shardwise::Shardwise;
pub use wait::{PATIENCE, poll, wait_until};

/// The YAML of one pool that listens on loopback and spreads keys over `servers`.
///
/// `settings` are further lines of the pool (`"hash: murmur\ntimeout: 400"`); `redis: true` is there already.
pub fn pool(name: &str, listen: &Port, servers: &[&Redis], settings: &str) -> String {
    let entries: Vec<String> = servers.iter().map(|server| server.entry(1)).collect();
    pool_of(name, &listen.address(), &entries, settings)
}

/// Like [`pool`], with `listen` and the server entries written out.
pub fn pool_of(name: &str, listen: &str, servers: &[String], settings: &str) -> String {
    let mut yaml = format!("{name}:\n  listen: {listen}\n  redis: true\n");
    for line in settings.lines().filter(|line| !line.trim().is_empty()) {
        yaml.push_str(&format!("  {}\n", line.trim()));
    }
    yaml.push_str("  servers:\n");
    for entry in servers {
        yaml.push_str(&format!("   - {entry}\n"));
    }
    yaml
}
