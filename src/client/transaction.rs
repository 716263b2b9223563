//! Transactions and blocking calls: what a client does on a connection of its own.

use std::cell::Cell;
use std::rc::Rc;

use bytes::Bytes;

use super::incoming::Incoming;
use super::mode::Mode;
use super::session::{Session, Verdict, refuse};
use crate::backend::{Lease, Request, Target};
use crate::command::{CallError, Handling, Local, Pin, Transaction};
use crate::dispatch::{Pool, Route};
use crate::exchange::{Outbox, Outcome, Recipient, Reply, Settle, Ticket};
use crate::resp::{ErrorReply, encode};
use crate::router::Plan;
use crate::topology::ServerIx;

/// A transaction that is being put together.
pub(super) struct Multi {
    /// The database and protocol of the client.
    target: Target,
    /// Taken when the first key says from which server.
    lease: Option<Lease>,
    /// Commands without a key, until a key says where they go; for their client they are queued.
    held: Vec<Bytes>,
    /// What EXEC will be answered with, if it isn't going to be executed.
    spoiled: Option<ErrorReply>,
}

/// Most bytes of commands without a key that are held.
const MOST_HELD: usize = 64 << 10;

// === impl Session ===

impl Session {
    /// A step of a transaction of a client that is in none.
    pub(super) fn begin_or_refuse(
        &mut self,
        step: Transaction,
        pool: &Pool,
        recipient: &Rc<dyn Recipient>,
    ) -> Verdict {
        match step {
            Transaction::Multi => self.mode = Mode::Multi(Box::new(Multi::new(self.target))),
            Transaction::Unwatch => {}
            Transaction::Exec => return refuse(ErrorReply::without_multi("EXEC"), pool, recipient),
            Transaction::Discard => return refuse(ErrorReply::without_multi("DISCARD"), pool, recipient),
        }
        Outbox::answer(recipient, |out| encode::simple(out, "OK"));
        Verdict::Done
    }

    /// A call that needs a connection of its own.
    pub(super) fn pin(&mut self, server: ServerIx, pin: Pin, incoming: Incoming<'_>) -> Verdict {
        if !incoming.is_through(server, self.target) {
            return Verdict::Fenced;
        }
        let lease = match incoming.pool().lease(server, self.target) {
            Ok(lease) => lease,
            Err(spent) => return incoming.refuse(spent.reply()),
        };
        match pin {
            Pin::Watch => {
                incoming.pass(&lease);
                self.mode = Mode::Watching(lease);
                Verdict::Done
            }
            Pin::Block(at) => {
                let wait = incoming.call.wait(at);
                incoming.pass_patiently(&lease, wait);
                self.mode = Mode::Blocked { lease, watching: false };
                Verdict::Held
            }
        }
    }

    /// A call of a client that is in the middle of something.
    pub(super) fn handle_in_mode(&mut self, plan: Plan, incoming: Incoming<'_>) -> Verdict {
        if !self.mode.go_on() {
            return Verdict::Fenced;
        }
        if let Some(verdict) = self.while_subscribed(&plan, &incoming) {
            return verdict;
        }
        let verdict = match &mut self.mode {
            Mode::Multi(_) => self.handle_in_multi(plan, incoming),
            Mode::Watching(_) => self.handle_watching(plan, incoming),
            Mode::Normal | Mode::Leaving(..) | Mode::Waiting(_) | Mode::Blocked { .. } => {
                self.carry_out(plan, incoming)
            }
        };
        self.note_protocol();
        verdict
    }

    /// Answers what is no call; inside MULTI it spoils the transaction, and an EXEC with arguments ends it.
    pub(super) fn not_queued(
        &mut self,
        error: &CallError<'_>,
        pool: &Pool,
        recipient: &Rc<dyn Recipient>,
    ) -> Verdict {
        let reply = error.reply();
        let Mode::Multi(multi) = &mut self.mode else { return refuse(reply, pool, recipient) };
        match error {
            CallError::WrongArity(row)
                if row.usual_handling() == Handling::Transaction(Transaction::Exec) =>
            {
                let instead = ErrorReply::exec_abort_because(&reply);
                self.end_transaction(b"DISCARD", Some(instead), pool, recipient)
            }
            _ => {
                multi.spoil(ErrorReply::exec_abort);
                refuse(reply, pool, recipient)
            }
        }
    }

    fn handle_watching(&mut self, plan: Plan, incoming: Incoming<'_>) -> Verdict {
        let Mode::Watching(lease) = &self.mode else { return self.carry_out(plan, incoming) };
        let pool = incoming.pool();
        let is_lost = lease.lost().is_some();
        let is_here = |server| pool.has_leased(server, lease);
        match plan {
            Plan::Transaction(Transaction::Multi) if is_lost => {
                let spoiled = Some(ErrorReply::exec_abort_lost(lease.server()));
                self.mode = Mode::Multi(Box::new(Multi { spoiled, ..Multi::new(self.target) }));
                incoming.answer("OK")
            }
            Plan::Transaction(Transaction::Multi) => {
                incoming.pass(lease);
                let multi = Multi::new(self.target);
                self.mode.turn(|lease| Mode::Multi(Box::new(Multi { lease: Some(lease), ..multi })));
                Verdict::Done
            }
            Plan::Transaction(Transaction::Unwatch) if is_lost => {
                self.mode.leave();
                incoming.answer("OK")
            }
            Plan::Transaction(Transaction::Unwatch) => {
                let farewell = Farewell::send(lease, b"UNWATCH", incoming.recipient, None);
                self.mode.turn(|lease| Mode::Leaving(lease, farewell));
                Verdict::Held
            }
            // The keys that were watched are not any more: the EXEC to come fails whatever is watched now.
            Plan::Pin { pin: Pin::Watch, .. } if is_lost => incoming.answer("OK"),
            Plan::Pin { server, .. } if !is_here(server) => {
                incoming.refuse(ErrorReply::cross_server_watching(lease.server()))
            }
            Plan::Pin { server, .. } | Plan::One(server) if is_here(server) && !is_lost => {
                if !incoming.is_through(server, self.target) {
                    return Verdict::Fenced;
                }
                if let Plan::Pin { pin: Pin::Block(at), .. } = plan {
                    let wait = incoming.call.wait(at);
                    incoming.pass_patiently(lease, wait);
                    self.mode.turn(|lease| Mode::Blocked { lease, watching: true });
                    return Verdict::Held;
                }
                incoming.pass(lease);
                Verdict::Done
            }
            Plan::Wait | Plan::Pin { .. } => incoming.refuse(ErrorReply::not_while_watching()),
            // A part may be for the server of the lease, and must not overtake what was sent there.
            Plan::Split { .. } | Plan::All { .. } | Plan::Scan(_) if lease.is_busy() => Verdict::Fenced,
            plan => self.carry_out(plan, incoming),
        }
    }

    fn handle_in_multi(&mut self, plan: Plan, incoming: Incoming<'_>) -> Verdict {
        let Mode::Multi(multi) = &mut self.mode else { return self.carry_out(plan, incoming) };
        match plan {
            Plan::Transaction(Transaction::Exec) => self.exec(incoming),
            Plan::Transaction(Transaction::Discard) => self.discard(incoming),
            Plan::Transaction(Transaction::Multi) => incoming.refuse(ErrorReply::multi_nested()),
            Plan::Pin { pin: Pin::Watch, .. } => incoming.refuse(ErrorReply::watch_inside_multi()),
            Plan::Local(Local::Quit | Local::Reset) => self.carry_out(plan, incoming),
            Plan::Wait
            | Plan::Transaction(Transaction::Unwatch)
            | Plan::Local(Local::Echo | Local::Command(_)) => multi.queue_anywhere(incoming),
            Plan::Local(Local::Ping) if incoming.pool().config().ping == crate::config::Ping::Reply => {
                multi.queue_anywhere(incoming)
            }
            Plan::One(server) if incoming.call.row.usual_handling() == Handling::Publish => {
                multi.queue(server, incoming)
            }
            Plan::One(_) if incoming.call.keys().is_ok_and(|keys| keys.is_empty()) => {
                multi.queue_anywhere(incoming)
            }
            Plan::One(server) | Plan::Pin { server, .. } => multi.queue(server, incoming),
            Plan::Split { .. } => {
                multi.spoil(ErrorReply::exec_abort);
                incoming.refuse(ErrorReply::cross_server())
            }
            Plan::Refuse(refusal) => {
                multi.spoil(ErrorReply::exec_abort);
                incoming.refuse(refusal.reply(incoming.call, &incoming.pool().config().name))
            }
            Plan::Local(Local::Ping) => {
                multi.spoil(ErrorReply::exec_abort);
                self.carry_out(plan, incoming)
            }
            // One server executes a transaction.
            Plan::Local(_) | Plan::All { .. } | Plan::Scan(_) | Plan::Subscribe(_) | Plan::Unsubscribe(_) => {
                multi.spoil(ErrorReply::exec_abort);
                incoming.refuse(ErrorReply::not_in_transaction())
            }
        }
    }

    fn exec(&mut self, incoming: Incoming<'_>) -> Verdict {
        let Mode::Multi(multi) = &mut self.mode else { return Verdict::Done };
        multi.look_for_loss();
        if let Some(why) = multi.spoiled.take() {
            return self.end_transaction(b"DISCARD", Some(why), incoming.pool(), incoming.recipient);
        }
        if multi.lease.is_none() && multi.held.is_empty() {
            self.mode.leave();
            Outbox::answer(incoming.recipient, |out| encode::array(out, 0));
            return Verdict::Done;
        }
        if multi.lease.is_none() {
            let Some(server) = incoming.pool().first_live() else {
                self.mode.leave();
                return incoming.refuse(ErrorReply::no_server(&incoming.pool().config().name));
            };
            match multi.begin(server, &incoming) {
                Ok(true) => {}
                Ok(false) => return Verdict::Fenced,
                Err(error) => {
                    self.mode.leave();
                    return incoming.refuse(error);
                }
            }
        }
        self.end_transaction(b"EXEC", None, incoming.pool(), incoming.recipient)
    }

    fn discard(&mut self, incoming: Incoming<'_>) -> Verdict {
        self.end_transaction(b"DISCARD", None, incoming.pool(), incoming.recipient)
    }

    /// Sends `name`, if there is anybody to send it to; the client gets `instead`, or else what the server says.
    fn end_transaction(
        &mut self,
        name: &'static [u8],
        instead: Option<ErrorReply>,
        pool: &Pool,
        recipient: &Rc<dyn Recipient>,
    ) -> Verdict {
        let Mode::Multi(multi) = std::mem::replace(&mut self.mode, Mode::Normal) else {
            return Verdict::Done;
        };
        match (multi.lease.filter(|lease| lease.lost().is_none()), instead) {
            (Some(lease), instead) => {
                let farewell = Farewell::send(&lease, name, recipient, instead);
                self.mode = Mode::Leaving(lease, farewell);
                Verdict::Held
            }
            (None, Some(instead)) => refuse(instead, pool, recipient),
            (None, None) => {
                Outbox::answer(recipient, |out| encode::simple(out, "OK"));
                Verdict::Done
            }
        }
    }
}

// === impl Incoming ===

impl Incoming<'_> {
    /// Whether the traffic of its client for `server` may move to a lease.
    fn is_through(&self, server: ServerIx, target: Target) -> bool {
        let route = Route { client: self.client.id(), target };
        self.pool().is_through(server, self.recipient, route).is_ok()
    }
}

// === impl Mode ===

impl Mode {
    /// What becomes of a client that watches keys.
    fn turn(&mut self, into: impl FnOnce(Lease) -> Mode) {
        *self = match std::mem::replace(self, Mode::Normal) {
            Mode::Watching(lease) => into(lease),
            other => other,
        };
    }
}

// === impl Multi ===

impl Multi {
    /// Nothing is queued yet.
    fn new(target: Target) -> Self {
        Self { target, lease: None, held: Vec::new(), spoiled: None }
    }

    /// EXEC is going to fail; the first reason counts.
    pub(super) fn spoil(&mut self, why: impl FnOnce() -> ErrorReply) {
        self.spoiled.get_or_insert_with(why);
    }

    /// A lost connection spoils the transaction.
    fn look_for_loss(&mut self) {
        if let Some(lease) = self.lease.as_ref().filter(|lease| lease.lost().is_some()) {
            let server = Rc::clone(lease.server());
            self.spoil(|| ErrorReply::exec_abort_lost(&server));
        }
    }

    /// Queues a command with keys of `server`.
    fn queue(&mut self, server: ServerIx, incoming: Incoming<'_>) -> Verdict {
        self.look_for_loss();
        match &self.lease {
            Some(lease) if !incoming.pool().has_leased(server, lease) => {
                self.spoil(ErrorReply::exec_abort);
                return incoming.refuse(ErrorReply::cross_server());
            }
            Some(_) => {}
            None if self.spoiled.is_some() => return incoming.answer("QUEUED"),
            None => match self.begin(server, &incoming) {
                Ok(true) => {}
                Ok(false) => return Verdict::Fenced,
                Err(error) => {
                    self.spoil(ErrorReply::exec_abort);
                    return incoming.refuse(error);
                }
            },
        }
        if !incoming.is_through(server, self.target) {
            return Verdict::Fenced;
        }
        self.pass(incoming)
    }

    /// Queues a command that any server can execute.
    fn queue_anywhere(&mut self, incoming: Incoming<'_>) -> Verdict {
        self.look_for_loss();
        if self.lease.is_some() {
            return self.pass(incoming);
        }
        if self.spoiled.is_none() {
            let raw = incoming.call.args.raw();
            if self.held.iter().map(Bytes::len).sum::<usize>() + raw.len() > MOST_HELD {
                self.spoil(ErrorReply::exec_abort);
                return incoming.refuse(ErrorReply::too_much_held());
            }
            self.held.push(Bytes::copy_from_slice(raw));
        }
        incoming.answer("QUEUED")
    }

    fn pass(&self, incoming: Incoming<'_>) -> Verdict {
        if let Some(lease) = &self.lease {
            incoming.pass(lease);
        }
        Verdict::Done
    }

    /// Takes a connection to `server` and sends what was held. False: the client's requests on the shared connection come first.
    fn begin(&mut self, server: ServerIx, incoming: &Incoming<'_>) -> Result<bool, ErrorReply> {
        if !incoming.is_through(server, self.target) {
            return Ok(false);
        }
        let lease = incoming.pool().lease(server, self.target).map_err(|spent| spent.reply())?;
        let unheard = Unheard::of(incoming.recipient);
        Incoming::send(&lease, b"MULTI", Ticket::part(unheard.clone(), 0));
        for held in self.held.drain(..) {
            lease.send(Request::Borrowed(&held), Ticket::part(unheard.clone(), 0));
        }
        self.lease = Some(lease);
        Ok(true)
    }
}

/// Takes the replies to what its client has been told to be queued. What is wrong with a queued command, EXEC says.
pub(super) struct Unheard(Rc<dyn Recipient>);

impl Unheard {
    pub(super) fn of(client: &Rc<dyn Recipient>) -> Rc<Self> {
        Rc::new(Self(Rc::clone(client)))
    }
}

impl Settle for Unheard {
    fn settle(&self, _: u32, _: Outcome<'_>) {}

    fn client(&self) -> &Rc<dyn Recipient> {
        &self.0
    }
}

/// The reply to the last command of a transaction: it proves that nothing is left of it on its connection.
pub(super) struct Farewell {
    client: Rc<dyn Recipient>,
    whole: Cell<Option<Ticket>>,
    /// The client gets this instead of what the server says.
    instead: Cell<Option<ErrorReply>>,
    clean: Cell<bool>,
}

impl Farewell {
    fn send(lease: &Lease, name: &[u8], client: &Rc<dyn Recipient>, instead: Option<ErrorReply>) -> Rc<Self> {
        let this = Rc::new(Self {
            client: Rc::clone(client),
            whole: Cell::new(Some(Ticket::client(Rc::clone(client), client.outbox().admit()))),
            instead: Cell::new(instead),
            clean: Cell::new(false),
        });
        Incoming::send(lease, name, Ticket::part(this.clone(), 0));
        this
    }

    /// Whether the server has said that the transaction is over.
    pub(super) fn was_clean(&self) -> bool {
        self.clean.get()
    }
}

impl Settle for Farewell {
    fn settle(&self, _: u32, outcome: Outcome<'_>) {
        if let Outcome::Reply(reply) = &outcome {
            self.clean.set(ends_transaction(reply.as_slice()));
        }
        let Some(whole) = self.whole.take() else { return };
        match self.instead.take() {
            Some(error) => {
                let mut text = Vec::new();
                error.encode(&mut text);
                whole.settle(Outcome::Reply(Reply::Borrowed(&text)));
            }
            None => whole.settle(outcome),
        }
    }

    fn client(&self) -> &Rc<dyn Recipient> {
        &self.client
    }
}

/// Results or null of EXEC, OK of DISCARD and UNWATCH; of errors only EXECABORT says that the transaction is gone.
fn ends_transaction(reply: &[u8]) -> bool {
    matches!(reply.first(), Some(b'*' | b'_' | b'+')) || reply.starts_with(b"-EXECABORT")
}
