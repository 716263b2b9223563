//! New clients: from this worker's own listeners, or dealt by control.

use std::cell::Cell;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::Notify;

use super::greeting::greet;
use super::world::World;
use super::{Carried, DoorId, Moved};
use crate::client::{ClientConn, Closed};
use crate::config::ProxyProtocol;
use crate::net::{AcceptTrouble, AfterFailure, Announced, Listener, Peer, Stream};
use crate::topology::PoolId;

/// A listener on this thread's runtime.
enum Watched {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A listener of this worker, as its task and the orders see it.
pub(super) struct Door {
    /// Whose clients come here.
    pub(super) pool: Cell<PoolId>,
    closing: Cell<bool>,
    /// Another process listens there, too: what is queued is its own.
    released: Cell<bool>,
    wake: Notify,
}

/// How a client comes.
pub(super) enum Arrival {
    /// It has just connected.
    New,
    /// Through a load balancer that has named it, and with what it has sent already.
    Announced(Option<Announced>, Vec<u8>),
    /// From another process, with the beginning of a request.
    Moved(Carried, Vec<u8>),
}

/// The last sweep of a listener takes at most so many connections.
const LAST_SWEEP: usize = 65_536;

/// Serves the clients that come to `listener` until the door is closed.
pub(super) fn listen(world: &Rc<World>, id: DoorId, pool: PoolId, listener: Listener) -> io::Result<()> {
    let watched = match listener {
        Listener::Tcp(listener) => Watched::Tcp(TcpListener::from_std(listener)?),
        Listener::Unix(listener) => Watched::Unix(UnixListener::from_std(listener)?),
    };
    let door = Rc::new(Door {
        pool: Cell::new(pool),
        closing: Cell::new(false),
        released: Cell::new(false),
        wake: Notify::new(),
    });
    world.doors.borrow_mut().insert(id, Rc::clone(&door));
    let world = Rc::clone(world);
    tokio::task::spawn_local(async move {
        accept_all(&world, &door, &watched).await;
        match watched.into_std() {
            Ok(_) if door.released.get() => {}
            Ok(listener) => sweep(&world, door.pool.get(), &listener),
            Err(error) => tracing::warn!(%error, "a listener is closed without a last look"),
        }
        world.doors.borrow_mut().remove(&id);
        world.changed.notify_one();
    });
    Ok(())
}

/// Serves a client that was accepted elsewhere.
pub(super) fn adopt(world: &Rc<World>, pool: PoolId, peer: Peer) {
    let stream = match peer {
        Peer::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
        Peer::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
    };
    match stream {
        Ok(stream) => welcome(world, pool, stream),
        Err(error) => tracing::warn!(%error, "a new client's socket could not be registered"),
    }
}

/// Serves a client that another process has sent.
pub(super) fn resume(world: &Rc<World>, pool: PoolId, moved: Moved) {
    let Moved { socket, carried, input } = moved;
    match Stream::from_descriptor(socket) {
        Ok(stream) => enter(world, pool, stream, Arrival::Moved(carried, input)),
        Err(error) => tracing::warn!(%error, "the socket of a client from before could not be registered"),
    }
}

/// Accepts until EAGAIN each time, until the door is closed.
async fn accept_all(world: &Rc<World>, door: &Door, watched: &Watched) {
    let mut trouble = AcceptTrouble::default();
    let mut stop = pin!(door.wake.notified());
    stop.as_mut().enable();
    loop {
        let failed = poll_fn(|cx| {
            loop {
                match watched.poll_accept(cx) {
                    Poll::Ready(Ok(stream)) => welcome(world, door.pool.get(), stream),
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(error)),
                    Poll::Pending if door.closing.get() => return Poll::Ready(None),
                    Poll::Pending => {
                        // Wakes this task when the door is to be closed.
                        let _ = stop.as_mut().poll(cx);
                        return Poll::Pending;
                    }
                }
            }
        });
        let Some(error) = tokio::task::unconstrained(failed).await else { return };
        if let AfterFailure::Pause { log } = trouble.failed(&error, Instant::now()) {
            if log {
                tracing::warn!(%error, "cannot accept clients; pausing and trying again");
            }
            tokio::time::sleep(AcceptTrouble::PAUSE).await;
        }
    }
}

/// Accepts what is queued on a listener that is about to be closed: it would be reset. The kernel is asked itself,
/// since the runtime does not know yet what came in this turn of the loop.
fn sweep(world: &Rc<World>, pool: PoolId, listener: &Listener) {
    for _ in 0..LAST_SWEEP {
        match listener.accept() {
            Ok(peer) => adopt(world, pool, peer),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => return,
        }
    }
}

/// A task for the client, if the limits leave room for it. The client of a pool that has gone meanwhile is closed.
fn welcome(world: &Rc<World>, id: PoolId, stream: Stream) {
    let announces = world.pools.place(id).map(|place| place.pool.config().proxy_protocol);
    match announces {
        Some(ProxyProtocol::V1V2) => greet(world, id, stream),
        Some(ProxyProtocol::Off) | None => enter(world, id, stream, Arrival::New),
    }
}

pub(super) fn enter(world: &Rc<World>, id: PoolId, stream: Stream, arrival: Arrival) {
    world.own.clients_total.add(1);
    let Some(place) = world.pools.place(id) else { return };
    let address = place.seats.wants_address().then(|| arrival.address(&stream)).flatten();
    let admission = world.census.enter(&place.seats, address);
    let stats = &place.pool.stats;
    stats.over_client_connections.add(u64::from(admission.over_clients));
    stats.over_clients_per_address.add(u64::from(admission.over_address));
    let Some(number) = admission.id else {
        stats.client_refused.add(1);
        stats.client_total.add(1);
        return ClientConn::refuse(&stream);
    };
    world.own.clients.add(1);
    let pool = Rc::clone(&place.pool);
    let watch = Rc::clone(&world.watch);
    let client = match arrival {
        Arrival::New => ClientConn::new(stream, number, pool, watch),
        Arrival::Announced(announced, input) => {
            ClientConn::announced(stream, number, pool, watch, (announced, input))
        }
        Arrival::Moved(carried, input) => {
            ClientConn::continued(stream, number, pool, watch, (carried, input))
        }
    };
    if place.leaving.get() {
        client.drain();
    } else if world.is_draining() {
        world.end(&client);
    }
    world.clients.borrow_mut().insert(number, Rc::clone(&client));
    let world = Rc::clone(world);
    tokio::task::spawn_local(async move {
        let closed = Rc::clone(&client).run().await;
        tracing::debug!(client = number, pool = client.pool().config().name, reason = %closed, "client closed");
        if closed == Closed::Moved {
            world.send_on(&client);
        }
        world.forget(number, &place, address);
    });
}

// === impl Door ===

impl Door {
    /// The listener is closed; what is queued is another process's to accept.
    pub(super) fn release(&self) {
        self.released.set(true);
        self.close();
    }

    /// What is queued is accepted, then the listener is closed.
    pub(super) fn close(&self) {
        self.closing.set(true);
        self.wake.notify_waiters();
    }
}

// === impl Watched ===

impl Watched {
    fn into_std(self) -> io::Result<Listener> {
        Ok(match self {
            Self::Tcp(listener) => Listener::Tcp(listener.into_std()?),
            Self::Unix(listener) => Listener::Unix(listener.into_std()?),
        })
    }

    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        match self {
            Self::Tcp(listener) => listener.poll_accept(cx).map_ok(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener) => listener.poll_accept(cx).map_ok(|(stream, _)| Stream::Unix(stream)),
        }
    }
}

// === impl Arrival ===

impl Arrival {
    /// The client's own IP address; none on a unix socket.
    fn address(&self, stream: &Stream) -> Option<IpAddr> {
        let announced = match self {
            Self::New => None,
            Self::Announced(announced, _) => *announced,
            Self::Moved(carried, _) => carried.announced(),
        };
        announced.map_or_else(|| stream.peer_ip(), |announced| Some(announced.source.ip()))
    }
}
