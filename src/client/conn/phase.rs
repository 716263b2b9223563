//! How far a client's connection has come, why it waits, why it ends.

use std::fmt;

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Requests are read.
    Open,
    /// The proxy goes down: what has arrived is still answered, then it is closed. So many bytes are read at most.
    Draining(usize),
    /// Another process goes on with it: what it has begun is finished and what is due is delivered, then it leaves.
    Leaving,
    /// Nothing more is read; what is due is delivered, then it is closed.
    Closing(Closed),
    /// It is over.
    Over(Closed),
}

/// Why a client's connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The client closed its side.
    Eof,
    /// The client said QUIT.
    Quit,
    /// The client's bytes made no sense.
    Protocol,
    /// The client spoke HTTP.
    Http,
    /// The socket failed.
    Socket,
    /// More replies are waiting for the client than it may leave unread.
    OutputLimit,
    /// `max_buffers` is spent, and it has more than its fair part of it.
    BufferLimit,
    /// It takes no more of the replies that are waiting for it.
    Stalled,
    /// It was silent for too long, or did not get a first request out in time.
    Idle,
    /// It closed its side, and what was still due to it did not come.
    Unanswered,
    /// A reply broke off half-way with its server.
    ReplyCut,
    /// The operator said CLIENT KILL.
    Killed,
    /// The proxy goes down.
    Drain,
    /// Another process goes on with it; see [`ClientConn::into_moved`].
    Moved,
}

/// Why a client's requests wait although they are here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Too many requests, or too many bytes of replies, are on their way.
    Backpressure,
    /// Its earlier requests have to end first on another server connection.
    Fence,
    /// It goes too fast, or guesses passwords.
    Time,
    /// The operator has paused all clients.
    Pause,
    /// What it has sent on a connection of its own has to be answered first.
    Mode,
}

impl Closed {
    /// Whether the client may have sent more than was read.
    pub(super) fn leaves_input(self) -> bool {
        matches!(self, Self::Quit | Self::Protocol | Self::Http | Self::BufferLimit | Self::ReplyCut)
    }
}

impl fmt::Display for Closed {
    /// In words, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Eof => "the client closed its side",
            Self::Quit => "the client said QUIT",
            Self::Protocol => "the client's bytes are no RESP",
            Self::Http => "the client spoke HTTP",
            Self::Socket => "the socket failed",
            Self::OutputLimit => "more replies unread than out_hard allows",
            Self::Stalled => "it took no more of its replies",
            Self::Idle => "it was silent for too long",
            Self::Unanswered => "it closed its side, and what was due to it did not come",
            Self::ReplyCut => "a reply broke off half-way with its server",
            Self::Killed => "CLIENT KILL",
            Self::Drain => "the proxy or the pool is going down",
            Self::BufferLimit => "max_buffers is spent",
            Self::Moved => "another process goes on with it",
        })
    }
}
