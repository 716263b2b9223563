//! One established connection to a server.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::time::Sleep;

use super::connect::cause_of;
use super::pipe::{Pipe, Request};
use super::replies::Reader;
use super::server::Shared;
use crate::exchange::{Cause, Flush, Moment, Outcome, Recipient, Ticket, Took, Written};
use crate::net::Stream;
use crate::resp::Protocol;

/// A socket, what is on its way to it, and what is awaited from it.
pub struct Conn {
    pub(super) shared: Rc<Shared>,
    pub(super) stream: RefCell<Stream>,
    pub(super) pipe: RefCell<Pipe>,
    pub(super) reader: RefCell<Reader>,
    /// In this turn's list already.
    marked: Cell<bool>,
    /// The socket was full: the driver waits until it can be written to.
    blocked: Cell<bool>,
    /// Another connection takes its place: it takes no new requests.
    relieved: Cell<bool>,
    /// Why it cannot go on, found outside the driver.
    pub(super) broken: Cell<Option<Cause>>,
    /// A timer for the oldest request is running.
    timing: Cell<bool>,
    /// How much longer than the pool's timeout a reply may take; `None`: as long as it likes.
    patience: Cell<Option<Duration>>,
    /// At least one reply came: the server is alive.
    pub(super) answered: Cell<bool>,
    /// It has been counted as a failure of its server: once, however many requests suffer from it.
    failed: Cell<bool>,
    driver: RefCell<Option<Waker>>,
    /// When it was established.
    since: Instant,
}

/// How serving a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A reply is late; what else is due may still come.
    Late,
    /// Another connection is to take its place; all that is due is still to come.
    Relieved,
    /// The connection is useless.
    Over(Cause),
}

/// Reads in a row before other tasks get their turn.
const READS_PER_TURN: usize = 4;

impl Conn {
    /// Puts `stream` in use; the requests in `pipe` go out first.
    pub(super) fn new(stream: Stream, pipe: Pipe, protocol: Protocol, shared: Rc<Shared>) -> Rc<Self> {
        shared.stats.server_connections.add(1);
        shared.stats.server_total.add(1);
        let timing = pipe.oldest().is_some();
        Rc::new(Self {
            shared,
            stream: RefCell::new(stream),
            pipe: RefCell::new(pipe),
            reader: RefCell::new(Reader::of(protocol)),
            marked: Cell::new(false),
            blocked: Cell::new(false),
            relieved: Cell::new(false),
            broken: Cell::new(None),
            timing: Cell::new(timing),
            patience: Cell::new(Some(Duration::ZERO)),
            answered: Cell::new(false),
            failed: Cell::new(false),
            driver: RefCell::new(None),
            since: Instant::now(),
        })
    }

    /// Appends a request; it leaves at the end of this turn.
    #[inline]
    pub(super) fn send(self: &Rc<Self>, request: Request<'_>, ticket: Ticket) {
        self.mark();
        let shared = &self.shared;
        let now = shared.turn.now(Instant::now);
        let len = self.pipe.borrow_mut().push(request, ticket, now, &shared.turn.buffers);
        shared.count_request(len);
        if shared.settings.timeout.is_some() && !self.timing.replace(true) {
            self.wake_driver();
        }
    }

    /// Asks to be flushed at the end of this turn.
    #[inline]
    pub(super) fn mark(self: &Rc<Self>) {
        if !self.marked.replace(true) {
            let this: Rc<Self> = Rc::clone(self);
            self.shared.turn.mark_server(this);
        }
    }

    /// Bytes waiting to be written.
    #[inline]
    pub(super) fn unwritten(&self) -> usize {
        self.pipe.borrow().unwritten()
    }

    /// Whether a reply for `client` is awaited here.
    pub(super) fn awaits(&self, client: &Rc<dyn Recipient>) -> bool {
        self.pipe.borrow().awaits(|ticket| ticket.is_for(client))
    }

    /// Whether any reply ever came.
    pub(super) fn has_answered(&self) -> bool {
        self.answered.get()
    }

    /// Whether nothing is due any more that somebody still waits for.
    pub(super) fn is_drained(&self) -> bool {
        let streams = |reader: &Reader| reader.streaming.as_ref().is_some_and(|one| one.ticket.is_some());
        self.pipe.borrow().oldest().is_none() && !streams(&self.reader.borrow())
    }

    /// Whether nothing is under way on it, not even a reply that will be dropped.
    pub(super) fn is_idle(&self) -> bool {
        self.pipe.borrow().is_idle() && self.reader.borrow().streaming.is_none()
    }

    /// Whether it can serve somebody else: idle, whole, and without the beginning of a reply.
    pub(super) fn is_clean(&self) -> bool {
        self.is_idle() && self.broken.get().is_none() && self.reader.borrow().is_between_replies()
    }

    /// Replies may take so much longer than the pool's timeout from now on; `None`: as long as they like.
    pub(super) fn be_patient(&self, patience: Option<Duration>) {
        self.patience.set(patience);
    }

    /// Lets another connection take its place.
    pub(super) fn relieve(&self) {
        self.relieved.set(true);
        self.wake_driver();
    }

    /// Fails everything and closes the socket before it returns.
    pub(super) fn close_now(&self, cause: Cause) {
        self.abort(cause);
        self.stream.replace(Stream::Closed);
    }

    /// Counts it as a failure of its server, unless it has been already.
    pub(super) fn count_failure(&self) {
        if !self.failed.replace(true) {
            self.shared.failed_since(self.since);
        }
    }

    /// Fails everything, and ends the driver.
    pub(super) fn abort(&self, cause: Cause) {
        let (touched, mut untouched) = self.dismantle();
        let error = self.shared.error(cause);
        touched.into_iter().for_each(|ticket| ticket.settle(Outcome::Unknown(error.clone())));
        untouched.take_all().into_iter().for_each(|ticket| ticket.settle(Outcome::Unsent(error.clone())));
        self.shared.show_queues(&mut untouched);
        self.broken.set(Some(cause));
        self.wake_driver();
    }

    /// Takes it apart: tickets of requests that may have been executed, and the requests that never left.
    pub(super) fn dismantle(&self) -> (Vec<Ticket>, Pipe) {
        let mut touched: Vec<Ticket> = self
            .reader
            .borrow_mut()
            .streaming
            .take()
            .and_then(|streaming| streaming.ticket)
            .into_iter()
            .collect();
        let mut pipe = self.pipe.take();
        touched.extend(pipe.take_touched());
        self.shared.show_queues(&mut pipe);
        (touched, pipe)
    }

    /// Serves until a reply is late, another connection takes its place, or it is over.
    pub(super) async fn serve(self: &Rc<Self>) -> Ended {
        let mut timer = None;
        let ended = poll_fn(|cx| self.poll_serve(cx, &mut timer)).await;
        if let Ended::Over(cause) = ended {
            self.count_end(cause);
        }
        ended
    }

    /// Delivers what is due, taking no new requests, until all is there. After `limit` it is cut; without one each request has its
    /// own clock, as ever. `done` is why it then ends.
    pub(super) async fn deliver_rest(self: &Rc<Self>, limit: Option<Duration>, done: Cause) {
        let mut timer = None;
        let rest = poll_fn(|cx| {
            loop {
                let polled = self.poll_serve(cx, &mut timer);
                match polled {
                    Poll::Ready(Ended::Over(cause)) => return Poll::Ready(cause),
                    _ if self.is_drained() => return Poll::Ready(done),
                    Poll::Ready(Ended::Late | Ended::Relieved) => {}
                    Poll::Pending => return Poll::Pending,
                }
            }
        });
        let cause = match limit {
            Some(limit) => tokio::time::timeout(limit, rest).await.unwrap_or(Cause::ResponseTimeout),
            None => rest.await,
        };
        self.count_end(cause);
        self.abort(cause);
    }

    fn poll_serve(self: &Rc<Self>, cx: &mut Context<'_>, timer: &mut Option<Pin<Box<Sleep>>>) -> Poll<Ended> {
        self.remember_driver(cx);
        let blocked = self.blocked.get() && self.broken.get().is_none();
        if blocked && self.stream.borrow().poll_write_ready(cx).is_ready() {
            self.blocked.set(false);
            self.write();
        }
        for reads in 0..READS_PER_TURN {
            match self.poll_read(cx, reads > 0) {
                Poll::Pending => {
                    // Only now: what the server said before the connection broke has been read.
                    return match self.broken.get() {
                        Some(cause) => Poll::Ready(Ended::Over(cause)),
                        None if self.relieved.get() => {
                            self.relieved.set(false);
                            Poll::Ready(Ended::Relieved)
                        }
                        None => self.poll_timer(cx, timer),
                    };
                }
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(cause)) => {
                    return Poll::Ready(Ended::Over(self.broken.get().unwrap_or(cause)));
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Runs the timer of the oldest request. It is set anew only when it fires, not for each request.
    fn poll_timer(&self, cx: &mut Context<'_>, timer: &mut Option<Pin<Box<Sleep>>>) -> Poll<Ended> {
        let Some(timeout) = self.timeout() else {
            // What is sent next sets the timer, if it has one.
            self.timing.set(false);
            *timer = None;
            return Poll::Pending;
        };
        if !self.timing.get() && timer.is_none() {
            return Poll::Pending;
        }
        loop {
            if let Some(sleep) = timer {
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                if let Some(ended) = self.expire(Moment::at(Instant::now()) - timeout) {
                    return Poll::Ready(ended);
                }
            }
            let Some(oldest) = self.oldest() else {
                self.timing.set(false);
                *timer = None;
                return Poll::Pending;
            };
            self.timing.set(true);
            let deadline = (oldest + timeout).instant().into();
            match timer {
                Some(sleep) => sleep.as_mut().reset(deadline),
                None => *timer = Some(Box::pin(tokio::time::sleep_until(deadline))),
            }
        }
    }

    /// How long a reply may take now.
    fn timeout(&self) -> Option<Duration> {
        let timeout = self.shared.settings.timeout?;
        self.patience.get().map(|patience| timeout + patience)
    }

    /// When the oldest clock started that still runs.
    fn oldest(&self) -> Option<Moment> {
        let streamed = self.reader.borrow().streaming.as_ref().map(|streaming| streaming.since);
        self.pipe.borrow().oldest().into_iter().chain(streamed).min()
    }

    /// Answers what is late with an error. A late reply leaves the connection to what else is due; a request that
    /// could not even be written for so long, or a reply that stands still, means that it is good for nothing more.
    fn expire(&self, limit: Moment) -> Option<Ended> {
        let stands_still = self.reader.borrow().streaming.as_ref().is_some_and(|one| one.since <= limit);
        let expired = self.pipe.borrow_mut().expire(limit);
        if expired.is_empty() && !stands_still {
            return None;
        }
        if !self.failed.get() {
            self.shared.stats.server_timedout.add(1);
        }
        self.count_failure();
        let all_sent = expired.iter().all(|(_, sent)| *sent);
        for (ticket, sent) in expired {
            self.note_given_up(&ticket, sent);
            let cause = if sent { Cause::ResponseTimeout } else { Cause::QueueTimeout };
            ticket.settle(Outcome::Unknown(self.shared.error(cause)));
        }
        let usable = all_sent && !stands_still && self.pipe.borrow().unwritten() == 0;
        Some(if usable { Ended::Late } else { Ended::Over(Cause::ResponseTimeout) })
    }

    /// A request that is given up has waited as long as it may.
    fn note_given_up(&self, ticket: &Ticket, sent: bool) {
        let limit = self.shared.settings.timeout.unwrap_or_default().as_micros() as u64;
        let (queue, answer) = if sent { (0, limit) } else { (limit, 0) };
        if sent {
            self.shared.stats.answer_seconds.record(answer);
        }
        ticket.note(&Took { queue, answer, server: &self.shared.label });
    }

    fn write(&self) {
        let stream = self.stream.borrow();
        let mut pipe = self.pipe.borrow_mut();
        let written = pipe.out().write_to(|parts| stream.try_write_vectored(parts));
        pipe.after_write(|| self.shared.turn.now(Instant::now), &self.shared.stats.queue_seconds);
        match written {
            Ok(Written::All) => pipe.out().release(&self.shared.turn.buffers),
            Ok(Written::Blocked) => {
                self.blocked.set(true);
                self.wake_driver();
            }
            Err(error) => {
                self.broken.set(Some(cause_of(&error)));
                self.wake_driver();
            }
        }
        self.shared.show_queues(&mut pipe);
    }

    pub(super) fn show_queues(&self) {
        self.shared.show_queues(&mut self.pipe.borrow_mut());
    }

    fn count_end(&self, cause: Cause) {
        let stats = &self.shared.stats;
        match cause {
            Cause::Closed => stats.server_eof.add(1),
            Cause::ResponseTimeout | Cause::QueueTimeout | Cause::Shutdown => {}
            _ => stats.server_err.add(1),
        }
        self.shared.log_lost(cause);
    }

    fn remember_driver(&self, cx: &mut Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        if !driver.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *driver = Some(cx.waker().clone());
        }
    }

    pub(super) fn wake_driver(&self) {
        if let Some(driver) = self.driver.borrow().as_ref() {
            driver.wake_by_ref();
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        self.shared.stats.server_connections.sub(1);
        let streaming = self.reader.get_mut().streaming.take().and_then(|streaming| streaming.ticket);
        let pipe = self.pipe.get_mut();
        let error = self.shared.error(Cause::Shutdown);
        let tickets = streaming.into_iter().chain(pipe.take_all());
        tickets.for_each(|ticket| ticket.settle(Outcome::Unknown(error.clone())));
        self.shared.show_queues(pipe);
    }
}

impl Flush for Conn {
    fn flush(&self) {
        self.marked.set(false);
        if !self.blocked.get() && self.broken.get().is_none() {
            self.write();
        } else {
            self.show_queues();
        }
    }
}
