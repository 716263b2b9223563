//! The connection of one worker to one server over which all of its clients hear what is published there.
//!
//! It is opened when the first client subscribes to something and closed when nobody is subscribed any more. When it is lost it is
//! opened again and everything is subscribed to anew; what was published meanwhile is missing, and that is logged and counted.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use bytes::{Buf, Bytes};
use tokio::time::{Sleep, sleep};

use super::backoff::Backoff;
use super::connect::{cause_of, connect};
use super::server::Shared;
use crate::exchange::{Cause, Inbox};
use crate::net::Stream;
use crate::resp::pubsub::{Heard, heard};
use crate::resp::{Protocol, ReplyScanner, Space, encode};

/// Who hears what a server says.
pub trait Audience {
    /// The name is subscribed to at a server.
    fn stands(&self, space: Space, name: &[u8]);

    /// It could not be: `error` is the reply to whoever waits for it.
    fn failed(&self, space: Space, name: &[u8], error: &[u8]);

    /// A message, as the server sent it in RESP2.
    fn message(&self, space: Space, name: &[u8], frame: &[u8]);
}

/// What one worker is subscribed to at one server.
pub struct Subscriber {
    shared: Rc<Shared>,
    audience: OnceCell<Weak<dyn Audience>>,
    /// By `Space`: each name, and whether the server has confirmed it on the present connection.
    names: RefCell<[HashMap<Bytes, bool>; 3]>,
    /// Requests that are not written yet.
    orders: RefCell<Vec<u8>>,
    /// Requests on this connection that are not answered, in their order; `None`: one that ends a subscription.
    asked: RefCell<VecDeque<Option<(Space, Bytes)>>>,
    /// A connection is there.
    up: Cell<bool>,
    running: Cell<bool>,
    closed: Cell<bool>,
    /// Another connection is to take the place of the present one.
    renewed: Cell<bool>,
    /// Something was lost with the last connection and doesn't stand again yet.
    gap: Cell<bool>,
    task: RefCell<Option<Waker>>,
}

/// One connection, as its driver has it.
struct Line {
    stream: Stream,
    inbox: Inbox,
    scanner: ReplyScanner,
    /// What is being written, and how much of it is gone.
    out: Vec<u8>,
    gone: usize,
    /// Runs while an answer is awaited.
    timer: Option<Pin<Box<Sleep>>>,
}

/// Reads in a row before other tasks get their turn.
const READS_PER_TURN: usize = 4;

// === impl Subscriber ===

impl Subscriber {
    pub(super) fn new(shared: Rc<Shared>) -> Rc<Self> {
        Rc::new(Self {
            shared,
            audience: OnceCell::new(),
            names: RefCell::default(),
            orders: RefCell::default(),
            asked: RefCell::default(),
            up: Cell::new(false),
            running: Cell::new(false),
            closed: Cell::new(false),
            renewed: Cell::new(false),
            gap: Cell::new(false),
            task: RefCell::default(),
        })
    }

    /// Subscribes to `name`, once however often it is asked. `audience`, always the same one, is told when it stands; never before
    /// this returns.
    pub fn subscribe(self: &Rc<Self>, space: Space, name: &Bytes, audience: &Weak<dyn Audience>) {
        self.audience.get_or_init(|| audience.clone());
        if self.closed.get() || self.names.borrow()[space.index()].contains_key(name) {
            return;
        }
        self.names.borrow_mut()[space.index()].insert(name.clone(), false);
        self.shared.stats.subscriptions.add(1);
        if self.up.get() {
            self.ask(space, name, true);
        }
        if !self.running.replace(true) {
            tokio::task::spawn_local(Rc::clone(self).drive());
        }
        self.wake();
    }

    /// Nobody wants it any more.
    pub fn unsubscribe(&self, space: Space, name: &Bytes) {
        if self.names.borrow_mut()[space.index()].remove(name).is_none() {
            return;
        }
        self.shared.stats.subscriptions.sub(1);
        if self.up.get() {
            self.ask(space, name, false);
        }
        self.wake();
    }

    /// Whether the server has confirmed it.
    pub fn stands(&self, space: Space, name: &[u8]) -> bool {
        self.names.borrow()[space.index()].get(name).copied().unwrap_or(false)
    }

    /// Subscribes to everything anew, on another connection; what is published meanwhile is missing. Whether there is one now.
    pub(super) fn renew(&self) -> bool {
        let up = self.up.get();
        self.renewed.set(up);
        self.wake();
        up
    }

    /// For good.
    pub(super) fn close(&self) {
        self.closed.set(true);
        let names = self.names.take();
        self.shared.stats.subscriptions.sub(names.iter().map(HashMap::len).sum::<usize>() as u64);
        self.wake();
    }

    fn ask(&self, space: Space, name: &Bytes, subscribe: bool) {
        let word = if subscribe { space.subscribe() } else { space.unsubscribe() };
        encode::request(&mut self.orders.borrow_mut(), [word.as_bytes(), name].into_iter());
        self.asked.borrow_mut().push_back(subscribe.then(|| (space, name.clone())));
    }

    fn is_wanted(&self) -> bool {
        self.names.borrow().iter().any(|names| !names.is_empty())
    }

    /// Connects, serves, reconnects, as long as anybody is subscribed.
    async fn drive(self: Rc<Self>) {
        let mut backoff = Backoff::new(Rc::as_ptr(&self) as usize as u64);
        let (settings, stats) = (&self.shared.settings, &self.shared.stats);
        while self.is_wanted() {
            let since = Instant::now();
            match connect(settings, settings.home(), settings.connect_limit()).await {
                Err(error) => {
                    self.shared.connect_failed(settings.home(), &error, since, backoff.is_failing());
                    self.fail(error.cause);
                    sleep(backoff.after_failure()).await;
                }
                Ok(stream) => {
                    stats.server_connections.add(1);
                    stats.server_total.add(1);
                    let (lost, answered) = self.serve(stream).await;
                    stats.server_connections.sub(1);
                    if answered {
                        backoff.reset();
                    }
                    match lost {
                        None => {}
                        Some(Cause::Shutdown) => self.interrupted(Cause::Shutdown),
                        Some(cause) => {
                            self.lost(cause);
                            sleep(backoff.after_failure()).await;
                        }
                    }
                }
            }
        }
        self.running.set(false);
        self.gap.set(false);
    }

    /// Serves until nobody wants it (no cause), another connection is to take its place (`Shutdown`), or it is lost; and whether
    /// the server answered anything.
    async fn serve(&self, stream: Stream) -> (Option<Cause>, bool) {
        self.orders.borrow_mut().clear();
        self.asked.borrow_mut().clear();
        let wanted: Vec<(Space, Bytes)> = self.all();
        wanted.iter().for_each(|(space, name)| self.ask(*space, name, true));
        self.up.set(true);
        self.renewed.set(false);
        let scanner = ReplyScanner::of(Protocol::Resp2);
        let mut line =
            Line { stream, inbox: Inbox::default(), scanner, out: Vec::new(), gone: 0, timer: None };
        let mut answered = false;
        let lost = poll_fn(|cx| self.poll_serve(cx, &mut line, &mut answered)).await;
        self.up.set(false);
        self.task.take();
        (lost, answered)
    }

    fn poll_serve(&self, cx: &mut Context<'_>, line: &mut Line, answered: &mut bool) -> Poll<Option<Cause>> {
        self.task.replace(Some(cx.waker().clone()));
        for _ in 0..READS_PER_TURN {
            if !self.is_wanted() {
                return Poll::Ready(None);
            }
            if self.renewed.get() {
                return Poll::Ready(Some(Cause::Shutdown));
            }
            if let Err(cause) = self.write(cx, line) {
                return Poll::Ready(Some(cause));
            }
            match self.poll_read(cx, line) {
                Poll::Pending => return self.poll_timer(cx, line),
                Poll::Ready(Ok(())) => *answered = true,
                Poll::Ready(Err(cause)) => return Poll::Ready(Some(cause)),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn write(&self, cx: &mut Context<'_>, line: &mut Line) -> Result<(), Cause> {
        line.out.append(&mut self.orders.borrow_mut());
        while line.gone < line.out.len() {
            match line.stream.try_write_vectored(&[IoSlice::new(&line.out[line.gone..])]) {
                Ok(written) => line.gone += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if line.stream.poll_write_ready(cx).is_pending() {
                        return Ok(());
                    }
                }
                Err(error) => return Err(cause_of(&error)),
            }
        }
        line.out = Vec::new();
        line.gone = 0;
        Ok(())
    }

    fn poll_read(&self, cx: &mut Context<'_>, line: &mut Line) -> Poll<Result<(), Cause>> {
        let pool = &self.shared.turn.buffers;
        let missing = line.scanner.missing(line.inbox.len());
        let mut buffer = line.inbox.buffer(missing, pool);
        match line.stream.poll_read_into(cx, &mut buffer) {
            Poll::Pending => {
                line.inbox.keep(buffer, missing, pool);
                return Poll::Pending;
            }
            Poll::Ready(Ok(0)) => return Poll::Ready(Err(Cause::Closed)),
            Poll::Ready(Err(error)) => return Poll::Ready(Err(cause_of(&error))),
            Poll::Ready(Ok(_)) => {}
        }
        let mut at = 0;
        loop {
            match line.scanner.scan(&buffer[at..]) {
                Ok(Some(len)) => {
                    self.hear(&buffer[at..at + len], line)?;
                    at += len;
                }
                Ok(None) => break,
                Err(_) => return Poll::Ready(Err(Cause::Protocol)),
            }
            if at == buffer.len() {
                break;
            }
        }
        buffer.advance(at);
        let missing = line.scanner.missing(buffer.len());
        line.inbox.keep(buffer, missing, pool);
        Poll::Ready(Ok(()))
    }

    fn hear(&self, frame: &[u8], line: &mut Line) -> Result<(), Cause> {
        let audience = self.audience.get().and_then(Weak::upgrade);
        let error = match heard(frame).ok_or(Cause::Protocol)? {
            Heard::Message(space, name) => {
                if let Some(audience) = audience {
                    audience.message(space, name, frame);
                }
                return Ok(());
            }
            Heard::Nothing => return Ok(()),
            Heard::Changed => None,
            Heard::Error => Some(frame),
        };
        line.timer = None;
        let Some(answered) = self.asked.borrow_mut().pop_front() else {
            // Said by itself: a server ends the subscriptions to shard channels of slots that it gives away.
            return Ok(());
        };
        if let Some((space, name)) = answered {
            if let (None, Some(stands)) = (error, self.names.borrow_mut()[space.index()].get_mut(&name)) {
                *stands = true;
            }
            match (audience, error) {
                (Some(audience), None) => audience.stands(space, &name),
                (Some(audience), Some(error)) => {
                    let text = String::from_utf8_lossy(error);
                    tracing::warn!(server = %self.shared.label, error = text.trim_end(), "a subscription was refused");
                    audience.failed(space, &name, error);
                }
                (None, _) => {}
            }
        }
        if self.asked.borrow().is_empty() && self.gap.take() {
            tracing::info!(server = %self.shared.label, "subscriptions stand again");
        }
        Ok(())
    }

    /// A server that doesn't answer within the pool's timeout is lost.
    fn poll_timer(&self, cx: &mut Context<'_>, line: &mut Line) -> Poll<Option<Cause>> {
        let Some(timeout) = self.shared.settings.timeout.filter(|_| !self.asked.borrow().is_empty()) else {
            line.timer = None;
            return Poll::Pending;
        };
        let timer = line.timer.get_or_insert_with(|| Box::pin(sleep(timeout)));
        timer.as_mut().poll(cx).map(|()| Some(Cause::ResponseTimeout))
    }

    /// The connection broke.
    fn lost(&self, cause: Cause) {
        let stats = &self.shared.stats;
        match cause {
            Cause::Closed => stats.server_eof.add(1),
            Cause::ResponseTimeout => stats.server_timedout.add(1),
            _ => stats.server_err.add(1),
        }
        self.interrupted(cause);
        self.fail(cause);
    }

    /// Nothing stands until the next connection.
    fn interrupted(&self, cause: Cause) {
        let (shared, stats) = (&self.shared, &self.shared.stats);
        let mut stood = 0;
        for stands in self.names.borrow_mut().iter_mut().flat_map(HashMap::values_mut) {
            stood += usize::from(std::mem::take(stands));
        }
        if stood > 0 {
            stats.subscription_gaps.add(1);
            self.gap.set(true);
            tracing::warn!(server = %shared.label, ?cause, subscriptions = stood, "subscriptions are interrupted: messages may be missed until they stand again");
        }
    }

    /// Whoever waits gets an error; what others are subscribed to is tried again.
    fn fail(&self, cause: Cause) {
        let Some(audience) = self.audience.get().and_then(Weak::upgrade) else { return };
        let mut error = Vec::new();
        self.shared.error(cause).reply().encode(&mut error);
        self.all().iter().for_each(|(space, name)| audience.failed(*space, name, &error));
    }

    fn all(&self) -> Vec<(Space, Bytes)> {
        let names = self.names.borrow();
        let of = |space: Space| names[space.index()].keys().map(move |name| (space, name.clone()));
        Space::ALL.into_iter().flat_map(of).collect()
    }

    fn wake(&self) {
        if let Some(task) = self.task.borrow().as_ref() {
            task.wake_by_ref();
        }
    }
}
