//! One awaited reply: who gets it.

use std::rc::Rc;

use bytes::Bytes;

use super::backend_error::BackendError;
use super::outbox::Outbox;
use super::turn::Flush;

/// A client as its replies see it.
pub trait Recipient: Flush {
    /// Its ordered replies.
    fn outbox(&self) -> &Outbox;

    /// A request of this command (its index, see [`Outbox::set_command`]) is about to get its reply.
    fn answered(&self, _command: u16, _took: &Took<'_>) {}

    /// The reply to the request that [`Outbox::sample_next`] meant is there, and has so many bytes.
    fn replied(&self, _bytes: u64) {}
}

/// How long a request took, and where. In microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Took<'a> {
    /// From admission until it was written.
    pub queue: u64,
    /// From there to the reply.
    pub answer: u64,
    /// `NAME (ADDRESS)` of the server.
    pub server: &'a Rc<str>,
}

/// Something that waits for several replies, and makes one of them.
pub trait Settle {
    /// Part `part` has its outcome. Called once for each part.
    fn settle(&self, part: u32, outcome: Outcome<'_>);

    /// A part took so long. Called before its outcome is there, if it came from a server.
    fn took(&self, _took: &Took<'_>) {}

    /// The client that waits for the whole.
    fn client(&self) -> &Rc<dyn Recipient>;
}

/// The bytes of a reply.
#[derive(Debug)]
pub enum Reply<'a> {
    /// In the reader's scratch buffer: to be copied.
    Borrowed(&'a [u8]),
    /// On their own: to be passed on.
    Shared(Bytes),
}

impl Reply<'_> {
    /// The bytes, wherever they are.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }

    /// The bytes on their own.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Self::Borrowed(bytes) => Bytes::copy_from_slice(bytes),
            Self::Shared(bytes) => bytes,
        }
    }
}

/// How a request to a server ended.
#[derive(Debug)]
pub enum Outcome<'a> {
    /// The server answered.
    Reply(Reply<'a>),
    /// Not one byte of the request left: nothing can have happened.
    Unsent(BackendError),
    /// It may have been executed: never sent again.
    Unknown(BackendError),
}

/// The right and the duty to answer one request: settled exactly once.
pub struct Ticket(Option<Holder>);

enum Holder {
    /// The reply is the client's, as it is.
    Client { to: Rc<dyn Recipient>, seq: u64, command: u16 },
    /// The reply is one part of a client's reply.
    Part { of: Rc<dyn Settle>, part: u32 },
}

impl Ticket {
    /// For request `seq` of a client, which the outbox has admitted.
    #[inline]
    pub fn client(to: Rc<dyn Recipient>, seq: u64) -> Self {
        let command = to.outbox().command();
        Self(Some(Holder::Client { to, seq, command }))
    }

    /// For one part of a request.
    pub fn part(of: Rc<dyn Settle>, part: u32) -> Self {
        Self(Some(Holder::Part { of, part }))
    }

    /// Says how long it took, before the outcome is handed over.
    #[inline]
    pub fn note(&self, took: &Took<'_>) {
        match &self.0 {
            Some(Holder::Client { to, command, .. }) => to.answered(*command, took),
            Some(Holder::Part { of, .. }) => of.took(took),
            None => {}
        }
    }

    /// Hands the outcome over.
    #[inline]
    pub fn settle(mut self, outcome: Outcome<'_>) {
        match self.0.take() {
            Some(Holder::Client { to, seq, .. }) => Outbox::settle(to, seq, outcome),
            Some(Holder::Part { of, part }) => of.settle(part, outcome),
            None => {}
        }
    }

    /// Whether the reply may be passed on before it is complete: it belongs to one client alone, and it is next.
    pub fn begin_stream(&self) -> bool {
        match &self.0 {
            Some(Holder::Client { to, seq, .. }) => to.outbox().begin_stream(*seq),
            _ => false,
        }
    }

    /// Passes the next bytes of a begun reply on.
    pub fn stream(&self, bytes: Bytes) {
        if let Some(Holder::Client { to, .. }) = &self.0 {
            Outbox::stream(to, bytes);
        }
    }

    /// The begun reply is complete.
    pub fn end_stream(mut self) {
        if let Some(Holder::Client { to, seq, .. }) = self.0.take() {
            Outbox::end_stream(to, seq);
        }
    }

    /// Whether its outcome is for `client`, as a whole or as a part.
    pub fn is_for(&self, client: &Rc<dyn Recipient>) -> bool {
        match &self.0 {
            Some(Holder::Client { to, .. }) => Rc::ptr_eq(to, client),
            Some(Holder::Part { of, .. }) => Rc::ptr_eq(of.client(), client),
            None => false,
        }
    }
}

impl Drop for Ticket {
    /// A ticket that nobody settled still answers: a request must never be left without an outcome.
    fn drop(&mut self) {
        if self.0.is_some() {
            debug_assert!(std::thread::panicking(), "a ticket was dropped without its outcome");
            let error = BackendError { cause: super::Cause::Shutdown, server: "unknown".into() };
            Self(self.0.take()).settle(Outcome::Unknown(error));
        }
    }
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            Some(Holder::Client { seq, .. }) => write!(f, "Ticket(client, {seq})"),
            Some(Holder::Part { part, .. }) => write!(f, "Ticket(part {part})"),
            None => f.write_str("Ticket(settled)"),
        }
    }
}
