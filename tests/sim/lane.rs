//! One server's place in the simulated proxy: the way of `backend`'s lane and connection, without sockets and tasks.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use shardwise::backend::{Pipe, Request};
use shardwise::exchange::{BackendError, Cause, Moment, Outcome, Recipient, Reply, Ticket, Turn};
use shardwise::resp::{ArgSpan, Limits, ReplyScanner, RequestScanner, Scanned};
use shardwise::stats::Histogram;

use super::server::{Server, Wire};

/// What the proxy has for one server.
pub struct Lane {
    pub link: Link,
    /// Late with a reply: they deliver what is due.
    pub retiring: Vec<Conn>,
    turn: Rc<Turn>,
}

/// The connection that takes requests, if there is one.
pub enum Link {
    /// On its way; requests wait.
    Connecting(Pipe),
    /// In use.
    Up(Box<Conn>),
    /// The server is known to be down.
    Down,
}

/// A connection.
pub struct Conn {
    pipe: Pipe,
    pub wire: Wire,
    /// Bytes of replies that have been read and not handed on.
    inbox: Vec<u8>,
    scanner: ReplyScanner,
    streaming: Option<(Option<Ticket>, usize)>,
    /// Counts whole requests as they are written.
    written: (RequestScanner, Vec<u8>, u64),
    /// Replies handed on.
    completed: u64,
}

/// The connection cannot go on.
#[derive(Debug)]
pub struct Broken;

/// Longer replies are passed on in pieces.
const STREAM_THRESHOLD: usize = 300;
/// From this size on they move as they are.
const SHARE_THRESHOLD: usize = 100;

/// How long a server may take.
pub const TIMEOUT: Duration = Duration::from_millis(100);

impl Lane {
    /// One whose connection is on its way.
    pub fn new(turn: &Rc<Turn>) -> Self {
        Self { link: Link::Connecting(Pipe::default()), retiring: Vec::new(), turn: Rc::clone(turn) }
    }

    /// Whether this client may send here: it has nothing outstanding on an older connection.
    pub fn admits(&self, client: &Rc<dyn Recipient>) -> bool {
        !self.retiring.iter().any(|conn| conn.pipe.awaits(|ticket| ticket.is_for(client)))
    }

    /// Sends, waits, or fails at once.
    pub fn send(&mut self, request: Request<'_>, ticket: Ticket, now: Moment) {
        match &mut self.link {
            Link::Up(conn) => drop(conn.pipe.push(request, ticket, now, &self.turn.buffers)),
            Link::Connecting(pipe) => {
                pipe.push(request, ticket, now, &self.turn.buffers);
            }
            Link::Down => ticket.settle(Outcome::Unsent(error(Cause::Refused))),
        }
    }

    /// The attempt to connect ends.
    pub fn connected(&mut self, accepted: bool) {
        match std::mem::replace(&mut self.link, Link::Down) {
            Link::Connecting(pipe) if accepted => self.link = Link::Up(Box::new(Conn::new(pipe))),
            Link::Connecting(mut pipe) => fail_unsent(&mut pipe),
            Link::Down => self.link = Link::Connecting(Pipe::default()),
            up @ Link::Up(_) => self.link = up,
        }
    }

    /// The socket takes so many bytes.
    pub fn write(&mut self, room: usize, now: Moment) {
        if let Link::Up(conn) = &mut self.link {
            conn.write(room, now);
            conn.check();
        }
    }

    /// So many bytes of replies come, on the connection in use or on an older one.
    pub fn read(&mut self, which: usize, most: usize) {
        let len = self.retiring.len();
        if let Some(conn) = self.retiring.get_mut(which % (len + 1)) {
            if conn.read(most).is_err() {
                self.lose_retired(which % (len + 1));
            } else if conn.is_drained() {
                self.retiring.remove(which % (len + 1));
            }
        } else if let Link::Up(conn) = &mut self.link
            && conn.read(most).is_err()
        {
            self.lose();
        }
    }

    /// The connection in use is over: what never left goes to the next.
    pub fn lose(&mut self) {
        if let Link::Up(conn) = &mut self.link {
            let (touched, pipe) = conn.dismantle();
            self.link = Link::Connecting(pipe);
            touched.into_iter().for_each(|ticket| ticket.settle(Outcome::Unknown(error(Cause::Reset))));
        }
    }

    /// An older connection is over.
    pub fn lose_retired(&mut self, at: usize) {
        let (touched, mut pipe) = self.retiring.remove(at).dismantle();
        touched.into_iter().for_each(|ticket| ticket.settle(Outcome::Unknown(error(Cause::ResponseTimeout))));
        fail_unsent(&mut pipe);
    }

    /// What is late gets an error, and its connection retires, or ends if not even the request could be written.
    pub fn expire(&mut self, now: Moment) {
        let Link::Up(conn) = &mut self.link else { return };
        let expired = conn.pipe.expire(now - TIMEOUT);
        if expired.is_empty() {
            return;
        }
        let usable = expired.iter().all(|(_, sent)| *sent) && conn.pipe.unwritten() == 0;
        for (ticket, sent) in expired {
            let cause = if sent { Cause::ResponseTimeout } else { Cause::QueueTimeout };
            ticket.settle(Outcome::Unknown(error(cause)));
        }
        if !usable {
            return self.lose();
        }
        if let Link::Up(conn) = std::mem::replace(&mut self.link, Link::Connecting(Pipe::default()))
            && !conn.is_drained()
        {
            self.retiring.push(*conn);
        }
    }

    /// One of its connections whose wire the server may look at.
    pub fn conn(&mut self, which: usize) -> Option<&mut Conn> {
        let len = self.retiring.len();
        match &mut self.link {
            Link::Up(conn) if which % (len + 1) == len => Some(&mut **conn),
            _ => self.retiring.get_mut(which % (len + 1)),
        }
    }

    /// Whether nothing waits and nothing is awaited.
    pub fn is_idle(&self) -> bool {
        let idle = |pipe: &Pipe| pipe.oldest().is_none() && pipe.unwritten() == 0;
        self.retiring.is_empty()
            && match &self.link {
                Link::Up(conn) => idle(&conn.pipe) && conn.streaming.is_none(),
                Link::Connecting(pipe) => idle(pipe),
                Link::Down => true,
            }
    }
}

impl Conn {
    fn new(pipe: Pipe) -> Self {
        Self {
            pipe,
            wire: Wire::default(),
            inbox: Vec::new(),
            scanner: ReplyScanner::default(),
            streaming: None,
            written: (RequestScanner::default(), Vec::new(), 0),
            completed: 0,
        }
    }

    /// The server executes one request of it.
    pub fn execute(&mut self, server: &mut Server) -> bool {
        server.execute(&mut self.wire)
    }

    fn write(&mut self, mut room: usize, now: Moment) {
        let wire = &mut self.wire;
        let (scanner, partial, count) = &mut self.written;
        let written = self.pipe.out().write_to(|parts| {
            let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(room).collect();
            if all.is_empty() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            room -= all.len();
            wire.there.extend_from_slice(&all);
            partial.extend_from_slice(&all);
            Ok(all.len())
        });
        written.expect("this socket never fails");
        self.pipe.after_write(|| now, &Histogram::default());
        let mut spans: Vec<ArgSpan> = Vec::new();
        while let Ok(Scanned::Array(len)) = scanner.scan(partial, &mut spans, &Limits::default()) {
            partial.drain(..len);
            *count += 1;
        }
    }

    /// Reads, and hands on what is complete.
    fn read(&mut self, most: usize) -> Result<(), Broken> {
        let take = self.wire.back.len().min(most);
        self.inbox.extend(self.wire.back.drain(..take));
        loop {
            if let Some((ticket, left)) = &mut self.streaming {
                let take = self.inbox.len().min(*left);
                let piece: Vec<u8> = self.inbox.drain(..take).collect();
                *left -= take;
                if let Some(ticket) = ticket {
                    ticket.stream(piece.into());
                }
                if *left > 0 {
                    return Ok(());
                }
                let ticket = self.streaming.take().and_then(|(ticket, _)| ticket);
                ticket.into_iter().for_each(Ticket::end_stream);
                self.completed += 1;
            }
            let Some(len) = self.scanner.scan(&self.inbox).map_err(|_| Broken)? else { break };
            let reply: Vec<u8> = self.inbox.drain(..len).collect();
            let ticket = self.pop()?;
            self.completed += 1;
            if let Some(ticket) = ticket {
                if len < SHARE_THRESHOLD {
                    ticket.settle(Outcome::Reply(Reply::Borrowed(&reply)));
                } else {
                    ticket.settle(Outcome::Reply(Reply::Shared(Bytes::from(reply))));
                }
            }
        }
        if let Some(len) = self.scanner.bulk_len()
            && len > STREAM_THRESHOLD
            && self.pipe.head().is_some_and(|head| head.ticket.as_ref().is_none_or(Ticket::begin_stream))
        {
            let ticket = self.pop()?;
            self.scanner = ReplyScanner::default();
            self.streaming = Some((ticket, len));
            return self.read(0);
        }
        Ok(())
    }

    fn pop(&mut self) -> Result<Option<Ticket>, Broken> {
        let (head, early) = self.pipe.pop().ok_or(Broken)?;
        assert!(!early, "no server answers a request that has not come whole");
        Ok(head.ticket)
    }

    /// Awaited replies = requests written − replies completed.
    fn check(&mut self) {
        let (_, shown) = self.pipe.show();
        let streaming = u64::from(self.streaming.is_some());
        assert_eq!(shown.awaited + streaming, self.written.2 - self.completed, "{shown:?}");
        assert_eq!(shown.waiting_bytes, self.pipe.unwritten() as u64);
    }

    fn is_drained(&self) -> bool {
        self.pipe.oldest().is_none() && self.streaming.as_ref().is_none_or(|(ticket, _)| ticket.is_none())
    }

    fn dismantle(&mut self) -> (Vec<Ticket>, Pipe) {
        let mut touched: Vec<Ticket> =
            self.streaming.take().and_then(|(ticket, _)| ticket).into_iter().collect();
        let mut pipe = std::mem::take(&mut self.pipe);
        touched.extend(pipe.take_touched());
        (touched, pipe)
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        // Only one with nothing to deliver is dropped: the tickets say so themselves.
        self.pipe.take_all().into_iter().for_each(drop);
        self.pipe.show();
    }
}

fn fail_unsent(pipe: &mut Pipe) {
    pipe.take_all().into_iter().for_each(|ticket| ticket.settle(Outcome::Unsent(error(Cause::Refused))));
    pipe.show();
}

fn error(cause: Cause) -> BackendError {
    BackendError { cause, server: "s".into() }
}
