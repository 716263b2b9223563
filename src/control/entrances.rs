//! The listening sockets while the process runs: who accepts on which, and for which pool.
//!
//! An address that stays in the configuration keeps its socket, whichever pool it belongs to from now on. Control keeps a
//! descriptor of each socket, so that it can change its options and hand it on.

use std::io;
use std::os::unix::fs::PermissionsExt;

use tokio::sync::mpsc::UnboundedSender;
use tracing::warn;

use super::dealer::Dealer;
use super::doors::{self, PoolDoor};
use crate::config::Pool;
use crate::topology::PoolId;
use crate::units::Listen;
use crate::worker::{DoorId, Order, Worker};

/// All that is listened on for clients.
#[derive(Debug)]
pub struct Entrances {
    open: Vec<Entrance>,
    dealer: Dealer,
    workers: Vec<UnboundedSender<Order>>,
    next: DoorId,
}

/// One address that is listened on.
#[derive(Debug)]
struct Entrance {
    id: DoorId,
    pool: PoolId,
    door: PoolDoor,
    /// Workers accept themselves; else control accepts, and deals the clients out.
    direct: bool,
}

/// Where the entrance of a pool comes from.
#[derive(Debug)]
pub enum Source {
    /// It is open, at this address.
    Open(Listen),
    /// It was bound for this reload.
    Bound(PoolDoor),
}

impl Entrances {
    /// Opens these. Inside a `LocalRuntime` only.
    pub fn start(workers: &[Worker], doors: Vec<(PoolId, PoolDoor)>) -> io::Result<Self> {
        let orders = workers.iter().map(|worker| worker.orders.clone()).collect();
        let dealer = Dealer::new(workers);
        let mut entrances = Self { open: Vec::new(), dealer, workers: orders, next: DoorId(0) };
        doors.into_iter().try_for_each(|(pool, door)| entrances.open(pool, door))?;
        Ok(entrances)
    }

    /// Every address that is listened on, as configured and as bound.
    pub fn addresses(&self) -> Vec<(Listen, Option<std::net::SocketAddr>)> {
        let address = |entrance: &Entrance| {
            let bound = entrance.door.listeners.first().and_then(crate::net::Listener::tcp_address);
            (entrance.door.at.clone(), bound)
        };
        self.open.iter().map(address).collect()
    }

    /// How many sockets that are.
    pub fn sockets(&self) -> usize {
        self.open.iter().map(|entrance| entrance.door.listeners.len()).sum()
    }

    /// Once a second: see [`Dealer::reconcile`].
    pub fn reconcile(&self) {
        self.dealer.reconcile();
    }

    /// Each pool listens where `sources` says; the workers know these pools already. Returns how many addresses
    /// were closed. Connections that the kernel had queued there are served.
    pub async fn adopt(&mut self, pools: Vec<(PoolId, &Pool, Source)>) -> io::Result<usize> {
        let mut gone = std::mem::take(&mut self.open);
        let mut result = Ok(());
        for (pool, config, source) in pools {
            match source {
                Source::Open(at) => {
                    if let Some(found) = gone.iter().position(|entrance| entrance.door.at == at) {
                        let mut entrance = gone.swap_remove(found);
                        self.assign(&mut entrance, pool, config);
                        self.open.push(entrance);
                    }
                }
                Source::Bound(door) => result = result.and(self.open(pool, door)),
            }
        }
        let closed = gone.len();
        for entrance in gone {
            self.close(entrance).await;
        }
        result.map(|()| closed)
    }

    /// Stops accepting everywhere. What the kernel has queued already is served first: it would be reset otherwise.
    pub async fn stop(&mut self) {
        for entrance in std::mem::take(&mut self.open) {
            self.close(entrance).await;
        }
    }

    fn open(&mut self, pool: PoolId, door: PoolDoor) -> io::Result<()> {
        let id = self.next;
        self.next.0 += 1;
        let direct = self.workers.len() == 1 || door.listeners.len() > 1;
        if direct {
            for (worker, listener) in self.workers.iter().zip(&door.listeners) {
                let order = Order::Listen(id, pool, listener.try_clone()?);
                worker.send(order).map_err(|_| io::Error::other("a worker has ended"))?;
            }
        } else {
            for listener in &door.listeners {
                self.dealer.open(id, pool, listener.try_clone()?)?;
            }
        }
        self.open.push(Entrance { id, pool, door, direct });
        Ok(())
    }

    /// An open one goes on for `pool`, with its options.
    fn assign(&self, entrance: &mut Entrance, pool: PoolId, config: &Pool) {
        if entrance.pool != pool {
            entrance.pool = pool;
            let id = entrance.id;
            if entrance.direct {
                self.tell_workers(|| Order::Assign(id, pool));
            } else {
                self.dealer.assign(id, pool);
            }
        }
        entrance.door.at = config.listen.clone();
        let options = doors::options(config);
        for listener in &entrance.door.listeners {
            if let Err(error) = listener.set_options(&options) {
                warn!(pool = config.name, "cannot set the options of a listening socket: {error}");
            }
        }
        if let Listen::Unix { path, mode: Some(mode) } = &config.listen
            && let Err(error) = std::fs::set_permissions(path, std::fs::Permissions::from_mode(*mode))
        {
            warn!(pool = config.name, "cannot set the mode of {}: {error}", path.display());
        }
    }

    /// Control's own descriptors go first, so that whoever accepts holds the last one, and looks a last time.
    async fn close(&mut self, entrance: Entrance) {
        let Entrance { id, door: PoolDoor { listeners, file, .. }, direct, .. } = entrance;
        drop(listeners);
        if direct {
            self.tell_workers(|| Order::Unlisten(id));
        } else {
            self.dealer.close(id).await;
        }
        drop(file);
    }

    fn tell_workers(&self, order: impl Fn() -> Order) {
        for worker in &self.workers {
            let _ = worker.send(order()); // one that has ended does not listen
        }
    }
}
