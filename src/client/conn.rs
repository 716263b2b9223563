//! One client's connection: bytes in, requests on their way, replies out.

mod ending;
mod limits;
mod moving;
mod operator;
mod phase;

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf, BytesMut};
use tokio::time::Sleep;

pub use moving::Moved;
use phase::Hold;
pub use phase::{Closed, Phase};

use super::ages::Ages;
use super::pace::{Bucket, penalty};
use super::session::{Session, Verdict};
use super::tally::{Sampled, Tally};
use super::watch::Watch;
use crate::dispatch::{Payload, Pool};
use crate::exchange::{Flush, Inbox, Moment, Outbox, Recipient, Took, Written};
use crate::net::{Announced, Stream};
use crate::resp::{
    ArgSpan, Args, ErrorReply, Limits, ProtocolError, RequestScanner, Scanned, inline_to_array,
};

/// A client of a pool.
pub struct ClientConn {
    pool: Rc<Pool>,
    /// Unique in the process as long as it runs: CLIENT ID, and which lane of each server it uses.
    id: u64,
    stream: RefCell<Stream>,
    outbox: Outbox,
    /// A request that is here in part, and those that wait behind it; nothing for an idle client.
    input: Cell<Option<Box<Input>>>,
    session: RefCell<Session>,
    phase: Cell<Phase>,
    /// The socket was full: the task waits until it can be written to.
    blocked: Cell<bool>,
    /// Why requests that are here already aren't dispatched yet.
    hold: Cell<Option<Hold>>,
    task: RefCell<Option<Waker>>,
    pub(super) ages: Ages,
    /// Whom a load balancer has named.
    announced: OnceCell<Box<Announced>>,
    /// With a `client_rate` only.
    bucket: Option<Box<Bucket>>,
    /// Runs while requests wait for time to pass.
    pause: RefCell<Option<Pin<Box<Sleep>>>>,
    /// What the operator asks of this worker's clients.
    watch: Rc<Watch>,
    /// The request whose reply's size is awaited; for a sampled one only.
    pub(super) sampled: Cell<Option<Box<Sampled>>>,
    /// When it connected.
    since: Moment,
    /// When it last said something.
    seen: Cell<Moment>,
    /// Since when the socket takes nothing, while bytes are ready for it.
    stuck_since: Cell<Option<Moment>>,
}

/// Bytes that are here and not yet dispatched, and how far they have been looked at.
#[derive(Default)]
struct Input {
    inbox: Inbox,
    scanner: RequestScanner,
    spans: Vec<ArgSpan>,
}

/// Reads in a row before other tasks get their turn.
const READS_PER_TURN: usize = 4;

/// A request from this size on moves as it is; a smaller one is copied.
const SHARE_THRESHOLD: usize = 16 << 10;

/// Most that is read from a client when the proxy goes down: more than the kernel holds back for a socket (6 MB by
/// default). What comes beyond was sent later, by a client that would never end.
const DRAIN_BYTES: usize = 8 << 20;

/// Most that is read from a client while it is blocked. One that sends more is not read from until it is answered.
const READ_AHEAD: usize = 1 << 20;

impl ClientConn {
    /// A client on `stream`, which has not said anything yet.
    pub fn new(stream: Stream, id: u64, pool: Rc<Pool>, watch: Rc<Watch>) -> Rc<Self> {
        pool.stats.client_connections.add(1);
        pool.stats.client_total.add(1);
        let session = Session::new(&pool.config());
        let tick = pool.turn.tick.get();
        let rate = pool.config().client_rate.bound();
        let bucket = rate.map(|rate| Box::new(Bucket::new(rate, Instant::now())));
        let since = Moment::at(Instant::now());
        Rc::new(Self {
            outbox: Outbox::new(Rc::clone(&pool.turn)),
            pool,
            id,
            stream: RefCell::new(stream),
            input: Cell::new(None),
            session: RefCell::new(session),
            phase: Cell::new(Phase::Open),
            blocked: Cell::new(false),
            hold: Cell::new(None),
            task: RefCell::new(None),
            ages: Ages::new(tick),
            announced: OnceCell::new(),
            bucket,
            pause: RefCell::new(None),
            watch,
            sampled: Cell::new(None),
            since,
            seen: Cell::new(since),
            stuck_since: Cell::new(None),
        })
    }

    /// Tells a client that there is no room for it. Best effort, as in Redis: one that does not read it finds its
    /// connection closed.
    pub fn refuse(stream: &Stream) {
        let mut text = Vec::new();
        ErrorReply::max_clients().encode(&mut text);
        let _ = stream.write_at_once(&text);
    }

    /// Serves the client until its connection is over.
    pub async fn run(self: Rc<Self>) -> Closed {
        let recipient: Rc<dyn Recipient> = self.clone();
        let closed = poll_fn(|cx| self.poll(cx, &recipient)).await;
        self.outbox.close();
        self.session.borrow_mut().mode.leave();
        self.session.borrow_mut().subscriptions = None;
        if closed.leaves_input() || (closed == Closed::Drain && self.stream.borrow().has_unread()) {
            // Boxed: few clients end so, and every one's task would be larger for it.
            Box::pin(self.linger()).await;
        }
        // Requests in flight keep this value alive; its socket and what was read must not wait for them.
        self.phase.set(Phase::Over(closed));
        if closed != Closed::Moved {
            self.stream.replace(Stream::Closed);
            self.input.take();
        }
        let stats = &self.pool.stats;
        stats.client_connections.sub(1);
        match closed {
            Closed::Eof | Closed::Quit | Closed::Moved => stats.client_eof.add(1),
            Closed::ReplyCut => {
                stats.reply_cut.add(1);
                stats.client_err.add(1);
            }
            _ => stats.client_err.add(1),
        }
        closed
    }

    /// Ends the connection when everything that has arrived is answered.
    pub fn drain(&self) {
        if self.phase.get() == Phase::Open {
            self.phase.set(Phase::Draining(DRAIN_BYTES));
            self.session.borrow_mut().mode.unblock();
            self.session.borrow_mut().subscriptions = None;
            self.wake();
        }
    }

    /// Ends the connection now.
    pub fn cut(&self) {
        self.end(Closed::Drain);
    }

    /// CLIENT ID.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Where it is and where it has reached us.
    pub(super) fn addresses(&self) -> (String, String) {
        match self.announced.get() {
            Some(announced) => (announced.source.to_string(), announced.destination.to_string()),
            None => self.stream.borrow().addresses(),
        }
    }

    /// The pool that it is a client of.
    #[inline]
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Hot and big keys of its worker.
    #[inline]
    pub(super) fn tally(&self) -> &Tally {
        &self.watch.tally
    }

    fn poll(self: &Rc<Self>, cx: &mut Context<'_>, recipient: &Rc<dyn Recipient>) -> Poll<Closed> {
        self.remember_task(cx);
        if self.blocked.get() && self.stream.borrow().poll_write_ready(cx).is_ready() {
            self.blocked.set(false);
            // It took something.
            self.ages.took.set(self.pool.turn.tick.get());
            self.flush();
        }
        match self.hold.get() {
            None => {}
            Some(Hold::Time) if self.poll_pause(cx).is_pending() => {}
            Some(_) => self.resume(recipient),
        }
        for reads in 0..READS_PER_TURN {
            match self.phase.get() {
                Phase::Over(closed) => return Poll::Ready(closed),
                Phase::Closing(closed) => return self.poll_delivered(closed),
                Phase::Open | Phase::Leaving if self.hold.get() == Some(Hold::Mode) => {
                    if !self.session.borrow().mode.is_blocked() {
                        return Poll::Pending;
                    }
                    if self.poll_read_ahead(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                Phase::Open | Phase::Draining(_) | Phase::Leaving if self.hold.get().is_some() => {
                    return Poll::Pending;
                }
                Phase::Leaving if self.may_leave() => return self.poll_delivered(Closed::Moved),
                Phase::Open | Phase::Leaving => {
                    if self.poll_read(cx, recipient, reads > 0).is_pending() {
                        return Poll::Pending;
                    }
                }
                Phase::Draining(0) => self.phase.set(Phase::Closing(Closed::Drain)),
                Phase::Draining(_) => {
                    if self.poll_read(cx, recipient, reads > 0).is_pending() {
                        if self.stream.borrow().has_unread() {
                            // The read was asked too early; it will wake us.
                            return Poll::Pending;
                        }
                        self.phase.set(Phase::Closing(Closed::Drain));
                    }
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// One read, and every request that it completes. `again`: behind another one, so that most likely nothing is left, and the runtime
    /// is asked before a buffer is taken for it.
    fn poll_read(
        self: &Rc<Self>,
        cx: &mut Context<'_>,
        recipient: &Rc<dyn Recipient>,
        again: bool,
    ) -> Poll<()> {
        let mut stream = self.stream.borrow_mut();
        if again && stream.poll_read_ready(cx).is_pending() {
            return Poll::Pending;
        }
        let mut input = self.input.take().map_or_else(Input::default, |kept| *kept);
        let buffers = &self.pool.turn.buffers;
        let missing = input.scanner.missing(input.inbox.len());
        let mut buffer = input.inbox.buffer(missing, buffers);
        let polled = stream.poll_read_into(cx, &mut buffer);
        drop(stream);
        match polled {
            Poll::Pending => {
                input.inbox.keep(buffer, missing, buffers);
                self.keep(input);
                Poll::Pending
            }
            Poll::Ready(Ok(0)) => {
                self.ages.heard.set(self.pool.turn.tick.get());
                // What was due is still delivered: clients may close their side behind the last request.
                self.phase.set(Phase::Closing(Closed::Eof));
                self.session.borrow_mut().subscriptions = None;
                buffers.give_scratch(buffer);
                Poll::Ready(())
            }
            Poll::Ready(Ok(read)) => {
                self.ages.heard.set(self.pool.turn.tick.get());
                if let Phase::Draining(left) = self.phase.get() {
                    self.phase.set(Phase::Draining(left.saturating_sub(read)));
                }
                self.receive(input, buffer, recipient);
                self.seen.set(self.pool.turn.now(Instant::now));
                Poll::Ready(())
            }
            Poll::Ready(Err(_)) => {
                self.phase.set(Phase::Over(Closed::Socket));
                Poll::Ready(())
            }
        }
    }

    /// Reads, without looking at it, what a client sends while it is blocked: only so is it known when it goes. Its connection to the
    /// server ends with it at once: otherwise the next element would be popped for nobody (B10).
    fn poll_read_ahead(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut input = self.input.take().map_or_else(Input::default, |kept| *kept);
        if input.inbox.len() >= READ_AHEAD {
            self.keep(input);
            return Poll::Pending;
        }
        let buffers = &self.pool.turn.buffers;
        let missing = input.scanner.missing(input.inbox.len());
        let mut buffer = input.inbox.buffer(missing, buffers);
        let polled = self.stream.borrow_mut().poll_read_into(cx, &mut buffer);
        input.inbox.keep(buffer, missing, buffers);
        self.keep(input);
        let closed = match polled {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(1..)) => return Poll::Ready(()),
            Poll::Ready(Ok(0)) => Closed::Eof,
            Poll::Ready(Err(_)) => Closed::Socket,
        };
        self.session.borrow_mut().mode.leave();
        self.phase.set(Phase::Over(closed));
        Poll::Ready(())
    }

    /// Goes on with requests that had to wait.
    fn resume(self: &Rc<Self>, recipient: &Rc<dyn Recipient>) {
        if self.watch.is_paused() || !self.session.borrow_mut().mode.go_on() || self.is_full() {
            return;
        }
        self.hold.set(None);
        let Some(mut input) = self.input.take() else { return };
        let buffer = input.inbox.take();
        self.receive(*input, buffer, recipient);
    }

    /// Handles every complete request in `buffer`, as far as limits allow, and keeps the rest.
    fn receive(self: &Rc<Self>, mut input: Input, mut buffer: BytesMut, recipient: &Rc<dyn Recipient>) {
        let config = self.pool.config();
        let mut session = self.session.borrow_mut();
        let mut limits = session.limits(&config);
        if input.spans.capacity() == 0 {
            input.spans = self.pool.turn.buffers.take_spans();
        }
        let mut at = 0;
        while at < buffer.len() {
            if self.is_full() {
                self.hold.set(Some(Hold::Backpressure));
                break;
            }
            if let Some(bucket) = &self.bucket
                && self.is_too_fast(bucket)
            {
                break;
            }
            if self.watch.is_paused() {
                self.hold.set(Some(Hold::Pause));
                break;
            }
            let scanned = input.scanner.scan(&buffer[at..], &mut input.spans, &limits);
            let (len, verdict) = match scanned {
                Ok(Scanned::Incomplete) => {
                    self.bucket.iter().for_each(|bucket| bucket.put_back());
                    break;
                }
                Ok(Scanned::Nothing(len)) => (len, Verdict::Done),
                Ok(Scanned::Array(len)) if len < SHARE_THRESHOLD => {
                    let args = Args::new(&buffer[at..at + len], &input.spans);
                    (len, session.handle(args, Payload::Scratch, self, recipient))
                }
                Ok(Scanned::Array(len)) => {
                    buffer.advance(at);
                    at = 0;
                    let request = buffer.split_to(len).freeze();
                    let args = Args::new(&request, &input.spans);
                    match session.handle(args, Payload::Own(request.clone()), self, recipient) {
                        Verdict::Fenced => {
                            // It comes first again when the fence is gone.
                            let mut again = BytesMut::from(&request[..]);
                            again.extend_from_slice(&buffer);
                            buffer = again;
                            (len, Verdict::Fenced)
                        }
                        verdict => (0, verdict),
                    }
                }
                Ok(Scanned::Inline { line, len }) => match inline_to_array(&buffer[at..at + line]) {
                    Ok(array) => (len, self.handle_inline(&array, &limits, &mut session, recipient)),
                    Err(error) => (len, self.protocol_error(error, recipient)),
                },
                Err(error) => (buffer.len() - at, self.protocol_error(error, recipient)),
            };
            match verdict {
                Verdict::Done => {
                    at += len;
                    limits = session.limits(&config);
                    self.ages.asked.set(true);
                }
                Verdict::Slow(failures) => {
                    at += len;
                    limits = session.limits(&config);
                    self.pool.stats.auth_failures.add(1);
                    if let Some(pause) = penalty(failures) {
                        self.pause_for(pause);
                        break;
                    }
                }
                Verdict::Fenced => {
                    self.hold.set(Some(Hold::Fence));
                    break;
                }
                Verdict::Held => {
                    at += len;
                    self.hold.set(Some(Hold::Mode));
                    break;
                }
                Verdict::Close(closed) => {
                    self.phase.set(Phase::Closing(closed));
                    at = buffer.len();
                }
            }
        }
        buffer.advance(at);
        let buffers = &self.pool.turn.buffers;
        if buffer.is_empty() {
            buffers.give_scratch(buffer);
            buffers.give_spans(input.spans);
        } else {
            let missing = input.scanner.missing(buffer.len());
            if missing > 0 && self.has_no_room(buffer.len(), missing) {
                Outbox::answer(recipient, |out| ErrorReply::out_of_buffers().encode(out));
                self.phase.set(Phase::Closing(Closed::BufferLimit));
                return buffers.give_scratch(buffer);
            }
            input.inbox.keep(buffer, missing, buffers);
            self.keep(input);
        }
    }

    /// Keeps what a later read, or the end of a wait, goes on with.
    fn keep(&self, input: Input) {
        if !input.inbox.is_empty() {
            self.input.set(Some(Box::new(input)));
        }
    }

    fn handle_inline(
        self: &Rc<Self>,
        array: &[u8],
        limits: &Limits,
        session: &mut Session,
        recipient: &Rc<dyn Recipient>,
    ) -> Verdict {
        let mut spans = Vec::new();
        match RequestScanner::default().scan(array, &mut spans, limits) {
            Ok(Scanned::Array(_)) => {
                session.handle(Args::new(array, &spans), Payload::Scratch, self, recipient)
            }
            Ok(_) => Verdict::Done,
            Err(error) => self.protocol_error(error, recipient),
        }
    }

    fn protocol_error(&self, error: ProtocolError, recipient: &Rc<dyn Recipient>) -> Verdict {
        Outbox::answer(recipient, |out| error.reply().encode(out));
        Verdict::Close(Closed::Protocol)
    }

    fn written(&self, result: io::Result<Written>) {
        match result {
            Ok(Written::All) => {
                if self.phase.get() != Phase::Open {
                    // Nothing is heard from it any more: what it takes shows that it is there.
                    self.ages.took.set(self.pool.turn.tick.get());
                }
                self.note_written();
            }
            Ok(Written::Blocked) => {
                self.ages.took.set(self.pool.turn.tick.get());
                self.blocked.set(true);
                if self.stuck_since.get().is_none() {
                    self.stuck_since.set(Some(self.pool.turn.now(Instant::now)));
                }
                self.wake();
            }
            Err(_) => {
                self.end(Closed::Socket);
            }
        }
    }

    /// Nothing is left to be written to it.
    fn note_written(&self) {
        let turn = &self.pool.turn;
        if let Some(since) = self.stuck_since.take().or(turn.began()) {
            let took = turn.now(Instant::now).micros_since(since);
            self.pool.stats.write_seconds.record(took);
        }
    }

    fn remember_task(&self, cx: &mut Context<'_>) {
        let mut task = self.task.borrow_mut();
        if !task.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *task = Some(cx.waker().clone());
        }
    }

    fn end(&self, closed: Closed) {
        self.phase.set(Phase::Over(closed));
        self.wake();
    }

    fn wake(&self) {
        if let Some(task) = self.task.borrow().as_ref() {
            task.wake_by_ref();
        }
    }
}

impl Flush for ClientConn {
    fn flush(&self) {
        let failures = self.outbox.take_failures();
        if failures > 0 {
            self.pool.stats.forward_error.add(u64::from(failures));
        }
        if matches!(self.phase.get(), Phase::Over(_)) {
            return;
        }
        if !self.blocked.get() {
            let stream = self.stream.borrow();
            self.written(self.outbox.write_to(|parts| stream.try_write_vectored(parts)));
        } else {
            self.outbox.unmark();
        }
        let unsent = self.outbox.charge();
        if self.outbox.is_cut() {
            // What came before the reply that broke off is still due.
            self.phase.set(Phase::Closing(Closed::ReplyCut));
            self.wake();
        } else if self.pool.config().out_hard.is_met(unsent) && self.is_past_hard() {
            self.end(Closed::OutputLimit);
        } else if unsent > 0 && self.is_past_budget(unsent) {
            self.end(Closed::BufferLimit);
        } else if self.hold.get().is_some() || self.phase.get() != Phase::Open {
            self.wake();
        }
    }
}

impl Recipient for ClientConn {
    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn replied(&self, bytes: u64) {
        self.sampled(bytes);
    }

    #[inline]
    fn answered(&self, command: u16, took: &Took<'_>) {
        let total = took.queue + took.answer;
        self.pool.stats.commands.record(command, total);
        if self.watch.is_slow(total) {
            self.pool.stats.slow_requests.add(1);
            if self.watch.has_room(self.pool.turn.tick.get()) {
                self.watch.note_slow(self, command, took);
            }
        }
    }
}
