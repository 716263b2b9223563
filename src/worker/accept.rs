//! New clients: from this worker's own listeners, or dealt by control.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::world::World;
use crate::client::ClientConn;
use crate::net::{AcceptTrouble, AfterFailure, Listener, Peer, Stream};
use crate::topology::PoolIx;

/// A listener on this thread's runtime.
enum Door {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The last sweep of a listener takes at most so many connections.
const LAST_SWEEP: usize = 65_536;

/// Serves the clients that come to `listener` until the worker drains.
pub(super) fn listen(world: &Rc<World>, pool: PoolIx, listener: Listener) -> io::Result<()> {
    let door = match listener {
        Listener::Tcp(listener) => Door::Tcp(TcpListener::from_std(listener)?),
        Listener::Unix(listener) => Door::Unix(UnixListener::from_std(listener)?),
    };
    world.doors_open.set(world.doors_open.get() + 1);
    let world = Rc::clone(world);
    tokio::task::spawn_local(async move {
        accept_all(&world, pool, &door).await;
        match door.into_std() {
            Ok(listener) => sweep(&world, pool, &listener),
            Err(error) => tracing::warn!(%error, "a listener is closed without a last look"),
        }
        world.doors_open.set(world.doors_open.get() - 1);
        world.changed.notify_one();
    });
    Ok(())
}

/// Serves a client that was accepted elsewhere.
pub(super) fn adopt(world: &Rc<World>, pool: PoolIx, peer: Peer) {
    let stream = match peer {
        Peer::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
        Peer::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
    };
    match stream {
        Ok(stream) => welcome(world, pool, stream),
        Err(error) => tracing::warn!(%error, "a new client's socket could not be registered"),
    }
}

/// Accepts until EAGAIN each time, until the worker drains.
async fn accept_all(world: &Rc<World>, pool: PoolIx, door: &Door) {
    let mut trouble = AcceptTrouble::default();
    let mut stop = pin!(world.draining.notified());
    stop.as_mut().enable();
    loop {
        let failed = poll_fn(|cx| {
            loop {
                match door.poll_accept(cx) {
                    Poll::Ready(Ok(stream)) => welcome(world, pool, stream),
                    Poll::Ready(Err(error)) => return Poll::Ready(Some(error)),
                    Poll::Pending if world.is_draining() => return Poll::Ready(None),
                    Poll::Pending => {
                        // Wakes this task when the drain begins.
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
fn sweep(world: &Rc<World>, pool: PoolIx, listener: &Listener) {
    for _ in 0..LAST_SWEEP {
        match listener.accept() {
            Ok(peer) => adopt(world, pool, peer),
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => return,
        }
    }
}

/// A task for the client, if the limits leave room for it.
fn welcome(world: &Rc<World>, ix: PoolIx, stream: Stream) {
    let pool = world.pool(ix);
    let address = world.census.wants_address(ix.index()).then(|| stream.peer_ip()).flatten();
    let admission = world.census.enter(ix.index(), address);
    pool.stats.over_client_connections.add(u64::from(admission.over_clients));
    pool.stats.over_clients_per_address.add(u64::from(admission.over_address));
    let Some(id) = admission.id else {
        pool.stats.client_refused.add(1);
        pool.stats.client_total.add(1);
        return ClientConn::refuse(&stream);
    };
    let client = ClientConn::new(stream, id, Rc::clone(pool));
    if world.is_draining() {
        client.drain();
    }
    world.clients.borrow_mut().insert(id, Rc::clone(&client));
    let world = Rc::clone(world);
    tokio::task::spawn_local(async move {
        let closed = client.run().await;
        tracing::debug!(client = id, reason = ?closed, "client closed");
        world.forget(id, ix, address);
    });
}

// === impl Door ===

impl Door {
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
