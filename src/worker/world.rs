//! The world of one worker, and its main loop.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::MissedTickBehavior;

use super::accept;
use super::census::Census;
use super::{Notice, Order};
use crate::backend::{Server, Settings};
use crate::client::ClientConn;
use crate::config;
use crate::dispatch::Pool;
use crate::exchange::Turn;
use crate::net::Keepalive;
use crate::stats::WorkerStats;
use crate::topology::{Draw, Generation, PoolIx, ServerIx};

/// What a worker is made from; this much crosses threads.
pub(super) struct Seed {
    pub(super) index: usize,
    pub(super) generations: watch::Receiver<Arc<Generation>>,
    pub(super) notices: mpsc::Sender<Notice>,
    pub(super) census: Arc<Census>,
    pub(super) stats: Arc<WorkerStats>,
    pub(super) orders: mpsc::UnboundedReceiver<Order>,
}

/// Everything that lives on one worker's thread.
pub(super) struct World {
    pools: Vec<Rc<Pool>>,
    pub(super) census: Arc<Census>,
    pub(super) clients: RefCell<HashMap<u64, Rc<ClientConn>>>,
    /// Listeners of this worker that still accept.
    pub(super) doors_open: Cell<u32>,
    /// Wakes the accept tasks when the drain begins.
    pub(super) draining: Notify,
    /// A client or a listener has gone: the drain may be over.
    pub(super) changed: Notify,
    phase: Cell<Phase>,
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
    let turn = Rc::new(Turn::default());
    tokio::task::spawn_local(flush_at_end_of_turn(Rc::clone(&turn)));
    let world = Rc::new(World::new(&seed, &turn));
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let started = sweep.tick().await;
    let limit = loop {
        tokio::select! {
            now = sweep.tick() => world.sweep(&turn, now.duration_since(started)),
            order = seed.orders.recv() => match order {
                Some(Order::Listen(pool, listener)) => {
                    if let Err(error) = accept::listen(&world, pool, listener) {
                        tracing::error!(%error, worker = seed.index, "cannot register a listener");
                    }
                }
                Some(Order::Adopt(pool, peer)) => accept::adopt(&world, pool, peer),
                Some(Order::Drain(limit)) => break limit,
                // Control is gone: nobody can want more from this worker.
                None => break Duration::ZERO,
            },
            Ok(()) = seed.generations.changed() => {
                let generation = seed.generations.borrow_and_update().clone();
                world.adopt(&generation);
            }
        }
    };
    let cut = world.drain(limit).await;
    let _ = seed.notices.try_send(Notice::Drained { worker: seed.index, cut });
}

/// The first mark of a turn wakes this task, which then stands behind everything that was ready already.
async fn flush_at_end_of_turn(turn: Rc<Turn>) {
    poll_fn(|cx| {
        turn.set_flusher(cx.waker());
        turn.drain();
        Poll::<()>::Pending
    })
    .await;
}

/// Look-ups of names at once: all that a worker does on threads of their own. More wait.
const LOOKUPS: usize = 8;

/// How often clients are looked at: one timer for all of them.
const SWEEP: Duration = Duration::from_secs(1);

impl World {
    fn new(seed: &Seed, turn: &Rc<Turn>) -> Self {
        let generation = seed.generations.borrow().clone();
        let pools = (0..generation.config.pools.len())
            .map(|i| Rc::new(pool(seed, turn, &generation, PoolIx(i as u16))))
            .collect();
        Self {
            pools,
            census: Arc::clone(&seed.census),
            clients: RefCell::default(),
            doors_open: Cell::new(0),
            draining: Notify::new(),
            changed: Notify::new(),
            phase: Cell::new(Phase::Serving),
        }
    }

    pub(super) fn pool(&self, ix: PoolIx) -> &Rc<Pool> {
        &self.pools[ix.index()]
    }

    pub(super) fn is_draining(&self) -> bool {
        self.phase.get() == Phase::Draining
    }

    /// A client's task has ended.
    pub(super) fn forget(&self, client: u64, pool: PoolIx, address: Option<IpAddr>) {
        self.clients.borrow_mut().remove(&client);
        self.census.leave(pool.index(), address);
        if self.is_draining() {
            self.changed.notify_one();
        }
    }

    /// Moves the tick on, and ends clients that have overstayed their times.
    fn sweep(&self, turn: &Turn, since_start: Duration) {
        turn.tick.set(u32::try_from(since_start.as_secs()).unwrap_or(u32::MAX));
        self.clients.borrow().values().for_each(|client| client.sweep());
    }

    /// From the next call on keys belong to whom `generation` says.
    fn adopt(&self, generation: &Generation) {
        for (pool, topology) in self.pools.iter().zip(&generation.pools) {
            pool.adopt(Arc::clone(topology));
        }
    }

    /// Finishes what is in flight. Returns how many clients were cut because the limit was reached.
    async fn drain(&self, limit: Duration) -> u64 {
        self.phase.set(Phase::Draining);
        self.draining.notify_waiters();
        self.clients.borrow().values().for_each(|client| client.drain());
        let finished = tokio::time::timeout(limit, async {
            while self.doors_open.get() > 0 || !self.clients.borrow().is_empty() {
                self.changed.notified().await;
            }
        });
        let cut = match finished.await {
            Ok(()) => 0,
            Err(_) => self.clients.borrow().len() as u64,
        };
        self.clients.borrow().values().for_each(|client| client.cut());
        self.pools.iter().for_each(|pool| pool.close());
        // One more turn, so that the tasks of what was closed end and count themselves out.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        cut
    }
}

/// Pool `ix` in this worker, with its servers.
fn pool(seed: &Seed, turn: &Rc<Turn>, generation: &Generation, ix: PoolIx) -> Pool {
    let config = &generation.config.pools[ix.index()];
    let cells = &seed.stats.pools[ix.index()];
    let servers = config.servers.iter().enumerate().map(|(i, server)| {
        let server_ix = ServerIx(i as u16);
        let notices = seed.notices.clone();
        let alarm = move || {
            // When control is behind, it will see the cells on its next round.
            let _ = notices.try_send(Notice::Failing(ix, server_ix));
        };
        Server::new(settings(config, server), Arc::clone(&cells.servers[i]), Rc::clone(turn), Box::new(alarm))
    });
    let pool = Pool::new(
        Arc::clone(&generation.config),
        ix,
        Arc::clone(&generation.pools[ix.index()]),
        servers.collect(),
        Arc::clone(&cells.pool),
        Rc::clone(turn),
        Draw::seeded(u64::from(std::process::id()) << 16 ^ seed.index as u64),
    );
    if config.preconnect {
        pool.preconnect();
    }
    pool
}

fn settings(pool: &config::Pool, server: &config::Server) -> Settings {
    let address = server.endpoint.to_string();
    let label = if server.name == address { address } else { format!("{} ({address})", server.name) };
    Settings {
        label,
        endpoint: server.endpoint.clone(),
        auth: pool.redis_auth.clone(),
        db: pool.redis_db,
        timeout: pool.timeout,
        connect_timeout: pool.connect_timeout,
        queue: pool.server_queue,
        // Whatever `tcpkeepalive` says: a dead host must not keep requests waiting for ever (B19).
        keepalive: Keepalive::Fast,
        connections: pool.server_connections.get(),
        failure_limit: pool.server_failure_limit.get(),
    }
}
