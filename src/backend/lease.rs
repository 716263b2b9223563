//! A server connection that one client has for itself, and those that are kept for the next one.
//!
//! ```text
//!   Leases of a server ─┬─ kept: Link …      clean, idle, open; spare ones may be on their way
//!                       └─ Lease ── Link     state: Connecting(pipe) | Up(Conn) | Lost(cause)
//! ```
//!
//! A lease that is dropped closes its socket, whatever state the connection is in; only [`Lease::release`] puts it back, and only
//! if nothing is under way on it. It never connects a second time: what its client began there is gone with the connection.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::conn::{Conn, Ended};
use super::connect::{ConnectError, connect};
use super::pipe::{Pipe, Request};
use super::server::{Shared, Target};
use crate::exchange::{BackendError, Cause, Moment, Outcome, Ticket};
use crate::resp::ErrorReply;

/// A connection to one server, of one client alone.
pub struct Lease {
    home: Rc<Leases>,
    /// Taken when it goes back.
    link: Option<Rc<Link>>,
}

/// How many leases of one server there are in the whole process. Touched when one is taken and when it ends.
#[derive(Debug, Default)]
pub struct LeaseLimit {
    taken: AtomicU32,
    most: AtomicU32,
}

/// As many clients as `max_leases` allows have a connection to this server for themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeasesSpent {
    server: Rc<str>,
}

/// The leases of one server in one worker.
pub(super) struct Leases {
    pub(super) shared: Rc<Shared>,
    limit: Arc<LeaseLimit>,
    /// The one used last is at the back.
    kept: RefCell<VecDeque<Kept>>,
    /// Counts renewals: a connection from before one is not kept.
    era: Cell<u32>,
    closed: Cell<bool>,
}

struct Kept {
    link: Rc<Link>,
    since: Moment,
}

/// The connection of a lease.
struct Link {
    target: Target,
    era: u32,
    state: RefCell<State>,
    /// How much longer than the pool's timeout what was sent last may take; `None`: as long as it likes.
    patience: Cell<Option<Duration>>,
    /// Wakes the driver when nobody wants the connection any more.
    wake: Notify,
}

enum State {
    /// On its way; requests wait in the pipe.
    Connecting(Pipe),
    /// In use, or kept.
    Up(Rc<Conn>),
    /// For good.
    Lost(Cause),
}

/// Most idle connections kept for each server and worker: as many clients can be in a transaction at the same moment without
/// a new connection.
const MOST_KEPT: usize = 64;

/// Connections opened beside one that a client needs when none is kept, so that the next clients at the same moment find one:
/// how many transactions overlap is chance, and the seldom case must not cost a connection each time.
const SPARE: usize = 3;

/// A connection that nobody wanted for so long is closed when the next one is taken or comes back, but for the spare ones.
const KEPT_FOR: Duration = Duration::from_secs(60);

// === impl Lease ===

impl Lease {
    /// Sends a request; its reply must come within the pool's timeout.
    pub fn send(&self, request: Request<'_>, ticket: Ticket) {
        self.send_patiently(request, ticket, Some(Duration::ZERO));
    }

    /// Sends a request that asks the server to wait for so long; `None`: without end. The pool's timeout comes on top.
    pub fn send_patiently(&self, request: Request<'_>, ticket: Ticket, wait: Option<Duration>) {
        let Some(link) = &self.link else {
            return ticket.settle(Outcome::Unsent(self.error(Cause::Shutdown)));
        };
        link.patience.set(wait);
        let shared = &self.home.shared;
        let cause = match &mut *link.state.borrow_mut() {
            State::Up(conn) => {
                conn.be_patient(wait);
                return conn.send(request, ticket);
            }
            State::Connecting(pipe) => {
                let now = shared.turn.now(Instant::now);
                let len = pipe.push(request, ticket, now, &shared.turn.buffers);
                shared.count_request(len);
                return shared.show_queues(pipe);
            }
            State::Lost(cause) => *cause,
        };
        ticket.settle(Outcome::Unsent(self.error(cause)));
    }

    /// Whether a reply is awaited on it.
    pub fn is_busy(&self) -> bool {
        self.link.as_ref().is_some_and(|link| match &*link.state.borrow() {
            State::Connecting(pipe) => !pipe.is_idle(),
            State::Up(conn) => !conn.is_idle(),
            State::Lost(_) => false,
        })
    }

    /// Why there is no connection any more; what its client began on it is gone.
    pub fn lost(&self) -> Option<BackendError> {
        let link = self.link.as_ref()?;
        match &*link.state.borrow() {
            State::Lost(cause) => Some(self.error(*cause)),
            State::Connecting(_) | State::Up(_) => None,
        }
    }

    /// Puts the connection back for the next client. The caller answers for what the replies said: no transaction is open on it,
    /// nothing is watched. One that is lost, or on which anything is under way, is closed instead.
    pub fn release(mut self) {
        if let Some(link) = self.link.take_if(|link| link.is_clean()) {
            self.home.keep(link);
        }
    }

    /// The server in words.
    pub fn server(&self) -> &Rc<str> {
        &self.home.shared.label
    }

    pub(super) fn is_of(&self, leases: &Rc<Leases>) -> bool {
        Rc::ptr_eq(&self.home, leases)
    }

    fn error(&self, cause: Cause) -> BackendError {
        self.home.shared.error(cause)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.close(&self.home.shared);
        }
        self.home.limit.leave();
        self.home.shared.stats.leases.sub(1);
    }
}

// === impl LeaseLimit ===

impl LeaseLimit {
    /// None taken, `most` at most.
    pub fn new(most: u32) -> Self {
        Self { taken: AtomicU32::new(0), most: AtomicU32::new(most) }
    }

    /// Another limit from now on.
    pub fn set_most(&self, most: u32) {
        self.most.store(most, Ordering::Relaxed);
    }

    fn enter(&self) -> bool {
        let room = self.taken.fetch_add(1, Ordering::Relaxed) < self.most.load(Ordering::Relaxed);
        if !room {
            self.leave();
        }
        room
    }

    fn leave(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

// === impl LeasesSpent ===

impl LeasesSpent {
    /// The answer to the client.
    pub fn reply(&self) -> ErrorReply {
        ErrorReply::max_leases(&self.server)
    }
}

// === impl Leases ===

impl Leases {
    pub(super) fn new(shared: Rc<Shared>, limit: Arc<LeaseLimit>) -> Rc<Self> {
        Rc::new(Self { shared, limit, kept: RefCell::default(), era: Cell::new(0), closed: Cell::new(false) })
    }

    /// A kept connection, or a new one.
    pub(super) fn take(self: &Rc<Self>, target: Target) -> Result<Lease, LeasesSpent> {
        if !self.limit.enter() {
            self.shared.stats.leases_refused.add(1);
            return Err(LeasesSpent { server: Rc::clone(&self.shared.label) });
        }
        self.shared.stats.leases.add(1);
        let link = self.take_kept(target).unwrap_or_else(|| {
            self.open_spare(target);
            self.open(target)
        });
        self.close_old();
        Ok(Lease { home: Rc::clone(self), link: Some(link) })
    }

    /// Closes what is kept; what comes back later is closed, too.
    pub(super) fn close(&self) {
        self.closed.set(true);
        let kept = self.kept.take();
        kept.iter().for_each(|kept| kept.link.close(&self.shared));
    }

    /// Closes what is kept, and what clients have now when it comes back: later ones get new connections. How many were closed.
    pub(super) fn renew(&self) -> usize {
        self.era.set(self.era.get().wrapping_add(1));
        let kept = self.kept.take();
        kept.iter().for_each(|kept| kept.link.close(&self.shared));
        kept.len()
    }

    /// One that broke in this turn of the loop is passed over: its driver is about to end it. One that is still on its way
    /// will do when there is no other.
    fn take_kept(&self, target: Target) -> Option<Rc<Link>> {
        let mut kept = self.kept.borrow_mut();
        let last = |will_do: fn(&Link) -> bool| {
            kept.iter().rposition(|kept| kept.link.target == target && will_do(&kept.link))
        };
        let at = last(Link::is_clean).or_else(|| last(Link::is_connecting))?;
        kept.remove(at).map(|kept| kept.link)
    }

    /// Not while the server is failing: each attempt would fail, too.
    fn open_spare(self: &Rc<Self>, target: Target) {
        let room = MOST_KEPT.saturating_sub(self.kept.borrow().len());
        if self.closed.get() || self.shared.stats.failed_attempts.value() > 0 {
            return;
        }
        for _ in 0..SPARE.min(room) {
            let link = self.open(target);
            let since = self.shared.turn.now(Instant::now);
            self.kept.borrow_mut().push_front(Kept { link, since });
        }
    }

    fn open(self: &Rc<Self>, target: Target) -> Rc<Link> {
        let link = Rc::new(Link {
            target,
            era: self.era.get(),
            state: RefCell::new(State::Connecting(Pipe::default())),
            patience: Cell::new(Some(Duration::ZERO)),
            wake: Notify::new(),
        });
        tokio::task::spawn_local(Rc::clone(&link).drive(Rc::clone(self)));
        link
    }

    fn keep(&self, link: Rc<Link>) {
        let is_old = link.era != self.era.get();
        if is_old || self.closed.get() || self.kept.borrow().len() >= MOST_KEPT {
            return link.close(&self.shared);
        }
        let since = self.shared.turn.now(Instant::now);
        self.kept.borrow_mut().push_back(Kept { link, since });
        self.close_old();
    }

    /// Those that were used last are taken first, so the old ones are in front.
    fn close_old(&self) {
        let now = self.shared.turn.now(Instant::now);
        let is_old = |kept: &Kept| now.since(kept.since) > KEPT_FOR;
        loop {
            let mut kept = self.kept.borrow_mut();
            if kept.len() <= SPARE || !kept.front().is_some_and(is_old) {
                return;
            }
            let old = kept.pop_front();
            drop(kept);
            old.into_iter().for_each(|old| old.link.close(&self.shared));
        }
    }
}

// === impl Link ===

impl Link {
    /// Connects and serves, once.
    async fn drive(self: Rc<Self>, home: Rc<Leases>) {
        let since = Instant::now();
        let cause = match self.establish(&home.shared).await {
            Some(Ok(conn)) => match conn.serve().await {
                Ended::Late | Ended::Relieved => Cause::ResponseTimeout,
                Ended::Over(cause) => cause,
            },
            Some(Err(error)) => {
                let again = home.shared.stats.failed_attempts.value() > 0;
                home.shared.connect_failed(self.target, &error, since, again);
                error.cause
            }
            None => Cause::Shutdown,
        };
        home.kept.borrow_mut().retain(|kept| !Rc::ptr_eq(&kept.link, &self));
        self.end(cause, &home.shared);
    }

    /// `None`: nobody wants it any more.
    async fn establish(&self, shared: &Rc<Shared>) -> Option<Result<Rc<Conn>, ConnectError>> {
        let settings = &shared.settings;
        let connected = tokio::select! {
            connected = connect(settings, self.target, settings.connect_limit()) => connected,
            () = self.wake.notified() => return None,
        };
        let stream = match connected {
            Ok(stream) => stream,
            Err(error) => return Some(Err(error)),
        };
        let mut state = self.state.borrow_mut();
        let State::Connecting(pipe) = &mut *state else { return None };
        let conn = Conn::new(stream, std::mem::take(pipe), self.target.protocol, Rc::clone(shared));
        conn.be_patient(self.patience.get());
        conn.mark();
        *state = State::Up(Rc::clone(&conn));
        Some(Ok(conn))
    }

    fn is_clean(&self) -> bool {
        matches!(&*self.state.borrow(), State::Up(conn) if conn.is_clean())
    }

    /// Whether it is on its way, and nothing waits for it.
    fn is_connecting(&self) -> bool {
        matches!(&*self.state.borrow(), State::Connecting(pipe) if pipe.is_idle())
    }

    /// The connection is over: everything on it fails.
    fn end(&self, cause: Cause, shared: &Shared) {
        let mut state = self.state.borrow_mut();
        if matches!(*state, State::Lost(_)) {
            return;
        }
        let last = std::mem::replace(&mut *state, State::Lost(cause));
        drop(state);
        match last {
            State::Connecting(mut pipe) => {
                let error = shared.error(cause);
                pipe.take_all().into_iter().for_each(|ticket| ticket.settle(Outcome::Unsent(error.clone())));
                shared.show_queues(&mut pipe);
            }
            State::Up(conn) => {
                if cause != Cause::Shutdown && !conn.is_idle() {
                    conn.count_failure();
                }
                conn.close_now(cause);
            }
            State::Lost(_) => {}
        }
    }

    /// Nobody wants it any more. The socket is closed before this returns: a server that is blocked for it must not take another
    /// client's push for it.
    fn close(&self, shared: &Shared) {
        self.end(Cause::Shutdown, shared);
        self.wake.notify_one();
    }
}
