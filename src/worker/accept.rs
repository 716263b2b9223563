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
        drop(door);
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

/// Accepts until EAGAIN each time; once the worker drains, once more, since what is queued on a closed listener is reset.
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

/// A task for the client, if the limits leave room for it.
fn welcome(world: &Rc<World>, ix: PoolIx, stream: Stream) {
    let pool = world.pool(ix);
    let Some(id) = world.census.enter(ix.index()) else {
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
        world.forget(id, ix);
    });
}

// === impl Door ===

impl Door {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        match self {
            Self::Tcp(listener) => listener.poll_accept(cx).map_ok(|(stream, _)| Stream::Tcp(stream)),
            Self::Unix(listener) => listener.poll_accept(cx).map_ok(|(stream, _)| Stream::Unix(stream)),
        }
    }
}
