//! What control asks a worker about its clients, or wants of them. Answered between two turns of its loop.

use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::world::World;
use crate::client::{ClientInfo, SlowRequest};
use crate::topology::PoolId;

/// A question, with the way back for its answer.
#[derive(Debug)]
pub enum Ask {
    /// All clients, or the one with this number.
    Clients(Option<u64>, oneshot::Sender<Vec<ClientInfo>>),
    /// End the connections that the filter means; how many there were.
    Kill(KillFilter, oneshot::Sender<u64>),
    /// Requests of clients wait so long; `None`: no longer.
    Pause(Option<Duration>),
    /// The slow requests that it remembers.
    Slow(oneshot::Sender<Vec<SlowRequest>>),
    /// Forget the slow requests.
    ForgetSlow,
    /// New connections take the place of those to the pool's server of that name; how many that concerns.
    Reconnect(PoolId, String, oneshot::Sender<u64>),
    /// Requests are slow from so many microseconds on.
    SlowerThan(u64),
}

/// Which clients. What is `None` makes no difference.
#[derive(Clone, Debug, Default)]
pub struct KillFilter {
    /// By number.
    pub id: Option<u64>,
    /// By where they came from, `HOST:PORT`.
    pub address: Option<String>,
    /// By where they came to.
    pub local_address: Option<String>,
    /// By the name of their pool.
    pub pool: Option<String>,
    /// Older than so many seconds.
    pub max_age: Option<u64>,
}

// === impl KillFilter ===

impl KillFilter {
    fn means(&self, client: &ClientInfo) -> bool {
        self.id.is_none_or(|id| id == client.id)
            && self.address.as_ref().is_none_or(|address| *address == client.address)
            && self.local_address.as_ref().is_none_or(|address| *address == client.local_address)
            && self.pool.as_ref().is_none_or(|pool| *pool == client.pool)
            && self.max_age.is_none_or(|age| client.age.as_secs() >= age)
    }
}

/// Answers. Whoever asked may have gone.
pub(super) fn answer(world: &Rc<World>, ask: Ask) {
    match ask {
        Ask::Clients(id, to) => {
            let clients = world.clients.borrow();
            let wanted = clients.values().filter(|client| id.is_none_or(|id| id == client.id()));
            let _ = to.send(wanted.map(|client| client.info()).collect());
        }
        Ask::Kill(filter, to) => {
            let clients = world.clients.borrow();
            let meant: Vec<_> = clients.values().filter(|client| filter.means(&client.info())).collect();
            meant.iter().for_each(|client| client.kill());
            let _ = to.send(meant.len() as u64);
        }
        Ask::Pause(limit) => pause(world, limit),
        Ask::Slow(to) => {
            let _ = to.send(world.watch.slow());
        }
        Ask::ForgetSlow => world.watch.forget_slow(),
        Ask::Reconnect(pool, server, to) => {
            let _ = to.send(world.pools.reconnect(pool, &server) as u64);
        }
        Ask::SlowerThan(micros) => world.watch.set_slower_than(micros),
    }
}

/// Clients wait until the limit, or until another order says otherwise.
fn pause(world: &Rc<World>, limit: Option<Duration>) {
    let until = limit.map(|limit| Instant::now() + limit);
    world.watch.pause(until);
    let Some(until) = until else { return go_on(world) };
    let world = Rc::clone(world);
    tokio::task::spawn_local(async move {
        tokio::time::sleep_until(until.into()).await;
        if world.watch.paused_until() == Some(until) {
            world.watch.pause(None);
            go_on(&world);
        }
    });
}

fn go_on(world: &World) {
    world.clients.borrow().values().for_each(|client| client.look_again());
}
