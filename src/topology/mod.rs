//! Who owns a key.
//!
//! ```text
//!  key ── tag ──▶ hash ──▶ Owner ─┬─ Single   the pool's only server
//!                                 ├─ Ring     ketama │ modula │ random, over the servers that are live
//!                                 ├─ Slots    Redis Cluster's table
//!                                 └─ Nobody   no server is live
//! ```
//!
//! A [`Topology`] is immutable. When a server goes out or comes back, control builds a new one from the same pool and
//! another live mask, and publishes it inside the next [`Generation`].

use std::sync::Arc;

use crate::command::Learned;
use crate::config::{self, Config, Distribution};
use crate::hash::{self, KeyHash};

mod draw;
mod explain;
mod fingerprint;
mod ketama;
mod modula;
mod moves;
mod ring;
mod slots;

pub use draw::Draw;
pub use explain::{Destination, Explanation, Hashed, Note, Place, explain};
pub use ketama::{Continuum, Point};
pub use modula::Wheel;
pub use moves::Moves;
pub use ring::{Member, Ring};
pub use slots::{BadSlots, SlotMap};

/// Index of a pool inside one generation (`Config::pools`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolIx(pub u16);

/// Index of a server inside one pool of one generation (`Pool::servers`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerIx(pub u16);

/// A pool as long as the process runs: it keeps its number from one generation to the next while it keeps its name, and
/// no other pool ever gets that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32);

/// Everything that workers share, immutable; a new one is published as a whole.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Counts up from 1.
    pub number: u64,
    /// The configuration it was made from.
    pub config: Arc<Config>,
    /// Owner of the keys of each pool, by `PoolIx`. What doesn't change is shared with the generation before.
    pub pools: Vec<Arc<Topology>>,
    /// What commands each pool's servers know beyond the built-in table, by `PoolIx`.
    pub learned: Vec<Arc<Learned>>,
    /// Who each pool is, by `PoolIx`.
    pub ids: Vec<PoolId>,
    /// The next pool that comes gets this one.
    next_id: PoolId,
}

/// The owners of one pool's keys now.
#[derive(Clone, Debug)]
pub struct Topology {
    owner: Owner,
    hash: KeyHash,
    /// By `ServerIx`.
    live: Vec<bool>,
}

/// From a key to its server.
#[derive(Clone, Debug)]
pub enum Owner {
    /// The servers share the keys by hash.
    Ring(Ring),
    /// Each server has some of Redis Cluster's slots.
    Slots(SlotMap),
    /// The pool has one server: nothing is hashed.
    Single(ServerIx),
    /// No server is live.
    Nobody,
}

/// What keys may share a request: those of one group can be sent to a server together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// All keys of that server.
    Server(ServerIx),
    /// The keys of one cluster slot, whoever serves it.
    Slot(u16),
}

// === impl PoolIx ===

impl PoolIx {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl ServerIx ===

impl ServerIx {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

// === impl Generation ===

impl Generation {
    /// Generation 1 of `config`, with all servers live.
    pub fn first(config: Arc<Config>) -> Self {
        let pools: Vec<_> = config.pools.iter().map(|pool| Arc::new(Topology::all_live(pool))).collect();
        let ids = (0..pools.len() as u32).map(PoolId).collect::<Vec<_>>();
        let next_id = PoolId(ids.len() as u32);
        let learned = pools.iter().map(|_| Arc::default()).collect();
        Self { number: 1, config, pools, learned, ids, next_id }
    }

    /// The next generation, of another configuration. `live` has a mask for each of its pools.
    ///
    /// A topology that comes out the same is computed again all the same: a reload is rare.
    pub fn with_config(&self, config: Arc<Config>, live: &[Vec<bool>]) -> Self {
        debug_assert_eq!(live.len(), config.pools.len(), "one mask per pool");
        let pools = config.pools.iter().zip(live).map(|(pool, live)| Arc::new(Topology::new(pool, live)));
        let pools = pools.collect();
        let mut next_id = self.next_id;
        let ids = config.pools.iter().map(|pool| {
            self.id_of(&pool.name).unwrap_or_else(|| {
                let id = next_id;
                next_id.0 += 1;
                id
            })
        });
        let ids = ids.collect();
        let learned = config.pools.iter().map(|pool| {
            let known = self.config.pools.iter().position(|one| one.name == pool.name && pool.learn_commands);
            known.map(|at| Arc::clone(&self.learned[at])).unwrap_or_default()
        });
        let learned = learned.collect();
        Self { number: self.number + 1, config, pools, learned, ids, next_id }
    }

    /// The pool of that name.
    pub fn id_of(&self, name: &str) -> Option<PoolId> {
        self.config.pools.iter().position(|pool| pool.name == name).map(|at| self.ids[at])
    }

    /// The next generation, in which the servers of one pool know these commands.
    ///
    /// # Panics
    ///
    /// If `pool` isn't of this generation.
    pub fn with_learned(&self, pool: PoolIx, learned: Arc<Learned>) -> Self {
        let mut all = self.learned.clone();
        all[pool.index()] = learned;
        Self { number: self.number + 1, learned: all, ..self.clone() }
    }

    /// The next generation, in which the live servers of one pool are those that `live` marks.
    ///
    /// # Panics
    ///
    /// If `pool` isn't of this generation.
    pub fn with_live(&self, pool: PoolIx, live: &[bool]) -> Self {
        let topology = Topology::new(&self.config.pools[pool.index()], live);
        let mut pools = self.pools.clone();
        pools[pool.index()] = Arc::new(topology);
        Self { number: self.number + 1, pools, ..self.clone() }
    }
}

// === impl Topology ===

impl Topology {
    /// Who owns the keys of `pool` when the servers that `live` marks, by `ServerIx`, are the live ones.
    ///
    /// Ring and modula are computed anew over the live servers, as twemproxy does: survivors may exchange keys among
    /// themselves. A server without a mark is out.
    pub fn new(pool: &config::Pool, live: &[bool]) -> Self {
        debug_assert_eq!(live.len(), pool.servers.len(), "one mark per server");
        let live: Vec<bool> =
            (0..pool.servers.len()).map(|index| live.get(index).copied().unwrap_or(false)).collect();
        Self { owner: Owner::hashed(pool, &live), hash: pool.hash, live }
    }

    /// The same with every server live.
    pub fn all_live(pool: &config::Pool) -> Self {
        Self::new(pool, &vec![true; pool.servers.len()])
    }

    /// A pool whose servers have told which slots they serve. `live` is by `ServerIx`.
    pub fn with_slots(slots: SlotMap, live: Vec<bool>) -> Self {
        let hash = KeyHash { tag: Some(*b"{}"), ..KeyHash::default() };
        Self { owner: Owner::Slots(slots), hash, live }
    }

    /// The group of `key`; `None` when no server is live.
    ///
    /// For `random` a server is drawn at each call.
    #[inline]
    pub fn group(&self, key: &[u8], draw: &Draw) -> Option<Group> {
        self.owner.group(&self.hash, key, draw)
    }

    /// The server to send a group to; `None` when it is a slot that no server has.
    #[inline]
    pub fn server_of(&self, group: Group) -> Option<ServerIx> {
        match (group, &self.owner) {
            (Group::Server(server), _) => Some(server),
            (Group::Slot(slot), Owner::Slots(slots)) => slots.server(slot),
            (Group::Slot(_), _) => None,
        }
    }

    /// The server of `key`; `None` when nobody owns it.
    #[inline]
    pub fn server(&self, key: &[u8], draw: &Draw) -> Option<ServerIx> {
        self.server_of(self.group(key, draw)?)
    }

    /// The first live server in the pool's order: where commands without a key go, always the same one.
    pub fn first_live(&self) -> Option<ServerIx> {
        (0..).map(ServerIx).zip(&self.live).find_map(|(server, &live)| live.then_some(server))
    }

    /// Every server of the pool in its order (sorted by name), live or not.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = ServerIx> + use<> {
        // A pool has at most 65,535 servers, as `ServerIx` says.
        (0..self.live.len() as u16).map(ServerIx)
    }

    /// How keys are found.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Which servers are live, by `ServerIx`.
    pub fn live(&self) -> &[bool] {
        &self.live
    }

    /// The part of all hash values that leads to each server, in percent, by `ServerIx`. The sum is 100 or, when keys
    /// are without an owner, less.
    ///
    /// For ketama this is arc length on the ring: what a hash that spreads well gives each server in the long run.
    pub fn share(&self) -> Vec<f64> {
        let mut share = vec![0.0; self.live.len()];
        let mut add = |server: ServerIx, percent: f64| {
            if let Some(sum) = share.get_mut(server.index()) {
                *sum += percent;
            }
        };
        match &self.owner {
            Owner::Ring(ring) => ring.shares(add),
            Owner::Slots(slots) => {
                slots.iter().for_each(|(_, server)| add(server, 100.0 / f64::from(hash::SLOTS)))
            }
            Owner::Single(server) => add(*server, 100.0),
            Owner::Nobody => {}
        }
        share
    }

    /// A number that two proxies share exactly if they send the same keys to servers of the same index.
    ///
    /// FNV-1a-64 over the little-endian bytes of (value, index), each 32 bits, for all points in ring order; modula and
    /// random have value 0 at each of their slots, cluster slots have their number.
    pub fn fingerprint(&self) -> u64 {
        match &self.owner {
            Owner::Ring(ring) => ring.fingerprint(),
            Owner::Slots(slots) => {
                fingerprint::of(slots.iter().map(|(slot, server)| (u32::from(slot), server)))
            }
            Owner::Single(server) => fingerprint::of([(0, *server)]),
            Owner::Nobody => fingerprint::of([]),
        }
    }
}

// === impl Owner ===

impl Owner {
    /// The owner for a pool that is sharded by the proxy. `live` has a mark for each server.
    fn hashed(pool: &config::Pool, live: &[bool]) -> Self {
        let servers = (0..).map(ServerIx).zip(&pool.servers).zip(live);
        let members: Vec<Member<'_>> = servers
            .filter(|(_, live)| **live)
            .map(|((server, of), _)| Member { server, label: &of.name, weight: of.weight })
            .collect();
        match (members.as_slice(), pool.servers.len()) {
            ([], _) => Self::Nobody,
            ([only], 1) => Self::Single(only.server),
            (members, _) => Self::Ring(Ring::new(pool.distribution, members)),
        }
    }

    /// The group of `key` with this owner, `hash` being the pool's.
    #[inline]
    pub fn group(&self, hash: &KeyHash, key: &[u8], draw: &Draw) -> Option<Group> {
        match self {
            Self::Ring(ring) => Some(Group::Server(ring.server(hash, key, draw))),
            Self::Slots(_) => Some(Group::Slot(hash::slot(key))),
            Self::Single(server) => Some(Group::Server(*server)),
            Self::Nobody => None,
        }
    }
}

/// Whether the pool combines `crc32` with ketama. It deserves a warning: that hash has 15 bits, all its values lie
/// before or around the first ring point, and nearly every key ends on one server. twemproxy does the same.
pub fn crc32_on_ketama(pool: &config::Pool) -> bool {
    pool.distribution == Distribution::Ketama && pool.hash.algorithm.bits() < 32 && pool.servers.len() > 1
}
