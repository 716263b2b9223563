//! Opens listening sockets before anything else happens, so that one that fails stops the start, or the reload.

use std::fmt;

use tracing::info;

use crate::config::{Config, Pool};
use crate::net::{self, BindError, ListenOptions, Listener, SocketFile};
use crate::units::Listen;

/// Connections to a port of control's own that the kernel keeps waiting.
const CONTROL_BACKLOG: u32 = 128;

/// All listening sockets of the process.
#[derive(Debug)]
pub struct Doors {
    /// One a pool, in the order of the configuration.
    pub pools: Vec<PoolDoor>,
    /// The stats port's.
    pub stats: Listener,
    /// The metrics port's, if there is one.
    pub metrics: Option<Listener>,
    /// The admin port's, if there is one.
    pub admin: Option<Listener>,
    /// Files of unix sockets of control's own; dropping them removes them.
    pub files: Vec<SocketFile>,
}

/// Where a pool listens.
#[derive(Debug)]
pub struct PoolDoor {
    /// As the configuration says it.
    pub at: Listen,
    /// One for each worker with `reuseport`, else one.
    pub listeners: Vec<Listener>,
    /// A unix socket's file; dropping it removes it.
    pub file: Option<SocketFile>,
}

/// A socket could not be opened: says for what, where and why.
#[derive(Debug)]
pub struct OpenError {
    what: String,
    cause: BindError,
}

impl Doors {
    /// Binds all. `stats` is the stats port's address.
    pub fn open(config: &Config, workers: usize, stats: &Listen) -> Result<Self, OpenError> {
        let pools =
            config.pools.iter().map(|pool| PoolDoor::open(pool, workers)).collect::<Result<_, _>>()?;
        let mut files = Vec::new();
        let stats = open_own("stats port", stats, &mut files)?;
        let process = &config.process;
        let metrics = process.metrics.as_ref().map(|at| open_own("metrics port", at, &mut files));
        let metrics = metrics.transpose()?;
        let admin = process.admin.as_ref().map(|at| open_own("admin port", at, &mut files));
        Ok(Self { pools, stats, metrics, admin: admin.transpose()?, files })
    }
}

/// A port of control's own.
fn open_own(what: &str, at: &Listen, files: &mut Vec<SocketFile>) -> Result<Listener, OpenError> {
    let options = ListenOptions { backlog: CONTROL_BACKLOG, reuseport: false, keepalive: false };
    let (listener, file) =
        net::bind(at, &options).map_err(|cause| OpenError { what: what.to_owned(), cause })?;
    files.extend(file);
    Ok(listener)
}

impl PoolDoor {
    /// Binds what a pool needs with so many workers.
    pub fn open(pool: &Pool, workers: usize) -> Result<Self, OpenError> {
        let mut listeners = Vec::new();
        let mut only_file = None;
        for _ in 0..sockets(pool, workers) {
            let (listener, file) = net::bind(&pool.listen, &options(pool)).map_err(OpenError::of(pool))?;
            listeners.push(listener);
            only_file = only_file.or(file);
        }
        Ok(Self { at: pool.listen.clone(), listeners, file: only_file })
    }
}

/// What a pool wants of its listening sockets.
pub fn options(pool: &Pool) -> ListenOptions {
    ListenOptions { backlog: pool.backlog, reuseport: pool.reuseport, keepalive: pool.tcpkeepalive }
}

/// How many sockets a pool listens on: one for each worker with `reuseport` on TCP, else one.
pub fn sockets(pool: &Pool, workers: usize) -> usize {
    let shared = pool.reuseport && matches!(pool.listen, Listen::Tcp { .. });
    if shared { workers } else { 1 }
}

/// Says in the log where each pool listens, and control itself.
pub fn announce(config: &Config) {
    for (what, at) in [("metrics", &config.process.metrics), ("admin", &config.process.admin)] {
        if let Some(at) = at {
            info!("{what} on {at}");
        }
    }
    for pool in &config.pools {
        let servers = pool.servers.len();
        match &pool.listen {
            Listen::Tcp { host, port } => info!(pool = %pool.name, servers, "listening on {host}:{port}"),
            Listen::Unix { path, .. } => info!(pool = %pool.name, servers, "listening on {}", path.display()),
        }
    }
}

// === impl OpenError ===

impl OpenError {
    /// For a socket of `pool`.
    pub(super) fn of(pool: &Pool) -> impl Fn(BindError) -> Self {
        move |cause| Self { what: format!("pool '{}'", pool.name), cause }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for OpenError {}
