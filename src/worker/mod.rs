//! One thread's world: its clients, its connections to every server, and the flusher.
//!
//! ```text
//!   World ─┬─ Turn                what must be written before this turn ends; the flusher task drains it
//!          ├─ Pool ─── Server ─── Lane ─── Conn        one of each per worker: nothing is shared
//!          ├─ accept tasks        this worker's listeners, or none if control deals clients
//!          └─ ClientConn …        a task each
//! ```

mod accept;
mod ask;
mod census;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

pub use crate::client::{ClientInfo, SLOW_KEPT, SlowRequest};
use crate::net::{Listener, Peer};
pub use crate::stats::{PoolStats, WorkerStats};
use crate::topology::{Generation, PoolIx, ServerIx};
pub use ask::{Ask, KillFilter};
pub use census::Census;

/// What control tells a worker. Rare: never on the path of a request.
#[derive(Debug)]
pub enum Order {
    /// Accept clients of a pool from this socket yourself.
    Listen(PoolIx, Listener),
    /// Serve this client, accepted by the dealer.
    Adopt(PoolIx, Peer),
    /// Stop accepting, finish what is in flight, close every client; cut what is left after the limit. Then end.
    Drain(Duration),
    /// Answer a question about your clients, or do something to them.
    Ask(Ask),
}

/// What a worker tells control: only that something is worth a look. May be lost when control is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A server's failures reached the pool's limit in this worker; control reads the cells.
    Failing(PoolIx, ServerIx),
    /// A drain ended; so many clients had to be cut.
    Drained {
        /// Worker's index.
        worker: usize,
        /// Clients closed by the limit.
        cut: u64,
    },
}

/// Control's end of a running worker.
#[derive(Debug)]
pub struct Worker {
    /// From 0.
    pub index: usize,
    /// Orders to it; an error means that the thread has ended.
    pub orders: mpsc::UnboundedSender<Order>,
    /// Its cells.
    pub stats: Arc<WorkerStats>,
    /// The thread.
    pub thread: std::thread::JoinHandle<()>,
}

/// Starts worker `index` on a thread of its own.
///
/// It serves `generations.borrow()` at once and every later one as it is published. `census` is shared by all workers.
pub fn spawn(
    index: usize,
    generations: watch::Receiver<Arc<Generation>>,
    notices: mpsc::Sender<Notice>,
    census: Arc<Census>,
) -> std::io::Result<Worker> {
    let servers = generations.borrow().config.pools.iter().map(|pool| pool.servers.len()).collect::<Vec<_>>();
    let stats = Arc::new(WorkerStats::new(servers));
    let (orders, incoming) = mpsc::unbounded_channel();
    let seed =
        world::Seed { index, generations, notices, census, stats: Arc::clone(&stats), orders: incoming };
    // The runtime is made here, so that what is wrong with it is an error of the start.
    let runtime = tokio::runtime::Builder::new_current_thread();
    let thread = std::thread::Builder::new()
        .name(format!("worker-{index}"))
        .spawn(move || world::run(runtime, seed))?;
    Ok(Worker { index, orders, stats, thread })
}
