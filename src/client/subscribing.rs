//! Publish/subscribe: what a client is told without asking for it each time.
//!
//! Its subscriptions stand beside its mode: a RESP3 client goes on with any command. Nothing further of it is looked at until what it
//! has subscribed to stands, so what it publishes behind a SUBSCRIBE it hears itself.

use std::rc::Rc;

use super::incoming::Incoming;
use super::session::{Session, Verdict};
use crate::command::Local;
use crate::dispatch::{Hub, Listener, MOST_SUBSCRIPTIONS};
use crate::exchange::Outbox;
use crate::resp::{ErrorReply, Protocol, Space, encode};
use crate::router::Plan;

/// What a client is subscribed to. Dropped, it ends.
pub(super) struct Subscriptions {
    listener: Rc<Listener>,
    hub: Rc<Hub>,
}

impl Subscriptions {
    fn of(incoming: &Incoming<'_>, protocol: Protocol) -> Self {
        let listener = Listener::new(incoming.client.id(), incoming.recipient, protocol);
        Self { listener, hub: Rc::clone(incoming.pool().hub()) }
    }

    /// Channels, patterns, shard channels.
    pub(super) fn counts(&self) -> [usize; 3] {
        self.listener.counts()
    }

    /// Whether there are any.
    pub(super) fn is_subscribed(&self) -> bool {
        self.listener.is_subscribed()
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        self.hub.leave_all(&self.listener);
    }
}

impl Session {
    /// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE.
    pub(super) fn subscribe(&mut self, space: Space, incoming: &Incoming<'_>) -> Verdict {
        let protocol = self.target.protocol;
        let pool = incoming.pool();
        let own = self.subscriptions.get_or_insert_with(|| Box::new(Subscriptions::of(incoming, protocol)));
        for name in incoming.call.args.iter_from(1) {
            if own.counts().iter().sum::<usize>() >= MOST_SUBSCRIPTIONS {
                return incoming.refuse(ErrorReply::too_many_subscriptions(MOST_SUBSCRIPTIONS));
            }
            let servers = pool.publishers(space, name);
            if servers.is_empty() {
                return incoming.refuse(ErrorReply::no_server(&pool.config().name));
            }
            own.hub.subscribe(&own.listener, space, name, servers);
        }
        Verdict::Done
    }

    /// UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE: without a name, of everything.
    pub(super) fn unsubscribe(&mut self, space: Space, incoming: &Incoming<'_>) -> Verdict {
        let protocol = self.target.protocol;
        let own = self.subscriptions.get_or_insert_with(|| Box::new(Subscriptions::of(incoming, protocol)));
        let args = incoming.call.args;
        if args.len() > 1 {
            own.hub.unsubscribe(&own.listener, space, args.iter_from(1));
        } else {
            let all = own.listener.names(space);
            own.hub.unsubscribe(&own.listener, space, all.iter().map(|name| &name[..]));
        }
        if !own.is_subscribed() {
            self.subscriptions = None;
        }
        Verdict::Done
    }

    /// What becomes of a call because its client is subscribed to something; `None`: nothing else than otherwise.
    pub(super) fn while_subscribed(&self, plan: &Plan, incoming: &Incoming<'_>) -> Option<Verdict> {
        let own = self.subscriptions.as_ref()?;
        if own.listener.is_waiting() {
            return Some(Verdict::Fenced);
        }
        if self.target.protocol == Protocol::Resp3 || !own.is_subscribed() {
            return None;
        }
        match plan {
            Plan::Subscribe(_) | Plan::Unsubscribe(_) | Plan::Local(Local::Quit | Local::Reset) => None,
            Plan::Local(Local::Ping) => Some(pong(incoming)),
            _ => Some(incoming.refuse(ErrorReply::only_subscribing(incoming.call.row.name))),
        }
    }

    /// Whether it is subscribed to anything.
    pub(super) fn is_subscribed(&self) -> bool {
        self.subscriptions.as_ref().is_some_and(|own| own.is_subscribed())
    }

    /// HELLO may have changed how it is told.
    pub(super) fn note_protocol(&self) {
        if let Some(own) = &self.subscriptions {
            own.listener.protocol.set(self.target.protocol);
        }
    }
}

/// PING of a subscribed RESP2 client, whatever the pool's `ping` says: clients ask so whether the connection lives.
fn pong(incoming: &Incoming<'_>) -> Verdict {
    let args = incoming.call.args;
    if args.len() > 2 {
        return incoming.refuse(ErrorReply::wrong_arity("ping"));
    }
    Outbox::answer(incoming.recipient, |out| {
        encode::array(out, 2);
        encode::bulk(out, b"pong");
        encode::bulk(out, args.get(1).unwrap_or_default());
    });
    Verdict::Done
}
