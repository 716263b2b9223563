//! All that isn't traffic: listening sockets, signals, stats, health, the end.
//!
//! Control is the main thread, with a runtime of its own. It talks to the workers by rare [`Order`]s and by
//! publishing generations; it hears of them by lossy [`Notice`]s and by reading their cells.

mod admin;
mod answers;
mod board;
mod config_file;
mod dealer;
mod doors;
mod drain;
mod entrances;
mod exposition;
mod fd_limit;
pub mod handover;
mod health;
mod hold;
mod hot_keys;
mod http;
mod learner;
mod page;
mod probe;
mod process;
mod publisher;
mod questions;
pub mod reload;
mod report;
mod signals;
mod stats_port;
pub mod systemd;
mod timings;
mod visitors;
mod vocabulary;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tracing::{error, info, warn};

use crate::config::Config;
use crate::config::{Kept, Override};
use crate::net::SocketFile;
use crate::stats::Cell;
use crate::worker::{self, Budget, Census, Moved, Notice, Order, Scripts, Worker};
use admin::Admin;
use board::Board;
use config_file::ConfigFile;
use drain::{Drained, Limits, drain};
use entrances::Entrances;
use handover::{Coming, Predecessor, Successor, Want};
use hold::{Holds, Said};
use learner::Learner;
use publisher::Publisher;
use reload::{Applied, Ask, Closing, Outcome, Prepared, Refused, Reloads, Report};
use report::{Current, HealthStats, Sources};
use visitors::Door;

pub use admin::admin_reference;
pub use doors::{Doors, Inherited, OpenError, announce, sockets};
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

    /// Says how many repeated lines were left out in times that are over; with `all` in those that aren't, too.
    fn sum_up(&self, all: bool);

    /// Repeated lines left out since the start.
    fn suppressed(&self) -> Arc<Cell>;
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
    entrances: Entrances,
    board: Board,
    learner: Learner,
    publisher: Publisher,
    census: Arc<Census>,
    budget: Arc<Budget>,
    sources: Current,
    reloads: Reloads,
    reloads_asked: mpsc::UnboundedReceiver<Ask>,
    /// What the operator says of servers.
    said: mpsc::UnboundedReceiver<Said>,
    /// The reload that is being prepared, if there is one: at most one at a time.
    preparing: JoinSet<Result<Prepared, Refused>>,
    /// The sockets of control's own ports, for a successor.
    own: Vec<OwnedFd>,
    /// Asked by a successor.
    wanted: mpsc::UnboundedReceiver<Want>,
    /// Clients from a predecessor.
    coming: Option<Coming>,
    /// For `reload_on_change`.
    file: ConfigFile,
    signals: Signals,
    log: Box<dyn LogSwitch>,
    /// Removed when control is dropped.
    files: Vec<SocketFile>,
}

impl Control {
    /// Starts `workers` workers and opens the doors to them. Inside a `LocalRuntime` only.
    pub fn start(
        config: Arc<Config>,
        workers: usize,
        doors: Doors,
        signals: Signals,
        log: Box<dyn LogSwitch>,
        predecessor: Option<Predecessor>,
    ) -> io::Result<Self> {
        let (publisher, published) = Publisher::first(config.clone(), workers);
        let (notify, notices) = mpsc::channel(NOTICES);
        let room = fd_limit::raise(&config, workers);
        let census = Arc::new(Census::new(config.process.max_clients, room));
        let budget = Arc::new(Budget::new(config.process.max_buffers));
        let scripts = Arc::new(Scripts::default());
        let (beat, beats) = watch::channel(Instant::now());
        let workers = (0..workers)
            .map(|index| {
                worker::spawn(
                    index,
                    published.clone(),
                    notify.clone(),
                    census.clone(),
                    budget.clone(),
                    scripts.clone(),
                    beats.clone(),
                )
            })
            .collect::<io::Result<Vec<Worker>>>()?;

        // As long as this runtime runs, draining included.
        tokio::task::spawn_local(worker::give_beat(beat));
        let Doors { pools, stats, metrics, admin, files } = doors;
        let ids = publisher.generation().ids.clone();
        let entrances = Entrances::start(&workers, ids.into_iter().zip(pools).collect())?;
        let health = Arc::new(HealthStats::new(&config));
        let cells = publisher.now().stats.clone();
        let sources = Sources::new(config.clone(), cells, health.clone(), entrances.sockets() as u64 + 1);
        let own = [Some(&stats), metrics.as_ref(), admin.as_ref()];
        let own = own.into_iter().flatten().map(|listener| listener.as_fd().try_clone_to_owned());
        let own = own.collect::<io::Result<Vec<OwnedFd>>>()?;
        let sources = sources.with_publisher(publisher.clone()).with_budget(budget.clone());
        let sources = Current::new(sources.with_suppressed(log.suppressed()));
        let (reloads, reloads_asked) = Reloads::channel();
        let orders: Vec<_> = workers.iter().map(|worker| worker.orders.clone()).collect();
        let (holds, said) = Holds::channel();
        tokio::task::spawn_local(stats_port::serve(Door::new(stats)?, sources.clone()));
        if let Some(metrics) = metrics {
            tokio::task::spawn_local(http::serve(Door::new(metrics)?, sources.clone(), orders.clone()));
        }
        if let Some(door) = admin {
            let admin = Admin::new(sources.clone(), orders, reloads.clone(), holds);
            tokio::task::spawn_local(admin::serve(Door::new(door)?, admin));
        }
        let board = Board::new(publisher.clone(), health);
        let learner = Learner::new(publisher.clone());
        let ended = watch_ends(&workers);
        let coming = predecessor.map(Predecessor::receive_clients).transpose()?;
        let (want, wanted) = mpsc::unbounded_channel();
        if let Some(path) = &config.process.handover {
            handover::offer(path.clone(), want)?;
        }
        let mut file = ConfigFile::default();
        file.taken(config_file::stamp(&config.path));
        Ok(Self {
            config,
            workers,
            notices,
            ended,
            entrances,
            board,
            learner,
            publisher,
            census,
            budget,
            sources,
            reloads,
            reloads_asked,
            said,
            preparing: JoinSet::new(),
            own,
            wanted,
            coming,
            file,
            signals,
            log,
            files,
        })
    }

    /// Asks this process for reloads, as the admin port does.
    pub fn reloads(&self) -> Reloads {
        self.reloads.clone()
    }

    /// Runs until a signal ends the process, another one takes over, or a worker ends by itself.
    pub async fn run(mut self) -> Ended {
        let (lost, sent) = match self.serve().await {
            End::TakenOver(successor) => {
                self.entrances.release().await;
                self.files.drain(..).for_each(SocketFile::forget);
                (None, Some(self.send_clients(successor)))
            }
            end => {
                systemd::stopping();
                self.entrances.stop().await;
                (if let End::Lost(worker) = end { Some(worker) } else { None }, None)
            }
        };
        let limits = Limits { finish: self.config.process.drain_timeout, grace: GRACE };
        let Self { workers, mut notices, mut signals, sources, log, .. } = self;
        let next_signal = async || signals.next().await;
        let other = |signal| act(&*log, signal);
        let drained = drain(&workers, &mut notices, &sources, limits, next_signal, other).await;
        if let Some(sent) = sent
            && !matches!(tokio::time::timeout(GRACE, sent).await, Ok(Ok(())))
        {
            warn!("not every client could be handed over: those that were left are closed");
        }
        log.sum_up(true);
        match (lost, drained) {
            (Some(worker), _) => Ended::WorkerLost(worker),
            (None, Drained::Done { .. }) => Ended::Drained,
            (None, Drained::Hurried | Drained::Stuck) => Ended::Cut,
        }
    }

    /// The long middle; returns what ended it.
    async fn serve(&mut self) -> End {
        let mut round = tokio::time::interval(ROUND);
        round.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut waiting: Option<oneshot::Sender<Outcome>> = None;
        loop {
            tokio::select! {
                signal = self.signals.next() => match signal {
                    Signal::Term | Signal::Int => {
                        info!("{signal} received: ending");
                        return End::Signal;
                    }
                    Signal::Usr1 => {
                        info!("{signal} received: reloading the configuration");
                        self.reloads.request();
                    }
                    signal => {
                        act(&*self.log, signal);
                        if signal == Signal::Hup && self.config.process.reload_on_hup {
                            info!("{signal} received: reloading the configuration");
                            self.reloads.request();
                        }
                    }
                },
                Some(Ask { set, answer }) = self.reloads_asked.recv(), if waiting.is_none() => {
                    waiting = Some(answer);
                    self.prepare_reload(set);
                }
                Some(prepared) = self.preparing.join_next(), if !self.preparing.is_empty() => {
                    let prepared = prepared.expect("reading a configuration does not panic, and is not aborted");
                    let outcome = self.reload(prepared).await;
                    systemd::ready();
                    if let Some(answer) = waiting.take() {
                        let _ = answer.send(outcome); // who asked may not wait any more
                    }
                }
                Some(said) = self.said.recv() => self.board.hear(said),
                Some(notice) = self.notices.recv() => {
                    if let Notice::Failing(pool, server) = notice {
                        self.board.look(pool, server);
                    }
                }
                _ = round.tick() => {
                    self.board.look_around();
                    self.learner.look_around();
                    self.entrances.reconcile();
                    self.log.sum_up(false);
                    let changed = self.file.look(config_file::stamp(&self.config.path));
                    if changed && self.config.process.reload_on_change {
                        info!("the configuration file has changed: reloading it");
                        self.reloads.request();
                    }
                }
                () = self.board.work() => {}
                () = self.learner.work() => {}
                Some(want) = self.wanted.recv() => match want {
                    Want::Listeners(answer) => {
                        info!("another process takes over: it gets the listening sockets");
                        let _ = answer.send(self.descriptors());
                    }
                    Want::Clients(successor) => {
                        info!("another process serves: it gets the clients");
                        return End::TakenOver(successor);
                    }
                },
                Some((pool, moved)) = next_client(&mut self.coming) => {
                    // The client of a pool that this configuration does not have is closed.
                    if let Some(pool) = self.publisher.generation().id_of(&pool) {
                        self.entrances.resume(pool, moved);
                    }
                }
                Some(worker) = self.ended.recv() => {
                    error!(worker, "a worker ended by itself: ending");
                    return End::Lost(worker);
                }
            }
        }
    }
}

// === reload ===

impl Control {
    fn prepare_reload(&mut self, set: Option<Vec<Override>>) {
        let (running, open) = (Arc::clone(&self.config), self.entrances.addresses());
        let workers = self.workers.len();
        if set.is_none() {
            self.file.taken(config_file::stamp(&running.path));
        }
        systemd::reloading();
        self.preparing.spawn_blocking(move || {
            let config = match set {
                None => reload::of_file(&running.path),
                Some(values) => reload::with(&running, values),
            };
            reload::prepare(config?, &open, workers)
        });
    }

    /// Goes on with what was prepared, and says so in the log.
    async fn reload(&mut self, prepared: Result<Prepared, Refused>) -> Outcome {
        match prepared {
            Ok(prepared) => {
                let report = self.apply(prepared).await;
                report.to_string().lines().for_each(|line| info!("reload: {line}"));
                Ok(Arc::new(report))
            }
            Err(refused) => {
                refused.to_string().lines().for_each(|line| error!("reload refused: {line}"));
                error!("reload refused: nothing has changed");
                Err(Arc::new(refused))
            }
        }
    }

    /// Publishes, waits for the workers, closes what was removed.
    async fn apply(&mut self, prepared: Prepared) -> Report {
        let Prepared { config, sources } = prepared;
        let mut report = Report::predict(&self.config, &config);
        report.closing = self.closing(&config, report.closing);
        let before = self.sources.now();
        let health = Arc::new(before.health.carried(&Kept::between(&self.config, &config)));
        let started = Instant::now();
        self.budget.set_limit(config.process.max_buffers);
        self.census.set_limit(config.process.max_clients, fd_limit::raise(&config, self.workers.len()));
        self.board.adopt(config.clone(), health.clone());
        let published = self.publisher.now();
        self.learner.adopt(config.clone(), &published.stats);
        let generation = published.generation.clone();
        let behind = reload::adopted(&self.sources, generation.number, started).await;
        report.applied =
            Some(Applied { generation: generation.number, adopted_in: started.elapsed(), behind });

        let ids = generation.ids.iter().copied();
        let pools = ids.zip(&config.pools).zip(sources).map(|((id, pool), source)| (id, pool, source));
        if let Err(error) = self.entrances.adopt(pools.collect()).await {
            error!("reload: a new listening socket is not served: {error}");
        }
        let listeners = self.entrances.sockets() as u64 + 1;
        self.sources.replace(config.clone(), published.stats.clone(), health, listeners);
        self.config = config;
        report
    }

    /// What is open at the moment of what `config` closes.
    fn closing(&self, config: &Config, predicted: Closing) -> Closing {
        let sources = self.sources.now();
        let servers = reload::replaced(&self.config, config);
        let server_connections = servers.iter().flat_map(|(pool, server)| {
            let blocks = sources.workers.iter().map(|worker| &worker.pools[*pool].servers[*server]);
            blocks.map(|block| block.server_connections.value())
        });
        let gone = self.config.pools.iter().enumerate();
        let gone = gone.filter(|(_, pool)| config.pools.iter().all(|next| next.name != pool.name));
        let clients = gone.flat_map(|(pool, _)| {
            sources.workers.iter().map(move |worker| worker.pools[pool].pool.client_connections.value())
        });
        Closing { server_connections: server_connections.sum(), clients: clients.sum(), ..predicted }
    }
}

// === handover ===

/// What ended the long middle.
enum End {
    Signal,
    Lost(usize),
    /// Clients go there.
    TakenOver(Successor),
}

impl Control {
    /// All that is listened on.
    fn descriptors(&self) -> Vec<OwnedFd> {
        let mut all = self.entrances.descriptors().unwrap_or_default();
        all.extend(self.own.iter().flat_map(OwnedFd::try_clone));
        all
    }

    /// The workers send their clients there; the way is closed when the last has gone.
    /// Returns what comes when all have been sent.
    fn send_clients(&self, successor: Successor) -> oneshot::Receiver<()> {
        let (send, mut sent) = mpsc::unbounded_channel();
        for worker in &self.workers {
            // One that has ended has no clients.
            let _ = worker.orders.send(Order::HandOver(self.config.process.drain_timeout, send.clone()));
        }
        drop(send);
        let Successor { clients, sent: all_sent } = successor;
        let generation = self.publisher.generation();
        tokio::task::spawn_local(async move {
            while let Some((id, moved)) = sent.recv().await {
                if let Some(pool) = generation.ids.iter().position(|one| *one == id) {
                    let _ = clients.send((generation.config.pools[pool].name.clone(), moved));
                }
            }
        });
        all_sent
    }
}

async fn next_client(coming: &mut Option<Coming>) -> Option<(String, Moved)> {
    coming.as_mut()?.recv().await
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Control").field("workers", &self.workers).finish_non_exhaustive()
    }
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
        Signal::Usr1 => info!("{signal} received: ending, no reload any more"),
        Signal::Usr2 => info!("{signal} received: nothing to do"),
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
