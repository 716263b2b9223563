//! The end: workers finish what is in flight within a limit.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::timeout_at;
use tracing::{error, info, warn};

use super::report::Sources;
use super::signals::{Signal, Signals};
use crate::worker::{Notice, Order, Worker};

/// How long past its limit a worker may take to cut what is left.
const GRACE: Duration = Duration::from_secs(2);

/// How the drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every worker ended; so many clients had to be cut at the limit.
    Done {
        /// Clients.
        cut: u64,
    },
    /// Another signal asked to end at once.
    Hurried,
    /// Workers did not end within the limit and the grace.
    Stuck,
}

/// Waits for all workers to end. Other signals than those that hurry it go to `other`.
pub async fn drain(
    workers: &[Worker],
    notices: &mut mpsc::Receiver<Notice>,
    signals: &mut Signals,
    sources: &Sources,
    limit: Duration,
    mut other: impl FnMut(Signal),
) -> Drained {
    let start = Instant::now();
    let (clients, requests) = sources.in_flight();
    info!(
        clients,
        requests,
        limit_ms = millis(limit),
        "draining: no new clients, finishing what is in flight"
    );
    order_all(workers, limit);

    let deadline = (start + limit + GRACE).into();
    let mut cut = 0;
    let drained = loop {
        tokio::select! {
            ended = timeout_at(deadline, all_ended(workers)) => match ended {
                Ok(()) => break Drained::Done { cut: cut + late_cuts(notices) },
                Err(_) => break Drained::Stuck,
            },
            Some(notice) = notices.recv() => cut += cut_by(notice),
            signal = signals.next() => match signal {
                Signal::Term | Signal::Int => {
                    warn!("{signal} received while draining: ending at once");
                    break Drained::Hurried;
                }
                signal => other(signal),
            },
        }
    };
    conclude(workers, drained, sources, start.elapsed());
    drained
}

fn order_all(workers: &[Worker], limit: Duration) {
    for worker in workers {
        // One that has ended has nothing to drain.
        let _ = worker.orders.send(Order::Drain(limit));
    }
}

/// A worker drops the receiving end of its orders when it ends.
async fn all_ended(workers: &[Worker]) {
    for worker in workers {
        worker.orders.closed().await;
    }
}

fn cut_by(notice: Notice) -> u64 {
    match notice {
        Notice::Drained { cut, .. } => cut,
        Notice::Failing(..) => 0,
    }
}

fn late_cuts(notices: &mut mpsc::Receiver<Notice>) -> u64 {
    std::iter::from_fn(|| notices.try_recv().ok()).map(cut_by).sum()
}

fn conclude(workers: &[Worker], drained: Drained, sources: &Sources, took: Duration) {
    let took_ms = millis(took);
    let (clients, requests) = sources.in_flight();
    match drained {
        Drained::Done { cut: 0 } => info!(took_ms, "drained: everything in flight was finished"),
        Drained::Done { cut } => warn!(took_ms, cut, "drained: clients were cut at the limit"),
        Drained::Hurried => warn!(took_ms, clients, requests, "not drained: cut"),
        Drained::Stuck => {
            let stuck = workers.iter().filter(|worker| !worker.orders.is_closed());
            let stuck: Vec<usize> = stuck.map(|worker| worker.index).collect();
            error!(took_ms, clients, requests, workers = ?stuck, "not drained: workers did not end in time");
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
