//! A client's replies: one slot per request, in order, and the bytes that may be written now.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;

use super::buffer_pool::BufferPool;
use super::byte_queue::{ByteQueue, Written, owned};
use super::ticket::{Outcome, Recipient, Reply};
use super::turn::Turn;

/// Ordered slots and bytes of one client.
///
/// Slots are numbered from 0 as requests are admitted. The reply in the head slot goes straight to the ready bytes;
/// one that comes early is parked until those before it are there.
pub struct Outbox {
    inner: RefCell<Inner>,
    turn: Rc<Turn>,
    /// In this turn's list already.
    marked: Cell<bool>,
    /// Error replies made for requests whose server failed, since they were last asked for.
    failures: Cell<u32>,
    /// Index of the command whose tickets are being made.
    command: Cell<u16>,
    /// Whether the requests that are admitted now get their replies.
    replies: Cell<Replies>,
    /// Bytes charged to the worker's account.
    charged: Cell<usize>,
    /// The request whose reply's size is to be told; [`NOT_SAMPLED`]: none.
    sampled: Cell<u64>,
    /// Bytes of the reply that is being passed on piece by piece.
    streamed: Cell<u64>,
}

/// What CLIENT REPLY says of the requests that are still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replies {
    /// Each is answered.
    On,
    /// None is; they are carried out all the same.
    Off,
    /// The next one isn't.
    SkipNext,
}

struct Inner {
    ready: ByteQueue,
    slots: VecDeque<Slot>,
    /// Number of the head slot.
    base: u64,
    /// Small replies that came early, one behind the other; `Slot::Parked` points into it.
    parked: Vec<u8>,
    /// Bytes of `parked` that slots still point to.
    parked_live: usize,
    /// Bytes of early replies held on their own.
    held: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A reply broke off after its first bytes had left: nothing more may follow.
    Cut,
    /// The client is gone; what still comes for it is dropped.
    Closed,
}

#[derive(Debug)]
pub(super) enum Slot {
    Awaited,
    /// Awaited, and dropped when it comes.
    Muted,
    /// The head, being passed on piece by piece.
    Streaming,
    Parked {
        start: u32,
        len: u32,
    },
    Held(Bytes),
}

/// No request has this number.
const NOT_SAMPLED: u64 = u64::MAX;

/// Early replies up to this size share one buffer.
const PARKED_MAX: usize = 4 << 10;
/// Above this size the buffer of early replies is tidied, or given back.
const PARKED_KEPT: usize = 16 << 10;

impl Outbox {
    /// An empty one, whose readiness goes to `turn`.
    pub fn new(turn: Rc<Turn>) -> Self {
        let inner = Inner {
            ready: ByteQueue::default(),
            slots: VecDeque::new(),
            base: 0,
            parked: Vec::new(),
            parked_live: 0,
            held: 0,
            state: State::Open,
        };
        Self {
            inner: RefCell::new(inner),
            turn,
            marked: Cell::new(false),
            failures: Cell::new(0),
            command: Cell::new(u16::MAX),
            replies: Cell::new(Replies::On),
            charged: Cell::new(0),
            sampled: Cell::new(NOT_SAMPLED),
            streamed: Cell::new(0),
        }
    }

    /// The size of the reply to the request that is admitted next is to be told ([`Recipient::replied`]); false if that of another
    /// one is still awaited. If it is answered without a server nothing is told, and the next one may be meant.
    pub fn sample_next(&self) -> bool {
        let inner = self.inner.borrow();
        let (sampled, next) = (self.sampled.get(), inner.base + inner.slots.len() as u64);
        let is_free = sampled < inner.base || sampled >= next;
        if is_free {
            self.sampled.set(next);
        }
        is_free
    }

    #[cold]
    fn tell_size(&self, client: &Rc<dyn Recipient>, outcome: &Outcome<'_>) {
        self.sampled.set(NOT_SAMPLED);
        if let Outcome::Reply(reply) = outcome {
            client.replied(reply.as_slice().len() as u64);
        }
    }

    /// Admits one request; its reply is awaited in the returned slot.
    #[inline]
    pub fn admit(&self) -> u64 {
        let mut inner = self.inner.borrow_mut();
        if inner.slots.capacity() == 0 {
            inner.slots = self.turn.buffers.take_slots();
        }
        let slot = if self.is_answered() { Slot::Awaited } else { Slot::Muted };
        inner.slots.push_back(slot);
        inner.base + inner.slots.len() as u64 - 1
    }

    /// Admits a request and answers it at once, in its place behind those still awaited.
    pub fn answer(client: &Rc<dyn Recipient>, write: impl FnOnce(&mut Vec<u8>)) {
        let outbox = client.outbox();
        if !outbox.is_answered() {
            return;
        }
        let mut inner = outbox.inner.borrow_mut();
        if inner.slots.is_empty() {
            inner.ready.append_with(&outbox.turn.buffers, write);
            drop(inner);
            outbox.mark(Rc::clone(client));
        } else {
            let mut reply = Vec::new();
            write(&mut reply);
            inner.held += reply.len();
            inner.slots.push_back(Slot::Held(reply.into()));
        }
    }

    /// Admits one that is told its outcome whatever CLIENT REPLY says: subscriptions.
    pub fn admit_unmuted(&self) -> u64 {
        let mut inner = self.inner.borrow_mut();
        inner.slots.push_back(Slot::Awaited);
        inner.base + inner.slots.len() as u64 - 1
    }

    /// Delivers what isn't the reply to a request, in its place behind those still awaited: so a client gets no message before
    /// it is told that it is subscribed, and none inside of another reply. CLIENT REPLY doesn't mute it.
    pub fn push(client: &Rc<dyn Recipient>, bytes: Reply<'_>) {
        let outbox = client.outbox();
        let mut inner = outbox.inner.borrow_mut();
        if inner.state != State::Open {
            return;
        }
        if inner.slots.is_empty() {
            match bytes {
                Reply::Borrowed(bytes) => inner.ready.push_slice(bytes, &outbox.turn.buffers),
                Reply::Shared(bytes) => inner.ready.push_bytes(bytes),
            }
        } else {
            let bytes = bytes.into_bytes();
            inner.held += bytes.len();
            inner.slots.push_back(Slot::Held(bytes));
        }
        drop(inner);
        // Also when it must wait: the flush sees whether the client is past its bound.
        outbox.mark(Rc::clone(client));
    }

    /// CLIENT REPLY: from the next request on.
    pub fn set_replies(&self, replies: Replies) {
        self.replies.set(replies);
    }

    /// What CLIENT REPLY has said.
    pub fn replies(&self) -> Replies {
        self.replies.get()
    }

    /// Whether the request that is being admitted gets its reply.
    #[inline]
    fn is_answered(&self) -> bool {
        match self.replies.get() {
            Replies::On => true,
            Replies::Off => false,
            Replies::SkipNext => {
                self.replies.set(Replies::On);
                false
            }
        }
    }

    /// The outcome of request `seq`. For a client that is gone it is taken and dropped.
    #[inline]
    pub(super) fn settle(client: Rc<dyn Recipient>, seq: u64, outcome: Outcome<'_>) {
        let outbox = client.outbox();
        if outbox.sampled.get() == seq {
            outbox.tell_size(&client, &outcome);
        }
        let ready = match outcome {
            Outcome::Reply(reply) => outbox.inner.borrow_mut().fill(seq, reply, &outbox.turn),
            Outcome::Unsent(error) | Outcome::Unknown(error) => {
                outbox.failures.set(outbox.failures.get() + 1);
                let mut text = Vec::new();
                error.reply().encode(&mut text);
                outbox.inner.borrow_mut().fill(seq, Reply::Borrowed(&text), &outbox.turn)
            }
        };
        if ready {
            client.outbox().mark(Rc::clone(&client));
        }
    }

    /// Whether the reply to `seq` may now be passed on piece by piece: it is next, or will be dropped anyway.
    pub(super) fn begin_stream(&self, seq: u64) -> bool {
        let mut inner = self.inner.borrow_mut();
        match inner.state {
            State::Open if inner.base == seq && matches!(inner.slots[0], Slot::Awaited) => {
                inner.slots[0] = Slot::Streaming;
            }
            State::Open => return false,
            State::Cut | State::Closed => {}
        }
        true
    }

    pub(super) fn stream(client: &Rc<dyn Recipient>, bytes: Bytes) {
        let outbox = client.outbox();
        let mut inner = outbox.inner.borrow_mut();
        outbox.streamed.set(outbox.streamed.get() + bytes.len() as u64);
        if inner.state == State::Open {
            inner.ready.push_bytes(bytes);
            drop(inner);
            outbox.mark(Rc::clone(client));
        }
    }

    pub(super) fn end_stream(client: Rc<dyn Recipient>, seq: u64) {
        let outbox = client.outbox();
        let streamed = outbox.streamed.take();
        if outbox.sampled.get() == seq {
            outbox.sampled.set(NOT_SAMPLED);
            client.replied(streamed);
        }
        let mut inner = outbox.inner.borrow_mut();
        if inner.state == State::Open {
            debug_assert!(inner.base == seq && matches!(inner.slots[0], Slot::Streaming));
            inner.pop_head();
            inner.release_ready(&outbox.turn);
            drop(inner);
            outbox.mark(Rc::clone(&client));
        }
    }

    /// Writes the ready bytes. Called by the client's flush, once a turn.
    pub fn write_to(
        &self,
        write: impl FnMut(&[std::io::IoSlice<'_>]) -> std::io::Result<usize>,
    ) -> std::io::Result<Written> {
        self.marked.set(false);
        let mut inner = self.inner.borrow_mut();
        let written = inner.ready.write_to(write)?;
        if written == Written::Blocked {
            inner.ready.own_what_waits();
        } else {
            inner.ready.release(&self.turn.buffers);
            inner.give_back(&self.turn);
        }
        Ok(written)
    }

    /// The turn's list has been worked off without a write, because the socket is full.
    pub fn unmark(&self) {
        self.marked.set(false);
    }

    /// The client is gone: frees everything, and drops what still comes.
    pub fn close(&self) {
        let mut inner = self.inner.borrow_mut();
        inner.state = State::Closed;
        inner.ready.clear();
        inner.slots = VecDeque::new();
        inner.parked = Vec::new();
        (inner.parked_live, inner.held) = (0, 0);
        self.turn.buffers.account.change(self.charged.take(), 0);
    }

    /// Requests that are not answered yet, or whose answers wait for one before them.
    #[inline]
    pub fn pending(&self) -> usize {
        self.inner.borrow().slots.len()
    }

    /// Bytes of replies that have not left, early ones included.
    #[inline]
    pub fn unsent(&self) -> usize {
        let inner = self.inner.borrow();
        inner.ready.len() + inner.parked_live + inner.held
    }

    /// Charges [`Outbox::unsent`] to the worker's account, and returns it.
    #[inline]
    pub fn charge(&self) -> usize {
        let unsent = self.unsent();
        self.turn.buffers.account.change(self.charged.replace(unsent), unsent);
        unsent
    }

    /// Whether a reply broke off half-way: the client must be closed, when it has what came before.
    pub fn is_cut(&self) -> bool {
        self.inner.borrow().state == State::Cut
    }

    /// Whether all that will ever be delivered has left. What stands behind a reply that broke off won't be.
    pub fn is_delivered(&self) -> bool {
        let inner = self.inner.borrow();
        inner.ready.is_empty() && (inner.state == State::Cut || inner.slots.is_empty())
    }

    /// Tickets that are made from now on are for requests of the command with this index.
    #[inline]
    pub fn set_command(&self, command: u16) {
        self.command.set(command);
    }

    /// The index of the client's latest command; `u16::MAX` when there was none.
    #[inline]
    pub fn command(&self) -> u16 {
        self.command.get()
    }

    /// Takes the number of requests that failed with their server since the last call.
    pub fn take_failures(&self) -> u32 {
        self.failures.take()
    }

    #[inline]
    fn mark(&self, client: Rc<dyn Recipient>) {
        if !self.marked.replace(true) {
            self.turn.mark_client(client);
        }
    }
}

// === impl Inner ===

impl Inner {
    /// Fills slot `seq`; true if the client has to be looked at: bytes became ready, or a large reply is kept for it.
    #[inline]
    fn fill(&mut self, seq: u64, reply: Reply<'_>, turn: &Turn) -> bool {
        if self.state != State::Open {
            return false;
        }
        debug_assert!(seq >= self.base, "a slot is filled once");
        if seq > self.base {
            // A large one may be past what the client may leave unread: the flush sees to it.
            return self.park((seq - self.base) as usize, reply, &turn.buffers);
        }
        if matches!(self.slots[0], Slot::Streaming) {
            // The rest of this reply will never come, and its first bytes have left.
            self.state = State::Cut;
            return true;
        }
        match reply {
            _ if matches!(self.slots[0], Slot::Muted) => {}
            Reply::Borrowed(bytes) => self.ready.push_slice(bytes, &turn.buffers),
            Reply::Shared(bytes) => self.ready.push_bytes(bytes),
        }
        self.pop_head();
        self.release_ready(turn);
        true
    }

    #[inline]
    fn pop_head(&mut self) {
        self.slots.pop_front();
        self.base += 1;
    }

    /// Moves early replies that have become the head to the ready bytes.
    #[inline]
    fn release_ready(&mut self, turn: &Turn) {
        while let Some(head) = self.slots.front_mut() {
            match head {
                Slot::Awaited | Slot::Muted | Slot::Streaming => break,
                Slot::Parked { start, len } => {
                    let (start, len) = (*start as usize, *len as usize);
                    self.ready.push_slice(&self.parked[start..start + len], &turn.buffers);
                    self.parked_live -= len;
                    if self.parked_live == 0 {
                        self.parked.clear();
                    }
                }
                Slot::Held(bytes) => {
                    self.held -= bytes.len();
                    self.ready.push_bytes(std::mem::take(bytes));
                }
            }
            self.pop_head();
        }
    }

    /// Keeps an early reply; true if it is a large one.
    fn park(&mut self, slot: usize, reply: Reply<'_>, buffers: &BufferPool) -> bool {
        debug_assert!(matches!(self.slots[slot], Slot::Awaited | Slot::Muted), "a slot is filled once");
        self.slots[slot] = match reply {
            _ if matches!(self.slots[slot], Slot::Muted) => Slot::Parked { start: 0, len: 0 },
            Reply::Borrowed(bytes) if bytes.len() <= PARKED_MAX => {
                if self.parked.len() > PARKED_KEPT && self.parked_live < self.parked.len() / 2 {
                    self.tidy_parked();
                }
                if self.parked.capacity() == 0 {
                    self.parked = buffers.take();
                }
                let start = self.parked.len() as u32;
                self.parked.extend_from_slice(bytes);
                self.parked_live += bytes.len();
                Slot::Parked { start, len: bytes.len() as u32 }
            }
            reply => {
                let bytes = match reply {
                    Reply::Shared(bytes) => owned(bytes),
                    reply @ Reply::Borrowed(_) => reply.into_bytes(),
                };
                self.held += bytes.len();
                Slot::Held(bytes)
            }
        };
        matches!(self.slots[slot], Slot::Held(_))
    }

    /// Drops the bytes of early replies that have moved on, when they are more than half.
    fn tidy_parked(&mut self) {
        let mut tidy = Vec::with_capacity(self.parked_live * 2);
        for slot in &mut self.slots {
            if let Slot::Parked { start, len } = slot {
                let bytes = &self.parked[*start as usize..(*start + *len) as usize];
                *start = tidy.len() as u32;
                tidy.extend_from_slice(bytes);
            }
        }
        self.parked = tidy;
    }

    /// A client with nothing on its way owns no memory for it.
    #[inline]
    fn give_back(&mut self, turn: &Turn) {
        if self.slots.is_empty() {
            turn.buffers.give_slots(std::mem::take(&mut self.slots));
            if self.parked.capacity() > 0 {
                turn.buffers.give(std::mem::take(&mut self.parked));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::exchange::{BackendError, Cause, Flush, Ticket};

    struct Client {
        outbox: Outbox,
        sent: RefCell<Vec<u8>>,
    }

    impl Flush for Client {
        fn flush(&self) {
            let write = |parts: &[std::io::IoSlice<'_>]| {
                let mut sent = self.sent.borrow_mut();
                let before = sent.len();
                parts.iter().for_each(|part| sent.extend_from_slice(part));
                Ok(sent.len() - before)
            };
            self.outbox.write_to(write).unwrap();
        }
    }

    impl Recipient for Client {
        fn outbox(&self) -> &Outbox {
            &self.outbox
        }
    }

    fn client() -> (Rc<Turn>, Rc<Client>) {
        let turn = Rc::new(Turn::default());
        let client = Rc::new(Client { outbox: Outbox::new(Rc::clone(&turn)), sent: RefCell::default() });
        (turn, client)
    }

    fn ticket(client: &Rc<Client>) -> Ticket {
        Ticket::client(client.clone(), client.outbox.admit())
    }

    /// CLIENT REPLY OFF and SKIP.
    #[test]
    fn muted_replies_are_dropped_in_whatever_order_they_come() {
        let (turn, client) = client();
        let recipient: Rc<dyn Recipient> = client.clone();
        let a = ticket(&client);
        client.outbox.set_replies(Replies::SkipNext);
        let b = ticket(&client);
        let c = ticket(&client);
        client.outbox.set_replies(Replies::Off);
        Outbox::answer(&recipient, |out| out.push(b'!'));
        let [d, e] = [(); 2].map(|()| ticket(&client));
        client.outbox.set_replies(Replies::On);
        let f = ticket(&client);
        assert!(!b.begin_stream());
        for (ticket, text) in [(b, b"b"), (e, b"e"), (c, b"c"), (a, b"a"), (f, b"f"), (d, b"d")] {
            ticket.settle(Outcome::Reply(Reply::Borrowed(text)));
        }
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"acf");
        assert_eq!((client.outbox.pending(), client.outbox.unsent()), (0, 0));
    }

    /// B1: whatever order servers answer in, each request gets one reply, in the order of the requests.
    #[test]
    fn replies_leave_in_the_order_of_the_requests() {
        let (turn, client) = client();
        let [a, b, c] = [(); 3].map(|()| ticket(&client));
        let recipient: Rc<dyn Recipient> = client.clone();
        Outbox::answer(&recipient, |out| out.push(b'4'));
        c.settle(Outcome::Reply(Reply::Borrowed(b"3")));
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"");
        a.settle(Outcome::Reply(Reply::Borrowed(b"1")));
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"1", "B6: the ready prefix leaves at once");
        b.settle(Outcome::Reply(Reply::Shared(Bytes::from_static(b"2"))));
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"1234");
        assert_eq!((client.outbox.pending(), client.outbox.unsent()), (0, 0));
    }

    #[test]
    fn what_comes_for_a_client_that_is_gone_is_dropped() {
        let (turn, client) = client();
        let [a, b] = [(); 2].map(|()| ticket(&client));
        b.settle(Outcome::Reply(Reply::Borrowed(b"2")));
        client.outbox.close();
        a.settle(Outcome::Reply(Reply::Borrowed(b"1")));
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"");
        assert_eq!((client.outbox.pending(), client.outbox.unsent()), (0, 0));
    }

    #[test]
    fn a_large_reply_for_a_client_that_is_gone_is_not_gathered() {
        let (turn, client) = client();
        let ticket = ticket(&client);
        client.outbox.close();
        assert!(ticket.begin_stream());
        ticket.stream(Bytes::from_static(b"half"));
        assert_eq!(client.outbox.unsent(), 0);
        ticket.end_stream();
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"");
    }

    #[test]
    fn a_reply_that_breaks_off_cuts_its_client() {
        let (turn, client) = client();
        let [a, b] = [(); 2].map(|()| ticket(&client));
        assert!(!b.begin_stream(), "only the next reply may stream");
        assert!(a.begin_stream());
        a.stream(Bytes::from_static(b"half"));
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"half");
        a.settle(Outcome::Unknown(BackendError { cause: Cause::Reset, server: "s".into() }));
        assert!(client.outbox.is_cut() && client.outbox.is_delivered());
        b.settle(Outcome::Reply(Reply::Borrowed(b"2")));
        turn.drain();
        assert_eq!(*client.sent.borrow(), b"half", "nothing follows a broken reply");
    }

    proptest! {
        #[test]
        fn any_order_of_outcomes(order in Just((0..40usize).collect::<Vec<_>>()).prop_shuffle(), lens in proptest::collection::vec(1..6000usize, 40)) {
            let (turn, client) = client();
            let mut tickets: Vec<_> = (0..40).map(|_| Some(ticket(&client))).collect();
            let replies: Vec<Vec<u8>> = lens.iter().enumerate().map(|(i, len)| vec![i as u8; *len]).collect();
            for i in order {
                let reply = match i % 3 {
                    0 => Reply::Shared(replies[i].clone().into()),
                    _ => Reply::Borrowed(&replies[i]),
                };
                tickets[i].take().unwrap().settle(Outcome::Reply(reply));
                turn.drain();
            }
            prop_assert_eq!(&*client.sent.borrow(), &replies.concat());
            prop_assert_eq!((client.outbox.pending(), client.outbox.unsent()), (0, 0));
        }
    }
}
