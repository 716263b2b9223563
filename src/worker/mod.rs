//! One thread's world: its clients, its connections to every server, and the flusher.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::stats::{PoolBlock, ServerBlock};
use crate::topology::{Generation, PoolIx, ServerIx};

/// A socket of a new client, accepted elsewhere.
#[derive(Debug)]
pub enum Accepted {
    /// From a TCP listener, non-blocking.
    Tcp(std::net::TcpStream),
    /// From a unix listener, non-blocking.
    Unix(std::os::unix::net::UnixStream),
}

/// A listening socket, bound and non-blocking.
#[derive(Debug)]
pub enum Bound {
    /// TCP.
    Tcp(std::net::TcpListener),
    /// Unix.
    Unix(std::os::unix::net::UnixListener),
}

/// What control tells a worker. Rare: never on the path of a request.
#[derive(Debug)]
pub enum Order {
    /// Accept clients of a pool from this socket yourself.
    Listen(PoolIx, Bound),
    /// Serve this client, accepted by the dealer.
    Adopt(PoolIx, Accepted),
    /// Stop accepting, finish what is in flight, close every client; cut what is left after the limit. Then end.
    Drain(Duration),
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

/// The cells of one worker, for control to sum. The shape follows the first generation.
#[derive(Debug)]
pub struct WorkerStats {
    /// By `PoolIx`.
    pub pools: Vec<PoolStats>,
}

/// The cells of one pool in one worker.
#[derive(Debug)]
pub struct PoolStats {
    /// The pool's own.
    pub pool: PoolBlock,
    /// By `ServerIx`.
    pub servers: Vec<ServerBlock>,
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
/// It serves `generations.borrow()` at once and every later one as it is published.
pub fn spawn(
    index: usize,
    generations: watch::Receiver<Arc<Generation>>,
    notices: mpsc::Sender<Notice>,
) -> std::io::Result<Worker> {
    // Placeholder: reads what clients send, answers nothing, drains when they leave or the limit is over.
    let config = generations.borrow().config.clone();
    let pools = config.pools.iter().map(|pool| PoolStats {
        pool: PoolBlock::default(),
        servers: pool.servers.iter().map(|_| ServerBlock::default()).collect(),
    });
    let stats = Arc::new(WorkerStats { pools: pools.collect() });
    let (orders, incoming) = mpsc::unbounded_channel();
    let cells = stats.clone();
    let thread = std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build_local(Default::default()).expect("a runtime");
        runtime.block_on(placeholder(index, incoming, notices, cells));
    })?;
    Ok(Worker { index, orders, stats, thread })
}

async fn placeholder(
    worker: usize,
    mut orders: mpsc::UnboundedReceiver<Order>,
    notices: mpsc::Sender<Notice>,
    stats: Arc<WorkerStats>,
) {
    let mut listeners = tokio::task::JoinSet::new();
    while let Some(order) = orders.recv().await {
        match order {
            Order::Listen(pool, Bound::Tcp(listener)) => {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a runtime");
                let stats = stats.clone();
                listeners.spawn_local(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::task::spawn_local(swallow(stream, stats.clone(), pool));
                    }
                });
            }
            Order::Listen(pool, Bound::Unix(listener)) => {
                let listener = tokio::net::UnixListener::from_std(listener).expect("a runtime");
                let stats = stats.clone();
                listeners.spawn_local(async move {
                    while let Ok((stream, _)) = listener.accept().await {
                        tokio::task::spawn_local(swallow(stream, stats.clone(), pool));
                    }
                });
            }
            Order::Adopt(pool, Accepted::Tcp(stream)) => {
                let stream = tokio::net::TcpStream::from_std(stream).expect("a runtime");
                tokio::task::spawn_local(swallow(stream, stats.clone(), pool));
            }
            Order::Adopt(pool, Accepted::Unix(stream)) => {
                let stream = tokio::net::UnixStream::from_std(stream).expect("a runtime");
                tokio::task::spawn_local(swallow(stream, stats.clone(), pool));
            }
            Order::Drain(limit) => {
                listeners.abort_all();
                let clients = || stats.pools.iter().map(|pool| pool.pool.client_connections.value()).sum::<u64>();
                let end = tokio::time::Instant::now() + limit;
                while clients() > 0 && tokio::time::Instant::now() < end {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let _ = notices.try_send(Notice::Drained { worker, cut: clients() });
                return;
            }
        }
    }
}

async fn swallow(mut stream: impl tokio::io::AsyncRead + Unpin, stats: Arc<WorkerStats>, pool: PoolIx) {
    use tokio::io::AsyncReadExt;
    let cells = &stats.pools[pool.0 as usize];
    cells.pool.client_total.add(1);
    cells.pool.client_connections.add(1);
    let mut bytes = [0; 4096];
    let mut asked = 0;
    while let Ok(1..) = stream.read(&mut bytes).await {
        cells.servers[0].out_queue.add(1);
        asked += 1;
    }
    cells.servers[0].out_queue.sub(asked);
    cells.pool.client_connections.sub(1);
}
