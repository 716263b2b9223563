//! The world of one worker, and its main loop.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, watch};

use super::accept::{self, Door};
use super::ask;
use super::beat;
use super::census::Census;
use super::pools::{Place, Pools};
use super::{DoorId, Moved, Notice, Order, Published};
use crate::client::{ClientConn, Watch};
use crate::config::Config;
use crate::dispatch::Scripts;
use crate::exchange::{Account, Budget, Turn};
use crate::stats::WorkerBlock;
use crate::topology::PoolId;

/// What a worker is made from; this much crosses threads.
pub(super) struct Seed {
    pub(super) index: usize,
    pub(super) published: watch::Receiver<Arc<Published>>,
    pub(super) notices: mpsc::Sender<Notice>,
    pub(super) census: Arc<Census>,
    pub(super) budget: Arc<Budget>,
    pub(super) scripts: Arc<Scripts>,
    pub(super) own: Arc<WorkerBlock>,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
    pub(super) beat: watch::Receiver<Instant>,
}

/// Everything that lives on one worker's thread.
pub(super) struct World {
    pub(super) pools: Pools,
    pub(super) own: Arc<WorkerBlock>,
    pub(super) census: Arc<Census>,
    pub(super) clients: RefCell<HashMap<u64, Rc<ClientConn>>>,
    /// What the operator asks of them.
    pub(super) watch: Rc<Watch>,
    /// Listeners of this worker that still accept.
    pub(super) doors: RefCell<HashMap<DoorId, Rc<Door>>>,
    /// A client or a listener has gone: a drain may be over.
    pub(super) changed: Notify,
    /// Connections whose PROXY header has not come.
    pub(super) greeted: Cell<u32>,
    phase: Cell<Phase>,
    /// Where clients go when another process takes over.
    successor: RefCell<Option<mpsc::UnboundedSender<(PoolId, Moved)>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Serving,
    Draining,
}

/// The thread's body: returns when the worker has drained, or control is gone.
pub(super) fn run(mut builder: Builder, seed: Seed) {
    let runtime =
        match builder.enable_all().max_blocking_threads(LOOKUPS).build_local(LocalOptions::default()) {
            Ok(runtime) => runtime,
            Err(error) => {
                return tracing::error!(%error, worker = seed.index, "cannot start the worker's runtime");
            }
        };
    runtime.block_on(live(seed));
}

async fn live(mut seed: Seed) {
    let turn = Rc::new(Turn::new(Account::new(Arc::clone(&seed.budget))));
    tokio::task::spawn_local(flush_at_end_of_turn(Rc::clone(&turn)));
    let world = Rc::new(World::new(&seed, &turn));
    let own = Arc::clone(&seed.own);
    tokio::task::spawn_local(beat::follow(Rc::clone(&world), turn, own, seed.beat));
    world.adopt(&seed.published.borrow_and_update().clone());
    let limit = loop {
        tokio::select! {
            order = seed.orders.recv() => {
                // An order refers to what was published before it was sent.
                if seed.published.has_changed().unwrap_or(false) {
                    world.adopt(&seed.published.borrow_and_update().clone());
                }
                match order {
                    Some(Order::Drain(limit)) => break limit,
                    Some(Order::HandOver(limit, successor)) => {
                        world.successor.replace(Some(successor));
                        break limit;
                    }
                    // Control is gone: nobody can want more from this worker.
                    None => break Duration::ZERO,
                    Some(order) => world.carry_out(order, seed.index),
                }
            }
            Ok(()) = seed.published.changed() => {
                let published = seed.published.borrow_and_update().clone();
                world.adopt(&published);
            }
        }
    };
    let cut = world.drain(limit).await;
    let _ = seed.notices.try_send(Notice::Drained { worker: seed.index, cut });
}

/// The first mark of a turn wakes this task, which then stands behind everything that was ready already.
///
/// When several wait, sockets are looked at once more before anything is written: what has come meanwhile leaves with it. That costs one
/// `epoll_wait` per turn, and saves more: larger batches for the servers, which so spend less on a request, and fewer turns. One client
/// alone never waits for it.
async fn flush_at_end_of_turn(turn: Rc<Turn>) {
    loop {
        poll_fn(|cx| {
            turn.set_flusher(cx.waker());
            if turn.marks() > 0 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        if turn.marks() > 1 {
            tokio::task::yield_now().await;
        }
        turn.drain();
    }
}

/// Look-ups of names at once: all that a worker does on threads of their own. More wait.
const LOOKUPS: usize = 8;

impl World {
    fn new(seed: &Seed, turn: &Rc<Turn>) -> Self {
        Self {
            pools: Pools::new(seed.index, turn, seed.notices.clone(), Arc::clone(&seed.scripts)),
            own: Arc::clone(&seed.own),
            census: Arc::clone(&seed.census),
            clients: RefCell::default(),
            watch: Rc::new(watch(&seed.published.borrow().generation.config)),
            doors: RefCell::default(),
            changed: Notify::new(),
            greeted: Cell::new(0),
            phase: Cell::new(Phase::Serving),
            successor: RefCell::default(),
        }
    }

    pub(super) fn is_draining(&self) -> bool {
        self.phase.get() == Phase::Draining
    }

    /// A client's task has ended.
    pub(super) fn forget(&self, client: u64, place: &Place, address: Option<IpAddr>) {
        self.clients.borrow_mut().remove(&client);
        self.census.leave(&place.seats, address);
        self.own.clients.sub(1);
        if self.is_draining() || place.leaving.get() {
            self.changed.notify_one();
        }
    }

    /// Ends clients that have overstayed their times.
    pub(super) fn sweep(&self) {
        self.clients.borrow().values().for_each(|client| client.sweep());
    }

    fn carry_out(self: &Rc<Self>, order: Order, worker: usize) {
        match order {
            Order::Listen(door, pool, listener) => {
                if let Err(error) = accept::listen(self, door, pool, listener) {
                    tracing::error!(%error, worker, "cannot register a listener");
                }
            }
            Order::Ask(question) => ask::answer(self, question),
            Order::Assign(door, pool) => {
                if let Some(door) = self.doors.borrow().get(&door) {
                    door.pool.set(pool);
                }
            }
            Order::Unlisten(door) => {
                if let Some(door) = self.doors.borrow().get(&door) {
                    door.close();
                }
            }
            Order::Release(door) => {
                if let Some(door) = self.doors.borrow().get(&door) {
                    door.release();
                }
            }
            Order::Adopt(pool, peer) => accept::adopt(self, pool, peer),
            Order::Resume(pool, moved) => accept::resume(self, pool, moved),
            Order::Drain(_) | Order::HandOver(..) => {} // the caller ends on these
        }
    }

    /// A client goes to the next process if there is one, else it ends.
    pub(super) fn end(&self, client: &ClientConn) {
        if self.successor.borrow().is_some() { client.leave() } else { client.drain() }
    }

    /// The client's task has ended for that reason.
    pub(super) fn send_on(&self, client: &ClientConn) {
        if let (Some(successor), Some(moved)) = (&*self.successor.borrow(), client.into_moved()) {
            // Without a successor any more it is closed.
            let _ = successor.send((client.pool().id(), moved));
        }
    }

    /// From the next call on `published` holds. Pools that are gone end as at a shutdown, each by itself.
    fn adopt(self: &Rc<Self>, published: &Published) {
        if published.generation.number <= self.pools.generation() {
            return;
        }
        let limit = published.generation.config.process.drain_timeout;
        for place in self.pools.adopt(published) {
            let id = place.pool.id();
            let leaving = self.clients_of(id);
            leaving.iter().for_each(|client| client.drain());
            let world = Rc::clone(self);
            tokio::task::spawn_local(async move { world.end_pool(id, limit).await });
        }
        let config = &published.generation.config;
        self.watch.set_slower_than(slower_than(config));
        self.watch.tally.set(config.process.hot_keys);
        self.own.generation.set(published.generation.number);
    }

    /// Waits until the clients of a removed pool have what they are due, then closes its servers.
    async fn end_pool(&self, id: PoolId, limit: Duration) {
        const LOOK: Duration = Duration::from_millis(5);
        let finished = tokio::time::timeout(limit, async {
            // At least once: clients may be on their way from control.
            tokio::time::sleep(LOOK).await;
            while !self.clients_of(id).is_empty() {
                tokio::time::sleep(LOOK).await;
            }
        });
        if finished.await.is_err() {
            let late = self.clients_of(id);
            tracing::warn!(clients = late.len(), "clients of a removed pool were cut at drain_timeout");
            late.iter().for_each(|client| client.cut());
        }
        self.pools.remove(id);
    }

    fn clients_of(&self, id: PoolId) -> Vec<Rc<ClientConn>> {
        let clients = self.clients.borrow();
        clients.values().filter(|client| client.pool().id() == id).cloned().collect()
    }

    /// Finishes what is in flight. Returns how many clients were cut because the limit was reached.
    async fn drain(&self, limit: Duration) -> u64 {
        self.phase.set(Phase::Draining);
        self.doors.borrow().values().for_each(|door| door.close());
        self.clients.borrow().values().for_each(|client| self.end(client));
        let finished = tokio::time::timeout(limit, async {
            while !self.doors.borrow().is_empty() || !self.clients.borrow().is_empty() {
                self.changed.notified().await;
            }
        });
        let cut = match finished.await {
            Ok(()) => 0,
            Err(_) => self.clients.borrow().len() as u64,
        };
        self.clients.borrow().values().for_each(|client| client.cut());
        self.pools.close();
        // One more turn, so that the tasks of what was closed end and count themselves out.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        cut
    }
}

fn watch(config: &Config) -> Watch {
    Watch::new(slower_than(config), config.process.hot_keys)
}

/// `slowlog_slower_than`, in microseconds.
fn slower_than(config: &Config) -> u64 {
    let limit = config.process.slowlog_slower_than;
    limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX))
}
