//! Publishes to the workers, and holds what is published.

use std::sync::Arc;

use tokio::sync::watch;

use crate::backend::LeaseLimit;
use crate::command::Learned;
use crate::config::{self, Config, Kept};
use crate::stats::{PoolStats, WorkerStats};
use crate::topology::{Generation, PoolIx};
use crate::worker::{Published, Seats};

/// The writing end of what workers adopt.
#[derive(Clone, Debug)]
pub struct Publisher {
    published: Arc<watch::Sender<Arc<Published>>>,
}

impl Publisher {
    /// Generation 1 for so many workers, and the end that they read.
    pub fn first(config: Arc<Config>, workers: usize) -> (Self, watch::Receiver<Arc<Published>>) {
        let shape = || config.pools.iter().map(|pool| pool.servers.len());
        let stats = (0..workers).map(|_| Arc::new(WorkerStats::new(shape()))).collect();
        let seats = config
            .pools
            .iter()
            .map(|pool| Arc::new(Seats::new(pool.client_connections, pool.clients_per_address)))
            .collect();
        let leases = config.pools.iter().map(leases).collect();
        let generation = Arc::new(Generation::first(config));
        let (sender, receiver) = watch::channel(Arc::new(Published { generation, stats, seats, leases }));
        (Self { published: Arc::new(sender) }, receiver)
    }

    /// What holds now.
    pub fn now(&self) -> Arc<Published> {
        self.published.borrow().clone()
    }

    /// The generation that holds now.
    pub fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.published.borrow().generation)
    }

    /// From now on the live servers of a pool are these.
    pub fn publish_live(&self, pool: PoolIx, live: &[bool]) {
        let now = self.now();
        let generation = Arc::new(now.generation.with_live(pool, live));
        self.published.send_replace(Arc::new(Published { generation, ..Published::clone(&now) }));
    }

    /// From now on the servers of a pool know these commands beyond the built-in ones.
    pub fn publish_learned(&self, pool: PoolIx, learned: Arc<Learned>) {
        let now = self.now();
        let generation = Arc::new(now.generation.with_learned(pool, learned));
        self.published.send_replace(Arc::new(Published { generation, ..Published::clone(&now) }));
    }

    /// The next generation, of another configuration: what stays keeps its number, its cells and its clients. `live`
    /// has a mask for each pool.
    pub fn publish(&self, config: Arc<Config>, live: &[Vec<bool>]) -> Arc<Published> {
        let now = self.now();
        let kept = Kept::between(&now.generation.config, &config);
        let stats = now.stats.iter().map(|cells| Arc::new(carried(cells, &kept))).collect();
        let seats = kept.carry(&now.seats, |_, seats| seats.cloned().unwrap_or_default());
        for (seats, pool) in seats.iter().zip(&config.pools) {
            seats.set_limits(pool.client_connections, pool.clients_per_address);
        }
        let leases = kept.carry(&now.leases, |pool, before| {
            pool.carry(before.map_or(&[][..], Vec::as_slice), |limit| limit.cloned().unwrap_or_default())
        });
        for (limits, pool) in leases.iter().zip(&config.pools) {
            limits.iter().for_each(|limit| limit.set_most(pool.max_leases.get()));
        }
        let generation = Arc::new(now.generation.with_config(config, live));
        let published = Arc::new(Published { generation, stats, seats, leases });
        self.published.send_replace(Arc::clone(&published));
        published
    }
}

fn leases(pool: &config::Pool) -> Vec<Arc<LeaseLimit>> {
    pool.servers.iter().map(|_| Arc::new(LeaseLimit::new(pool.max_leases.get()))).collect()
}

/// One worker's cells in the shape of the next configuration.
fn carried(now: &WorkerStats, kept: &Kept) -> WorkerStats {
    let pools = kept.carry(&now.pools, |pool, before| match before {
        Some(cells) => {
            let servers = pool.carry(&cells.servers, |cells| cells.cloned().unwrap_or_default());
            PoolStats { pool: Arc::clone(&cells.pool), servers }
        }
        None => PoolStats { pool: Arc::default(), servers: pool.carry::<(), _>(&[], |_| Arc::default()) },
    });
    WorkerStats { own: Arc::clone(&now.own), pools }
}
