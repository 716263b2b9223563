//! A place for one connection to a server, which connects, serves and reconnects.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::time::sleep;

use super::backoff::Backoff;
use super::conn::{Conn, Ended};
use super::connect::{ConnectError, connect};
use super::pipe::{Pipe, Request};
use super::server::{Shared, Target};
use crate::exchange::{Cause, Outcome, Recipient, Ticket};

/// One of a server's connections, whatever socket it has at the moment.
pub struct Lane {
    shared: Rc<Shared>,
    link: RefCell<Link>,
    /// What takes no new requests any more, and delivers what is due.
    retiring: RefCell<Vec<Retiring>>,
    /// Clients (their addresses) that are known to have nothing outstanding on any of those: since they take no new
    /// requests, that stays so, and a FIFO is searched at most once for each.
    passed: RefCell<HashSet<usize>>,
    /// Wakes the driver out of its wait: first demand, or the end.
    wake: Notify,
    started: Cell<bool>,
    target: Target,
    number: u64,
}

/// A place of older requests to the same server.
enum Retiring {
    /// A connection of this lane that is late with a reply, or whose place another one has taken.
    Late(Rc<Conn>),
    /// A lane to the same server as it was configured before.
    Former(Rc<Lane>),
}

enum Link {
    /// Nobody has asked for it yet.
    Idle,
    /// On its way; requests wait in the pipe.
    Connecting(Pipe),
    /// In use.
    Up(Rc<Conn>),
    /// The last attempt failed: requests fail at once while the driver keeps trying.
    Down(Cause),
    /// For good.
    Closed,
}

/// The client still has requests outstanding on another connection to this server (an older one, or the shared one while it
/// needs one of its own): sending more now could overtake them. Its later requests wait until those have their outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fenced;

/// A connection that lasted so long was a good one, even if nobody asked for anything: servers close idle ones.
const STEADY: Duration = Duration::from_secs(1);

impl Lane {
    pub(super) fn new(shared: Rc<Shared>, target: Target, number: u64) -> Rc<Self> {
        Rc::new(Self {
            shared,
            link: RefCell::new(Link::Idle),
            retiring: RefCell::default(),
            passed: RefCell::default(),
            wake: Notify::new(),
            started: Cell::new(false),
            target,
            number,
        })
    }

    /// Whether `client` may send to this lane now.
    #[inline]
    pub fn admits(&self, client: &Rc<dyn Recipient>) -> Result<(), Fenced> {
        let retiring = self.retiring.borrow();
        if retiring.is_empty() {
            return Ok(());
        }
        let address = Rc::as_ptr(client).addr();
        if self.passed.borrow().contains(&address) {
            return Ok(());
        }
        if retiring.iter().any(|one| one.awaits(client)) {
            return Err(Fenced);
        }
        self.passed.borrow_mut().insert(address);
        Ok(())
    }

    /// Connections to this server that were lost since the start: when the number has changed, it may have been restarted, and
    /// what it knew may be gone.
    pub fn epoch(&self) -> u64 {
        let stats = &self.shared.stats;
        stats.server_eof.value() + stats.server_err.value() + stats.server_timedout.value()
    }

    /// Whether all that `client` has sent to this lane has its outcome, so that what it sends next may take another connection.
    pub fn is_through(&self, client: &Rc<dyn Recipient>) -> Result<(), Fenced> {
        if self.awaits(client) { Err(Fenced) } else { Ok(()) }
    }

    /// Sends a request, at the end of this turn or when the connection is there. Settles the ticket at once if
    /// the server is known to be down.
    #[inline]
    pub fn send(self: &Rc<Self>, request: Request<'_>, ticket: Ticket) {
        let mut link = self.link.borrow_mut();
        if let Link::Idle = *link {
            *link = Link::Connecting(Pipe::default());
            self.start();
        }
        let refused = match &mut *link {
            Link::Up(conn) if self.takes(conn.unwritten()) => return conn.send(request, ticket),
            Link::Connecting(pipe) if self.takes(pipe.unwritten()) => {
                let shared = &self.shared;
                let now = shared.turn.now(Instant::now);
                let len = pipe.push(request, ticket, now, &shared.turn.buffers);
                shared.count_request(len);
                shared.show_queues(pipe);
                return;
            }
            Link::Up(_) | Link::Connecting(_) => Cause::QueueFull,
            Link::Down(cause) => *cause,
            Link::Idle | Link::Closed => Cause::Shutdown,
        };
        drop(link);
        ticket.settle(Outcome::Unsent(self.shared.error(refused)));
    }

    /// Whether a connection takes a request behind so many bytes that wait.
    #[inline]
    fn takes(&self, unwritten: usize) -> bool {
        let limit = &self.shared.settings.queue;
        if !limit.is_met(unwritten) {
            return true;
        }
        self.shared.stats.over_server_queue.add(1);
        limit.only_counts()
    }

    /// Opens the connection if nobody has yet.
    pub(super) fn demand(self: &Rc<Self>) {
        let mut link = self.link.borrow_mut();
        if let Link::Idle = *link {
            *link = Link::Connecting(Pipe::default());
            self.start();
        }
    }

    /// Ends it for good: what is queued or awaited fails.
    pub(super) fn close(&self) {
        let link = std::mem::replace(&mut *self.link.borrow_mut(), Link::Closed);
        match link {
            Link::Connecting(pipe) => self.fail_unsent(pipe, Cause::Shutdown),
            Link::Up(conn) => conn.abort(Cause::Shutdown),
            Link::Idle | Link::Down(_) | Link::Closed => {}
        }
        for one in self.retiring.take() {
            if let Retiring::Late(conn) = one {
                conn.abort(Cause::Shutdown);
            }
        }
        self.wake.notify_one();
    }

    /// Another connection takes the place of the present one, which still delivers what is due. Whether there is one.
    pub(super) fn renew(&self) -> bool {
        match &*self.link.borrow() {
            Link::Up(conn) => {
                conn.relieve();
                true
            }
            Link::Idle | Link::Connecting(_) | Link::Down(_) | Link::Closed => false,
        }
    }

    /// Clients with requests outstanding on `former` wait for those: what they send here could overtake them.
    pub(super) fn stand_behind(&self, former: &Rc<Self>) {
        self.retiring.borrow_mut().push(Retiring::Former(Rc::clone(former)));
        self.passed.borrow_mut().clear();
    }

    /// Nobody waits for those lanes any more that have nothing outstanding.
    pub(super) fn forget_former(&self) {
        self.retiring.borrow_mut().retain(|one| match one {
            Retiring::Late(_) => true,
            Retiring::Former(lane) => !lane.is_idle(),
        });
        if self.retiring.borrow().is_empty() {
            self.passed.take();
        }
    }

    /// Whether nothing is outstanding that somebody waits for.
    pub(super) fn is_idle(&self) -> bool {
        let idle = match &*self.link.borrow() {
            Link::Idle | Link::Down(_) | Link::Closed => true,
            Link::Connecting(pipe) => pipe.oldest().is_none(),
            Link::Up(conn) => conn.is_drained(),
        };
        idle && self.retiring.borrow().iter().all(|one| match one {
            Retiring::Late(conn) => conn.is_drained(),
            Retiring::Former(lane) => lane.is_idle(),
        })
    }

    /// Whether a reply for `client` is awaited here, by whatever connection.
    pub fn awaits(&self, client: &Rc<dyn Recipient>) -> bool {
        let here = match &*self.link.borrow() {
            Link::Idle | Link::Down(_) | Link::Closed => false,
            Link::Connecting(pipe) => pipe.awaits(|ticket| ticket.is_for(client)),
            Link::Up(conn) => conn.awaits(client),
        };
        here || self.retiring.borrow().iter().any(|one| one.awaits(client))
    }

    fn start(self: &Rc<Self>) {
        if !self.started.replace(true) {
            tokio::task::spawn_local(Rc::clone(self).drive());
        }
    }

    /// Connects, serves, reconnects, until closed.
    async fn drive(self: Rc<Self>) {
        let mut backoff = Backoff::new(Rc::as_ptr(&self) as usize as u64 ^ self.number);
        while !self.is_closed() {
            let since = Instant::now();
            match self.establish().await {
                Ok(conn) => {
                    if backoff.is_failing() {
                        self.shared.log_back();
                    }
                    self.serve(conn, &mut backoff).await;
                }
                Err(error) => {
                    self.connect_failed(&error, since, backoff.is_failing());
                    self.rest(&mut backoff, error.cause).await;
                }
            }
        }
    }

    /// Serves until the connection takes no new requests.
    async fn serve(self: &Rc<Self>, conn: Rc<Conn>, backoff: &mut Backoff) {
        let since = Instant::now();
        let cause = match conn.serve().await {
            Ended::Late => {
                let limit = self.shared.settings.timeout.unwrap_or_default();
                return self.retire(conn, Some(limit), Cause::ResponseTimeout);
            }
            Ended::Relieved => return self.retire(conn, None, Cause::Shutdown),
            Ended::Over(cause) => cause,
        };
        let steady = conn.has_answered() || since.elapsed() >= STEADY;
        self.lost(&conn, cause);
        drop(conn); // closes the socket: not only after the rest
        if steady {
            backoff.reset();
        } else if backoff.is_failing() {
            self.rest(backoff, cause).await;
        } else {
            // The first time the next attempt follows at once, and what never left goes with it.
            backoff.after_failure();
        }
    }

    /// One attempt to connect; requests that waited for it are in the new connection's pipe.
    async fn establish(self: &Rc<Self>) -> Result<Rc<Conn>, ConnectError> {
        let settings = &self.shared.settings;
        let limit = settings.connect_limit();
        let stream = tokio::select! {
            connected = connect(settings, self.target, limit) => connected?,
            () = self.until_closed() => return Err(ConnectError { cause: Cause::Shutdown, detail: "closed".into() }),
        };
        let mut link = self.link.borrow_mut();
        let pipe = match &mut *link {
            Link::Connecting(pipe) => std::mem::take(pipe),
            Link::Closed => return Err(ConnectError { cause: Cause::Shutdown, detail: "closed".into() }),
            Link::Idle | Link::Up(_) | Link::Down(_) => Pipe::default(),
        };
        let conn = Conn::new(stream, pipe, self.target.protocol, Rc::clone(&self.shared));
        *link = Link::Up(Rc::clone(&conn));
        conn.mark();
        Ok(conn)
    }

    async fn until_closed(&self) {
        while !self.is_closed() {
            self.wake.notified().await;
        }
    }

    /// Takes the connection out of use; it goes on by itself until it has delivered what is due, for so long at most, and ends
    /// for that cause.
    fn retire(self: &Rc<Self>, conn: Rc<Conn>, limit: Option<Duration>, done: Cause) {
        self.reconnect_with(Pipe::default());
        if conn.is_drained() {
            return conn.abort(done);
        }
        self.retiring.borrow_mut().push(Retiring::Late(Rc::clone(&conn)));
        self.passed.borrow_mut().clear();
        let lane = Rc::clone(self);
        tokio::task::spawn_local(async move {
            conn.deliver_rest(limit, done).await;
            let mut retiring = lane.retiring.borrow_mut();
            retiring.retain(|one| !matches!(one, Retiring::Late(other) if Rc::ptr_eq(other, &conn)));
            if retiring.is_empty() {
                lane.passed.take();
            }
        });
    }

    /// The connection is over: what may have been executed fails, what never left goes to the next one.
    /// A connection that was closed with nothing in flight is no failure of its server.
    fn lost(self: &Rc<Self>, conn: &Conn, cause: Cause) {
        let (touched, untouched) = conn.dismantle();
        if !touched.is_empty() {
            conn.count_failure();
        }
        self.reconnect_with(untouched);
        let error = self.shared.error(cause);
        touched.into_iter().for_each(|ticket| ticket.settle(Outcome::Unknown(error.clone())));
    }

    fn reconnect_with(&self, pipe: Pipe) {
        let mut link = self.link.borrow_mut();
        match *link {
            Link::Closed => {
                drop(link);
                self.fail_unsent(pipe, Cause::Shutdown);
            }
            _ => *link = Link::Connecting(pipe),
        }
    }

    /// `again`: the attempt before had failed, too.
    fn connect_failed(&self, error: &ConnectError, since: Instant, again: bool) {
        if self.is_closed() {
            return;
        }
        self.shared.connect_failed(self.target, error, since, again);
    }

    /// Fails what waits, and everything that comes while the lane rests.
    async fn rest(&self, backoff: &mut Backoff, cause: Cause) {
        let previous = {
            let mut link = self.link.borrow_mut();
            match *link {
                Link::Closed => return,
                _ => std::mem::replace(&mut *link, Link::Down(cause)),
            }
        };
        if let Link::Connecting(pipe) = previous {
            self.fail_unsent(pipe, cause);
        }
        tokio::select! {
            () = sleep(backoff.after_failure()) => {}
            () = self.until_closed() => {}
        }
    }

    fn fail_unsent(&self, mut pipe: Pipe, cause: Cause) {
        let error = self.shared.error(cause);
        pipe.take_all().into_iter().for_each(|ticket| ticket.settle(Outcome::Unsent(error.clone())));
        self.shared.show_queues(&mut pipe);
    }

    fn is_closed(&self) -> bool {
        matches!(*self.link.borrow(), Link::Closed)
    }
}

// === impl Retiring ===

impl Retiring {
    fn awaits(&self, client: &Rc<dyn Recipient>) -> bool {
        match self {
            Self::Late(conn) => conn.awaits(client),
            Self::Former(lane) => lane.awaits(client),
        }
    }
}
