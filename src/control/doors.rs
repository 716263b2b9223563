//! Opens every listening socket before anything else starts, so that one that fails stops the start.

use std::fmt;

use tracing::info;

use crate::config::{Config, Pool};
use crate::net::{self, BindError, ListenOptions, Listener, SocketFile};
use crate::topology::PoolIx;
use crate::units::Listen;

/// Connections to a port of control's own that the kernel keeps waiting.
const CONTROL_BACKLOG: u32 = 128;

/// All listening sockets of the process.
#[derive(Debug)]
pub struct Doors {
    /// One a pool, in the order of the configuration.
    pub pools: Vec<(PoolIx, PoolDoor)>,
    /// The stats port's.
    pub stats: Listener,
    /// The metrics port's, if there is one.
    pub metrics: Option<Listener>,
    /// The admin port's, if there is one.
    pub admin: Option<Listener>,
    /// Files of unix sockets; dropping them removes them.
    pub files: Vec<SocketFile>,
}

/// How a pool's clients come to the workers.
#[derive(Debug)]
pub enum PoolDoor {
    /// A socket for each worker to accept from, by worker.
    Direct(Vec<Listener>),
    /// One socket; control accepts and deals the clients out.
    Dealt(Listener),
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
        let mut files = Vec::new();
        let mut pools = Vec::with_capacity(config.pools.len());
        for (index, pool) in config.pools.iter().enumerate() {
            let ix = PoolIx(u16::try_from(index).expect("pools are counted in 16 bits"));
            let door = open_pool(pool, workers, &mut files)
                .map_err(|cause| OpenError { what: format!("pool '{}'", pool.name), cause })?;
            pools.push((ix, door));
        }
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

fn open_pool(pool: &Pool, workers: usize, files: &mut Vec<SocketFile>) -> Result<PoolDoor, BindError> {
    let shared = sockets(pool, workers) > 1;
    let options =
        ListenOptions { backlog: pool.backlog, reuseport: pool.reuseport, keepalive: pool.tcpkeepalive };
    let mut listeners = Vec::new();
    for _ in 0..sockets(pool, workers) {
        let (listener, file) = net::bind(&pool.listen, &options)?;
        listeners.push(listener);
        files.extend(file);
    }
    if workers == 1 || shared {
        return Ok(PoolDoor::Direct(listeners));
    }
    Ok(PoolDoor::Dealt(listeners.pop().expect("one socket was bound")))
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

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.cause)
    }
}

impl std::error::Error for OpenError {}
