//! Accepts clients and hands each to the worker that has the fewest.
//!
//! SO_REUSEPORT would let the kernel choose, but blindly: with few connections some workers get twice their share.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::net::{TcpListener, UnixListener};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tracing::warn;

use crate::net::{AcceptTrouble, AfterFailure, Listener, Peer};
use crate::topology::PoolId;
use crate::worker::{DoorId, Order, Worker, WorkerBlock};

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
    id: DoorId,
    /// Whose clients come here.
    pool: Rc<Cell<PoolId>>,
    /// Asks the task to give its listener back.
    stop: oneshot::Sender<()>,
    task: JoinHandle<Watched>,
}

/// A listener that the runtime watches.
#[derive(Debug)]
enum Watched {
    Tcp(TcpListener),
    Unix(UnixListener),
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
    own: Arc<WorkerBlock>,
    /// Clients dealt to it, and those that came to it by themselves; see [`Seat::clients`].
    dealt: u64,
    /// The same at the last reconciliation.
    dealt_before: u64,
}

impl Dealer {
    /// Deals to these workers; nothing is accepted yet.
    pub fn new(workers: &[Worker]) -> Self {
        Self { table: Rc::new(Table::new(workers)), doors: Vec::new() }
    }

    /// Starts accepting. Inside a `LocalRuntime` only.
    pub fn open(&mut self, id: DoorId, pool: PoolId, listener: Listener) -> io::Result<()> {
        let (stop, stopped) = oneshot::channel();
        let pool = Rc::new(Cell::new(pool));
        let accepting = accept(self.table.clone(), pool.clone(), Watched::new(listener)?, stopped);
        self.doors.push(Door { id, pool, stop, task: tokio::task::spawn_local(accepting) });
        Ok(())
    }

    /// Clients that come there belong to another pool from now on.
    pub fn assign(&self, id: DoorId, pool: PoolId) {
        self.doors.iter().filter(|door| door.id == id).for_each(|door| door.pool.set(pool));
    }

    /// Once a second: forgets clients that a worker never counted.
    pub fn reconcile(&self) {
        for seat in self.table.seats.borrow_mut().iter_mut() {
            seat.reconcile();
        }
    }

    /// Stops accepting there. What the kernel has queued already is dealt first: it would be reset otherwise.
    pub async fn close(&mut self, id: DoorId) {
        let Some(found) = self.doors.iter().position(|door| door.id == id) else { return };
        let Door { pool, stop, task, .. } = self.doors.swap_remove(found);
        let _ = stop.send(()); // a task that is gone has nothing to give back
        let Ok(Ok(listener)) = task.await.map(Watched::into_std) else { return };
        for _ in 0..LAST_SWEEP {
            match listener.accept() {
                Ok(peer) => self.table.deal(pool.get(), peer),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => break,
            }
        }
    }
}

/// Accepts and deals until `stopped`. tokio tries again until EAGAIN before it asks epoll, and takes turns.
async fn accept(
    table: Rc<Table>,
    pool: Rc<Cell<PoolId>>,
    listener: Watched,
    mut stopped: oneshot::Receiver<()>,
) -> Watched {
    loop {
        let accepted = tokio::select! {
            biased;
            _ = &mut stopped => return listener,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(peer) => table.deal(pool.get(), peer),
            Err(error) => match table.failed(&error) {
                AfterFailure::Next => {}
                AfterFailure::Pause { .. } => tokio::time::sleep(AcceptTrouble::PAUSE).await,
            },
        }
    }
}

// === impl Watched ===

impl Watched {
    fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    async fn accept(&self) -> io::Result<Peer> {
        match self {
            Self::Tcp(listener) => Ok(Peer::Tcp(listener.accept().await?.0.into_std()?)),
            Self::Unix(listener) => Ok(Peer::Unix(listener.accept().await?.0.into_std()?)),
        }
    }

    fn into_std(self) -> io::Result<Listener> {
        Ok(match self {
            Self::Tcp(listener) => Listener::Tcp(listener.into_std()?),
            Self::Unix(listener) => Listener::Unix(listener.into_std()?),
        })
    }
}

// === impl Table ===

impl Table {
    fn new(workers: &[Worker]) -> Self {
        let seats = workers.iter().map(|worker| {
            let (orders, own) = (worker.orders.clone(), worker.own.clone());
            Seat { orders, own, dealt: 0, dealt_before: 0 }
        });
        Self {
            seats: RefCell::new(seats.collect()),
            trouble: RefCell::new(AcceptTrouble::default()),
            failures: Cell::new(0),
        }
    }

    /// Gives a client to the worker with the fewest; one that has ended is passed over for good.
    fn deal(&self, pool: PoolId, peer: Peer) {
        let mut seats = self.seats.borrow_mut();
        let mut order = Order::Adopt(pool, peer);
        while let Some((index, seat)) = seats.iter_mut().enumerate().min_by_key(|(_, seat)| seat.clients()) {
            match seat.orders.send(order) {
                Ok(()) => {
                    seat.dealt += 1;
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

// === impl Seat ===

impl Seat {
    /// Clients that the worker has, and those that are on their way to it.
    fn clients(&self) -> u64 {
        self.own.clients.value() + self.dealt.saturating_sub(self.own.clients_total.value())
    }

    /// Those that were not counted although nothing was dealt since the last time never will be.
    fn reconcile(&mut self) {
        if self.dealt == self.dealt_before {
            self.dealt = self.own.clients_total.value();
        }
        self.dealt_before = self.dealt;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    const POOL: PoolId = PoolId(0);

    fn worker(index: usize) -> (Worker, UnboundedReceiver<Order>) {
        let (orders, received) = unbounded_channel();
        let thread = std::thread::spawn(|| {});
        (Worker { index, orders, own: Arc::default(), thread }, received)
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
        let cells = one.own.clone();
        cells.clients.set(4);
        let table = Table::new(&[one, two]);
        for _ in 0..6 {
            table.deal(POOL, peer());
        }
        assert_eq!((received(&mut first), received(&mut second)), (1, 5));
    }

    #[test]
    fn clients_that_were_counted_are_not_counted_twice() {
        let ((one, mut first), (two, mut second)) = (worker(0), worker(1));
        let (cells, others) = (one.own.clone(), two.own.clone());
        let table = Table::new(&[one, two]);
        table.deal(POOL, peer());
        table.deal(POOL, peer());
        for cells in [&cells, &others] {
            cells.clients_total.add(1);
            cells.clients.add(1);
        }
        cells.clients.sub(1); // the first one's client has left
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
            assert_eq!(seat.clients(), seat.dealt);
            seat.reconcile();
            assert_eq!(seat.clients(), 0);
        }
        table.deal(POOL, peer());
        assert_eq!((received(&mut first), received(&mut second)), (2, 0));
    }

    #[test]
    fn what_the_kernel_has_queued_is_dealt_before_the_end() {
        let (one, mut orders) = worker(0);
        let (two, _others) = worker(1);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build_local(Default::default()).unwrap();
        runtime.block_on(async {
            let mut dealer = Dealer::new(&[one, two]);
            dealer.open(DoorId(7), POOL, Listener::Tcp(listener)).unwrap();
            let _client = std::net::TcpStream::connect(address).unwrap();
            dealer.close(DoorId(7)).await; // the task has not run yet
            assert_eq!(received(&mut orders), 1);
            std::net::TcpStream::connect(address).unwrap_err();
        });
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
