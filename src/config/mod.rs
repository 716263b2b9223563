//! From YAML to a typed configuration that nothing downstream has to check again.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::hash;
use crate::units::{Endpoint, Listen, Secret};

/// A whole configuration file, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where it was read from; reload reads it again.
    pub path: PathBuf,
    /// Process-wide settings (top-level key `shardwise:`).
    pub process: Process,
    /// The pools, sorted by name, shorter names first (twemproxy's order, visible in the stats).
    pub pools: Vec<Pool>,
    /// What was accepted but deserves a word in the log.
    pub warnings: Vec<Warning>,
}

/// Process-wide settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Worker threads.
    pub threads: Threads,
    /// How long a drain (SIGTERM) may take before what is left is cut. Default 10 s.
    pub drain_timeout: Duration,
    /// Text or JSON lines. Default text.
    pub log_format: LogFormat,
}

/// How many worker threads to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One per core.
    Auto,
    /// Exactly so many, 1…1024.
    Fixed(NonZeroU32),
}

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// A word about a setting that is accepted, for the log at start and for `-t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Line in the file, from 1.
    pub line: Option<usize>,
    /// Key path (`alpha.mbuf`), and the reason.
    pub text: String,
}

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
    /// `client_connections`: most clients at once over all workers; `None` (0): no limit.
    pub client_connections: Option<NonZeroU32>,
    /// `tcpkeepalive`, on both sides.
    pub tcpkeepalive: bool,
    /// `reuseport`: each worker binds its own socket.
    pub reuseport: bool,
    /// `redis_auth` or the content of `redis_auth_file`: for clients and servers.
    pub redis_auth: Option<Secret>,
    /// `redis_db`: SELECTed on every server connection when not 0.
    pub redis_db: u32,
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
    /// `ping`. Default reject.
    pub ping: Ping,
    /// `readmit`. Default probe.
    pub readmit: Readmit,
    /// `read_only`: writes are answered with -READONLY.
    pub read_only: bool,
    /// `max_pending`: requests of one client that may be dispatched and unanswered. Default 1024.
    pub max_pending: NonZeroU32,
    /// `out_soft`: bytes of unsent replies of one client at which its requests are no longer dispatched. Default 1 MiB.
    pub out_soft: usize,
    /// `out_hard`: bytes of unsent replies at which the client is closed. Default 1 GiB.
    pub out_hard: usize,
    /// `max_bulk`: longest argument in bytes. Default and most 512 MiB.
    pub max_bulk: usize,
    /// `max_args`: most arguments of one request. Default and most 1,048,576.
    pub max_args: u32,
    /// `max_inline`: longest inline command in bytes. Default and most 64 KiB.
    pub max_inline: usize,
    /// `connect_timeout` for server connections. Default 1 s.
    pub connect_timeout: Duration,
}

/// One server of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Ring label, stats key, identity: twemproxy's `name` (the reference's §1.4, with its quirks).
    pub name: String,
    /// The entry without its name (`127.0.0.1:6379:1`), for logs.
    pub pname: String,
    /// Where to connect.
    pub endpoint: Endpoint,
    /// Weight, ≥ 1.
    pub weight: NonZeroU32,
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

/// How an ejected server comes back after `server_retry_timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readmit {
    /// When it has answered a PING of the proxy's own.
    Probe,
    /// At once, as twemproxy does.
    Optimistic,
}

// === Placeholder: the real one comes with its own branch. ===

/// Why a file was refused: one line for each reason.
#[derive(Debug)]
pub struct ConfigErrors(Vec<String>);

impl std::fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl Config {
    /// Reads and checks a file.
    pub fn load(path: &std::path::Path) -> Result<Self, ConfigErrors> {
        let name = path.display();
        let fail = |reason: String| ConfigErrors(vec![format!("{name}: {reason}")]);
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let root: serde_yaml::Mapping = serde_yaml::from_str(&text).map_err(|error| fail(error.to_string()))?;
        let mut process =
            Process { threads: Threads::Auto, drain_timeout: Duration::from_secs(10), log_format: LogFormat::Text };
        let mut pools = Vec::new();
        for (key, value) in &root {
            let name = key.as_str().ok_or_else(|| fail("a name must be text".into()))?;
            if name == "shardwise" {
                if value["log_format"].as_str() == Some("json") {
                    process.log_format = LogFormat::Json;
                }
                if let Some(millis) = value["drain_timeout"].as_u64() {
                    process.drain_timeout = Duration::from_millis(millis);
                }
                if let Some(threads) = value["threads"].as_u64() {
                    process.threads = Threads::Fixed(NonZeroU32::new(threads as u32).ok_or_else(|| fail("0".into()))?);
                }
                continue;
            }
            for (key, _) in value.as_mapping().ok_or_else(|| fail(format!("{name}: not a mapping")))? {
                if !PLACEHOLDER_KEYS.contains(&key.as_str().unwrap_or("")) {
                    return Err(fail(format!("line 1: {name}: unknown key {key:?}")));
                }
            }
            pools.push(placeholder_pool(name, value).ok_or_else(|| fail(format!("{name}: incomplete")))?);
        }
        Ok(Self { path: path.to_owned(), process, pools, warnings: Vec::new() })
    }
}

const PLACEHOLDER_KEYS: [&str; 9] = [
    "listen",
    "redis",
    "servers",
    "auto_eject_hosts",
    "server_retry_timeout",
    "server_failure_limit",
    "readmit",
    "redis_auth",
    "reuseport",
];

fn placeholder_pool(name: &str, value: &serde_yaml::Value) -> Option<Pool> {
    let listen = value["listen"].as_str()?;
    let listen = if let Some(path) = listen.strip_prefix('/') {
        Listen::Unix { path: format!("/{path}").into(), mode: None }
    } else {
        let (host, port) = listen.rsplit_once(':')?;
        Listen::Tcp { host: host.into(), port: port.parse().ok()? }
    };
    let servers = value["servers"].as_sequence()?.iter().map(|entry| {
        let (address, label) = entry.as_str()?.split_once(' ')?;
        let (rest, weight) = address.rsplit_once(':')?;
        let (host, port) = rest.rsplit_once(':')?;
        Some(Server {
            name: label.into(),
            pname: address.into(),
            endpoint: Endpoint::Tcp { host: host.into(), port: port.parse().ok()? },
            weight: weight.parse().ok()?,
        })
    });
    let two = NonZeroU32::new(2)?;
    Some(Pool {
        name: name.into(),
        listen,
        servers: servers.collect::<Option<Vec<_>>>()?,
        hash: hash::KeyHash {
            algorithm: hash::Algorithm::Fnv1a_64,
            char_sign: hash::CharSign::Signed,
            tag: None,
        },
        distribution: Distribution::Ketama,
        timeout: None,
        backlog: 512,
        client_connections: None,
        tcpkeepalive: false,
        reuseport: value["reuseport"].as_bool().unwrap_or(false),
        redis_auth: value["redis_auth"].as_str().map(|text| Secret::new(text.as_bytes())),
        redis_db: 0,
        preconnect: false,
        auto_eject_hosts: value["auto_eject_hosts"].as_bool().unwrap_or(false),
        server_connections: NonZeroU32::MIN,
        server_retry_timeout: Duration::from_millis(value["server_retry_timeout"].as_u64().unwrap_or(30_000)),
        server_failure_limit: two,
        ping: Ping::Reject,
        readmit: Readmit::Probe,
        read_only: false,
        max_pending: two,
        out_soft: 1 << 20,
        out_hard: 1 << 30,
        max_bulk: 1 << 29,
        max_args: 1 << 20,
        max_inline: 1 << 16,
        connect_timeout: Duration::from_secs(1),
    })
}
