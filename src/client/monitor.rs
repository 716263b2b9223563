//! MONITOR: what the clients of one worker ask for, told to operators that watch, one request in so many.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use crate::command::{Call, Flags};
use crate::stats::Cell as Counter;

/// Arguments of a request that are shown; as in Redis's SLOWLOG the rest is only counted.
const ARGS_SHOWN: usize = 32;

/// Bytes of an argument that are shown.
const BYTES_SHOWN: usize = 128;

/// What stands for a password, as in Redis.
const REDACTED: &[u8] = b"(redacted)";

/// An operator that watches, as one worker sees it.
#[derive(Debug)]
pub struct Monitor {
    /// Bounded: what finds it full is dropped and counted. Closed when the operator has gone.
    lines: Sender<String>,
    /// One request in so many is told.
    every: u64,
    /// Requests that pass until the next one is.
    left: Cell<u64>,
    /// This worker's own.
    dropped: Arc<Counter>,
}

impl Monitor {
    /// One in `every` requests goes to `lines`, 1 being all. `dropped`, which no other worker has, counts those that find no room.
    pub fn new(lines: Sender<String>, every: u64, dropped: Arc<Counter>) -> Self {
        Self { lines, every: every.max(1), left: Cell::new(0), dropped }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.lines.is_closed()
    }

    /// Counts a request, and tells it if it is its turn.
    pub(super) fn see(&self, line: impl FnOnce() -> String) {
        if self.left.get() > 0 {
            return self.left.set(self.left.get() - 1);
        }
        self.left.set(self.every - 1);
        match self.lines.try_reserve() {
            Ok(room) => room.send(line()),
            Err(TrySendError::Full(())) => self.dropped.add(1),
            Err(TrySendError::Closed(())) => {}
        }
    }
}

/// Whether operators may see a call at all: Redis shows none that rule the server.
pub(super) fn is_shown(call: &Call<'_>) -> bool {
    !call.row.flags.contains(Flags::ADMIN) && !call.row.flags.contains(Flags::SKIP_MONITOR)
}

/// `1339518083.107412 [0 127.0.0.1:60866] "keys" "*"`, without a line's end in it.
pub(super) fn line(call: &Call<'_>, db: u32, address: &str, now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut line = format!("{}.{:06} [{db} {address}]", since.as_secs(), since.subsec_micros());
    let mut secrets = Secrets::of(call);
    for (at, arg) in call.args.iter_from(0).enumerate() {
        line.push(' ');
        if at == ARGS_SHOWN {
            let more = call.args.len() - at;
            // Writing to a String does not fail.
            let _ = write!(line, "\"... ({more} more arguments)\"");
            break;
        }
        quote(if secrets.covers(at, arg) { REDACTED } else { arg }, &mut line);
    }
    line
}

/// Which arguments of a call are passwords.
enum Secrets {
    None,
    /// All but the name.
    All,
    /// So many behind a word; `left` of them are still to come.
    Behind {
        words: &'static [(&'static str, u8)],
        left: u8,
    },
}

impl Secrets {
    fn of(call: &Call<'_>) -> Self {
        match call.row.name {
            "auth" => Self::All,
            "hello" => Self::Behind { words: &[("auth", 2)], left: 0 },
            "migrate" => Self::Behind { words: &[("auth", 1), ("auth2", 2)], left: 0 },
            _ => Self::None,
        }
    }

    fn covers(&mut self, at: usize, arg: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::All => at > 0,
            Self::Behind { left, .. } if *left > 0 => {
                *left -= 1;
                true
            }
            Self::Behind { words, left } => {
                let word = words.iter().find(|(word, _)| arg.eq_ignore_ascii_case(word.as_bytes()));
                *left = word.map_or(0, |(_, count)| *count);
                false
            }
        }
    }
}

/// As Redis quotes: printable ASCII as it is.
fn quote(arg: &[u8], line: &mut String) {
    let (shown, more) = arg.split_at(arg.len().min(BYTES_SHOWN));
    line.push('"');
    for &byte in shown {
        match byte {
            b'\\' | b'"' => {
                line.push('\\');
                line.push(char::from(byte));
            }
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            b' '..=b'~' => line.push(char::from(byte)),
            _ => {
                let _ = write!(line, "\\x{byte:02x}");
            }
        }
    }
    if !more.is_empty() {
        let _ = write!(line, "... ({} more bytes)", more.len());
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::mpsc::channel;

    use super::*;
    use crate::command::CommandTable;
    use crate::resp::{Args, Limits, RequestScanner, encode};

    fn shown(words: &[&[u8]]) -> Option<String> {
        let mut request = Vec::new();
        encode::request(&mut request, words.iter().copied());
        let mut spans = Vec::new();
        RequestScanner::default().scan(&request, &mut spans, &Limits::default()).unwrap();
        let call = CommandTable::builtin().lookup(Args::new(&request, &spans)).unwrap();
        let now = UNIX_EPOCH + Duration::from_micros(1_339_518_083_107_412);
        is_shown(&call).then(|| line(&call, 3, "127.0.0.1:60866", now))
    }

    fn arguments(words: &[&[u8]]) -> String {
        let line = shown(words).expect("it is shown");
        line.split_once("] ").expect("a place").1.to_owned()
    }

    #[test]
    fn the_line_is_redis() {
        let line = shown(&[b"Get", b"a \"b\"\\\r\n\x07\xff"]);
        assert_eq!(line.unwrap(), r#"1339518083.107412 [3 127.0.0.1:60866] "Get" "a \"b\"\\\r\n\a\xff""#);
    }

    #[test]
    fn passwords_are_never_shown() {
        assert_eq!(arguments(&[b"AUTH", b"pw"]), r#""AUTH" "(redacted)""#);
        assert_eq!(arguments(&[b"AUTH", b"me", b"pw"]), r#""AUTH" "(redacted)" "(redacted)""#);
        assert_eq!(
            arguments(&[b"HELLO", b"3", b"auth", b"auth", b"pw", b"SETNAME", b"n"]),
            r#""HELLO" "3" "auth" "(redacted)" "(redacted)" "SETNAME" "n""#
        );
    }

    #[test]
    fn what_rules_a_server_is_not_shown() {
        assert_eq!(shown(&[b"CONFIG", b"GET", b"*"]), None);
    }

    #[test]
    fn long_requests_are_shown_in_part() {
        let long = [b'x'; BYTES_SHOWN + 5];
        assert!(arguments(&[b"GET", &long]).ends_with("x... (5 more bytes)\""));
        let many: Vec<&[u8]> = std::iter::once(&b"DEL"[..]).chain((0..40).map(|_| &b"k"[..])).collect();
        assert!(arguments(&many).ends_with("\"k\" \"... (9 more arguments)\""));
    }

    #[test]
    fn one_in_so_many_is_told_and_what_finds_no_room_is_counted() {
        let (send, mut lines) = channel(2);
        let dropped = Arc::new(Counter::default());
        let monitor = Monitor::new(send, 10, Arc::clone(&dropped));
        (0..40).for_each(|number| monitor.see(|| number.to_string()));
        assert_eq!((lines.try_recv().unwrap(), lines.try_recv().unwrap()), ("0".into(), "10".into()));
        assert_eq!(dropped.value(), 2);
        assert!(!monitor.is_gone());
        drop(lines);
        assert!(monitor.is_gone());
    }
}
