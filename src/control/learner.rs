//! Keeps what each pool's servers know beyond the built-in commands, and publishes it.
//!
//! ```text
//!            asked                told                    a connection was lost, or a new one is open
//!   Due ─────────────▶ Asking ───────────▶ Told ──────────────────────────────────────────────▶ Due
//!    ▲                   │
//!    └──── no answer ────┘  again after a while
//! ```
//!
//! Servers of one pool may differ: the pool knows what any of them knows, and where they contradict each other nothing. What a
//! server has told stays while it is down.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::task::JoinSet;
use tracing::{info, warn};

use super::probe::ProbeError;
use super::publisher::Publisher;
use super::vocabulary;
use crate::command::{Learned, Lexicon};
use crate::config::{Config, Kept};
use crate::topology::{PoolIx, ServerIx};
use crate::worker::WorkerStats;

/// What is known of all servers' commands.
#[derive(Debug)]
pub struct Learner {
    config: Arc<Config>,
    workers: Vec<Arc<WorkerStats>>,
    publisher: Publisher,
    lexicon: Lexicon,
    /// By `PoolIx` and `ServerIx`.
    servers: Vec<Vec<Teacher>>,
    asking: JoinSet<Told>,
    /// Counts reloads: an answer from before one is of no use.
    reloads: u64,
}

/// A server.
#[derive(Clone, Debug)]
struct Teacher {
    learned: Arc<Learned>,
    state: State,
    /// Why it didn't tell; logged when it changes.
    silence: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// To be asked then; it has not answered so many times in a row.
    Due(Instant, u32),
    Asking(Seen, u32),
    /// It has answered, or will not. Asked again when something else is seen of it.
    Told(Seen, Instant),
}

/// What workers count of a server's connections, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    lost: u64,
    opened: u64,
}

#[derive(Debug)]
struct Told {
    reloads: u64,
    pool: PoolIx,
    server: ServerIx,
    result: Result<BytesMut, ProbeError>,
}

/// Servers that are asked at once.
const MOST_ASKED: usize = 8;

/// A server that was lost is asked again after so long at the earliest.
const AFTER_LOSS: Duration = Duration::from_secs(1);

/// A server that was not lost, to which a connection was opened all the same: it may have restarted while nobody looked.
const AFTER_OPENING: Duration = Duration::from_secs(30);

/// Longest pause between two attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Names in a log line.
const NAMED: usize = 20;

impl Learner {
    /// Every server is to be asked now.
    pub fn new(publisher: Publisher) -> Self {
        let published = publisher.now();
        let (config, workers) = (published.generation.config.clone(), published.stats.clone());
        let servers = config.pools.iter().map(|pool| vec![Teacher::new(); pool.servers.len()]).collect();
        let (lexicon, asking) = (Lexicon::default(), JoinSet::new());
        Self { config, workers, publisher, lexicon, servers, asking, reloads: 0 }
    }

    /// After a reload: servers that stay keep what they have told, and all are asked again.
    pub fn adopt(&mut self, config: Arc<Config>, workers: &[Arc<WorkerStats>]) {
        let kept = Kept::between(&self.config, &config);
        self.servers = kept.carry(&self.servers, |pool, before| {
            pool.carry(before.map_or(&[][..], Vec::as_slice), |teacher| Teacher {
                learned: teacher.map(|teacher| teacher.learned.clone()).unwrap_or_default(),
                ..Teacher::new()
            })
        });
        self.workers = workers.to_vec();
        self.config = config;
        self.reloads += 1;
    }

    /// Sees whether servers have gone and come, and asks those that have.
    pub fn look_around(&mut self) {
        let now = Instant::now();
        for (pool, server) in self.places() {
            let seen = self.seen(pool, server);
            let teacher = &mut self.servers[pool.index()][server.index()];
            let State::Told(before, at) = teacher.state else { continue };
            let due = match () {
                () if seen.lost != before.lost => at + AFTER_LOSS,
                () if seen.opened != before.opened => at + AFTER_OPENING,
                () => continue,
            };
            if now >= due {
                teacher.state = State::Due(now, 0);
            }
        }
        self.ask_due(now);
    }

    /// Waits until something must be done, and does it. Cancelling this loses nothing.
    pub async fn work(&mut self) {
        let next = self.next_due().filter(|_| self.asking.len() < MOST_ASKED);
        let due = async {
            match next {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = due => self.ask_due(Instant::now()),
            Some(told) = self.asking.join_next(), if !self.asking.is_empty() => {
                self.told(told.expect("asking neither panics nor is aborted"));
            }
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let due = |(pool, server): (PoolIx, ServerIx)| match self.servers[pool.index()][server.index()].state
        {
            State::Due(at, _) => Some(at),
            State::Asking(..) | State::Told(..) => None,
        };
        self.places().into_iter().filter_map(due).min()
    }

    fn ask_due(&mut self, now: Instant) {
        for (pool, server) in self.places() {
            if self.asking.len() == MOST_ASKED {
                return;
            }
            let seen = self.seen(pool, server);
            let teacher = &mut self.servers[pool.index()][server.index()];
            let State::Due(at, failures) = teacher.state else { continue };
            if at > now {
                continue;
            }
            teacher.state = State::Asking(seen, failures);
            let settings = &self.config.pools[pool.index()];
            let endpoint = settings.servers[server.index()].endpoint.clone();
            let (auth, connect_limit) = (settings.redis_auth.clone(), settings.connect_timeout);
            let reloads = self.reloads;
            self.asking.spawn_local(async move {
                let result = vocabulary::ask(&endpoint, auth.as_ref(), connect_limit).await;
                Told { reloads, pool, server, result }
            });
        }
    }

    fn told(&mut self, told: Told) {
        let Told { reloads, pool, server, result } = told;
        if reloads != self.reloads {
            return;
        }
        let now = Instant::now();
        let learned = match result {
            Ok(reply) => self.lexicon.learn(&reply).map_err(|error| error.to_string()),
            Err(error) if is_over_soon(&error) => return self.failed(pool, server, now),
            Err(error) => Err(error.to_string()),
        };
        let teacher = &mut self.servers[pool.index()][server.index()];
        if let State::Asking(seen, _) = teacher.state {
            teacher.state = State::Told(seen, now);
        }
        match learned {
            Ok(learned) => {
                teacher.silence = None;
                if *teacher.learned != learned {
                    teacher.learned = Arc::new(learned);
                    self.say(pool, server);
                    self.publish(pool);
                }
            }
            Err(why) if teacher.silence.as_ref() != Some(&why) => {
                let settings = &self.config.pools[pool.index()];
                let (pool, name) = (&settings.name, &settings.servers[server.index()].name);
                info!(pool, server = name, "server does not tell which commands it knows: {why}");
                teacher.silence = Some(why);
            }
            Err(_) => {}
        }
    }

    /// It is down, most likely. Whoever wants something of it says so in the log.
    fn failed(&mut self, pool: PoolIx, server: ServerIx, now: Instant) {
        let state = &mut self.servers[pool.index()][server.index()].state;
        if let State::Asking(_, failures) = *state {
            let pause = Duration::from_secs(1 << failures.min(8)).min(LONGEST_PAUSE);
            *state = State::Due(now + pause, failures + 1);
        }
    }

    fn say(&self, pool: PoolIx, server: ServerIx) {
        let settings = &self.config.pools[pool.index()];
        let learned = &self.servers[pool.index()][server.index()].learned;
        let names: Vec<&str> = learned.names().take(NAMED).collect();
        let (pool, server) = (&settings.name, &settings.servers[server.index()].name);
        let more = if learned.names().count() > NAMED { ", …" } else { "" };
        info!(pool, server, "server knows commands that shardwise does not list: {}{more}", names.join(", "));
    }

    fn publish(&mut self, pool: PoolIx) {
        let was_full = self.lexicon.is_full();
        let servers = self.servers[pool.index()].iter().map(|teacher| &*teacher.learned);
        let all = self.lexicon.merge(servers);
        if self.lexicon.is_full() && !was_full {
            warn!(
                "no room for more commands of servers: what is new is unknown until shardwise is restarted"
            );
        }
        if *self.publisher.generation().learned[pool.index()] != all {
            self.publisher.publish_learned(pool, Arc::new(all));
        }
    }

    /// The servers of all pools that learn.
    fn places(&self) -> Vec<(PoolIx, ServerIx)> {
        let pools = (0..).map(PoolIx).zip(&self.config.pools).filter(|(_, pool)| pool.learn_commands);
        let places = pools.flat_map(|(ix, pool)| {
            (0..).map(ServerIx).zip(&pool.servers).map(move |(server, _)| (ix, server))
        });
        places.collect()
    }

    fn seen(&self, pool: PoolIx, server: ServerIx) -> Seen {
        let cells = self.workers.iter().map(|worker| &worker.pools[pool.index()].servers[server.index()]);
        cells.fold(Seen::default(), |seen, cells| Seen {
            lost: seen.lost
                + cells.server_eof.value()
                + cells.server_err.value()
                + cells.server_timedout.value(),
            opened: seen.opened + cells.server_total.value(),
        })
    }
}

impl Teacher {
    fn new() -> Self {
        Self { learned: Arc::default(), state: State::Due(Instant::now(), 0), silence: None }
    }
}

/// Whether asking again may help without anything being done about it.
fn is_over_soon(error: &ProbeError) -> bool {
    match error {
        ProbeError::Connect(_) | ProbeError::Lost(_) | ProbeError::TimedOut => true,
        ProbeError::Refused(text) => ["LOADING", "BUSY"].iter().any(|begin| text.starts_with(begin)),
        ProbeError::Unexpected => false,
    }
}
