//! One server of a pool, as one worker sees it.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::connect::ConnectError;
use super::lane::Lane;
use super::pipe::Pipe;
use crate::exchange::{BackendError, Cause, Turn};
use crate::net::Keepalive;
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
    /// Database; 0 is not selected.
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

/// Connections of one worker to one server.
pub struct Server {
    lanes: Vec<Rc<Lane>>,
    shared: Rc<Shared>,
}

/// What the lanes and connections of a server have in common.
pub(super) struct Shared {
    pub(super) settings: Settings,
    pub(super) label: Rc<str>,
    pub(super) stats: Arc<ServerBlock>,
    pub(super) turn: Rc<Turn>,
    /// Tells control that the failure limit was reached.
    pub(super) alarm: Box<dyn Fn()>,
}

impl Server {
    /// A server without connections; they are opened when first used, or by [`Server::preconnect`].
    /// `alarm` is called whenever the failure limit is reached or passed.
    pub fn new(settings: Settings, stats: Arc<ServerBlock>, turn: Rc<Turn>, alarm: Box<dyn Fn()>) -> Self {
        let label = Rc::from(settings.label.as_str());
        let connections = settings.connections;
        let shared = Rc::new(Shared { settings, label, stats, turn, alarm });
        let lanes = (0..connections).map(|i| Lane::new(Rc::clone(&shared), u64::from(i))).collect();
        Self { lanes, shared }
    }

    /// The lane that client number `client` always uses.
    #[inline]
    pub fn lane(&self, client: u64) -> &Rc<Lane> {
        match self.lanes.len() {
            1 => &self.lanes[0],
            n => &self.lanes[spread(client, n)],
        }
    }

    /// Opens every connection now.
    pub fn preconnect(&self) {
        self.lanes.iter().for_each(Lane::demand);
    }

    /// What makes it the same server in another generation.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Closes every connection; what is awaited fails.
    pub fn close(&self) {
        self.lanes.iter().for_each(|lane| lane.close());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    pub(super) fn error(&self, cause: Cause) -> BackendError {
        BackendError { cause, server: Rc::clone(&self.label) }
    }

    /// One more failure in a row: an attempt to connect, a lost connection, a reply that was late.
    pub(super) fn failed(&self) {
        let stats = &self.stats;
        if stats.failed_attempts.value() == 0 {
            stats.failing_since.set(unix_micros());
        }
        stats.failed_attempts.add(1);
        if stats.failed_attempts.value() >= u64::from(self.settings.failure_limit) {
            (self.alarm)();
        }
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
