//! What the operator sees of a client and does to it.

use std::time::Instant;

use super::{ClientConn, Closed, Hold};
use crate::client::watch::ClientInfo;
use crate::command::Call;
use crate::exchange::Moment;
use crate::resp::Protocol;

impl ClientConn {
    /// What CLIENT LIST tells of it.
    pub fn info(&self) -> ClientInfo {
        let now = Moment::at(Instant::now());
        let session = self.session.try_borrow();
        let target = session.as_ref().ok().map(|session| session.target);
        let (db, protocol) = target.map_or((0, Protocol::Resp2), |target| (target.db, target.protocol));
        ClientInfo {
            id: self.id,
            pool: self.pool.config().name.clone(),
            address: self.address(),
            local_address: self.local_address(),
            name: self.name(),
            age: now.since(self.since),
            idle: now.since(self.seen.get()),
            command: self.outbox.command(),
            pending: self.outbox.pending(),
            unsent: self.outbox.unsent(),
            unread: self.kept(),
            subscriptions: self.subscriptions(),
            db,
            protocol,
        }
    }

    /// Channels, patterns and shard channels that it is subscribed to.
    pub(super) fn subscriptions(&self) -> [usize; 3] {
        let session = self.session.try_borrow();
        let own = session.as_ref().ok().and_then(|session| session.subscriptions.as_ref());
        own.map(|own| own.counts()).unwrap_or_default()
    }

    /// Where it came from.
    pub fn address(&self) -> String {
        match self.announced.get() {
            Some(announced) => announced.source.to_string(),
            None => self.stream.borrow().peer_address(),
        }
    }

    fn local_address(&self) -> String {
        match self.announced.get() {
            Some(announced) => announced.destination.to_string(),
            None => self.stream.borrow().local_address(),
        }
    }

    /// What it calls itself; empty if it hasn't.
    pub fn name(&self) -> String {
        let session = self.session.try_borrow();
        let name = session.as_ref().ok().and_then(|session| session.name.as_deref());
        name.map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
    }

    /// Whether an operator sees its requests.
    #[inline]
    pub fn is_monitored(&self) -> bool {
        self.watch.is_monitored()
    }

    /// Shows a call of its own, in database `db`, to the operators that watch.
    pub fn show(&self, call: &Call<'_>, db: u32) {
        self.watch.show(call, db, self);
    }

    /// The operator ends the connection now.
    pub fn kill(&self) {
        self.end(Closed::Killed);
    }

    /// A pause may be over.
    pub fn look_again(&self) {
        if self.hold.get() == Some(Hold::Pause) {
            self.wake();
        }
    }
}
