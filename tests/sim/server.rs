//! A server and the wire to it, as far as the proxy can tell.

use std::collections::HashMap;

use shardwise::resp::{ArgSpan, Args, Limits, RequestScanner, Scanned};

/// Which request it was: a client, and its number among that client's requests.
pub type Token = (usize, usize);

/// What a server has stored and done.
#[derive(Debug, Default)]
pub struct Server {
    store: HashMap<Vec<u8>, Vec<u8>>,
    /// Requests with a token in the order in which they were executed.
    pub executed: Vec<Token>,
}

/// One connection's bytes on their way, both ways.
#[derive(Debug, Default)]
pub struct Wire {
    /// Written by the proxy, and not executed yet.
    pub there: Vec<u8>,
    /// Answered by the server, and not read yet.
    pub back: Vec<u8>,
    scanner: RequestScanner,
    spans: Vec<ArgSpan>,
}

impl Server {
    /// Executes the next request on a wire, if it is there whole.
    pub fn execute(&mut self, wire: &mut Wire) -> bool {
        match wire.scanner.scan(&wire.there, &mut wire.spans, &Limits::default()) {
            Ok(Scanned::Incomplete) => false,
            Ok(Scanned::Array(len)) => {
                let request: Vec<u8> = wire.there.drain(..len).collect();
                let args = Args::new(&request, &wire.spans);
                let args: Vec<&[u8]> = (0..args.len()).filter_map(|i| args.get(i)).collect();
                self.answer(&args, &mut wire.back);
                true
            }
            other => panic!("the server got what is no request: {other:?}, {}", wire.there.escape_ascii()),
        }
    }

    /// It starts anew, with nothing.
    pub fn lose_everything(&mut self) {
        self.store.clear();
    }

    fn answer(&mut self, args: &[&[u8]], out: &mut Vec<u8>) {
        match (args[0], &args[1..]) {
            (b"SET", [key, value]) => {
                self.store.insert(key.to_vec(), value.to_vec());
                self.executed.extend(token(value));
                out.extend(b"+OK\r\n");
            }
            (b"MSET", pairs) => {
                for pair in pairs.chunks(2) {
                    self.store.insert(pair[0].to_vec(), pair[1].to_vec());
                }
                self.executed.extend(token(pairs[1]));
                out.extend(b"+OK\r\n");
            }
            (b"EVAL", [_, _, _, echo]) => {
                self.executed.extend(token(echo));
                bulk(Some(echo), out);
            }
            (b"GET", [key]) => bulk(self.store.get(*key).map(Vec::as_slice), out),
            (b"MGET", keys) => {
                out.extend(format!("*{}\r\n", keys.len()).bytes());
                keys.iter().for_each(|key| bulk(self.store.get(*key).map(Vec::as_slice), out));
            }
            (b"EXISTS", keys) => {
                let count = keys.iter().filter(|key| self.store.contains_key(**key)).count();
                out.extend(format!(":{count}\r\n").bytes());
            }
            (name, _) => panic!("a request that nobody sent: {}", name.escape_ascii()),
        }
    }
}

/// `CLIENT:NUMBER` is in brackets at the start of every value.
fn token(value: &[u8]) -> Option<Token> {
    let text = std::str::from_utf8(value).ok()?;
    let (client, number) = text.strip_prefix('[')?.split_once(']')?.0.split_once(':')?;
    Some((client.parse().ok()?, number.parse().ok()?))
}

fn bulk(value: Option<&[u8]>, out: &mut Vec<u8>) {
    match value {
        Some(value) => {
            out.extend(format!("${}\r\n", value.len()).bytes());
            out.extend(value);
            out.extend(b"\r\n");
        }
        None => out.extend(b"$-1\r\n"),
    }
}
