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
mod beat;
mod census;
mod greeting;
mod pools;
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use crate::backend::LeaseLimit;
pub use crate::client::{Carried, ClientInfo, KeySample, Monitor, Moved, SLOW_KEPT, SlowRequest};
pub use crate::dispatch::Scripts;
pub use crate::exchange::Budget;
use crate::net::{Listener, Peer};
pub use crate::stats::{PoolStats, WorkerBlock, WorkerStats};
use crate::topology::{Generation, PoolId, PoolIx, ServerIx};
pub use ask::{Ask, KillFilter};
pub use beat::give as give_beat;
pub use census::{Census, Seats};

/// What is published to the workers: a generation, and what they count and share in it. Immutable, but for the counts.
#[derive(Clone, Debug)]
pub struct Published {
    /// Configuration and owners.
    pub generation: Arc<Generation>,
    /// By worker, each in the shape of the generation.
    pub stats: Vec<Arc<WorkerStats>>,
    /// Room for clients, by `PoolIx`.
    pub seats: Vec<Arc<Seats>>,
    /// Room for leases, by `PoolIx` and `ServerIx`.
    pub leases: Vec<Vec<Arc<LeaseLimit>>>,
}

/// A listening address of the process: it keeps its number as long as it is listened on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DoorId(pub u32);

/// What control tells a worker. Rare: never on the path of a request.
#[derive(Debug)]
pub enum Order {
    /// Accept clients of a pool from this socket yourself.
    Listen(DoorId, PoolId, Listener),
    /// Clients that come to that socket belong to another pool from now on.
    Assign(DoorId, PoolId),
    /// Accept what is queued there, and close it.
    Unlisten(DoorId),
    /// Serve this client, accepted by the dealer.
    Adopt(PoolId, Peer),
    /// Accept nothing more there: another process does.
    Release(DoorId),
    /// Serve this client, which comes from another process.
    Resume(PoolId, Moved),
    /// Send each client there as soon as nothing is due to it; close what is left after the limit. Then end. The
    /// listening sockets are another process's already.
    HandOver(Duration, mpsc::UnboundedSender<(PoolId, Moved)>),
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
    /// Its own cells; those of pools and servers come with each generation.
    pub own: Arc<WorkerBlock>,
    /// The thread.
    pub thread: std::thread::JoinHandle<()>,
}

/// Starts worker `index` on a thread of its own.
///
/// It serves `published.borrow()` at once and every later one before it carries out orders that were sent after it.
/// `census`, `budget` and `scripts` are shared by all workers; `beat` is what [`give_beat`] gives.
pub fn spawn(
    index: usize,
    published: watch::Receiver<Arc<Published>>,
    notices: mpsc::Sender<Notice>,
    census: Arc<Census>,
    budget: Arc<Budget>,
    scripts: Arc<Scripts>,
    beat: watch::Receiver<Instant>,
) -> std::io::Result<Worker> {
    let own = Arc::clone(&published.borrow().stats[index].own);
    let (orders, incoming) = mpsc::unbounded_channel();
    let seed = world::Seed {
        index,
        published,
        notices,
        census,
        budget,
        scripts,
        own: Arc::clone(&own),
        orders: incoming,
        beat,
    };
    // The runtime is made here, so that what is wrong with it is an error of the start.
    let runtime = tokio::runtime::Builder::new_current_thread();
    let thread = std::thread::Builder::new()
        .name(format!("worker-{index}"))
        .spawn(move || world::run(runtime, seed))?;
    Ok(Worker { index, orders, own, thread })
}
