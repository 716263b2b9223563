//! Questions to all workers.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::warn;

use crate::worker::{Ask, Order};

/// How long a worker has for its answer. One that stands still must not take with it whoever asks.
const PATIENCE: Duration = Duration::from_secs(2);

/// Every worker's answer, with its index. A worker that doesn't answer in time is left out.
pub async fn ask_all<T>(
    workers: &[UnboundedSender<Order>],
    ask: impl Fn(oneshot::Sender<T>) -> Ask,
) -> Vec<(usize, T)> {
    let mut awaited = Vec::with_capacity(workers.len());
    for (index, worker) in workers.iter().enumerate() {
        let (to, answer) = oneshot::channel();
        if worker.send(Order::Ask(ask(to))).is_ok() {
            awaited.push((index, answer));
        }
    }
    let mut answers = Vec::with_capacity(awaited.len());
    for (index, answer) in awaited {
        match timeout(PATIENCE, answer).await {
            Ok(Ok(answer)) => answers.push((index, answer)),
            Ok(Err(_)) => {} // it has ended
            Err(_) => warn!(worker = index, "a worker doesn't answer"),
        }
    }
    answers
}
