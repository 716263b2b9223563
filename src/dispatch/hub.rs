//! Who of a worker's clients is subscribed to what: one subscription at the servers, however many clients share it.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use bytes::Bytes;

use super::pool::Pool;
use crate::backend::{Audience, Server};
use crate::config::Distribution;
use crate::exchange::{Outbox, Outcome, Recipient, Reply, Ticket};
use crate::resp::pubsub::confirmation;
use crate::resp::{ErrorReply, Protocol, Space};
use crate::stats::PoolBlock;

/// The subscriptions of a pool's clients in one worker.
pub struct Hub {
    me: Weak<Self>,
    stats: Arc<PoolBlock>,
    topics: RefCell<[HashMap<Bytes, Topic>; 3]>,
}

/// Something that clients are subscribed to.
struct Topic {
    /// By client.
    listeners: HashMap<u64, Rc<Listener>>,
    /// Those that are to be told when it stands.
    waiting: Vec<Waiting>,
    /// Where it is subscribed to.
    servers: Vec<Rc<Server>>,
}

struct Waiting {
    listener: Rc<Listener>,
    ticket: Ticket,
    /// What the client has then.
    count: usize,
}

/// A client as its subscriptions see it.
pub struct Listener {
    id: u64,
    client: Rc<dyn Recipient>,
    /// What it speaks now.
    pub protocol: Cell<Protocol>,
    /// What it is subscribed to, by `Space`.
    names: RefCell<[HashSet<Bytes>; 3]>,
    /// Subscriptions that don't stand yet.
    awaited: Cell<usize>,
}

/// Most channels and patterns that one client may be subscribed to.
pub const MOST_SUBSCRIPTIONS: usize = 100_000;

/// A message from this size on is shared by those that get it; a smaller one is copied.
const SHARE_THRESHOLD: usize = 4 << 10;

/// What the servers' own events are published on: by each server for its own keys.
const KEYSPACE: [&[u8]; 2] = [b"__keyspace@", b"__keyevent@"];

// === impl Listener ===

impl Listener {
    /// Client `id`, subscribed to nothing.
    pub fn new(id: u64, client: &Rc<dyn Recipient>, protocol: Protocol) -> Rc<Self> {
        let (names, awaited) = (RefCell::default(), Cell::new(0));
        Rc::new(Self { id, client: Rc::clone(client), protocol: Cell::new(protocol), names, awaited })
    }

    /// What CLIENT LIST calls sub, psub and ssub.
    pub fn counts(&self) -> [usize; 3] {
        self.names.borrow().each_ref().map(HashSet::len)
    }

    /// What it is subscribed to.
    pub fn names(&self, space: Space) -> Vec<Bytes> {
        self.names.borrow()[space.index()].iter().cloned().collect()
    }

    /// Whether it is subscribed to anything.
    pub fn is_subscribed(&self) -> bool {
        self.counts().iter().sum::<usize>() > 0
    }

    /// Whether it waits for a subscription to stand.
    pub fn is_waiting(&self) -> bool {
        self.awaited.get() > 0
    }

    /// The number that is told: channels and patterns together, shard channels apart.
    fn count(&self, space: Space) -> usize {
        let [channels, patterns, shards] = self.counts();
        if space == Space::Shard { shards } else { channels + patterns }
    }

    fn tell(&self, word: &str, name: Option<&[u8]>, count: usize) {
        let mut text = Vec::new();
        confirmation(&mut text, self.protocol.get(), word, name, count);
        Outbox::push(&self.client, Reply::Borrowed(&text));
    }
}

// === impl Hub ===

impl Hub {
    pub(super) fn new(stats: Arc<PoolBlock>) -> Rc<Self> {
        Rc::new_cyclic(|me| Self { me: me.clone(), stats, topics: RefCell::default() })
    }

    /// `listener` wants to hear `name`, which is published at `servers`; it is told when it stands, in its place among its replies.
    pub fn subscribe(&self, listener: &Rc<Listener>, space: Space, name: &[u8], servers: Vec<Rc<Server>>) {
        let name = Bytes::copy_from_slice(name);
        if !listener.names.borrow_mut()[space.index()].insert(name.clone()) {
            let mut topics = self.topics.borrow_mut();
            let topic = topics[space.index()].get_mut(&name).filter(|topic| topic.is_awaited_by(listener));
            let count = listener.count(space);
            return match topic {
                // Named twice in one call: what becomes of the first becomes of both.
                Some(topic) => topic.wait(listener, count),
                None => {
                    drop(topics);
                    listener.tell(space.subscribe(), Some(&name), count);
                }
            };
        }
        self.stats.subscriptions.add(1);
        let count = listener.count(space);
        let mut topics = self.topics.borrow_mut();
        let topic = topics[space.index()].entry(name.clone()).or_insert_with(|| {
            let audience = self.audience();
            servers.iter().for_each(|server| server.subscriber().subscribe(space, &name, &audience));
            Topic { listeners: HashMap::new(), waiting: Vec::new(), servers }
        });
        topic.listeners.insert(listener.id, Rc::clone(listener));
        if topic.stands(space, &name) {
            drop(topics);
            return listener.tell(space.subscribe(), Some(&name), count);
        }
        topic.wait(listener, count);
    }

    /// `listener` wants no more of `name`, or of all of its kind; it is told so.
    pub fn unsubscribe<'a>(&self, listener: &Listener, space: Space, names: impl Iterator<Item = &'a [u8]>) {
        let mut told = false;
        for name in names {
            self.leave(listener, space, name);
            listener.tell(space.unsubscribe(), Some(name), listener.count(space));
            told = true;
        }
        if !told {
            listener.tell(space.unsubscribe(), None, listener.count(space));
        }
    }

    /// The client is gone, or begins anew.
    pub fn leave_all(&self, listener: &Listener) {
        for space in Space::ALL {
            listener.names(space).iter().for_each(|name| self.leave(listener, space, name));
        }
    }

    fn leave(&self, listener: &Listener, space: Space, name: &[u8]) {
        if !listener.names.borrow_mut()[space.index()].remove(name) {
            return;
        }
        self.stats.subscriptions.sub(1);
        let mut topics = self.topics.borrow_mut();
        let Some(topic) = topics[space.index()].get_mut(name) else { return };
        topic.listeners.remove(&listener.id);
        let (mut gone, mut rest) = (Vec::new(), Vec::new());
        for waiting in topic.waiting.drain(..) {
            if waiting.listener.id == listener.id { gone.push(waiting) } else { rest.push(waiting) }
        }
        topic.waiting = rest;
        self.release(&mut topics, space, name);
        drop(topics);
        let mut error = Vec::new();
        ErrorReply::subscription_ended().encode(&mut error);
        gone.into_iter().for_each(|waiting| waiting.settle(&error));
    }

    /// Ends a subscription that nobody wants any more.
    fn release(&self, topics: &mut [HashMap<Bytes, Topic>; 3], space: Space, name: &[u8]) {
        let topics = &mut topics[space.index()];
        if topics.get(name).is_some_and(|topic| topic.listeners.is_empty())
            && let Some((name, topic)) = topics.remove_entry(name)
        {
            topic.servers.iter().for_each(|server| server.subscriber().unsubscribe(space, &name));
        }
    }

    /// Servers have gone, come or changed what they own: subscriptions move.
    pub(super) fn realign(&self, pool: &Pool) {
        let audience = self.audience();
        let mut stand = Vec::new();
        for space in Space::ALL {
            for (name, topic) in &mut self.topics.borrow_mut()[space.index()] {
                let servers = pool.publishers(space, name);
                if servers.is_empty() {
                    continue; // nobody is live: it stays where it was
                }
                let lacks =
                    |list: &[Rc<Server>], one: &Rc<Server>| !list.iter().any(|it| Rc::ptr_eq(it, one));
                let new = servers.iter().filter(|server| lacks(&topic.servers, server));
                new.for_each(|server| server.subscriber().subscribe(space, name, &audience));
                let old = topic.servers.iter().filter(|server| lacks(&servers, server));
                old.for_each(|server| server.subscriber().unsubscribe(space, name));
                topic.servers = servers;
                if !topic.waiting.is_empty() {
                    stand.push((space, name.clone()));
                }
            }
        }
        stand.iter().for_each(|(space, name)| self.stands(*space, name));
    }

    fn audience(&self) -> Weak<dyn Audience> {
        self.me.clone()
    }
}

impl Audience for Hub {
    fn stands(&self, space: Space, name: &[u8]) {
        let mut topics = self.topics.borrow_mut();
        let Some(topic) = topics[space.index()].get_mut(name) else { return };
        if !topic.stands(space, name) {
            return;
        }
        let waiting = std::mem::take(&mut topic.waiting);
        drop(topics);
        for waiting in waiting {
            let mut text = Vec::new();
            let protocol = waiting.listener.protocol.get();
            confirmation(&mut text, protocol, space.subscribe(), Some(name), waiting.count);
            waiting.settle(&text);
        }
    }

    fn failed(&self, space: Space, name: &[u8], error: &[u8]) {
        let mut topics = self.topics.borrow_mut();
        let Some(topic) = topics[space.index()].get_mut(name) else { return };
        let waiting = std::mem::take(&mut topic.waiting);
        for one in &waiting {
            topic.listeners.remove(&one.listener.id);
            if one.listener.names.borrow_mut()[space.index()].remove(name) {
                self.stats.subscriptions.sub(1);
            }
            self.stats.forward_error.add(1);
        }
        self.release(&mut topics, space, name);
        drop(topics);
        waiting.into_iter().for_each(|waiting| waiting.settle(error));
    }

    fn message(&self, space: Space, name: &[u8], frame: &[u8]) {
        let topics = self.topics.borrow();
        let Some(topic) = topics[space.index()].get(name) else { return };
        let mut forms: [Option<Bytes>; 2] = [None, None];
        for listener in topic.listeners.values() {
            let resp3 = listener.protocol.get() == Protocol::Resp3;
            let form = forms[usize::from(resp3)].get_or_insert_with(|| {
                // The same but for the first byte: an array, or a push.
                let mut bytes = frame.to_vec();
                bytes[0] = if resp3 { b'>' } else { b'*' };
                bytes.into()
            });
            let reply = match form.len() {
                ..SHARE_THRESHOLD => Reply::Borrowed(form),
                _ => Reply::Shared(form.clone()),
            };
            Outbox::push(&listener.client, reply);
        }
        self.stats.messages.add(topic.listeners.len() as u64);
    }
}

// === impl Topic ===

impl Topic {
    fn stands(&self, space: Space, name: &[u8]) -> bool {
        self.servers.iter().all(|server| server.subscriber().stands(space, name))
    }

    fn is_awaited_by(&self, listener: &Listener) -> bool {
        self.waiting.iter().any(|waiting| waiting.listener.id == listener.id)
    }

    /// `listener` is told when it stands, in its place among its replies.
    fn wait(&mut self, listener: &Rc<Listener>, count: usize) {
        let client = &listener.client;
        let ticket = Ticket::client(Rc::clone(client), client.outbox().admit_unmuted());
        listener.awaited.set(listener.awaited.get() + 1);
        self.waiting.push(Waiting { listener: Rc::clone(listener), ticket, count });
    }
}

// === impl Waiting ===

impl Waiting {
    fn settle(self, reply: &[u8]) {
        self.listener.awaited.set(self.listener.awaited.get() - 1);
        self.ticket.settle(Outcome::Reply(Reply::Borrowed(reply)));
    }
}

// === impl Pool ===

impl Pool {
    /// What its clients are subscribed to.
    pub fn hub(&self) -> &Rc<Hub> {
        &self.hub
    }

    /// Where messages for `name` are published: by the owner of a channel; for a pattern, for what the servers tell of their own
    /// keys, and where owners are drawn, by every server that is live. Empty: no server is live.
    pub fn publishers(&self, space: Space, name: &[u8]) -> Vec<Rc<Server>> {
        let by_any = space == Space::Pattern
            || KEYSPACE.iter().any(|prefix| name.starts_with(prefix))
            || self.config().distribution == Distribution::Random;
        let servers = if by_any { self.live() } else { self.owner(name).into_iter().collect() };
        servers.into_iter().map(|server| self.server(server)).collect()
    }
}
