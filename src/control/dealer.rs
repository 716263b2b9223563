//! Accepts clients and hands each to the worker that has the fewest.
//!
//! SO_REUSEPORT would let the kernel choose, but blindly: with few connections some workers get twice their share.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tracing::{error, warn};

use crate::net::{AcceptTrouble, AfterFailure, Listener, Peer};
use crate::topology::PoolIx;
use crate::worker::{Accepted, Order, Worker, WorkerStats};

/// Connections accepted from one listener before the others, signals and health get their turn.
const ACCEPTS_IN_A_ROW: usize = 128;

/// The last sweep of a listener that is about to be closed takes at most so many connections.
const LAST_SWEEP: usize = 65_536;

/// Accepts for all pools that have no listener in the workers.
#[derive(Debug)]
pub struct Dealer {
    table: Rc<Table>,
    doors: Vec<Door>,
}

#[derive(Debug)]
struct Door {
    pool: PoolIx,
    listener: Rc<AsyncFd<Fd>>,
    task: JoinHandle<()>,
}

/// Gives `AsyncFd` the descriptor, which an enum of two sockets has either way.
#[derive(Debug)]
struct Fd(Listener);

impl AsRawFd for Fd {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// The workers, and what was dealt to each.
#[derive(Debug)]
struct Table {
    seats: RefCell<Vec<Seat>>,
    /// What is known of the incident of failing accepts that is going on, over all listeners.
    trouble: RefCell<AcceptTrouble>,
    failures: Cell<u64>,
}

#[derive(Debug)]
struct Seat {
    orders: UnboundedSender<Order>,
    stats: Arc<WorkerStats>,
    /// By pool: clients dealt since the start.
    dealt: Vec<u64>,
    /// The same at the last reconciliation.
    dealt_before: Vec<u64>,
}

impl Dealer {
    /// Starts accepting from each of `listeners`. Inside a `LocalRuntime` only.
    pub fn start(workers: &[Worker], listeners: Vec<(PoolIx, Listener)>) -> io::Result<Self> {
        let table = Rc::new(Table::new(workers));
        let mut doors = Vec::with_capacity(listeners.len());
        for (pool, listener) in listeners {
            let listener = Rc::new(AsyncFd::with_interest(Fd(listener), Interest::READABLE)?);
            let task = tokio::task::spawn_local(accept(table.clone(), pool, listener.clone()));
            doors.push(Door { pool, listener, task });
        }
        Ok(Self { table, doors })
    }

    /// Once a second: forgets clients that a worker never counted.
    pub fn reconcile(&self) {
        for seat in self.table.seats.borrow_mut().iter_mut() {
            seat.reconcile();
        }
    }

    /// Stops accepting. What the kernel had accepted already is dealt first: it would be reset otherwise.
    pub fn stop(self) {
        for door in self.doors {
            door.task.abort();
            for _ in 0..LAST_SWEEP {
                match door.listener.get_ref().0.accept() {
                    Ok(peer) => self.table.deal(door.pool, peer),
                    Err(_) => break,
                }
            }
        }
    }
}

async fn accept(table: Rc<Table>, pool: PoolIx, listener: Rc<AsyncFd<Fd>>) {
    loop {
        let mut ready = match listener.readable().await {
            Ok(ready) => ready,
            Err(error) => {
                error!("accepting clients ended: {error}"); // the runtime is shutting down
                return;
            }
        };
        match accept_some(&table, pool, &listener.get_ref().0) {
            Swept::Empty => ready.clear_ready(),
            Swept::More => tokio::task::yield_now().await,
            Swept::Trouble => tokio::time::sleep(AcceptTrouble::PAUSE).await,
        }
    }
}

/// How a turn of accepting ended.
enum Swept {
    Empty,
    More,
    Trouble,
}

fn accept_some(table: &Table, pool: PoolIx, listener: &Listener) -> Swept {
    for _ in 0..ACCEPTS_IN_A_ROW {
        match listener.accept() {
            Ok(peer) => table.deal(pool, peer),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Swept::Empty,
            Err(error) => match table.failed(&error) {
                AfterFailure::Next => {}
                AfterFailure::Pause { .. } => return Swept::Trouble,
            },
        }
    }
    Swept::More
}

// === impl Table ===

impl Table {
    fn new(workers: &[Worker]) -> Self {
        let seats = workers.iter().map(|worker| {
            let pools = worker.stats.pools.len();
            Seat {
                orders: worker.orders.clone(),
                stats: worker.stats.clone(),
                dealt: vec![0; pools],
                dealt_before: vec![0; pools],
            }
        });
        Self {
            seats: RefCell::new(seats.collect()),
            trouble: RefCell::new(AcceptTrouble::default()),
            failures: Cell::new(0),
        }
    }

    /// Gives a client to the worker with the fewest; one that has ended is passed over for good.
    fn deal(&self, pool: PoolIx, peer: Peer) {
        let mut seats = self.seats.borrow_mut();
        let mut order = Order::Adopt(pool, accepted(peer));
        while let Some((index, seat)) = seats.iter_mut().enumerate().min_by_key(|(_, seat)| seat.clients()) {
            match seat.orders.send(order) {
                Ok(()) => {
                    seat.dealt[usize::from(pool.0)] += 1;
                    return;
                }
                Err(refused) => order = refused.0,
            }
            seats.remove(index);
        }
    }

    fn failed(&self, failure: &io::Error) -> AfterFailure {
        let after = self.trouble.borrow_mut().failed(failure, Instant::now());
        if let AfterFailure::Pause { log } = after {
            let before = self.failures.replace(self.failures.get() + 1);
            if log {
                let pause_ms = AcceptTrouble::PAUSE.as_millis();
                warn!(pause_ms, failures_before = before, "cannot accept clients, trying again: {failure}");
            }
        }
        after
    }
}

fn accepted(peer: Peer) -> Accepted {
    match peer {
        Peer::Tcp(stream) => Accepted::Tcp(stream),
        Peer::Unix(stream) => Accepted::Unix(stream),
    }
}

// === impl Seat ===

impl Seat {
    /// Clients that the worker has, and those that are on their way to it.
    fn clients(&self) -> u64 {
        let by_pool = self.stats.pools.iter().zip(&self.dealt);
        by_pool
            .map(|(cells, dealt)| {
                let counted = cells.pool.client_total.value();
                cells.pool.client_connections.value() + dealt.saturating_sub(counted)
            })
            .sum()
    }

    /// Those that were not counted although nothing was dealt since the last time never will be.
    fn reconcile(&mut self) {
        for (pool, dealt) in self.dealt.iter_mut().enumerate() {
            if *dealt == self.dealt_before[pool] {
                *dealt = self.stats.pools[pool].pool.client_total.value();
            }
            self.dealt_before[pool] = *dealt;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::stats::PoolBlock;
    use crate::worker::PoolStats;

    const POOL: PoolIx = PoolIx(0);

    fn worker(index: usize) -> (Worker, UnboundedReceiver<Order>) {
        let (orders, received) = unbounded_channel();
        let stats =
            WorkerStats { pools: vec![PoolStats { pool: PoolBlock::default(), servers: Vec::new() }] };
        let thread = std::thread::spawn(|| {});
        (Worker { index, orders, stats: Arc::new(stats), thread }, received)
    }

    fn peer() -> Peer {
        Peer::Unix(std::os::unix::net::UnixStream::pair().unwrap().0)
    }

    fn received(orders: &mut UnboundedReceiver<Order>) -> usize {
        std::iter::from_fn(|| orders.try_recv().ok()).count()
    }

    #[test]
    fn a_burst_that_no_worker_has_counted_yet_is_spread_evenly() {
        let ((one, mut first), (two, mut second)) = (worker(0), worker(1));
        let table = Table::new(&[one, two]);
        for _ in 0..10 {
            table.deal(POOL, peer());
        }
        assert_eq!((received(&mut first), received(&mut second)), (5, 5));
    }

    #[test]
    fn the_worker_with_fewer_clients_gets_the_next() {
        let ((one, mut first), (two, mut second)) = (worker(0), worker(1));
        let cells = one.stats.clone();
        cells.pools[0].pool.client_connections.set(4);
        let table = Table::new(&[one, two]);
        for _ in 0..6 {
            table.deal(POOL, peer());
        }
        assert_eq!((received(&mut first), received(&mut second)), (1, 5));
    }

    #[test]
    fn clients_that_were_counted_are_not_counted_twice() {
        let ((one, mut first), (two, mut second)) = (worker(0), worker(1));
        let (cells, others) = (one.stats.clone(), two.stats.clone());
        let table = Table::new(&[one, two]);
        table.deal(POOL, peer());
        table.deal(POOL, peer());
        for cells in [&cells, &others] {
            cells.pools[0].pool.client_total.add(1);
            cells.pools[0].pool.client_connections.add(1);
        }
        cells.pools[0].pool.client_connections.sub(1); // the first one's client has left
        table.deal(POOL, peer());
        assert_eq!((received(&mut first), received(&mut second)), (2, 1));
    }

    #[test]
    fn what_a_worker_never_counts_is_forgotten() {
        let ((one, mut first), (two, mut second)) = (worker(0), worker(1));
        let table = Table::new(&[one, two]);
        table.deal(POOL, peer()); // the first one drops it without counting
        for seat in table.seats.borrow_mut().iter_mut() {
            seat.reconcile(); // it may still be on its way
            assert_eq!(seat.clients(), seat.dealt[0]);
            seat.reconcile();
            assert_eq!(seat.clients(), 0);
        }
        table.deal(POOL, peer());
        assert_eq!((received(&mut first), received(&mut second)), (2, 0));
    }

    #[test]
    fn a_worker_that_has_ended_gets_nothing_more() {
        let ((one, first), (two, mut second)) = (worker(0), worker(1));
        let table = Table::new(&[one, two]);
        drop(first);
        for _ in 0..3 {
            table.deal(POOL, peer());
        }
        assert_eq!(received(&mut second), 3);
    }
}
