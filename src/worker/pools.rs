//! A worker's pools, and how it comes from one generation to the next.
//!
//! What stays keeps what it has: a pool its clients, a server whose settings are equal its connections. A server that
//! goes, or is configured otherwise, gets no new requests; it is closed when it owes no reply any more, or at the limit.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::{Notice, Published, Seats};
use crate::backend::{Server, Settings};
use crate::config::{self, Config};
use crate::dispatch::{Now, Pool, Scripts};
use crate::exchange::Turn;
use crate::net::Keepalive;
use crate::topology::{Draw, Generation, PoolId, PoolIx, ServerIx};

/// All pools of a worker, those that are about to go included.
pub(super) struct Pools {
    index: usize,
    turn: Rc<Turn>,
    notices: mpsc::Sender<Notice>,
    /// Those of the whole process.
    scripts: Arc<Scripts>,
    places: RefCell<HashMap<PoolId, Rc<Place>>>,
    /// The generation that holds here.
    generation: Cell<u64>,
}

/// A pool in its surroundings.
pub(super) struct Place {
    pub(super) pool: Rc<Pool>,
    pub(super) seats: Arc<Seats>,
    /// It is no longer in the configuration: its clients are to end.
    pub(super) leaving: Cell<bool>,
    /// By server name: where control finds it. Servers that stay may get another index.
    whereabouts: RefCell<HashMap<String, Whereabouts>>,
}

type Whereabouts = Rc<Cell<(PoolIx, ServerIx)>>;

/// How often a server or a pool that goes is looked at.
const LOOK: Duration = Duration::from_millis(5);

impl Pools {
    /// None yet; see [`Pools::adopt`].
    pub(super) fn new(
        index: usize,
        turn: &Rc<Turn>,
        notices: mpsc::Sender<Notice>,
        scripts: Arc<Scripts>,
    ) -> Self {
        let (places, generation) = (RefCell::default(), Cell::new(0));
        Self { index, turn: Rc::clone(turn), notices, scripts, places, generation }
    }

    pub(super) fn place(&self, id: PoolId) -> Option<Rc<Place>> {
        self.places.borrow().get(&id).cloned()
    }

    /// The generation that holds here.
    pub(super) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// From the next call on `published` holds. Returns the pools that it has no more: their clients are the
    /// caller's to end, and then [`Pools::remove`].
    pub(super) fn adopt(&self, published: &Published) -> Vec<Rc<Place>> {
        let generation = &*published.generation;
        let limit = generation.config.process.drain_timeout;
        for (at, id) in generation.ids.iter().enumerate() {
            let ix = PoolIx(at as u16);
            match self.place(*id) {
                Some(place) => self.renew(&place, published, ix, limit),
                None => {
                    let place = self.make(*id, published, ix);
                    self.places.borrow_mut().insert(*id, Rc::new(place));
                }
            }
        }
        self.generation.set(generation.number);
        let mut gone = self.places.borrow().values().cloned().collect::<Vec<_>>();
        gone.retain(|place| !generation.ids.contains(&place.pool.id()) && !place.leaving.replace(true));
        gone
    }

    /// New connections take the place of those to a server; how many that concerns.
    pub(super) fn reconnect(&self, pool: PoolId, server: &str) -> usize {
        let Some(place) = self.place(pool) else { return 0 };
        let (config, ix, servers) = place.pool.servers();
        by_name(&config, ix, servers).get(server).map_or(0, |server| server.renew())
    }

    /// A pool whose clients have ended.
    pub(super) fn remove(&self, id: PoolId) {
        if let Some(place) = self.places.borrow_mut().remove(&id) {
            place.pool.close();
        }
    }

    /// Closes every server connection.
    pub(super) fn close(&self) {
        let places: Vec<_> = self.places.borrow().values().cloned().collect();
        places.iter().for_each(|place| place.pool.close());
    }

    fn make(&self, id: PoolId, published: &Published, ix: PoolIx) -> Place {
        let generation = &published.generation;
        let whereabouts = RefCell::default();
        let count = generation.config.pools[ix.index()].servers.len();
        let servers = (0..count).map(|at| self.server(&whereabouts, published, ix, ServerIx(at as u16)));
        let now = now(generation, ix, servers.collect());
        let stats = Arc::clone(&published.stats[self.index].pools[ix.index()].pool);
        let draw =
            Draw::seeded(u64::from(std::process::id()) << 16 ^ (u64::from(id.0) << 8) ^ self.index as u64);
        let pool = Rc::new(Pool::new(id, now, stats, Rc::clone(&self.turn), draw, Arc::clone(&self.scripts)));
        let seats = Arc::clone(&published.seats[ix.index()]);
        Place { pool, seats, leaving: Cell::new(false), whereabouts }
    }

    /// A pool goes on with what `published` says.
    fn renew(&self, place: &Place, published: &Published, ix: PoolIx, limit: Duration) {
        let generation = &published.generation;
        let (old_config, old_ix, old_servers) = place.pool.servers();
        if Arc::ptr_eq(&old_config, &generation.config) {
            return place.pool.adopt_topology(Arc::clone(&generation.pools[ix.index()]));
        }
        let mut former = by_name(&old_config, old_ix, old_servers);
        let config = &generation.config.pools[ix.index()];
        let servers = (0..).map(ServerIx).zip(&config.servers).map(|(server_ix, server)| {
            match former.remove(&server.name) {
                Some(kept) if *kept.settings() == settings(config, server) => {
                    if let Some(here) = place.whereabouts.borrow().get(&server.name) {
                        here.set((ix, server_ix));
                    }
                    kept
                }
                changed => {
                    let new = self.server(&place.whereabouts, published, ix, server_ix);
                    if let Some(old) = changed {
                        new.succeed(&old);
                        retire(old, Some(Rc::clone(&new)), limit);
                    }
                    new
                }
            }
        });
        let servers = servers.collect();
        place.pool.adopt(now(generation, ix, servers));
        for (name, gone) in former {
            place.whereabouts.borrow_mut().remove(&name);
            retire(gone, None, limit);
        }
    }

    fn server(
        &self,
        whereabouts: &RefCell<HashMap<String, Whereabouts>>,
        published: &Published,
        ix: PoolIx,
        server_ix: ServerIx,
    ) -> Rc<Server> {
        let config = &published.generation.config.pools[ix.index()];
        let server = &config.servers[server_ix.index()];
        let here: Whereabouts = Rc::new(Cell::new((ix, server_ix)));
        whereabouts.borrow_mut().insert(server.name.clone(), Rc::clone(&here));
        let notices = self.notices.clone();
        let alarm = move || {
            let (pool, server) = here.get();
            // When control is behind, it will see the cells on its next round.
            let _ = notices.try_send(Notice::Failing(pool, server));
        };
        let cells = Arc::clone(&published.stats[self.index].pools[ix.index()].servers[server_ix.index()]);
        let leases = Arc::clone(&published.leases[ix.index()][server_ix.index()]);
        let new =
            Server::new(settings(config, server), cells, leases, Rc::clone(&self.turn), Box::new(alarm));
        if config.preconnect {
            new.preconnect();
        }
        Rc::new(new)
    }
}

fn now(generation: &Generation, ix: PoolIx, servers: Vec<Rc<Server>>) -> Now {
    let (config, topology) = (Arc::clone(&generation.config), Arc::clone(&generation.pools[ix.index()]));
    Now { config, ix, topology, servers }
}

fn by_name(config: &Config, ix: PoolIx, servers: Vec<Rc<Server>>) -> HashMap<String, Rc<Server>> {
    let names = config.pools[ix.index()].servers.iter().map(|server| server.name.clone());
    names.zip(servers).collect()
}

/// Closes a server when it owes no reply any more, or at the limit. `successor`'s clients wait for that.
fn retire(server: Rc<Server>, successor: Option<Rc<Server>>, limit: Duration) {
    server.retire();
    tokio::task::spawn_local(async move {
        let end = Instant::now() + limit;
        // Once at least: what this turn has queued for it is still to be written.
        sleep(LOOK).await;
        while !server.is_idle() && Instant::now() < end {
            sleep(LOOK).await;
        }
        server.close();
        if let Some(successor) = successor {
            successor.forget_former();
        }
    });
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
