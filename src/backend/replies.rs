//! Replies as they come from a server: delimited, and handed to whoever awaits them.

use std::io;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Buf, Bytes, BytesMut};

use super::conn::Conn;
use super::connect::cause_of;
use crate::exchange::{Cause, Inbox, Moment, Outcome, Reply, Ticket, Took};
use crate::resp::{Protocol, ReplyScanner};

/// How far the replies of one connection have been read.
pub(super) struct Reader {
    inbox: Inbox,
    scanner: ReplyScanner,
    /// A reply that is being passed on piece by piece.
    pub(super) streaming: Option<Streaming>,
}

/// The reply that is on its way to its client while it still comes.
pub(super) struct Streaming {
    pub(super) ticket: Option<Ticket>,
    /// Bytes still to come.
    left: usize,
    /// Bytes of the whole reply.
    len: usize,
    /// When the last piece came: a reply that stands still is late.
    pub(super) since: Moment,
}

/// The first byte of what a RESP3 server sends without being asked.
const PUSH: u8 = b'>';

/// A reply longer than this is passed on before it is complete, if it is a client's next one.
const STREAM_THRESHOLD: usize = 64 << 10;

/// A complete reply from this size on moves as it is; a smaller one is copied.
const SHARE_THRESHOLD: usize = 16 << 10;

impl Reader {
    /// Of a connection that speaks `protocol`.
    pub(super) fn of(protocol: Protocol) -> Self {
        Self { inbox: Inbox::default(), scanner: ReplyScanner::of(protocol), streaming: None }
    }

    /// Whether nothing of a further reply has come.
    pub(super) fn is_between_replies(&self) -> bool {
        self.inbox.is_empty()
    }
}

impl Conn {
    /// One read, and every reply that it completes. `again`: behind another one, so that most likely nothing is left.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, again: bool) -> Poll<Result<(), Cause>> {
        let mut stream = self.stream.borrow_mut();
        let broken = self.broken.get().is_some();
        if again && !broken && stream.poll_read_ready(cx).is_pending() {
            return Poll::Pending;
        }
        let mut reader = self.reader.borrow_mut();
        let reader = &mut *reader;
        let pool = &self.shared.turn.buffers;
        let missing = match &reader.streaming {
            Some(_) => 0,
            None => reader.scanner.missing(reader.inbox.len()),
        };
        let mut buffer = reader.inbox.buffer(missing, pool);
        let polled = match broken {
            false => stream.poll_read_into(cx, &mut buffer),
            true => match stream.read_at_once(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                read => Poll::Ready(read),
            },
        };
        drop(stream);
        match polled {
            Poll::Pending => {
                reader.inbox.keep(buffer, missing, pool);
                Poll::Pending
            }
            Poll::Ready(Ok(0)) => Poll::Ready(Err(Cause::Closed)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(read_failed(&error))),
            Poll::Ready(Ok(_)) => {
                let result = self.receive(reader, buffer);
                self.show_queues();
                Poll::Ready(result)
            }
        }
    }

    /// Hands on every complete reply in `buffer` and keeps the rest.
    fn receive(&self, reader: &mut Reader, mut buffer: BytesMut) -> Result<(), Cause> {
        let pool = &self.shared.turn.buffers;
        self.receive_streamed(reader, &mut buffer)?;
        let now = self.shared.turn.now(Instant::now);
        let mut at = 0;
        while at < buffer.len() {
            if self.broken.get() == Some(Cause::Protocol) {
                // An early answer was the last one: what follows it would go to requests that never left.
                return Err(Cause::Protocol);
            }
            let Some(len) = reader.scanner.scan(&buffer[at..]).map_err(|_| Cause::Protocol)? else { break };
            if buffer[at] == PUSH {
                // Nobody awaits it: it comes beside the replies, and nothing was subscribed to here.
                at += len;
                continue;
            }
            let ticket = self.take_head(now)?;
            self.judge(&buffer[at..at + len], ticket.is_some());
            self.shared.count_response(len);
            if len < SHARE_THRESHOLD {
                if let Some(ticket) = ticket {
                    ticket.settle(Outcome::Reply(Reply::Borrowed(&buffer[at..at + len])));
                }
                at += len;
            } else {
                let mut reply = buffer.split_to(at + len);
                reply.advance(at);
                at = 0;
                if let Some(ticket) = ticket {
                    ticket.settle(Outcome::Reply(Reply::Shared(reply.freeze())));
                }
            }
        }
        buffer.advance(at);
        if buffer.first().is_some_and(|kind| *kind != PUSH) && self.pipe.borrow().head().is_none() {
            // The beginning of something that nobody asked for: the next request must not get it.
            return Err(Cause::Protocol);
        }
        if let Some(len) = reader.scanner.bulk_len()
            && len > STREAM_THRESHOLD
            && self.head_may_stream()
        {
            let ticket = self.take_head(now)?;
            reader.scanner.reset();
            let since = now;
            self.judge(&buffer, ticket.is_some());
            reader.streaming = Some(Streaming { ticket, left: len, len, since });
            self.shared.count_response(len);
            self.receive_streamed(reader, &mut buffer)?;
        }
        let missing = reader.scanner.missing(buffer.len());
        reader.inbox.keep(buffer, missing, pool);
        Ok(())
    }

    /// Passes on what belongs to a reply that is being streamed.
    fn receive_streamed(&self, reader: &mut Reader, buffer: &mut BytesMut) -> Result<(), Cause> {
        let Some(streaming) = &mut reader.streaming else { return Ok(()) };
        let piece = buffer.split_to(buffer.len().min(streaming.left)).freeze();
        streaming.check_terminator(&piece)?;
        streaming.left -= piece.len();
        streaming.since = self.shared.turn.now(Instant::now);
        if let Some(ticket) = &streaming.ticket {
            ticket.stream(piece);
        }
        if streaming.left == 0 {
            let ticket = reader.streaming.take().and_then(|streaming| streaming.ticket);
            ticket.into_iter().for_each(Ticket::end_stream);
        }
        Ok(())
    }

    /// Whether the reply to the head of the FIFO may be passed on piece by piece.
    fn head_may_stream(&self) -> bool {
        let pipe = self.pipe.borrow();
        pipe.head().is_some_and(|head| head.ticket.as_ref().is_none_or(Ticket::begin_stream))
    }

    /// What a reply says of its server's health: one that loads its data is not ready, and a late reply proves nothing.
    #[inline]
    fn judge(&self, reply: &[u8], wanted: bool) {
        self.answered.set(true);
        if reply.starts_with(b"-LOADING ") {
            self.shared.failed();
        } else if wanted {
            self.shared.succeeded();
        }
    }

    /// Takes the head of the FIFO for a reply. An answer that nobody awaits, or one that came before its request
    /// had left whole, ends the connection.
    #[inline]
    fn take_head(&self, now: Moment) -> Result<Option<Ticket>, Cause> {
        let (head, early) = self.pipe.borrow_mut().pop().ok_or(Cause::Protocol)?;
        if let Some(ticket) = &head.ticket {
            let answer = now.micros_since(head.since);
            self.shared.stats.answer_seconds.record(answer);
            ticket.note(&Took { queue: u64::from(head.queued), answer, server: &self.shared.label });
        }
        if early {
            self.broken.set(Some(Cause::Protocol));
            self.wake_driver();
        }
        Ok(head.ticket)
    }
}

// === impl Streaming ===

impl Streaming {
    /// The last two bytes of the reply must be CRLF, in whatever pieces they come.
    fn check_terminator(&self, piece: &Bytes) -> Result<(), Cause> {
        let offset = self.len - self.left;
        for (position, expected) in [(self.len - 2, b'\r'), (self.len - 1, b'\n')] {
            if let Some(i) = position.checked_sub(offset)
                && piece.get(i).is_some_and(|byte| *byte != expected)
            {
                return Err(Cause::Protocol);
            }
        }
        Ok(())
    }
}

fn read_failed(error: &io::Error) -> Cause {
    match cause_of(error) {
        // On an established connection the kernel gave up on unacknowledged data.
        Cause::ConnectTimeout => Cause::ResponseTimeout,
        cause => cause,
    }
}
