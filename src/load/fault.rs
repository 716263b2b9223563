//! What goes wrong, counted by kind. The load goes on.

use std::io;

use crate::resp::ReplyError;

/// Kinds told apart; what comes beyond them is counted together. A target that answers nonsense must not fill memory.
const MOST_KINDS: usize = 32;
/// Bytes kept of the first error reply of a kind, to be shown.
const EXAMPLE_BYTES: usize = 120;
const OTHERS: &str = "others";

/// Why a connection, or what was outstanding on it, is lost. (Error replies are none: they are replies.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The system's error while connecting, reading or writing.
    Io(io::ErrorKind, String),
    /// The system has no more descriptors for us (EMFILE, ENFILE).
    Descriptors(String),
    /// The peer closed.
    Closed,
    /// No connection within the time for one.
    ConnectTimeout,
    /// AUTH, HELLO or SELECT was answered by this.
    Refused(String),
    /// Bytes that are no reply.
    Protocol(ReplyError),
    /// A reply to nothing.
    Unasked,
    /// A reply longer than any that is wanted.
    TooBig,
    /// The turn ended without a reply.
    NoReply,
}

/// Counts by kind, in the order in which they appeared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    kinds: Vec<Kind>,
}

/// One kind of error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// `-OOM` for error replies, words for all else.
    pub name: String,
    /// How often: requests that got no proper reply, and attempts to connect that failed.
    pub count: u64,
    /// What the first one said; may be empty.
    pub example: String,
}

// === impl Fault ===

impl Fault {
    fn name(&self) -> String {
        match self {
            Self::Io(io::ErrorKind::ConnectionRefused, _) => "connection refused".into(),
            Self::Io(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe, _) => {
                "connection reset".into()
            }
            Self::Io(io::ErrorKind::AddrNotAvailable, _) => "no local port left".into(),
            Self::Io(kind, _) => kind.to_string(),
            Self::Descriptors(_) => "no descriptor left".into(),
            Self::Closed => "connection closed".into(),
            Self::ConnectTimeout => "no connection in time".into(),
            Self::Refused(_) => "handshake refused".into(),
            Self::Protocol(_) => "no RESP".into(),
            Self::Unasked => "reply without a request".into(),
            Self::TooBig => "reply too long".into(),
            Self::NoReply => "no reply".into(),
        }
    }

    fn example(&self) -> String {
        match self {
            Self::Io(_, text) | Self::Descriptors(text) | Self::Refused(text) => text.clone(),
            Self::Protocol(error) => format!("{error:?}"),
            _ => String::new(),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        const ENFILE: i32 = 23;
        const EMFILE: i32 = 24;
        match error.raw_os_error() {
            Some(EMFILE | ENFILE) => Self::Descriptors(error.to_string()),
            _ => Self::Io(error.kind(), error.to_string()),
        }
    }
}

// === impl Faults ===

impl Faults {
    /// Counts `count` requests lost to `fault`.
    pub fn add(&mut self, fault: &Fault, count: u64) {
        self.count(fault.name().as_bytes(), count, || fault.example());
    }

    /// Counts one error reply; the kind is its first word. Allocates only for a kind that is new.
    pub fn add_reply(&mut self, reply: &[u8]) {
        let text = error_text(reply);
        let word = text.split(|byte| *byte == b' ').next().unwrap_or_default();
        let word = &word[..word.len().min(24)];
        // The sign is kept: it tells an error reply from all else.
        self.count(word, 1, || shown(text));
    }

    /// Counts one reply that isn't what it must be.
    pub fn add_wrong(&mut self, what: &'static str, request: impl FnOnce() -> String) {
        self.count(what.as_bytes(), 1, request);
    }

    /// Adds what another thread or turn counted.
    pub fn merge(&mut self, other: &Self) {
        for kind in &other.kinds {
            self.count(kind.name.as_bytes(), kind.count, || kind.example.clone());
        }
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.count).sum()
    }

    /// By kind.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    fn count(&mut self, name: &[u8], count: u64, example: impl FnOnce() -> String) {
        if let Some(kind) = self.kinds.iter_mut().find(|kind| kind.name.as_bytes() == name) {
            kind.count += count;
            return;
        }
        let full = self.kinds.len() >= MOST_KINDS;
        let name = if full { OTHERS.into() } else { shown(name) };
        // Names are shown without what can't be: that may be a kind that is there already.
        match self.kinds.iter_mut().find(|kind| kind.name == name) {
            Some(kind) => kind.count += count,
            None => self.kinds.push(Kind { name, count, example: example() }),
        }
    }
}

/// The line of an error reply: `-ERR …`, or what RESP3's `!` carries, with a sign before it.
fn error_text(reply: &[u8]) -> &[u8] {
    let line = if reply.first() == Some(&b'!') {
        reply.iter().position(|byte| *byte == b'\n').map_or(reply, |end| &reply[end + 1..])
    } else {
        reply
    };
    line.split(|byte| *byte == b'\r').next().unwrap_or_default()
}

fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(&text[..text.len().min(EXAMPLE_BYTES)]);
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_replies_are_counted_by_their_first_word() {
        let mut faults = Faults::default();
        for reply in [&b"-ERR one\r\n"[..], b"-OOM x\r\n", b"-ERR two\r\n", b"!7\r\nBUSY no\r\n"] {
            faults.add_reply(reply);
        }
        faults.add(&Fault::Closed, 16);
        let seen: Vec<_> =
            faults.kinds().iter().map(|k| (k.name.as_str(), k.count, k.example.as_str())).collect();
        let expected = [
            ("-ERR", 2, "-ERR one"),
            ("-OOM", 1, "-OOM x"),
            ("BUSY", 1, "BUSY no"),
            ("connection closed", 16, ""),
        ];
        assert_eq!(seen, expected);
        assert_eq!(faults.total(), 20);
    }

    #[test]
    fn a_target_that_makes_up_kinds_does_not_fill_memory() {
        let mut faults = Faults::default();
        (0..1000).for_each(|n| faults.add_reply(format!("-E{n} \x1b[31m\r\n").as_bytes()));
        assert_eq!(faults.kinds().len(), MOST_KINDS + 1);
        assert_eq!(faults.total(), 1000);
        assert!(faults.kinds().iter().all(|kind| !kind.example.contains('\x1b')));
    }
}
