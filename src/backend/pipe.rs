//! What is on its way to one server connection, and what is awaited from it.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::exchange::{BufferPool, ByteQueue, Moment, Ticket};
use crate::stats::Histogram;

/// The bytes of a request for a server.
pub enum Request<'a> {
    /// As the client sent it; copied.
    Borrowed(&'a [u8]),
    /// A large one; passed on without a copy.
    Shared(Bytes),
    /// Written by this function straight into the queue: the parts of a split.
    Encoded(&'a dyn Fn(&mut Vec<u8>)),
}

/// Bytes to be written and replies awaited, in the same order.
///
/// Awaited replies of a connection = requests written − replies completed (DESIGN, invariant 3).
#[derive(Debug, Default)]
pub struct Pipe {
    out: ByteQueue,
    fifo: VecDeque<InFlight>,
    /// Bytes appended since the pipe was made; the request behind them ends here.
    appended: u64,
    /// How many at the head of `fifo` have been written whole.
    sent: usize,
    /// What the gauges say of it.
    shown: Queues,
}

/// How much waits in a pipe, and how much is awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Requests waiting to be written.
    pub waiting: u64,
    /// Bytes of them.
    pub waiting_bytes: u64,
    /// Requests written whole and not answered, those given up included.
    pub awaited: u64,
    /// Bytes of them.
    pub awaited_bytes: u64,
}

/// One awaited reply.
#[derive(Debug)]
pub struct InFlight {
    /// Who gets it; `None` once its time is over: the reply is then taken and dropped.
    pub ticket: Option<Ticket>,
    /// Where its request ends in the bytes appended.
    end: u64,
    /// Length of the request.
    len: u32,
    /// Microseconds from its admission until it was written; 0 before that.
    pub queued: u32,
    /// When its clock started: at admission, and again when it was written.
    pub since: Moment,
}

impl Pipe {
    /// Appends a request whose reply goes to `ticket`. Returns its length.
    #[inline]
    pub fn push(&mut self, request: Request<'_>, ticket: Ticket, now: Moment, pool: &BufferPool) -> usize {
        let before = self.out.len();
        match request {
            Request::Borrowed(bytes) => self.out.push_slice(bytes, pool),
            Request::Shared(bytes) => self.out.push_bytes(bytes),
            Request::Encoded(encode) => {
                self.out.append_with(pool, encode);
            }
        }
        let len = self.out.len() - before;
        self.appended += len as u64;
        self.fifo.push_back(InFlight {
            ticket: Some(ticket),
            end: self.appended,
            len: len as u32,
            queued: 0,
            since: now,
        });
        len
    }

    /// The bytes to be written. Report what became of them by [`Pipe::after_write`].
    #[inline]
    pub fn out(&mut self) -> &mut ByteQueue {
        &mut self.out
    }

    /// Some of the bytes were written: at `now` the response clock of those requests starts. How long each had waited
    /// goes to `waited`.
    #[inline]
    pub fn after_write(&mut self, now: impl FnOnce() -> Moment, waited: &Histogram) {
        let before = self.sent;
        let written = self.written();
        self.sent = if self.out.is_empty() {
            self.fifo.len()
        } else {
            self.fifo.partition_point(|one| one.end <= written)
        };
        if self.sent > before {
            let now = now();
            for one in self.fifo.range_mut(before..self.sent) {
                let micros = now.micros_since(one.since);
                waited.record(micros);
                one.queued = u32::try_from(micros).unwrap_or(u32::MAX);
                one.since = now;
            }
        }
    }

    /// The head of the FIFO, whose reply is the next to come. `None` when no reply can be due: nothing is awaited, or
    /// not a byte of the next request has left.
    #[inline]
    pub fn head(&self) -> Option<&InFlight> {
        let head = self.fifo.front()?;
        (self.sent > 0 || head.start() < self.written()).then_some(head)
    }

    /// Takes the head of the FIFO; its reply is complete. The second value: its request had not left whole (B2),
    /// so the connection cannot go on.
    #[inline]
    pub fn pop(&mut self) -> Option<(InFlight, bool)> {
        self.head()?;
        let early = self.sent == 0;
        self.sent = self.sent.saturating_sub(1);
        self.fifo.pop_front().map(|head| (head, early))
    }

    /// Gives up on every request whose clock started at or before `limit`; their replies will be dropped.
    /// The tickets come with whether their request had been written.
    pub fn expire(&mut self, limit: Moment) -> Vec<(Ticket, bool)> {
        let sent = self.sent;
        let late = self.fifo.iter_mut().enumerate().take_while(|(_, one)| one.since <= limit);
        late.filter_map(|(i, one)| one.ticket.take().map(|ticket| (ticket, i < sent))).collect()
    }

    /// When the clock started of the oldest request that is still wanted.
    pub fn oldest(&self) -> Option<Moment> {
        self.fifo.iter().find(|one| one.ticket.is_some()).map(|one| one.since)
    }

    /// Splits the pipe of a connection that is over: tickets of requests of which at least a byte left, whose
    /// outcome is unknown; what remains are the requests of which nothing left, ready for the next connection.
    ///
    /// Requests that were given up before they left are forgotten: their clients have been told that they failed.
    pub fn take_touched(&mut self) -> Vec<Ticket> {
        let written = self.written();
        let touched = self.fifo.partition_point(|one| one.start() < written);
        let tickets = self.fifo.drain(..touched).filter_map(|one| one.ticket).collect();
        while self.fifo.front().is_some_and(|one| one.ticket.is_none()) {
            self.fifo.pop_front();
        }
        // The rest of a request that left by half must not follow it.
        let rest = self.fifo.front().map_or(self.appended, InFlight::start);
        self.out.advance((rest - written) as usize);
        self.sent = 0;
        tickets
    }

    /// Takes every ticket and forgets every byte.
    pub fn take_all(&mut self) -> Vec<Ticket> {
        self.out.clear();
        self.sent = 0;
        self.fifo.drain(..).filter_map(|one| one.ticket).collect()
    }

    /// Whether any awaited reply satisfies `test`.
    pub fn awaits(&self, test: impl Fn(&Ticket) -> bool) -> bool {
        self.fifo.iter().any(|one| one.ticket.as_ref().is_some_and(&test))
    }

    /// Whether nothing is awaited, not even a reply that will be dropped, and nothing waits to be written.
    pub fn is_idle(&self) -> bool {
        self.fifo.is_empty() && self.out.is_empty()
    }

    /// Bytes waiting to be written.
    pub fn unwritten(&self) -> usize {
        self.out.len()
    }

    /// What the gauges said of it until now, and what they must say from now on.
    #[inline]
    pub fn show(&mut self) -> (Queues, Queues) {
        let now = Queues {
            waiting: (self.fifo.len() - self.sent) as u64,
            waiting_bytes: self.out.len() as u64,
            awaited: self.sent as u64,
            awaited_bytes: self.fifo.front().map_or(0, |head| self.written().saturating_sub(head.start())),
        };
        (std::mem::replace(&mut self.shown, now), now)
    }

    fn written(&self) -> u64 {
        self.appended - self.out.len() as u64
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        debug_assert!(
            self.shown == Queues::default() || std::thread::panicking(),
            "gauges still show a pipe that is gone: {:?}",
            self.shown
        );
    }
}

impl InFlight {
    /// Where its request starts in the bytes appended.
    fn start(&self) -> u64 {
        self.end - u64::from(self.len)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io;
    use std::rc::Rc;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::exchange::{BackendError, Cause, Outcome, Recipient, Settle};

    #[derive(Default)]
    struct Settled(RefCell<Vec<u32>>);

    impl Settle for Settled {
        fn settle(&self, part: u32, _: Outcome<'_>) {
            self.0.borrow_mut().push(part);
        }

        fn client(&self) -> &Rc<dyn Recipient> {
            unreachable!("these tests have no client")
        }
    }

    struct Bench {
        pipe: Pipe,
        pool: BufferPool,
        settled: Rc<Settled>,
        now: Moment,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                pipe: Pipe::default(),
                pool: BufferPool::default(),
                settled: Rc::default(),
                now: Moment::at(Instant::now()),
            }
        }

        fn push(&mut self, part: u32, request: &[u8]) {
            let ticket = Ticket::part(self.settled.clone(), part);
            self.pipe.push(Request::Borrowed(request), ticket, self.now, &self.pool);
        }

        /// Lets the socket take `room` bytes; returns what was written.
        fn write(&mut self, mut room: usize) -> Vec<u8> {
            let mut written = Vec::new();
            let result = self.pipe.out().write_to(|parts| {
                if room == 0 {
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                let n = parts[0].len().min(room);
                written.extend_from_slice(&parts[0][..n]);
                room -= n;
                Ok(n)
            });
            result.unwrap();
            let now = self.now;
            self.pipe.after_write(|| now, &Histogram::default());
            written
        }
    }

    fn settle(tickets: Vec<Ticket>) {
        for ticket in tickets {
            let error = BackendError { cause: Cause::Reset, server: "s".into() };
            ticket.settle(Outcome::Unknown(error));
        }
    }

    /// Never-sent is not maybe-sent: of three requests, one left whole and one by half when the connection died.
    #[test]
    fn what_never_left_goes_to_the_next_connection_whole() {
        let mut bench = Bench::new();
        for (part, request) in [(0, &b"aaaa"[..]), (1, b"bbbb"), (2, b"cccc"), (3, b"dddd")] {
            bench.push(part, request);
        }
        assert_eq!(bench.write(6), b"aaaabb");
        assert_eq!(bench.pipe.sent, 1);
        settle(bench.pipe.take_touched());
        assert_eq!(*bench.settled.0.borrow(), [0, 1]);
        assert_eq!(bench.pipe.fifo.len(), 2);
        assert_eq!(bench.write(100), b"ccccdddd");
        assert_eq!(bench.pipe.sent, 2);
        settle(bench.pipe.take_all());
    }

    #[test]
    fn a_cut_between_two_requests_touches_only_the_first() {
        let mut bench = Bench::new();
        bench.push(0, b"aaaa");
        bench.push(1, b"bbbb");
        bench.write(4);
        settle(bench.pipe.take_touched());
        assert_eq!(*bench.settled.0.borrow(), [0]);
        assert_eq!(bench.write(100), b"bbbb");
        settle(bench.pipe.take_all());
    }

    /// A server refused a large value by its length, before all of it had come, and closed. The rest of the value went to
    /// the next connection, where the server took it for commands.
    #[test]
    fn the_rest_of_a_request_that_was_answered_early_goes_nowhere() {
        let mut bench = Bench::new();
        for (part, request) in [(0, &b"aaaa"[..]), (1, b"bbbb"), (2, b"cccc")] {
            bench.push(part, request);
        }
        assert_eq!(bench.write(6), b"aaaabb");
        assert!(!pop(&mut bench));
        assert!(pop(&mut bench));
        settle(bench.pipe.take_touched());
        assert_eq!(*bench.settled.0.borrow(), [0, 1]);
        assert_eq!(bench.write(100), b"cccc");
        settle(bench.pipe.take_all());

        let mut bench = Bench::new();
        bench.push(0, b"aaaa");
        bench.write(1);
        assert!(pop(&mut bench));
        settle(bench.pipe.take_touched());
        assert_eq!(bench.write(100), b"");
    }

    /// Answers the head; whether it had not left whole.
    fn pop(bench: &mut Bench) -> bool {
        let (head, early) = bench.pipe.pop().unwrap();
        settle(head.ticket.into_iter().collect());
        early
    }

    /// The response clock starts when a request was written, not while it queued behind a full socket.
    #[test]
    fn the_response_clock_starts_at_the_write() {
        let mut bench = Bench::new();
        let start = bench.now;
        bench.push(0, b"aaaa");
        bench.push(1, b"bbbb");
        bench.write(4);
        bench.now += Duration::from_millis(500);
        bench.write(4);
        assert_eq!(bench.pipe.oldest(), Some(start));
        let expired = bench.pipe.expire(start);
        assert_eq!(expired.len(), 1);
        assert!(expired[0].1, "it had been written");
        settle(expired.into_iter().map(|(ticket, _)| ticket).collect());
        assert_eq!(bench.pipe.oldest(), Some(bench.now));
        assert_eq!(bench.pipe.fifo.len(), 2, "the late reply is still awaited, to be dropped");
        settle(bench.pipe.take_all());
    }

    /// B2: the rest of a request that was answered before it had left whole must not reach the next connection,
    /// which would take the middle of a value for a command.
    #[test]
    fn a_reply_before_its_request_has_left_whole_is_told_and_the_rest_is_dropped() {
        let mut bench = Bench::new();
        bench.push(0, b"aaaa");
        bench.push(1, b"bbbb");
        bench.write(2);
        let (head, early) = bench.pipe.pop().unwrap();
        assert!(early);
        settle(head.ticket.into_iter().collect());
        assert!(bench.pipe.take_touched().is_empty());
        assert_eq!(bench.write(100), b"bbbb");
        settle(bench.pipe.take_all());

        bench.push(2, b"cccc");
        bench.write(1);
        settle(bench.pipe.pop().unwrap().0.ticket.into_iter().collect());
        assert!(bench.pipe.take_touched().is_empty());
        assert_eq!(bench.write(100), b"");
    }

    #[test]
    fn no_reply_can_be_due_to_a_request_that_has_not_begun_to_leave() {
        let mut bench = Bench::new();
        bench.push(0, b"aaaa");
        assert!(bench.pipe.head().is_none() && bench.pipe.pop().is_none());
        bench.write(1);
        assert!(bench.pipe.head().is_some());
        settle(bench.pipe.take_all());
    }

    /// A client that was told that its request failed may have sent it anew: it must not be executed late.
    #[test]
    fn what_was_given_up_before_it_left_is_never_sent() {
        let mut bench = Bench::new();
        bench.push(0, b"aaaa");
        bench.push(1, b"bbbb");
        bench.write(4);
        let limit = bench.now;
        bench.now += Duration::from_millis(500);
        bench.push(2, b"cccc");
        settle(bench.pipe.expire(limit).into_iter().map(|(ticket, _)| ticket).collect());
        assert!(bench.pipe.take_touched().is_empty());
        assert_eq!(bench.write(100), b"cccc");
        settle(bench.pipe.take_all());
        assert_eq!(*bench.settled.0.borrow(), [0, 1, 2]);
    }

    #[test]
    fn what_is_shown_follows_what_is_there() {
        let mut bench = Bench::new();
        bench.push(0, b"aaaa");
        bench.push(1, b"bbbb");
        bench.write(6);
        let (before, now) = bench.pipe.show();
        assert_eq!(before, Queues::default());
        assert_eq!(now, Queues { waiting: 1, waiting_bytes: 2, awaited: 1, awaited_bytes: 6 });
        settle(bench.pipe.take_all());
        assert_eq!(bench.pipe.show(), (now, Queues::default()));
    }
}
