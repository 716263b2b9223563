//! What comes before a client where a load balancer stands in front: the PROXY protocol's header.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BytesMut};

use super::accept::{Arrival, enter};
use super::world::World;
use crate::net::{Announced, MAX_HEADER, ProxyHeader, Stream, proxy_header};
use crate::topology::PoolId;

/// How long a header may take where `first_request_timeout` does not say.
const PATIENCE: Duration = Duration::from_secs(10);

/// Most connections of a worker whose header has not come; one more is closed. They hold no place of a client.
const MOST_WAITING: u32 = 4096;

/// Waits for the header, then lets the client in as the one that is announced.
pub(super) fn greet(world: &Rc<World>, id: PoolId, mut stream: Stream) {
    let Some(place) = world.pools.place(id) else { return };
    let limit = place.pool.config().first_request_timeout;
    let limit = limit.bound().filter(|_| !limit.only_counts()).unwrap_or(PATIENCE);
    if world.greeted.get() >= MOST_WAITING {
        return refuse(world, id, &stream, "too many connections wait for theirs");
    }
    world.greeted.set(world.greeted.get() + 1);
    let world = Rc::clone(world);
    tokio::task::spawn_local(async move {
        let read = tokio::time::timeout(limit, read_header(&mut stream)).await;
        world.greeted.set(world.greeted.get() - 1);
        match read {
            Ok(Ok((announced, rest))) => {
                enter(&world, id, stream, Arrival::Announced(announced, rest.to_vec()));
            }
            Ok(Err(why)) => refuse(&world, id, &stream, why),
            Err(_) => refuse(&world, id, &stream, "it did not come in time"),
        }
    });
}

/// The client that is announced, and what has come behind the header already. The error: what is wrong, in words.
async fn read_header(stream: &mut Stream) -> Result<(Option<Announced>, BytesMut), &'static str> {
    let mut bytes = BytesMut::with_capacity(256);
    loop {
        match poll_fn(|cx| stream.poll_read_into(cx, &mut bytes)).await {
            Ok(0) => return Err("the connection was closed before it was whole"),
            Ok(_) => {}
            Err(_) => return Err("the connection broke before it was whole"),
        }
        match proxy_header(&bytes) {
            ProxyHeader::Incomplete => bytes.reserve(MAX_HEADER),
            ProxyHeader::Bad => return Err("the first bytes are none"),
            ProxyHeader::Complete(len, announced) => {
                bytes.advance(len);
                return Ok((announced, bytes));
            }
        }
    }
}

/// Counted; the log leaves out what repeats, since whoever speaks to the wrong port does so again.
fn refuse(world: &World, id: PoolId, stream: &Stream, why: &'static str) {
    let Some(place) = world.pools.place(id) else { return };
    place.pool.stats.proxy_header_errors.add(1);
    tracing::warn!(
        pool = &*place.pool.config().name,
        peer = %stream.peer_address(),
        reason = why,
        "closed a connection without a PROXY header; `proxy_protocol: off` is for clients that come by themselves"
    );
}
