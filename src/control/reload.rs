//! Another configuration for the running process: parse, validate, bind, publish, adopt, drain what was removed.
//!
//! ```text
//!   file ──load──▶ Config ──bind──▶ Prepared          on a thread of its own: files and names may be slow
//!                                       │
//!   Report ◀── close ◀── adopt ◀── publish            on control's thread: nothing can fail any more
//! ```
//!
//! Whatever is wrong is found before anything is published: then nothing changes at all.

use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::doors::{OpenError, PoolDoor};
use super::entrances::Source;
use super::report::Current;
use crate::config::{Change, Config, ConfigErrors, Override, diff};
use crate::net;
use crate::topology::{Moves, Topology};
use crate::units::Listen;

/// Asks control for a reload, from any task of its thread.
#[derive(Clone, Debug)]
pub struct Reloads {
    ask: mpsc::UnboundedSender<Ask>,
}

/// What is asked for, and where the outcome goes.
#[derive(Debug)]
pub struct Ask {
    /// CONFIG SET: what runs now but for these values. `None`: the file as it is now.
    pub set: Option<Vec<Override>>,
    /// Gets the outcome.
    pub answer: oneshot::Sender<Outcome>,
}

/// What became of it.
pub type Outcome = Result<Arc<Report>, Arc<Refused>>;

/// What a reload changed, or would change.
#[derive(Debug)]
pub struct Report {
    /// Every difference of the two configurations.
    pub changes: Vec<Change>,
    /// For each pool that stays: the keys that have another server now.
    pub moves: Vec<PoolMoves>,
    /// What is closed for it.
    pub closing: Closing,
    /// What became of it; `None`: it was only predicted.
    pub applied: Option<Applied>,
}

/// A pool whose keys move.
#[derive(Clone, Debug)]
pub struct PoolMoves {
    /// Its name.
    pub pool: String,
    /// How many keys.
    pub moves: Moves,
}

/// What a reload ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// Servers whose connections are closed: removed ones, and those that are configured otherwise.
    pub servers: usize,
    /// Connections to them; 0 where it is only predicted.
    pub server_connections: u64,
    /// Clients of removed pools; 0 where it is only predicted.
    pub clients: u64,
    /// Addresses that are listened on no more.
    pub listeners: usize,
}

/// How a reload went.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    /// The generation that holds now.
    pub generation: u64,
    /// From the publication until every worker worked with it. Until then workers may differ.
    pub adopted_in: Duration,
    /// Workers that had not by [`ADOPTION_LIMIT`].
    pub behind: usize,
}

/// Why nothing was changed.
#[derive(Debug)]
pub enum Refused {
    /// The file is wrong: which keys, and why.
    Config(ConfigErrors),
    /// CONFIG SET of something that only a restart can change.
    NeedsRestart(Change),
    /// A new address cannot be listened on.
    Open(OpenError),
    /// The process is about to end.
    Ending,
}

/// Everything that a reload needs and that could fail.
#[derive(Debug)]
pub struct Prepared {
    /// The new configuration.
    pub config: Arc<Config>,
    /// Where each of its pools listens, by `PoolIx`.
    pub sources: Vec<Source>,
}

/// How long control waits for the workers before it answers.
const ADOPTION_LIMIT: Duration = Duration::from_secs(2);

/// Waits until every worker works with that generation; how many don't by [`ADOPTION_LIMIT`] after `started`.
pub async fn adopted(sources: &Current, generation: u64, started: Instant) -> usize {
    const LOOK: Duration = Duration::from_millis(1);
    loop {
        let sources = sources.now();
        let late = sources.workers.iter().filter(|worker| worker.own.generation.value() < generation);
        match late.count() {
            0 => return 0,
            behind if started.elapsed() >= ADOPTION_LIMIT => return behind,
            _ => tokio::time::sleep(LOOK).await,
        }
    }
}

impl Reloads {
    /// The asking end, and control's.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Ask>) {
        let (ask, asked) = mpsc::unbounded_channel();
        (Self { ask }, asked)
    }

    /// Reads the configuration file again and goes on with it: SIGUSR1, and CONFIG RELOAD.
    ///
    /// # Errors
    ///
    /// Nothing has changed, for this reason.
    pub async fn reload(&self) -> Outcome {
        self.outcome(None).await
    }

    /// Goes on with what runs now but for these values, until the next reload: CONFIG SET.
    ///
    /// # Errors
    ///
    /// Nothing has changed, for this reason.
    pub async fn set(&self, values: Vec<Override>) -> Outcome {
        self.outcome(Some(values)).await
    }

    async fn outcome(&self, set: Option<Vec<Override>>) -> Outcome {
        let (answer, answered) = oneshot::channel();
        let ending = |_| Arc::new(Refused::Ending);
        self.ask.send(Ask { set, answer }).map_err(|_| Arc::new(Refused::Ending))?;
        answered.await.map_err(ending)?
    }

    /// The same without waiting for the outcome, which the log tells.
    pub fn request(&self) {
        let (answer, _) = oneshot::channel();
        let _ = self.ask.send(Ask { set: None, answer }); // control is ending
    }
}

/// The configuration of the file. Blocks.
pub fn of_file(path: &Path) -> Result<Config, Refused> {
    Config::load(path).map_err(Refused::Config)
}

/// What runs now but for these values. Blocks, as passwords are read anew.
pub fn with(running: &Config, set: Vec<Override>) -> Result<Config, Refused> {
    let config = running.with(set).map_err(Refused::Config)?;
    match diff(running, &config).into_iter().find(Change::needs_restart) {
        Some(change) => Err(Refused::NeedsRestart(change)),
        None => Ok(config),
    }
}

/// Binds what is not `open` yet: as configured, and where that is bound. Blocks.
///
/// # Errors
///
/// The first thing that is wrong; what was bound for it is closed again.
pub fn prepare(
    config: Config,
    open: &[(Listen, Option<SocketAddr>)],
    workers: usize,
) -> Result<Prepared, Refused> {
    let mut open: Vec<_> = open.iter().collect();
    let mut sources = Vec::with_capacity(config.pools.len());
    for pool in &config.pools {
        let same = open.iter().position(|(at, _)| at.endpoint() == pool.listen.endpoint());
        let found = match same {
            Some(found) => Some(found),
            None => {
                let address =
                    net::resolve(&pool.listen).map_err(OpenError::of(pool)).map_err(Refused::Open)?;
                open.iter().position(|(_, bound)| address.is_some() && *bound == address)
            }
        };
        sources.push(match found {
            // Each is for one pool: a second that resolves to the same address is refused when it is bound.
            Some(found) => Source::Open(open.swap_remove(found).0.clone()),
            None => Source::Bound(PoolDoor::open(pool, workers).map_err(Refused::Open)?),
        });
    }
    Ok(Prepared { config: Arc::new(config), sources })
}

impl Report {
    /// What going from one configuration to another means. Nothing of it depends on what is running.
    pub fn predict(old: &Config, new: &Config) -> Self {
        let changes = diff(old, new);
        let moves = new.pools.iter().filter_map(|new| {
            let old = old.pools.iter().find(|old| old.name == new.name)?;
            let moves = Moves::between((old, &Topology::all_live(old)), (new, &Topology::all_live(new)));
            (!moves.is_none()).then(|| PoolMoves { pool: new.name.clone(), moves })
        });
        let moves = moves.collect();
        let closing = Closing {
            servers: replaced(old, new).len(),
            listeners: old.pools.iter().filter(|old| !listens(new, &old.listen)).count(),
            ..Closing::default()
        };
        Self { changes, moves, closing, applied: None }
    }

    /// Whether the two configurations are the same.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// What the running process goes on doing as before, although the file says otherwise.
    pub fn needs_restart(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.needs_restart())
    }
}

/// Servers of the old configuration that lose their connections, by pool and server index.
pub fn replaced(old: &Config, new: &Config) -> Vec<(usize, usize)> {
    let mut replaced = Vec::new();
    for (at, pool) in old.pools.iter().enumerate() {
        let next = new.pools.iter().find(|next| next.name == pool.name);
        for (server_at, server) in pool.servers.iter().enumerate() {
            let stays = next.is_some_and(|next| {
                let same = next.servers.iter().find(|other| other.name == server.name);
                same.is_some_and(|other| pool.connects_alike(server, next, other))
            });
            if !stays {
                replaced.push((at, server_at));
            }
        }
    }
    replaced
}

fn listens(config: &Config, at: &Listen) -> bool {
    config.pools.iter().any(|pool| pool.listen.endpoint() == at.endpoint())
}

/// One fact a line, without a newline at the end.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            f.write_str("nothing changes")?;
        }
        for (number, change) in self.changes.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{change}")?;
        }
        for PoolMoves { pool, moves } in &self.moves {
            write!(f, "\npool '{pool}': {moves}")?;
        }
        let Closing { servers, server_connections, clients, listeners } = self.closing;
        if servers > 0 || listeners > 0 || clients > 0 {
            write!(f, "\ncloses: connections to {servers} servers")?;
            if self.applied.is_some() {
                write!(f, " ({server_connections}), {clients} clients")?;
            }
            write!(f, ", {listeners} listening addresses")?;
        }
        if let Some(Applied { generation, adopted_in, behind }) = self.applied {
            write!(f, "\ngeneration {generation}, adopted in {} ms", adopted_in.as_millis())?;
            if behind > 0 {
                write!(f, ", {behind} workers are behind")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(errors) => errors.fmt(f),
            Self::NeedsRestart(change) => change.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Ending => f.write_str("the process is ending"),
        }
    }
}

impl std::error::Error for Refused {}
