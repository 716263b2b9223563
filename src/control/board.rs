//! The health board: reads the workers' cells, lets [`health`](super::health) judge, publishes who is live.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use tracing::{info, warn};

use super::answers::Answers;
use super::health::{Due, Now, PoolHealth, Reading, Rules, Verdict};
use super::probe::{self, ProbeError};
use super::publisher::Publisher;
use super::report::HealthStats;
use crate::config::{Config, Kept, Pool};
use crate::topology::{PoolIx, ServerIx};
use crate::worker::WorkerStats;

/// The health of all pools with `auto_eject_hosts`.
#[derive(Debug)]
pub struct Board {
    config: Arc<Config>,
    workers: Vec<Arc<WorkerStats>>,
    publisher: Publisher,
    stats: Arc<HealthStats>,
    /// By `PoolIx`.
    pools: Vec<Option<PoolHealth>>,
    /// By `PoolIx`, `ServerIx` and worker; of pools that have a health.
    answers: Vec<Vec<Vec<Answers>>>,
    probes: JoinSet<Probed>,
    /// Counts reloads: the answer to a probe from before one is of no use.
    reloads: u64,
    /// The last reason of each server that is out, so that it is logged only when it changes.
    reasons: HashMap<(PoolIx, ServerIx), ProbeError>,
}

/// An answer to [`Board::probe`].
#[derive(Debug)]
pub struct Probed {
    reloads: u64,
    pool: PoolIx,
    server: ServerIx,
    result: Result<(), ProbeError>,
}

impl Board {
    /// All servers live, as in the generation that is published.
    pub fn new(publisher: Publisher, stats: Arc<HealthStats>) -> Self {
        let published = publisher.now();
        let (config, workers) = (published.generation.config.clone(), published.stats.clone());
        let health = |pool| Rules::of(pool).map(|rules| PoolHealth::new(rules, pool.servers.len()));
        let pools = config.pools.iter().map(health).collect();
        let none = Answers::none(now().micros);
        let unseen = |pool: &Pool| vec![vec![none; workers.len()]; pool.servers.len()];
        let answers = config.pools.iter().map(unseen).collect();
        let (probes, reasons) = (JoinSet::new(), HashMap::new());
        Self { config, workers, publisher, stats, pools, answers, probes, reloads: 0, reasons }
    }

    /// Publishes the next configuration: servers that stay where they are stay out if they are.
    ///
    /// Cells of failures begin at 0 for servers that are configured otherwise.
    pub fn adopt(&mut self, config: Arc<Config>, stats: Arc<HealthStats>) {
        let now = now();
        let kept = Kept::between(&self.config, &config);
        let mut former: Vec<_> = std::mem::take(&mut self.pools);
        let pools = kept.pools.iter().zip(&config.pools).map(|(kept, pool)| {
            let rules = Rules::of(pool)?;
            let before = kept.was.and_then(|was| former[was].take());
            let old = kept.was.map_or(&[][..], |was| &self.config.pools[was].servers);
            let same = kept.servers.iter().zip(&pool.servers);
            let same = same.map(|(was, server)| was.filter(|was| old[*was].endpoint == server.endpoint));
            Some(PoolHealth::carried(rules, before, &same.collect::<Vec<_>>(), now.instant))
        });
        self.pools = pools.collect();
        let live = self.pools.iter().zip(&config.pools).map(|(health, pool)| match health {
            Some(health) => health.live(),
            None => vec![true; pool.servers.len()],
        });
        let published = self.publisher.publish(Arc::clone(&config), &live.collect::<Vec<_>>());
        let unseen = || vec![Answers::none(now.micros); published.stats.len()];
        self.answers = kept.carry(&self.answers, |pool, before| {
            let before = before.map_or(&[][..], Vec::as_slice);
            pool.carry(before, |answers| answers.cloned().unwrap_or_else(unseen))
        });
        self.workers.clone_from(&published.stats);
        (self.config, self.stats) = (config, stats);
        self.reloads += 1;
        self.reasons.clear();
    }

    /// Looks at one server, because a worker said so.
    pub fn look(&mut self, pool: PoolIx, server: ServerIx) {
        // A worker may speak of the generation before.
        let known = self.config.pools.get(pool.index()).is_some_and(|one| server.index() < one.servers.len());
        if !known || self.pools[pool.index()].is_none() {
            return;
        }
        let now = now();
        let readings = self.readings(pool, server, now);
        let Some(health) = &mut self.pools[usize::from(pool.0)] else { return };
        match health.examine(server, &readings, now) {
            Verdict::Unchanged => {}
            Verdict::Ejected => self.ejected(pool, server, &readings, now),
            Verdict::Spared => {
                let (pool, server) = self.names(pool, server);
                warn!(pool, server, "server is failing but not ejected: it is the last live one of its pool");
            }
        }
    }

    /// Looks at every server, and starts what is due.
    pub fn look_around(&mut self) {
        for (pool, server) in self.judged_servers() {
            self.look(pool, server);
        }
        self.start_due();
    }

    /// Waits until something must be done, and does it. Cancelling this loses nothing.
    pub async fn work(&mut self) {
        let next_due = self.pools.iter().flatten().filter_map(PoolHealth::next_due).min();
        let due = async {
            match next_due {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = due => self.start_due(),
            Some(probed) = self.probes.join_next(), if !self.probes.is_empty() => {
                self.probed(probed.expect("probes neither panic nor are aborted"));
            }
        }
    }

    /// Every worker's cells, with successes as the counts of answers show them.
    fn readings(&mut self, pool: PoolIx, server: ServerIx, now: Now) -> Vec<Reading> {
        let (pool_at, server_at) = (usize::from(pool.0), usize::from(server.0));
        let mut readings = readings(&self.workers, pool, server);
        let answers = &mut self.answers[pool_at][server_at];
        for ((reading, answers), worker) in readings.iter_mut().zip(answers).zip(&self.workers) {
            let counted = worker.pools[pool_at].servers[server_at].responses.value();
            let after = answers.look(counted, reading.failed_attempts != 0, now.micros);
            reading.last_success = reading.last_success.max(after);
        }
        readings
    }

    fn ejected(&mut self, pool: PoolIx, server: ServerIx, readings: &[Reading], now: Now) {
        let cells = &self.stats.pools[usize::from(pool.0)];
        cells.pool.server_ejects.add(1);
        cells.servers[usize::from(server.0)].server_ejected_at.set(now.micros);
        self.publish(pool);
        let failures = readings.iter().map(|reading| reading.failed_attempts).max();
        let live = self.live_servers(pool);
        let (pool, server) = self.names(pool, server);
        warn!(pool, server, failures, live, "server ejected: it is failing");
    }

    fn start_due(&mut self) {
        let now = now();
        for index in 0..self.pools.len() {
            let pool = pool_ix(index);
            let due = self.pools[index].as_mut().map(|health| health.due(now.instant)).unwrap_or_default();
            for due in due {
                match due {
                    Due::Probe(server) => self.probe(pool, server),
                    Due::Readmit(server) => self.readmit(pool, server),
                }
            }
        }
    }

    fn probe(&mut self, pool: PoolIx, server: ServerIx) {
        let settings = &self.config.pools[usize::from(pool.0)];
        let endpoint = settings.servers[usize::from(server.0)].endpoint.clone();
        let (auth, connect_limit) = (settings.redis_auth.clone(), settings.connect_timeout);
        let reloads = self.reloads;
        self.probes.spawn_local(async move {
            let result = probe::ping(&endpoint, auth.as_ref(), connect_limit).await;
            Probed { reloads, pool, server, result }
        });
    }

    fn probed(&mut self, probed: Probed) {
        let Probed { reloads, pool, server, result } = probed;
        if reloads != self.reloads {
            return;
        }
        let Err(reason) = result else {
            self.readmit(pool, server);
            return;
        };
        if let Some(health) = &mut self.pools[usize::from(pool.0)] {
            health.probe_failed(server, now().instant);
        }
        if self.reasons.get(&(pool, server)) != Some(&reason) {
            let (pool, server) = self.names(pool, server);
            info!(pool, server, "server stays ejected: {reason}");
        }
        self.reasons.insert((pool, server), reason);
    }

    fn readmit(&mut self, pool: PoolIx, server: ServerIx) {
        let now = now();
        let readings = self.readings(pool, server, now);
        if let Some(health) = &mut self.pools[usize::from(pool.0)] {
            health.readmit(server, readings, now);
        }
        self.reasons.remove(&(pool, server));
        self.publish(pool);
        let live = self.live_servers(pool);
        let (pool, server) = self.names(pool, server);
        warn!(pool, server, live, "server readmitted");
    }

    fn publish(&self, pool: PoolIx) {
        let Some(health) = &self.pools[usize::from(pool.0)] else { return };
        self.publisher.publish_live(pool, &health.live());
    }

    fn judged_servers(&self) -> Vec<(PoolIx, ServerIx)> {
        let judged = self.pools.iter().enumerate().filter(|(_, health)| health.is_some());
        let servers = judged.flat_map(|(pool, _)| {
            let servers = 0..self.config.pools[pool].servers.len();
            servers.map(move |server| (pool_ix(pool), server_ix(server)))
        });
        servers.collect()
    }

    fn live_servers(&self, pool: PoolIx) -> usize {
        let live = self.pools[usize::from(pool.0)].as_ref().map(PoolHealth::live).unwrap_or_default();
        live.iter().filter(|live| **live).count()
    }

    fn names(&self, pool: PoolIx, server: ServerIx) -> (&str, &str) {
        let pool = &self.config.pools[usize::from(pool.0)];
        (&pool.name, &pool.servers[usize::from(server.0)].name)
    }
}

fn readings(workers: &[Arc<WorkerStats>], pool: PoolIx, server: ServerIx) -> Vec<Reading> {
    let cells =
        workers.iter().map(|worker| &worker.pools[usize::from(pool.0)].servers[usize::from(server.0)]);
    let reading = |cells: &Arc<crate::stats::ServerBlock>| Reading {
        failed_attempts: cells.failed_attempts.value(),
        failing_since: cells.failing_since.value(),
        last_success: cells.last_success.value(),
    };
    cells.map(reading).collect()
}

fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Now { instant: Instant::now(), micros: u64::try_from(since.as_micros()).unwrap_or(u64::MAX) }
}

fn pool_ix(index: usize) -> PoolIx {
    PoolIx(u16::try_from(index).expect("pools are counted in 16 bits"))
}

fn server_ix(index: usize) -> ServerIx {
    ServerIx(u16::try_from(index).expect("servers are counted in 16 bits"))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    struct Fixture {
        board: Board,
        worker: Arc<WorkerStats>,
        publisher: Publisher,
    }

    /// A pool of two servers, the first of which listens (or will) on `port`.
    fn fixture(port: u16) -> Fixture {
        with_workers(port, 1)
    }

    fn with_workers(port: u16, workers: usize) -> Fixture {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!(
            "alpha:\n  listen: 127.0.0.1:22121\n  redis: true\n  auto_eject_hosts: true\n  \
             server_retry_timeout: 10\n  servers:\n   - 127.0.0.1:{port}:1 a\n   - 127.0.0.1:2:1 b\n"
        );
        std::fs::write(file.path(), text).unwrap();
        let config = Arc::new(Config::load(file.path()).unwrap());
        let stats = Arc::new(HealthStats::new(&config));
        let (publisher, _) = Publisher::first(config, workers);
        let worker = publisher.now().stats[0].clone();
        let board = Board::new(publisher.clone(), stats);
        Fixture { board, worker, publisher }
    }

    fn fail(worker: &WorkerStats, server: usize) {
        let cells = &worker.pools[0].servers[server];
        cells.failed_attempts.set(2);
        cells.failing_since.set(now().micros);
    }

    fn run(work: impl Future<Output = ()>) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build_local(Default::default()).unwrap();
        runtime
            .block_on(async { tokio::time::timeout(Duration::from_secs(10), work).await.expect("in time") });
    }

    #[test]
    fn an_ejection_is_counted_and_published_and_undone_by_a_good_probe() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let Fixture { mut board, worker, publisher } = fixture(listener.local_addr().unwrap().port());
        let server = std::thread::spawn(move || {
            let answers: [&[u8]; 2] = [b"-LOADING wait\r\n", b"+PONG\r\n"];
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_exact(&mut [0; 14]).unwrap();
                stream.write_all(answer).unwrap();
            }
        });
        fail(&worker, 0);
        board.look(PoolIx(0), ServerIx(0));
        assert_eq!(publisher.generation().number, 2);
        assert_eq!(board.pools[0].as_ref().unwrap().live(), [false, true]);
        assert_eq!(board.stats.pools[0].pool.server_ejects.value(), 1);
        let ejected_at = board.stats.pools[0].servers[0].server_ejected_at.value();
        assert!(ejected_at > 0);

        run(async {
            while publisher.generation().number == 2 {
                board.work().await;
            }
        });
        server.join().unwrap();
        assert_eq!(board.pools[0].as_ref().unwrap().live(), [true, true]);
        assert_eq!(board.stats.pools[0].servers[0].server_ejected_at.value(), ejected_at, "not cleared");
        board.look_around();
        assert_eq!(publisher.generation().number, 3, "old failures are forgiven");
    }

    /// One worker can't reach a server that another one talks to: nobody's keys move.
    #[test]
    fn a_server_that_answers_another_worker_is_not_ejected() {
        let Fixture { mut board, worker: busy, publisher } = with_workers(1, 2);
        let other = publisher.now().stats[1].clone();
        let answer = || busy.pools[0].servers[0].responses.add(1);
        answer();
        board.look_around();
        fail(&other, 0);
        let began = now().micros - 1;
        other.pools[0].servers[0].failing_since.set(began);
        board.look(PoolIx(0), ServerIx(0)); // that answer may have come before: not clear yet
        assert_eq!(publisher.generation().number, 1);
        for _ in 0..2 {
            answer();
            board.look_around();
        }
        assert!(board.readings(PoolIx(0), ServerIx(0), now())[0].last_success > began);
        assert_eq!(publisher.generation().number, 1);
    }

    #[test]
    fn the_last_server_keeps_its_keys() {
        let Fixture { mut board, worker, publisher } = fixture(1);
        fail(&worker, 0);
        fail(&worker, 1);
        board.look_around();
        board.look_around();
        assert_eq!(board.pools[0].as_ref().unwrap().live(), [false, true]);
        assert_eq!(board.stats.pools[0].pool.server_ejects.value(), 1);
        assert_eq!(publisher.generation().number, 2);
    }
}
