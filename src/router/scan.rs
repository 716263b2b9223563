//! SCAN over a pool: which server a cursor has come to, and the cursor behind its answer.
//!
//! ```text
//!  cursor of the pool = cursor of the server × 1024 + position of the server in the pool
//! ```
//!
//! Servers are scanned one after the other in the pool's order, which is that of their names: so a cursor means the same to
//! every proxy with the same file, and nothing has to be remembered between two calls. Each server keeps its own promise, to
//! return what was there all along; together they do.

use super::fold::{FoldError, number};
use crate::resp::{ErrorReply, encode};
use crate::topology::ServerIx;

/// One step of a SCAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The server that it has come to.
    pub server: ServerIx,
    /// That server's own cursor.
    pub cursor: u64,
    /// Servers of the pool.
    servers: u16,
}

/// Why a cursor leads nowhere. Never taken for the end: keys would be missing unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadCursor {
    /// It is no number.
    NotANumber,
    /// It names a server that the pool doesn't have (any more).
    Vanished {
        /// Which one.
        position: u16,
        /// How many there are.
        servers: u16,
    },
    /// The pool has more servers than a cursor can tell apart.
    TooManyServers(usize),
}

/// Servers that a cursor can tell apart.
const POSITIONS: u64 = 1024;

/// Cursors stay below this, because many clients take them for numbers, and JavaScript's are exact up to here.
const CURSOR_LIMIT: u64 = 1 << 53;

impl Scan {
    /// The step that `cursor`, as a client sent it, asks for in a pool of so many servers.
    pub fn of(cursor: &[u8], servers: usize) -> Result<Self, BadCursor> {
        let count = match u16::try_from(servers) {
            Ok(count) if u64::from(count) <= POSITIONS => count,
            _ => return Err(BadCursor::TooManyServers(servers)),
        };
        let cursor = decimal(cursor).ok_or(BadCursor::NotANumber)?;
        let position = (cursor % POSITIONS) as u16;
        if position >= count {
            return Err(BadCursor::Vanished { position, servers: count });
        }
        Ok(Self { server: ServerIx(position), cursor: cursor / POSITIONS, servers: count })
    }

    /// Writes the server's complete `reply` with the pool's cursor in place of its own.
    pub fn continued(&self, reply: &[u8], out: &mut Vec<u8>) -> Result<(), FoldError> {
        let (cursor, keys) = parse(reply).ok_or(FoldError::Unexpected(0))?;
        let next = match cursor {
            0 if self.server.0 + 1 == self.servers => 0,
            0 => u64::from(self.server.0) + 1,
            cursor => cursor
                .checked_mul(POSITIONS)
                .map(|cursor| cursor + u64::from(self.server.0))
                .filter(|cursor| *cursor < CURSOR_LIMIT)
                .ok_or(FoldError::CursorTooBig)?,
        };
        out.reserve(keys.len() + 32);
        encode::array(out, 2);
        encode::bulk(out, next.to_string().as_bytes());
        out.extend_from_slice(keys);
        Ok(())
    }
}

impl BadCursor {
    /// The answer; `pool` is the pool's name.
    pub fn reply(self, pool: &str) -> ErrorReply {
        match self {
            Self::NotANumber => ErrorReply::invalid_cursor(),
            Self::Vanished { position, servers } => {
                ErrorReply::scan_position(position.into(), servers.into(), pool)
            }
            Self::TooManyServers(servers) => ErrorReply::scan_servers(servers, POSITIONS as usize, pool),
        }
    }
}

/// The server's cursor, and the bytes of the keys behind it.
fn parse(reply: &[u8]) -> Option<(u64, &[u8])> {
    let (2, rest) = number(reply, b'*')? else { return None };
    let (len, rest) = number(rest, b'$')?;
    let (cursor, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    let keys = rest.strip_prefix(b"\r\n")?;
    Some((decimal(cursor)?, keys))
}

/// Digits alone; what is greater than 64 bits is no cursor.
fn decimal(digits: &[u8]) -> Option<u64> {
    let all_digits = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all_digits.then(|| std::str::from_utf8(digits).ok()?.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(cursor: &str, servers: usize, reply: &str) -> Result<String, FoldError> {
        let mut out = Vec::new();
        Scan::of(cursor.as_bytes(), servers).unwrap().continued(reply.as_bytes(), &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn servers_are_scanned_one_after_the_other() {
        let keys = "*1\r\n$1\r\na\r\n";
        let next = |cursor, reply: &str| after(cursor, 3, &format!("*2\r\n{reply}\r\n{keys}")).unwrap();
        assert_eq!(next("0", "$2\r\n17"), format!("*2\r\n$5\r\n17408\r\n{keys}"));
        assert_eq!(next("17408", "$1\r\n0"), format!("*2\r\n$1\r\n1\r\n{keys}"));
        assert_eq!(next("1", "$1\r\n5"), format!("*2\r\n$4\r\n5121\r\n{keys}"));
        assert_eq!(next("2", "$1\r\n0"), format!("*2\r\n$1\r\n0\r\n{keys}"));
    }

    #[test]
    fn a_cursor_is_the_servers_own_and_its_position() {
        let scan = |cursor: &str| Scan::of(cursor.as_bytes(), 3);
        assert_eq!(scan("0"), Ok(Scan { server: ServerIx(0), cursor: 0, servers: 3 }));
        assert_eq!(scan("17409"), Ok(Scan { server: ServerIx(1), cursor: 17, servers: 3 }));
        assert_eq!(scan("3"), Err(BadCursor::Vanished { position: 3, servers: 3 }));
        assert_eq!(scan("1023"), Err(BadCursor::Vanished { position: 1023, servers: 3 }));
        for cursor in ["", "x", "-1", "+1", " 1", "1 ", "18446744073709551616"] {
            assert_eq!(scan(cursor), Err(BadCursor::NotANumber), "{cursor:?}");
        }
        assert!(Scan::of(b"1023", 1024).is_ok());
        assert_eq!(Scan::of(b"0", 1025), Err(BadCursor::TooManyServers(1025)));
    }

    /// Never 0 for what isn't the end.
    #[test]
    fn what_leaves_no_room_is_an_error() {
        let most = (1u64 << 43) - 1;
        let reply = |cursor: u64| format!("*2\r\n${}\r\n{cursor}\r\n*0\r\n", cursor.to_string().len());
        let largest = (1u64 << 53) - 1024 + 1;
        assert_eq!(after("1", 3, &reply(most)), Ok(format!("*2\r\n$16\r\n{largest}\r\n*0\r\n")));
        for cursor in [most + 1, u64::MAX / 1024 + 1, u64::MAX] {
            assert_eq!(after("1", 3, &reply(cursor)), Err(FoldError::CursorTooBig), "{cursor}");
        }
        for odd in [
            "+OK\r\n",
            "*1\r\n$1\r\n0\r\n",
            "*2\r\n$-1\r\n*0\r\n",
            "*2\r\n$1\r\nx\r\n*0\r\n",
            "*2\r\n:0\r\n*0\r\n",
        ] {
            assert_eq!(after("0", 3, odd), Err(FoldError::Unexpected(0)), "{odd:?}");
        }
    }
}
