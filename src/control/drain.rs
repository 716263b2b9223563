//! The end: workers finish what is in flight within a limit.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::time::timeout_at;
use tracing::{error, info, warn};

use super::report::Current;
use super::signals::Signal;
use crate::worker::{Notice, Order, Worker};

/// How long a drain may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For what is in flight; then the workers cut it.
    pub finish: Duration,
    /// Beyond that, for the workers to cut it and end.
    pub grace: Duration,
}

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

/// Waits for all workers to end. `next_signal` may hurry it; other signals go to `other`.
pub async fn drain(
    workers: &[Worker],
    notices: &mut mpsc::Receiver<Notice>,
    sources: &Current,
    limits: Limits,
    mut next_signal: impl AsyncFnMut() -> Signal,
    mut other: impl FnMut(Signal),
) -> Drained {
    let start = Instant::now();
    let (clients, requests) = sources.now().in_flight();
    let limit_ms = millis(limits.finish);
    info!(clients, requests, limit_ms, "draining: no new clients, finishing what is in flight");
    sources.now().draining.set(true);
    order_all(workers, limits.finish);

    let deadline = (start + limits.finish + limits.grace).into();
    let mut cut = 0;
    let drained = loop {
        tokio::select! {
            ended = timeout_at(deadline, all_ended(workers)) => match ended {
                Ok(()) => break Drained::Done { cut: cut + late_cuts(notices) },
                Err(_) => break Drained::Stuck,
            },
            Some(notice) = notices.recv() => cut += cut_by(notice),
            signal = next_signal() => match signal {
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

fn conclude(workers: &[Worker], drained: Drained, sources: &Current, took: Duration) {
    let took_ms = millis(took);
    let (clients, requests) = sources.now().in_flight();
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

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::Arc;

    use super::*;
    use crate::config::Config;
    use crate::control::report::{HealthStats, Sources};
    use crate::worker::WorkerStats;

    const YAML: &str = "alpha:\n  listen: 127.0.0.1:1\n  redis: true\n  servers:\n   - 127.0.0.1:2:1 a\n";
    const AT_ONCE: Limits = Limits { finish: Duration::from_millis(10), grace: Duration::from_millis(10) };
    const NEVER: Limits = Limits { finish: Duration::from_secs(3600), grace: Duration::ZERO };

    /// Drains one worker, which does with its orders what `work` does.
    fn drained<F: Future<Output = ()> + 'static>(
        limits: Limits,
        signal: Option<Signal>,
        work: impl FnOnce(mpsc::UnboundedReceiver<Order>, mpsc::Sender<Notice>) -> F,
    ) -> Drained {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), YAML).unwrap();
        let config = Arc::new(Config::load(file.path()).unwrap());
        let stats = Arc::new(WorkerStats::new([1]));
        let health = Arc::new(HealthStats::new(&config));
        let sources = Current::new(Sources::new(config, vec![stats.clone()], health, 1));
        let (orders, received) = mpsc::unbounded_channel();
        let (notify, mut notices) = mpsc::channel(8);
        let worker = Worker { index: 0, orders, own: stats.own.clone(), thread: std::thread::spawn(|| {}) };

        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build_local(Default::default()).unwrap();
        let next_signal = async || match signal {
            Some(signal) => ready(signal).await,
            None => pending().await,
        };
        let work = work(received, notify);
        runtime.block_on(async {
            tokio::task::spawn_local(work);
            drain(&[worker], &mut notices, &sources, limits, next_signal, |_| {}).await
        })
    }

    #[test]
    fn a_worker_is_told_the_limit_and_what_it_cut_is_known() {
        let drained = drained(NEVER, None, |mut orders, notices| async move {
            assert!(matches!(orders.recv().await, Some(Order::Drain(limit)) if limit == NEVER.finish));
            notices.try_send(Notice::Drained { worker: 0, cut: 3 }).unwrap();
        });
        assert_eq!(drained, Drained::Done { cut: 3 });
    }

    #[test]
    fn a_worker_that_does_not_end_is_not_waited_for_longer_than_the_grace() {
        let drained = drained(AT_ONCE, None, |orders, _notices| async move {
            let _held = orders;
            pending().await
        });
        assert_eq!(drained, Drained::Stuck);
    }

    #[test]
    fn a_signal_hurries_it() {
        let drained = drained(NEVER, Some(Signal::Int), |orders, _notices| async move {
            let _held = orders;
            pending().await
        });
        assert_eq!(drained, Drained::Hurried);
    }

    #[test]
    fn a_worker_that_has_ended_already_is_no_obstacle() {
        let drained = drained(NEVER, None, |orders, _notices| async move { drop(orders) });
        assert_eq!(drained, Drained::Done { cut: 0 });
    }
}
