//! The health board: reads the workers' cells, lets [`health`](super::health) judge, publishes who is live.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::task::JoinSet;
use tracing::{info, warn};

use super::answers::Answers;
use super::health::{Due, Now, PoolHealth, Reading, Rules, Verdict};
use super::hold::{Hold, Refusal, Said, Word};
use super::probe::{self, ProbeError};
use super::publisher::Publisher;
use super::report::HealthStats;
use crate::config::{Config, Kept, Pool};
use crate::topology::{PoolIx, ServerIx};
use crate::worker::WorkerStats;

/// Which servers own keys: the health of all pools with `auto_eject_hosts`, and what the operator has said.
#[derive(Debug)]
pub struct Board {
    config: Arc<Config>,
    workers: Vec<Arc<WorkerStats>>,
    publisher: Publisher,
    stats: Arc<HealthStats>,
    /// By `PoolIx`.
    pools: Vec<Option<PoolHealth>>,
    /// By `PoolIx` and `ServerIx`.
    holds: Vec<Vec<Hold>>,
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
        let holds = config.pools.iter().map(|pool| vec![Hold::default(); pool.servers.len()]).collect();
        let none = Answers::none(now().micros);
        let unseen = |pool: &Pool| vec![vec![none; workers.len()]; pool.servers.len()];
        let answers = config.pools.iter().map(unseen).collect();
        let (probes, reasons) = (JoinSet::new(), HashMap::new());
        Self { config, workers, publisher, stats, pools, holds, answers, probes, reloads: 0, reasons }
    }

    /// Publishes the next configuration: servers that stay where they are stay out if they are, for health's sake or the
    /// operator's. Where then nobody would be left, the operator's word is forgotten.
    ///
    /// Cells of failures begin at 0 for servers that are configured otherwise.
    pub fn adopt(&mut self, config: Arc<Config>, stats: Arc<HealthStats>) {
        let now = now();
        let kept = Kept::between(&self.config, &config);
        let mut former: Vec<_> = std::mem::take(&mut self.pools);
        let former_holds = std::mem::take(&mut self.holds);
        for (kept, pool) in kept.pools.iter().zip(&config.pools) {
            let old = kept.was.map_or(&[][..], |was| &self.config.pools[was].servers);
            let same = kept.servers.iter().zip(&pool.servers);
            let same = same.map(|(was, server)| was.filter(|was| old[*was].endpoint == server.endpoint));
            let same: Vec<Option<usize>> = same.collect();
            let before = kept.was.and_then(|was| former[was].take());
            let health = Rules::of(pool).map(|rules| PoolHealth::carried(rules, before, &same, now.instant));
            let held =
                |was: &Option<usize>| kept.was.zip(*was).map(|(pool, server)| former_holds[pool][server]);
            let holds = same.iter().map(|was| held(was).unwrap_or_default()).collect();
            self.take_over(pool, health, holds);
        }
        let live: Vec<Vec<bool>> = (0..config.pools.len()).map(|pool| self.live(pool_ix(pool))).collect();
        let published = self.publisher.publish(Arc::clone(&config), &live);
        let unseen = || vec![Answers::none(now.micros); published.stats.len()];
        self.answers = kept.carry(&self.answers, |pool, before| {
            let before = before.map_or(&[][..], Vec::as_slice);
            pool.carry(before, |answers| answers.cloned().unwrap_or_else(unseen))
        });
        self.workers.clone_from(&published.stats);
        (self.config, self.stats) = (config, stats);
        self.reloads += 1;
        self.reasons.clear();
        self.show_holds();
    }

    /// One more pool of the next configuration.
    fn take_over(&mut self, pool: &Pool, mut health: Option<PoolHealth>, mut holds: Vec<Hold>) {
        let sound = health.as_ref().map_or_else(|| vec![true; holds.len()], PoolHealth::live);
        if sound.iter().zip(&holds).all(|(sound, hold)| !sound || hold.is_out()) {
            warn!(pool = pool.name, "no server would be live: DRAIN and BAN are forgotten there");
            holds.fill(Hold::default());
        }
        for (server, hold) in holds.iter().enumerate() {
            if let (Some(health), true) = (&mut health, hold.is_out()) {
                health.hold(server_ix(server));
            }
        }
        self.pools.push(health);
        self.holds.push(holds);
    }

    /// What the operator says of a server holds from the generation on that is the answer.
    pub fn hear(&mut self, said: Said) {
        let outcome = self.obey(&said.pool, &said.server, said.word);
        let _ = said.answer.send(outcome); // who asked may not wait any more
    }

    fn obey(&mut self, pool: &str, server: &str, word: Word) -> Result<u64, Refusal> {
        let pool_at = self.config.pools.iter().position(|one| one.name == pool).ok_or(Refusal::Gone)?;
        let servers = &self.config.pools[pool_at].servers;
        let server_at = servers.iter().position(|one| one.name == server).ok_or(Refusal::Gone)?;
        let others = self.live(pool_ix(pool_at));
        let is_last_live = !others.iter().enumerate().any(|(at, live)| *live && at != server_at);
        let hold = self.holds[pool_at][server_at].after(word, is_last_live, Instant::now())?;
        self.set_hold(pool_ix(pool_at), server_ix(server_at), hold);
        let live = self.live_servers(pool_ix(pool_at));
        warn!(pool, server, live, "the operator says {word:?}");
        Ok(self.publisher.generation().number)
    }

    fn set_hold(&mut self, pool: PoolIx, server: ServerIx, hold: Hold) {
        let was = std::mem::replace(&mut self.holds[pool.index()][server.index()], hold);
        if was.is_out() != hold.is_out() {
            let now = now();
            let readings = self.readings(pool, server, now);
            match &mut self.pools[pool.index()] {
                Some(health) if hold.is_out() => health.hold(server),
                Some(health) => health.let_go(server, readings, now),
                None => {}
            }
            self.publish(pool);
        }
        self.show_holds();
    }

    /// Bans end when their time is over.
    fn expire_bans(&mut self) {
        let now = Instant::now();
        let all = self.holds.iter().enumerate();
        let all =
            all.flat_map(|(pool, holds)| holds.iter().enumerate().map(move |(at, hold)| (pool, at, *hold)));
        let over: Vec<_> =
            all.filter_map(|(pool, at, mut hold)| hold.expire(now).then_some((pool, at, hold))).collect();
        for (pool, server, hold) in over {
            let (pool, server) = (pool_ix(pool), server_ix(server));
            self.set_hold(pool, server, hold);
            let live = self.live_servers(pool);
            let (pool, server) = self.names(pool, server);
            warn!(pool, server, live, "a ban is over");
        }
    }

    /// Into the cells.
    fn show_holds(&self) {
        let now = now();
        for (pool, holds) in self.stats.pools.iter().zip(&self.holds) {
            for (cells, hold) in pool.servers.iter().zip(holds) {
                cells.drained.set(u64::from(hold.drained));
                let left = hold.banned_until.map(|until| until.saturating_duration_since(now.instant));
                let until = left.map_or(0, |left| now.micros + u64::try_from(left.as_micros()).unwrap_or(0));
                cells.banned_until.set(until);
            }
        }
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
                warn!(
                    pool,
                    server,
                    "server is failing but not ejected: it is the last live one of its pool, or max_ejected are out"
                );
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
        let health = self.pools.iter().flatten().filter_map(PoolHealth::next_due);
        let bans = self.holds.iter().flatten().filter_map(|hold| hold.banned_until);
        let next_due = health.chain(bans).min();
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
        self.expire_bans();
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
        let asked = probe::server(&self.config.pools[pool.index()], server);
        let reloads = self.reloads;
        self.probes.spawn_local(async move {
            let result = asked.await;
            Probed { reloads, pool, server, result }
        });
    }

    fn probed(&mut self, probed: Probed) {
        let Probed { reloads, pool, server, result } = probed;
        if reloads != self.reloads {
            return;
        }
        let Err(reason) = result else {
            let health = self.pools[usize::from(pool.0)].as_mut();
            if health.is_some_and(|health| health.probe_answered(server, now().instant)) {
                self.readmit(pool, server);
            }
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
        let held = self.holds[pool.index()][server.index()].is_out();
        let (pool, server) = self.names(pool, server);
        if held {
            info!(pool, server, "server answers again, and stays out as the operator has said");
        } else {
            warn!(pool, server, live, "server readmitted");
        }
    }

    fn publish(&self, pool: PoolIx) {
        self.publisher.publish_live(pool, &self.live(pool));
    }

    /// By `ServerIx`: whether it owns keys.
    fn live(&self, pool: PoolIx) -> Vec<bool> {
        match &self.pools[pool.index()] {
            Some(health) => health.live(),
            None => self.holds[pool.index()].iter().map(|hold| !hold.is_out()).collect(),
        }
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
        self.live(pool).iter().filter(|live| **live).count()
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
             server_retry_timeout: 10\n  probe_interval: 10ms\n  servers:\n   - 127.0.0.1:{port}:1 a\n   - 127.0.0.1:2:1 b\n"
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
