//! One server of a pool, as one worker sees it.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::connect::ConnectError;
use super::lane::Lane;
use super::lease::{Lease, LeaseLimit, Leases, LeasesSpent};
use super::loaded::Loaded;
use super::pipe::Pipe;
use super::subscriber::Subscriber;
use crate::exchange::{BackendError, Cause, Turn};
use crate::net::Keepalive;
use crate::resp::Protocol;
use crate::stats::ServerBlock;
use crate::units::{Endpoint, Limit, Secret};

/// Everything that makes two server connections the same: a server whose settings are equal in two generations
/// keeps its connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// `NAME (ADDRESS)`, as clients and logs see it.
    pub label: String,
    /// Where it is.
    pub endpoint: Endpoint,
    /// Password.
    pub auth: Option<Secret>,
    /// Database of clients that have not chosen another; 0 is not selected.
    pub db: u32,
    /// Queue clock and response clock; `None`: never.
    pub timeout: Option<Duration>,
    /// Bound of connecting, handshake included.
    pub connect_timeout: Duration,
    /// Bytes waiting for one connection at which it takes no more requests.
    pub queue: Limit<usize>,
    /// TCP keepalive.
    pub keepalive: Keepalive,
    /// Connections of this worker.
    pub connections: u32,
    /// Consecutive failures at which control is told.
    pub failure_limit: u32,
}

/// What a connection to a server is set up for: clients that differ in it never share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// SELECTed when not 0.
    pub db: u32,
    /// HELLO 3 is said for RESP3.
    pub protocol: Protocol,
}

impl Settings {
    /// What clients get that have asked for nothing else.
    pub fn home(&self) -> Target {
        Target { db: self.db, protocol: Protocol::Resp2 }
    }

    /// Bound of connecting: a request that waits for it must not wait longer than for its answer.
    pub(super) fn connect_limit(&self) -> Duration {
        self.timeout.map_or(self.connect_timeout, |timeout| timeout.min(self.connect_timeout))
    }
}

/// Connections of one worker to one server.
pub struct Server {
    lanes: Lanes,
    leases: Rc<Leases>,
    subscriber: Rc<Subscriber>,
    shared: Rc<Shared>,
    loaded: Loaded,
}

/// The lanes of one target, and those of further ones: the first is the default, which so costs no search. What clients may ask
/// for bounds them.
struct Lanes {
    target: Target,
    lanes: Vec<Rc<Lane>>,
    next: OnceCell<Box<Lanes>>,
}

/// What the lanes and connections of a server have in common.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) label: Rc<str>,
    pub(super) stats: Arc<ServerBlock>,
    pub(super) turn: Rc<Turn>,
    /// Tells control that the failure limit was reached.
    pub(super) alarm: Box<dyn Fn()>,
    /// It takes no new requests: what happens to it now says nothing about a server of the present configuration.
    retired: Cell<bool>,
    /// When the latest failure was counted.
    last_failed: Cell<Option<Instant>>,
}

impl Server {
    /// A server without connections; they are opened when first used, or by [`Server::preconnect`].
    /// `leases` is shared by all workers. `alarm` is called whenever the failure limit is reached or passed.
    pub fn new(
        settings: Settings,
        stats: Arc<ServerBlock>,
        leases: Arc<LeaseLimit>,
        turn: Rc<Turn>,
        alarm: Box<dyn Fn()>,
    ) -> Self {
        let label = Rc::from(settings.label.as_str());
        let home = settings.home();
        // The cells may be those of the same server as it was configured before.
        stats.failed_attempts.set(0);
        stats.failing_since.set(0);
        let (retired, last_failed) = (Cell::new(false), Cell::new(None));
        let shared = Rc::new(Shared { settings, label, stats, turn, alarm, retired, last_failed });
        let lanes = Lanes::new(home, &shared);
        let leases = Leases::new(Rc::clone(&shared), leases);
        let subscriber = Subscriber::new(Rc::clone(&shared));
        Self { lanes, leases, subscriber, shared, loaded: Loaded::default() }
    }

    /// The lane that client number `client` always uses for `target`.
    #[inline]
    pub fn lane(&self, target: Target, client: u64) -> &Rc<Lane> {
        let lanes = &self.lanes.of(target, &self.shared).lanes;
        match lanes.len() {
            1 => &lanes[0],
            n => &lanes[spread(client, n)],
        }
    }

    /// A connection for one client alone.
    pub fn lease(&self, target: Target) -> Result<Lease, LeasesSpent> {
        self.leases.take(target)
    }

    /// Whether `lease` is a connection to this server.
    pub fn has_leased(&self, lease: &Lease) -> bool {
        lease.is_of(&self.leases)
    }

    /// What clients are subscribed to there.
    pub fn subscriber(&self) -> &Rc<Subscriber> {
        &self.subscriber
    }

    /// Which scripts it has, as far as is known.
    pub fn loaded(&self) -> &Loaded {
        &self.loaded
    }

    /// Opens every shared connection of the default target now.
    pub fn preconnect(&self) {
        self.lanes.lanes.iter().for_each(Lane::demand);
    }

    /// What makes it the same server in another generation.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Takes the place of `former`, the same server as it was configured before: a client's requests wait until its
    /// earlier ones have ended there.
    pub fn succeed(&self, former: &Self) {
        for former in former.lanes.iter() {
            for lane in &self.lanes.of(former.target, &self.shared).lanes {
                former.lanes.iter().for_each(|former| lane.stand_behind(former));
            }
        }
    }

    /// Forgets those it took the place of, as far as nothing is outstanding there.
    pub fn forget_former(&self) {
        self.lanes.iter().flat_map(|lanes| &lanes.lanes).for_each(|lane| lane.forget_former());
    }

    /// New connections take the place of those that there are, which still deliver what is due; those that clients have for
    /// themselves stay theirs. How many connections that concerns.
    pub fn renew(&self) -> usize {
        let lanes = self.lanes.iter().flat_map(|lanes| &lanes.lanes).filter(|lane| lane.renew()).count();
        lanes + self.leases.renew() + usize::from(self.subscriber.renew())
    }

    /// It gets no new requests from now on, and its failures count no more. [`Server::is_idle`] tells when to close it.
    pub fn retire(&self) {
        self.shared.retired.set(true);
    }

    /// Whether nothing is outstanding that somebody waits for.
    pub fn is_idle(&self) -> bool {
        self.lanes.iter().flat_map(|lanes| &lanes.lanes).all(|lane| lane.is_idle())
    }

    /// Closes every connection but those that clients have for themselves; what is awaited fails.
    pub fn close(&self) {
        self.leases.close();
        self.subscriber.close();
        self.lanes.iter().flat_map(|lanes| &lanes.lanes).for_each(|lane| lane.close());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

// === impl Lanes ===

impl Lanes {
    fn new(target: Target, shared: &Rc<Shared>) -> Self {
        let numbers = 0..u64::from(shared.settings.connections);
        let lanes = numbers.map(|number| Lane::new(Rc::clone(shared), target, number)).collect();
        Self { target, lanes, next: OnceCell::new() }
    }

    #[inline]
    fn of(&self, target: Target, shared: &Rc<Shared>) -> &Lanes {
        if self.target == target { self } else { self.further(target, shared) }
    }

    fn further(&self, target: Target, shared: &Rc<Shared>) -> &Lanes {
        let mut lanes = self;
        while lanes.target != target {
            lanes = lanes.next.get_or_init(|| Box::new(Lanes::new(target, shared)));
        }
        lanes
    }

    /// Those of every target.
    fn iter(&self) -> impl Iterator<Item = &Lanes> {
        std::iter::successors(Some(self), |lanes| lanes.next.get().map(Box::as_ref))
    }
}

impl Shared {
    pub(super) fn error(&self, cause: Cause) -> BackendError {
        BackendError { cause, server: Rc::clone(&self.label) }
    }

    /// One more failure in a row: an attempt to connect, a lost connection, a reply that was late.
    pub(super) fn failed(&self) {
        let stats = &self.stats;
        if self.retired.get() {
            return;
        }
        if stats.failed_attempts.value() == 0 {
            stats.failing_since.set(unix_micros());
        }
        stats.failed_attempts.add(1);
        if stats.failed_attempts.value() >= u64::from(self.settings.failure_limit) {
            (self.alarm)();
        }
    }

    /// Something failed that had begun `since`: a connection, or an attempt to connect. All that had begun when the last
    /// failure of a run was counted may fail of the same cause: a crash of a server to which there are several
    /// connections is one failure.
    pub(super) fn failed_since(&self, since: Instant) {
        let in_a_run = self.stats.failed_attempts.value() != 0;
        if in_a_run && self.last_failed.get().is_some_and(|last| since <= last) {
            return;
        }
        self.last_failed.set(Some(Instant::now()));
        self.failed();
    }

    /// An attempt to connect failed. That a server refuses what a client has asked for (a database, RESP3) is no failure of the server.
    pub(super) fn connect_failed(&self, target: Target, error: &ConnectError, since: Instant, again: bool) {
        let stats = &self.stats;
        if error.cause == Cause::Handshake && target != self.settings.home() {
            return self.log_connect_failure(error, again);
        }
        self.failed_since(since);
        match error.cause {
            Cause::ConnectTimeout => stats.server_timedout.add(1),
            _ => stats.server_err.add(1),
        }
        self.log_connect_failure(error, again);
    }

    /// The server answered: its run of failures, if there was one, is over.
    #[inline]
    pub(super) fn succeeded(&self) {
        if self.stats.failed_attempts.value() != 0 {
            self.stats.failed_attempts.set(0);
            self.stats.failing_since.set(0);
            self.stats.last_success.set(unix_micros());
        }
    }
}

// === stats and log ===

impl Shared {
    #[inline]
    pub(super) fn count_request(&self, len: usize) {
        self.stats.requests.add(1);
        self.stats.request_bytes.add(len as u64);
    }

    #[inline]
    pub(super) fn count_response(&self, len: usize) {
        self.stats.responses.add(1);
        self.stats.response_bytes.add(len as u64);
    }

    /// Shows what waits in a pipe and what is awaited; one that shows nothing any more may be dropped.
    #[inline]
    pub(super) fn show_queues(&self, pipe: &mut Pipe) {
        let (before, now) = pipe.show();
        let stats = &self.stats;
        stats.in_queue.add(now.waiting.wrapping_sub(before.waiting));
        stats.in_queue_bytes.add(now.waiting_bytes.wrapping_sub(before.waiting_bytes));
        stats.out_queue.add(now.awaited.wrapping_sub(before.awaited));
        stats.out_queue_bytes.add(now.awaited_bytes.wrapping_sub(before.awaited_bytes));
    }

    /// The first failed attempt is news; the others of a run (`again`) are the same news.
    pub(super) fn log_connect_failure(&self, error: &ConnectError, again: bool) {
        if again {
            tracing::debug!(server = %self.label, cause = ?error.cause, detail = %error.detail, "still cannot connect");
        } else {
            tracing::warn!(server = %self.label, cause = ?error.cause, detail = %error.detail, "cannot connect; trying on");
        }
    }

    /// Connected again after failed attempts.
    pub(super) fn log_back(&self) {
        tracing::info!(server = %self.label, "connected again");
    }

    pub(super) fn log_lost(&self, cause: Cause) {
        if cause != Cause::Shutdown {
            tracing::info!(server = %self.label, ?cause, "server connection lost");
        }
    }
}

/// One of `n` for each number; numbers that follow each other at any distance are spread evenly.
///
/// Clients are dealt out over the workers in turn, so that a worker's own have numbers of a fixed distance: their
/// remainders could all be the same. Multiplied by 2⁶⁴/φ (Fibonacci hashing) they are not.
fn spread(number: u64, n: usize) -> usize {
    let fraction = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((fraction * n as u64) >> 32) as usize
}

/// Now, in microseconds since 1970, as timestamps are kept.
fn unix_micros() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B25: with two workers and two connections, all clients of a worker used the same connection.
    #[test]
    fn a_workers_clients_use_all_its_lanes_about_equally() {
        for n in 2..=8 {
            for distance in 1..=8 {
                let mut clients = vec![0; n];
                (0..1000).for_each(|i| clients[spread(3 + i * distance, n)] += 1);
                let (least, most) = (clients.iter().min().unwrap(), clients.iter().max().unwrap());
                assert!(most - least <= 1000 / n / 5, "{n} lanes, every {distance}th client: {clients:?}");
            }
        }
    }
}
