//! Publish/subscribe on the wire.

use super::encode;
use super::protocol::Protocol;

/// What a name that is subscribed to stands for; each kind has names of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// SUBSCRIBE: a channel.
    Channel,
    /// PSUBSCRIBE: all channels that fit a pattern.
    Pattern,
    /// SSUBSCRIBE: a shard channel.
    Shard,
}

/// What a server says on a connection that is subscribed to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard<'a> {
    /// A message for those that are subscribed to this name.
    Message(Space, &'a [u8]),
    /// The name is subscribed to, or isn't any more: the answer to one request.
    Changed,
    /// The answer to one request: it failed.
    Error,
    /// The server has ended the subscription by itself: a shard channel whose slot moved.
    Nothing,
}

impl Space {
    /// All of them; each is its own index.
    pub const ALL: [Self; 3] = [Self::Channel, Self::Pattern, Self::Shard];

    /// As an index.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// The command, and the first word of its answer.
    pub const fn subscribe(self) -> &'static str {
        match self {
            Self::Channel => "subscribe",
            Self::Pattern => "psubscribe",
            Self::Shard => "ssubscribe",
        }
    }

    /// The command that undoes it, and the first word of its answer.
    pub const fn unsubscribe(self) -> &'static str {
        match self {
            Self::Channel => "unsubscribe",
            Self::Pattern => "punsubscribe",
            Self::Shard => "sunsubscribe",
        }
    }
}

/// Tells a client that it has (un)subscribed (`word`), and how many subscriptions it has now.
pub fn confirmation(out: &mut Vec<u8>, protocol: Protocol, word: &str, name: Option<&[u8]>, count: usize) {
    protocol.push(out, 3);
    encode::bulk(out, word.as_bytes());
    match name {
        Some(name) => encode::bulk(out, name),
        None => protocol.null(out),
    }
    encode::integer(out, count as i64);
}

/// What a complete reply of a RESP2 server means; `None`: it makes no sense here.
pub fn heard(frame: &[u8]) -> Option<Heard<'_>> {
    if frame.first() == Some(&b'-') {
        return Some(Heard::Error);
    }
    let end = memchr::memchr(b'\n', frame)?;
    let (kind, rest) = bulk(frame.strip_prefix(b"*").map(|_| &frame[end + 1..])?)?;
    let of = |space| bulk(rest).map(|(name, _)| Heard::Message(space, name));
    match kind {
        b"message" => of(Space::Channel),
        b"pmessage" => of(Space::Pattern),
        b"smessage" => of(Space::Shard),
        b"subscribe" | b"psubscribe" | b"ssubscribe" | b"unsubscribe" | b"punsubscribe" | b"sunsubscribe" => {
            Some(Heard::Changed)
        }
        _ => Some(Heard::Nothing),
    }
}

/// The bulk at the beginning, and what follows it.
fn bulk(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = bytes.strip_prefix(b"$")?;
    let end = memchr::memchr(b'\r', rest)?;
    let len: usize = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
    let start = end + 2;
    let after = start.checked_add(len)?.checked_add(2)?;
    Some((rest.get(start..start + len)?, rest.get(after..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_is_understood() {
        let message = b"*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n";
        assert_eq!(heard(message), Some(Heard::Message(Space::Channel, b"a")));
        let message = b"*4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$2\r\nab\r\n$0\r\n\r\n";
        assert_eq!(heard(message), Some(Heard::Message(Space::Pattern, b"a*")));
        assert_eq!(heard(b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"), Some(Heard::Changed));
        assert_eq!(heard(b"-NOPERM x\r\n"), Some(Heard::Error));
        assert_eq!([heard(b"+OK\r\n"), heard(b"*3\r\n:1\r\n"), heard(b"*0\r\n")], [None; 3]);
    }

    #[test]
    fn each_protocol_has_its_own_form() {
        let written = |protocol, name: Option<&[u8]>| {
            let mut out = Vec::new();
            confirmation(&mut out, protocol, "unsubscribe", name, 0);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(Protocol::Resp2, None), "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n");
        assert_eq!(written(Protocol::Resp3, Some(b"a")), ">3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n");
    }
}
