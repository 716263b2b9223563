//! One client: connects, sends batches, takes replies, and begins anew after a fault.

use std::cell::Cell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::sync::watch;
use tokio::time::sleep;

use super::batch::Batch;
use super::fault::Fault;
use super::pacer::Next;
use super::random::Random;
use super::tally::Tally;
use super::template::{Expected, Numbers};
use super::thread::{Phase, Thread};
use super::verify::{Verifier, Wrong};
use crate::net::Stream;
use crate::resp::ReplyScanner;

/// First wait after a fault; it doubles up to [`LONGEST_WAIT`], give or take a fifth.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// Longest reply that is taken: a peer must not fill memory.
const MOST_REPLY: usize = 256 << 20;
/// Room made for an incomplete reply beyond what it is known to lack; and the most made at once.
const ROOM: usize = 16 << 10;
const MOST_ROOM: usize = 1 << 20;

/// One connection at a time, and what is outstanding on it.
#[derive(Debug)]
pub struct Client {
    thread: Rc<Thread>,
    batch: Batch,
    /// Sent, or about to be; oldest first.
    sent: VecDeque<Sent>,
    numbers: Numbers,
    mix: Random,
    scanner: ReplyScanner,
    /// An incomplete reply.
    tail: BytesMut,
    /// With `verify`: checks replies, and the numbers that outstanding requests drew.
    verifier: Option<(Verifier, VecDeque<u64>)>,
    /// Whether the pacer knows that there is room.
    waiting: Rc<Cell<bool>>,
    /// Whether this connection has sent its only batch.
    spent: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    /// When its latency begins, in nanoseconds of the turn's clock.
    start: u64,
    /// Its position in the workload.
    command: usize,
}

/// Why a connection is not used any more.
#[derive(Debug)]
enum Ended {
    /// No request is left.
    Over,
    /// Its batch is answered and it is not to be kept.
    Spent,
    Fault(Fault),
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl Client {
    /// `number`: its position among all clients of the turn.
    pub fn new(thread: Rc<Thread>, number: usize) -> Self {
        let settings = &thread.load.settings;
        let seed = settings.seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        let numbers = match &thread.load.sequence {
            Some(next) => Numbers::Sequence(Arc::clone(next), settings.keys),
            None => Numbers::Random(Random::new(seed), settings.keys),
        };
        let verifier =
            settings.verify.then(|| (Verifier::new(settings.value_bytes, settings.fill), VecDeque::new()));
        Self {
            batch: Batch::default(),
            sent: VecDeque::with_capacity(settings.pipeline),
            numbers,
            mix: Random::new(!seed),
            scanner: thread.load.door.scanner(),
            tail: BytesMut::new(),
            verifier,
            waiting: Rc::default(),
            spent: false,
            thread,
        }
    }

    /// Runs to the end of the turn. The first connection is made before the start, if connections are kept.
    pub async fn run(mut self, mut phase: watch::Receiver<Phase>) {
        let keep_alive = self.thread.load.settings.keep_alive;
        let mut first = None;
        if keep_alive {
            let _permit = self.thread.opening.acquire().await;
            first = Some(self.thread.load.door.open().await);
        }
        self.thread.tried();
        if phase.wait_for(|phase| *phase != Phase::Connect).await.is_err() {
            return;
        }
        let mut wait = FIRST_WAIT;
        loop {
            if !keep_alive && poll_fn(|cx| self.poll_fill(cx)).await.is_none() {
                return;
            }
            let opened = match first.take() {
                Some(opened) => opened,
                None => self.thread.load.door.open().await,
            };
            let ended = match opened {
                Ok(stream) => self.converse(stream).await,
                Err(fault) => Ended::Fault(fault),
            };
            match ended {
                Ended::Over => return,
                Ended::Spent => wait = FIRST_WAIT,
                Ended::Fault(fault) => {
                    let served = self.spent;
                    self.fail(&fault);
                    if self.thread.is_over() {
                        return;
                    }
                    wait = if served { FIRST_WAIT } else { wait };
                    sleep(wait * (80 + self.mix.below(41) as u32) / 100).await;
                    wait = (wait * 2).min(LONGEST_WAIT);
                }
            }
        }
    }

    /// Counts what is outstanding as lost and forgets the connection.
    fn fail(&mut self, fault: &Fault) {
        self.thread.lost(fault, self.sent.len());
        self.sent.clear();
        if let Some((_, keys)) = &mut self.verifier {
            keys.clear();
        }
        self.reset();
        self.batch.clear();
    }

    fn reset(&mut self) {
        self.scanner = self.thread.load.door.scanner();
        self.tail.clear();
        self.spent = false;
    }

    async fn converse(&mut self, mut stream: Stream) -> Ended {
        let ended = poll_fn(|cx| self.poll(cx, &mut stream)).await;
        if matches!(ended, Ended::Spent) {
            self.reset();
        }
        ended
    }

    /// One turn of the loop: fill, write, read, until nothing more can be done now.
    fn poll(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<Ended> {
        loop {
            if self.thread.load.settings.keep_alive {
                if let Poll::Ready(None) = self.poll_fill(cx) {
                    return Poll::Ready(Ended::Over);
                }
            } else if self.sent.is_empty() {
                return Poll::Ready(Ended::Spent);
            }
            if let Err(error) = self.write(cx, stream) {
                return Poll::Ready(Ended::Fault(error.into()));
            }
            if let Err(fault) = ready!(self.poll_read(cx, stream)) {
                return Poll::Ready(Ended::Fault(fault));
            }
            self.spent = true;
        }
    }

    /// Makes requests, if it is time for some. `None`: there won't be any more, and none is outstanding. Pending: what there is
    /// is outstanding, or nothing is due.
    fn poll_fill(&mut self, cx: &Context<'_>) -> Poll<Option<()>> {
        if self.thread.pacer.is_some() {
            return self.poll_fill_due(cx);
        }
        if !self.sent.is_empty() {
            return Poll::Pending;
        }
        let count = self.thread.claim(self.thread.load.settings.pipeline);
        if count == 0 {
            return Poll::Ready(None);
        }
        let start = self.thread.now();
        let thread = Rc::clone(&self.thread);
        let commands = &thread.load.workload.commands;
        if let [only] = &**commands {
            let mut keys = self.verifier.as_mut().map(|(_, keys)| keys);
            self.batch.repeat(&only.template, count, &mut self.numbers, |key| {
                if let Some(keys) = &mut keys {
                    keys.push_back(key);
                }
            });
            self.sent.extend((0..count).map(|_| Sent { start, command: 0 }));
        } else {
            (0..count).for_each(|_| self.append(start));
        }
        Poll::Ready(Some(()))
    }

    /// The same with a schedule: as many as are due and have room.
    fn poll_fill_due(&mut self, cx: &Context<'_>) -> Poll<Option<()>> {
        let thread = Rc::clone(&self.thread);
        let (settings, Some(pacer)) = (&thread.load.settings, &thread.pacer) else { return Poll::Pending };
        let mut filled = Poll::Pending;
        while self.sent.len() < settings.pipeline {
            match pacer.take(thread.now(), || thread.claim(1) == 1) {
                Next::Due(due) => {
                    self.append(due);
                    filled = Poll::Ready(Some(()));
                }
                Next::Over if self.sent.is_empty() => return Poll::Ready(None),
                Next::Over => return filled,
                Next::Later if thread.is_over() && self.sent.is_empty() => return Poll::Ready(None),
                Next::Later => {
                    pacer.wait(&self.waiting, cx.waker());
                    return filled;
                }
            }
        }
        filled
    }

    fn append(&mut self, start: u64) {
        let thread = Rc::clone(&self.thread);
        let workload = &thread.load.workload;
        let command = workload.draw(&mut self.mix);
        let mut keys = self.verifier.as_mut().map(|(_, keys)| keys);
        self.batch.append(&workload.commands[command].template, &mut self.numbers, |key| {
            if let Some(keys) = &mut keys {
                keys.push_back(key);
            }
        });
        self.sent.push_back(Sent { start, command });
    }

    /// Writes what the socket takes; the rest when it takes more.
    fn write(&mut self, cx: &mut Context<'_>, stream: &Stream) -> io::Result<()> {
        while !self.batch.rest().is_empty() {
            match stream.try_write_vectored(&[IoSlice::new(self.batch.rest())]) {
                Ok(len) => self.batch.wrote(len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match stream.poll_write_ready(cx) {
                        Poll::Ready(ready) => ready?,
                        Poll::Pending => return Ok(()),
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, stream: &mut Stream) -> Poll<Result<(), Fault>> {
        let thread = Rc::clone(&self.thread);
        if self.tail.is_empty() {
            let mut scratch = thread.scratch.borrow_mut();
            scratch.clear();
            if ready!(stream.poll_read_into(cx, &mut scratch))? == 0 {
                return Poll::Ready(Err(Fault::Closed));
            }
            let used = self.take(&thread, &scratch)?;
            self.tail.extend_from_slice(&scratch[used..]);
            return Poll::Ready(Ok(()));
        }
        let missing = self.scanner.missing(self.tail.len()).min(MOST_ROOM);
        self.tail.reserve(missing + ROOM);
        if ready!(stream.poll_read_into(cx, &mut self.tail))? == 0 {
            return Poll::Ready(Err(Fault::Closed));
        }
        let mut tail = mem::take(&mut self.tail);
        tail.advance(self.take(&thread, &tail)?);
        if tail.len() > MOST_REPLY {
            return Poll::Ready(Err(Fault::TooBig));
        }
        // An empty one is kept only while it is small: thousands of clients have one each.
        if !tail.is_empty() || tail.capacity() <= MOST_ROOM {
            self.tail = tail;
        }
        Poll::Ready(Ok(()))
    }

    /// Takes all complete replies; how many bytes they were.
    fn take(&mut self, thread: &Thread, bytes: &[u8]) -> Result<usize, Fault> {
        let now = thread.now();
        let mut tally = thread.tally.borrow_mut();
        let mut at = 0;
        while let Some(len) = self.scanner.scan(&bytes[at..]).map_err(Fault::Protocol)? {
            self.reply(thread, &mut tally, &bytes[at..at + len], now)?;
            at += len;
        }
        tally.last_reply = now;
        Ok(at)
    }

    #[inline]
    fn reply(&mut self, thread: &Thread, tally: &mut Tally, reply: &[u8], now: u64) -> Result<(), Fault> {
        if reply.first() == Some(&b'>') {
            return Ok(()); // a push of RESP3 answers nothing
        }
        let sent = self.sent.pop_front().ok_or(Fault::Unasked)?;
        thread.outstanding.set(thread.outstanding.get() - 1);
        let is_error = matches!(reply.first(), Some(b'-' | b'!'));
        let wrong = match &mut self.verifier {
            None => None,
            Some((verifier, keys)) => {
                let template = &thread.load.workload.commands[sent.command].template;
                let expected = if is_error { Expected::Any } else { template.expected };
                verifier.check(expected, reply, keys.drain(..template.numbers())).err()
            }
        };
        match wrong {
            _ if is_error => tally.faults.add_reply(reply),
            Some(Wrong::Value) => tally.faults.add_wrong("wrong value", || start_of(reply)),
            Some(Wrong::Missing) => tally.faults.add_wrong("missing value", String::new),
            None => tally.answered(now.saturating_sub(sent.start)),
        }
        Ok(())
    }
}

fn start_of(reply: &[u8]) -> String {
    format!("{}", reply[..reply.len().min(60)].escape_ascii())
}
