//! A client that goes on in another process.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use bytes::BytesMut;

use super::{ClientConn, Hold, Input, Phase};
use crate::client::session::{Carried, Session};
use crate::client::watch::Watch;
use crate::dispatch::Pool;
use crate::exchange::Replies;
use crate::net::{Announced, Stream};

/// A client between two processes.
#[derive(Debug)]
pub struct Moved {
    /// Its socket.
    pub socket: OwnedFd,
    /// What was agreed with it.
    pub carried: Carried,
    /// The beginning of a request that has not come in full.
    pub input: Vec<u8>,
}

/// More than this of an incomplete request does not go with a client: it goes on here until the request is complete.
const MOST_MOVED: usize = 64 << 10;

impl ClientConn {
    /// Lets the client go, at the next moment at which nothing is due to it, to whoever serves it from then on.
    pub fn leave(&self) {
        if self.phase.get() == Phase::Open {
            self.phase.set(Phase::Leaving);
            self.wake();
        }
    }

    /// The client itself, after [`ClientConn::run`] has ended with [`Closed::Moved`].
    pub fn into_moved(&self) -> Option<Moved> {
        let carried =
            self.session.borrow().carried()?.with(self.announced.get().map(|announced| **announced));
        let socket = self.stream.replace(Stream::Closed).into_descriptor()?;
        let input = self.input.take().map_or_else(BytesMut::new, |mut input| input.inbox.take());
        Some(Moved { socket, carried, input: input.to_vec() })
    }

    /// A client that comes from another process.
    pub fn continued(
        stream: Stream,
        id: u64,
        pool: Rc<Pool>,
        watch: Rc<Watch>,
        (carried, bytes): (Carried, Vec<u8>),
    ) -> Rc<Self> {
        let announced = carried.announced();
        let client = Self::announced(stream, id, pool, watch, (announced, bytes));
        client.session.replace(Session::resumed(carried));
        client
    }

    /// A client that a load balancer has named, and what it has sent already.
    pub fn announced(
        stream: Stream,
        id: u64,
        pool: Rc<Pool>,
        watch: Rc<Watch>,
        (announced, bytes): (Option<Announced>, Vec<u8>),
    ) -> Rc<Self> {
        let client = Self::new(stream, id, pool, watch);
        if let Some(announced) = announced {
            client.announced.get_or_init(|| Box::new(announced));
        }
        if !bytes.is_empty() {
            let mut input = Input::default();
            let buffers = &client.pool.turn.buffers;
            let mut buffer = buffers.take_scratch();
            buffer.extend_from_slice(&bytes);
            input.inbox.keep(buffer, 0, buffers);
            client.keep(input);
            client.hold.set(Some(Hold::Backpressure));
        }
        client
    }

    /// Whether another process could go on with it: it is in the middle of nothing, and has sent little of a request.
    pub(super) fn may_leave(&self) -> bool {
        let portable = {
            let mut session = self.session.borrow_mut();
            session.mode.go_on() && session.carried().is_some()
        };
        // What CLIENT REPLY has said doesn't go with it.
        portable && self.outbox.replies() == Replies::On && self.kept() <= MOST_MOVED
    }

    /// Bytes that are here and not yet dispatched.
    pub(super) fn kept(&self) -> usize {
        let input = self.input.take();
        let kept = input.as_ref().map_or(0, |input| input.inbox.len());
        self.input.set(input);
        kept
    }
}
