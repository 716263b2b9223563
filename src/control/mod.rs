//! All that isn't traffic: listening sockets, signals, stats, health, the end.
//!
//! Control is the main thread, with a runtime of its own. It talks to the workers by rare [`Order`]s and by
//! publishing generations; it hears of them by lossy [`Notice`]s and by reading their cells.

mod admin;
mod answers;
mod board;
mod dealer;
mod doors;
mod drain;
mod exposition;
mod health;
mod http;
mod page;
mod probe;
mod process;
mod report;
mod signals;
mod stats_port;
mod timings;
mod visitors;

use std::fmt;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::MissedTickBehavior;
use tracing::{error, info};

use crate::config::Config;
use crate::net::SocketFile;
use crate::topology::Generation;
use crate::worker::{self, Census, Notice, Order, Worker};
use admin::Admin;
use board::Board;
use dealer::Dealer;
use doors::PoolDoor;
use drain::{Drained, Limits, drain};
use report::{HealthStats, Sources};
use visitors::Door;

pub use admin::admin_reference;
pub use doors::{Doors, OpenError, announce, sockets};
pub use signals::{Signal, Signals};

/// Notices that may wait for control. More are lost, which is no harm: the cells say all.
const NOTICES: usize = 1024;

/// How often all servers are looked at without being asked to.
const ROUND: Duration = Duration::from_secs(1);

/// How long past the drain's limit workers may take to cut what is left.
const GRACE: Duration = Duration::from_secs(2);

/// What control asks of the log, which belongs to the layer above.
pub trait LogSwitch {
    /// Opens the log's file again: it may have been moved away.
    fn reopen(&self) -> Reopened;

    /// Makes the log say more (1) or less (-1); returns the verbosity, 0…11, that holds from now on.
    fn step(&self, by: i8) -> u8;
}

/// What became of a request to reopen the log.
#[derive(Debug)]
pub enum Reopened {
    /// It goes to the new file.
    Done,
    /// It goes to the standard error, so there is nothing to reopen.
    NotAFile,
    /// It still goes to the old file.
    Failed(io::Error),
}

/// How the process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As asked: everything was finished or cut within the limit.
    Drained,
    /// As asked, but what was in flight was dropped: a second signal, or workers that did not end.
    Cut,
    /// A worker ended by itself.
    WorkerLost(usize),
}

/// The running process, as control sees it.
pub struct Control {
    config: Arc<Config>,
    workers: Vec<Worker>,
    notices: mpsc::Receiver<Notice>,
    /// Indices of workers that have ended.
    ended: mpsc::UnboundedReceiver<usize>,
    dealer: Dealer,
    board: Board,
    sources: Rc<Sources>,
    signals: Signals,
    log: Box<dyn LogSwitch>,
    /// Removed when control is dropped.
    _files: Vec<SocketFile>,
}

impl Control {
    /// Starts `workers` workers and opens the doors to them. Inside a `LocalRuntime` only.
    pub fn start(
        config: Arc<Config>,
        workers: usize,
        doors: Doors,
        signals: Signals,
        log: Box<dyn LogSwitch>,
    ) -> io::Result<Self> {
        let (generations, watching) = watch::channel(Arc::new(Generation::first(config.clone())));
        let (notify, notices) = mpsc::channel(NOTICES);
        let census = Arc::new(Census::new(&config));
        let workers = (0..workers)
            .map(|index| worker::spawn(index, watching.clone(), notify.clone(), census.clone()))
            .collect::<io::Result<Vec<Worker>>>()?;

        let health = Arc::new(HealthStats::new(&config));
        let cells: Vec<_> = workers.iter().map(|worker| worker.stats.clone()).collect();
        let sockets: usize = config.pools.iter().map(|pool| doors::sockets(pool, workers.len())).sum();
        let sources = Sources::new(watching, cells.clone(), health.clone(), sockets as u64 + 1);
        let sources = Rc::new(sources);

        let Doors { pools, stats, metrics, admin, files } = doors;
        let dealer = hand_out(&workers, pools)?;
        tokio::task::spawn_local(stats_port::serve(Door::new(stats)?, sources.clone()));
        if let Some(metrics) = metrics {
            tokio::task::spawn_local(http::serve(Door::new(metrics)?, sources.clone()));
        }
        if let Some(door) = admin {
            let orders = workers.iter().map(|worker| worker.orders.clone()).collect();
            let admin = Admin::new(sources.clone(), orders, config.process.admin_password.clone());
            tokio::task::spawn_local(admin::serve(Door::new(door)?, admin));
        }
        let board = Board::new(cells, generations, health);
        let ended = watch_ends(&workers);
        Ok(Self { config, workers, notices, ended, dealer, board, sources, signals, log, _files: files })
    }

    /// Runs until a signal ends the process, or a worker ends by itself.
    pub async fn run(mut self) -> Ended {
        let lost = self.serve().await;
        self.dealer.stop().await;
        let limits = Limits { finish: self.config.process.drain_timeout, grace: GRACE };
        let Self { workers, mut notices, mut signals, sources, log, .. } = self;
        let next_signal = async || signals.next().await;
        let other = |signal| act(&*log, signal);
        let drained = drain(&workers, &mut notices, &sources, limits, next_signal, other).await;
        match (lost, drained) {
            (Some(worker), _) => Ended::WorkerLost(worker),
            (None, Drained::Done { .. }) => Ended::Drained,
            (None, Drained::Hurried | Drained::Stuck) => Ended::Cut,
        }
    }

    /// The long middle; returns the worker that was lost, if that ended it.
    async fn serve(&mut self) -> Option<usize> {
        let mut round = tokio::time::interval(ROUND);
        round.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Term | Signal::Int => {
                        info!("{signal} received: ending");
                        return None;
                    }
                    signal => act(&*self.log, signal),
                },
                Some(notice) = self.notices.recv() => {
                    if let Notice::Failing(pool, server) = notice {
                        self.board.look(pool, server);
                    }
                }
                _ = round.tick() => {
                    self.board.look_around();
                    self.dealer.reconcile();
                }
                () = self.board.work() => {}
                Some(worker) = self.ended.recv() => {
                    error!(worker, "a worker ended by itself: ending");
                    return Some(worker);
                }
            }
        }
    }
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("workers", &self.workers).finish_non_exhaustive()
    }
}

/// Gives the workers their own sockets; the dealer gets the rest.
fn hand_out(workers: &[Worker], pools: Vec<(crate::topology::PoolIx, PoolDoor)>) -> io::Result<Dealer> {
    let mut dealt = Vec::new();
    for (pool, door) in pools {
        match door {
            PoolDoor::Dealt(listener) => dealt.push((pool, listener)),
            PoolDoor::Direct(listeners) => {
                for (worker, listener) in workers.iter().zip(listeners) {
                    let order = Order::Listen(pool, listener);
                    worker.orders.send(order).map_err(|_| io::Error::other("a worker ended at once"))?;
                }
            }
        }
    }
    Dealer::start(workers, dealt)
}

fn watch_ends(workers: &[Worker]) -> mpsc::UnboundedReceiver<usize> {
    let (tell, ended) = mpsc::unbounded_channel();
    for worker in workers {
        let (orders, index, tell) = (worker.orders.clone(), worker.index, tell.clone());
        tokio::task::spawn_local(async move {
            orders.closed().await;
            let _ = tell.send(index); // control has ended already
        });
    }
    ended
}

/// Acts on a signal that does not end the process.
fn act(log: &dyn LogSwitch, signal: Signal) {
    match signal {
        Signal::Hup => match log.reopen() {
            Reopened::Done => info!("{signal} received: the log was reopened"),
            Reopened::NotAFile => info!("{signal} received: the log is not a file, nothing to reopen"),
            Reopened::Failed(error) => {
                error!("{signal} received: cannot reopen the log, keeping the old: {error}")
            }
        },
        Signal::Ttin => step(log, signal, 1),
        Signal::Ttou => step(log, signal, -1),
        Signal::Usr1 | Signal::Usr2 => info!("{signal} received: nothing to do"),
        Signal::Int | Signal::Term => {} // the callers end on these
    }
}

/// Says so while the more talkative of the two levels holds, so that it is seen.
fn step(log: &dyn LogSwitch, signal: Signal, by: i8) {
    if by < 0 {
        info!("{signal} received: log verbosity goes down");
    }
    let verbosity = log.step(by);
    info!(verbosity, "{signal} received: log verbosity is set");
}
