//! A client: what it says, and what it must hear.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use shardwise::exchange::{Flush, Outbox, Recipient, Turn};
use shardwise::resp::ReplyScanner;

use super::server::Token;
use crate::support::{Random, encode};

/// A client, its connection, and what the proxy has for it.
#[derive(Debug)]
pub struct Client {
    number: usize,
    /// Requests still to be sent, as bytes.
    pub script: Vec<u8>,
    /// What it asked for, in order.
    wanted: Vec<Wanted>,
    /// Answered so far.
    pub heard: usize,
    /// Requests that failed: whether they were executed is open, or they surely were not.
    pub failed: HashSet<Token>,
    /// Of those, the ones whose error says that they never left.
    pub unsent: HashSet<Token>,
    scanner: ReplyScanner,
    bytes: Vec<u8>,
}

/// The proxy's side of a client: its replies, in order, and the socket.
pub struct Socket {
    outbox: Outbox,
    /// Bytes that it takes before it is full.
    room: RefCell<usize>,
    sent: RefCell<Vec<u8>>,
}

#[derive(Debug)]
enum Wanted {
    Echo(String),
    Ok,
    AllOk,
    Values(Vec<String>, bool),
    Count(usize),
}

/// Keys of each client.
const KEYS: usize = 5;

impl Client {
    /// One that will send so many requests.
    pub fn new(number: usize, requests: usize, random: &mut Random) -> Self {
        let mut script = Vec::new();
        let wanted = (0..requests).map(|at| draw(number, at, random, &mut script)).collect();
        Self {
            number,
            script,
            wanted,
            heard: 0,
            failed: HashSet::new(),
            unsent: HashSet::new(),
            scanner: ReplyScanner::default(),
            bytes: Vec::new(),
        }
    }

    /// Requests in all.
    pub fn requests(&self) -> usize {
        self.wanted.len()
    }

    /// Takes what came; panics if it is not what it asked for.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        while let Some(len) = self.scanner.scan(&self.bytes).expect("only RESP comes") {
            let reply: Vec<u8> = self.bytes.drain(..len).collect();
            let token = (self.number, self.heard);
            let wanted = self.wanted.get(self.heard).unwrap_or_else(|| {
                panic!("client {} gets one reply too many: {}", self.number, reply.escape_ascii())
            });
            if reply.starts_with(b"-ERR Connection") {
                self.failed.insert(token);
                // Of a request in parts some may have left.
                if reply.starts_with(b"-ERR Connection refused") && !matches!(wanted, Wanted::AllOk) {
                    self.unsent.insert(token);
                }
            } else {
                assert!(wanted.is(&reply), "{token:?}: {wanted:?} is answered by {}", reply.escape_ascii());
            }
            self.heard += 1;
        }
    }
}

impl Wanted {
    fn is(&self, reply: &[u8]) -> bool {
        match self {
            Self::Echo(text) => reply == format!("${}\r\n{text}\r\n", text.len()).as_bytes(),
            Self::Ok | Self::AllOk => reply == b"+OK\r\n",
            Self::Count(most) => {
                let n = reply.strip_prefix(b":").and_then(|rest| rest.strip_suffix(b"\r\n"));
                n.and_then(|n| std::str::from_utf8(n).ok()?.parse().ok()).is_some_and(|n: usize| n <= *most)
            }
            Self::Values(keys, array) => {
                let head = if *array { format!("*{}\r\n", keys.len()) } else { String::new() };
                let Some(mut rest) = reply.strip_prefix(head.as_bytes()) else { return false };
                keys.iter().all(|key| {
                    let Ok(Some(len)) = ReplyScanner::default().scan(rest) else { return false };
                    let (one, after) = rest.split_at(len);
                    rest = after;
                    // A value ends with its key.
                    one == b"$-1\r\n" || one.ends_with(format!(" {key}\r\n").as_bytes())
                }) && rest.is_empty()
            }
        }
    }
}

fn draw(client: usize, at: usize, random: &mut Random, out: &mut Vec<u8>) -> Wanted {
    let names: Vec<String> = (0..KEYS).map(|_| format!("key-{client}-{}", random.below(KEYS))).collect();
    // Now and then long enough to be passed on in pieces.
    let filler = match random.below(8) {
        0 => "x".repeat(random.below(600)),
        _ => String::new(),
    };
    let value = |key: &str| format!("[{client}:{at}]{filler} {key}");
    let key = names[0].as_str();
    match random.below(10) {
        0..3 => {
            out.extend(encode(["EVAL", "return ARGV[1]", "1", key, &value(key)]));
            Wanted::Echo(value(key))
        }
        3..5 => {
            out.extend(encode(["SET", key, &value(key)]));
            Wanted::Ok
        }
        5..7 => {
            out.extend(encode(["GET", key]));
            Wanted::Values(vec![key.to_owned()], false)
        }
        7 => {
            let values: Vec<String> = names.iter().map(|name| value(name)).collect();
            let pairs = names.iter().zip(&values).flat_map(|(name, value)| [name.as_str(), value]);
            out.extend(encode(["MSET"].into_iter().chain(pairs)));
            Wanted::AllOk
        }
        8 => {
            out.extend(encode(["MGET"].into_iter().chain(names.iter().map(String::as_str))));
            Wanted::Values(names, true)
        }
        _ => {
            out.extend(encode(["EXISTS"].into_iter().chain(names.iter().map(String::as_str))));
            Wanted::Count(names.len())
        }
    }
}

// === impl Socket ===

impl Socket {
    /// An open one with no room yet.
    pub fn new(turn: &Rc<Turn>) -> Rc<Self> {
        Rc::new(Self {
            outbox: Outbox::new(Rc::clone(turn)),
            room: RefCell::new(0),
            sent: RefCell::default(),
        })
    }

    /// The client takes so many bytes more; writes what waits.
    pub fn make_room(&self, bytes: usize) {
        *self.room.borrow_mut() += bytes;
        self.flush();
    }

    /// What was written since the last call.
    pub fn take_sent(&self) -> Vec<u8> {
        self.sent.take()
    }
}

impl Flush for Socket {
    fn flush(&self) {
        let written = self.outbox.write_to(|parts| {
            let mut room = self.room.borrow_mut();
            let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(*room).collect();
            if all.is_empty() {
                return Err(std::io::ErrorKind::WouldBlock.into());
            }
            *room -= all.len();
            self.sent.borrow_mut().extend_from_slice(&all);
            Ok(all.len())
        });
        written.expect("this socket never fails");
    }
}

impl Recipient for Socket {
    fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}
