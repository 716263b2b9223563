//! Requests whose answers can be told from every other: what is sent, and what may come back.

use crate::support::{Random, Value, encode};

/// A client's keys in one of its connections' lives, and what it knows of them.
#[derive(Debug)]
pub struct Keys {
    /// In front of each of its keys: pool, client, and the connection's number. A request of a connection that was dropped
    /// may still be executed, so its keys are never used again.
    prefix: String,
    /// By key: versions.
    known: Vec<Versions>,
    /// Whether a value may never be older than one that was acknowledged: nothing is ejected, nothing given up.
    steady: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Versions {
    sent: u64,
    acknowledged: u64,
}

/// What the answer to a request must be, if it is no error of a server or its connection.
#[derive(Debug)]
pub enum Wanted {
    /// This text, which no other request asks for.
    Echo(String),
    /// This text as an error.
    EchoedError(String),
    /// OK, for versions of these keys.
    Stored(Vec<(usize, u64)>),
    /// What is stored under each of these keys, or nil.
    Values(Vec<Name>, Shape),
    /// A number of keys up to this.
    Count(i64),
}

/// One value, or an array of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// GET
    One,
    /// MGET
    Several,
}

/// A key, its own or a neighbour's.
#[derive(Clone, Debug)]
pub struct Name {
    text: String,
    /// Its number among its own keys.
    own: Option<usize>,
}

/// What an answer turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What had to come.
    Right,
    /// An error that says which server failed, or that it isn't ready.
    Error,
    /// Somebody else's, or nobody's; what is wrong with it.
    Wrong(String),
}

const KEYS: usize = 12;

/// Replies from this size on are passed on before they are complete, so that a failure of the server may cut the client.
const STREAMED: usize = 64 << 10;

impl Keys {
    /// Those of `client` in life `life` of its connection to `pool`.
    pub fn new(pool: &str, client: usize, life: usize, steady: bool) -> Self {
        Self { prefix: format!("{pool}:{client}:{life}:"), known: vec![Versions::default(); KEYS], steady }
    }

    /// Draws a request, appends it to `out`, and says what its answer must be. `serial` is no other request's.
    pub fn draw(&mut self, random: &mut Random, serial: u64, out: &mut Vec<u8>) -> Wanted {
        let own = random.below(KEYS);
        let token = format!("{}{own} token {serial}", self.prefix);
        let key = self.name(own).text;
        match random.below(100) {
            0..25 => {
                out.extend(encode(["EVAL", "return ARGV[1]", "1", &key, &token]));
                Wanted::Echo(token)
            }
            25..28 => {
                out.extend(encode(["EVAL", "return redis.error_reply(ARGV[1])", "1", &key, &token]));
                Wanted::EchoedError(token)
            }
            28..32 => {
                out.extend(encode(["PING", &token]));
                Wanted::Echo(token)
            }
            32..60 => {
                let (version, value) = self.next_value(own, random);
                out.extend(encode([&b"SET"[..], key.as_bytes(), &value]));
                Wanted::Stored(vec![(own, version)])
            }
            60..62 => {
                let other = (own + 1 + random.below(KEYS - 1)) % KEYS;
                let stored = [own, other].map(|key| (key, self.next_value(key, random)));
                let mut args = vec![b"MSET".to_vec()];
                for (key, (_, value)) in &stored {
                    args.extend([self.name(*key).text.into_bytes(), value.clone()]);
                }
                out.extend(encode(args));
                Wanted::Stored(stored.iter().map(|(key, (version, _))| (*key, *version)).collect())
            }
            62..66 => {
                let (all, len) = (self.names(random), 1 + random.below(KEYS));
                let names = &all[..len];
                out.extend(encode(["EXISTS"].into_iter().chain(names.iter().map(|name| name.text.as_str()))));
                Wanted::Count(len as i64)
            }
            66..67 => {
                out.extend(encode(["DEL", &key]));
                Wanted::Count(1)
            }
            67..75 => {
                let (mut names, len) = (self.names(random), 1 + random.below(KEYS));
                names.truncate(len);
                out.extend(encode(["MGET"].into_iter().chain(names.iter().map(|name| name.text.as_str()))));
                Wanted::Values(names, Shape::Several)
            }
            _ => {
                out.extend(encode(["GET", &key]));
                Wanted::Values(vec![self.name(own)], Shape::One)
            }
        }
    }

    /// Compares an answer with what it must be, and learns from it.
    pub fn judge(&mut self, wanted: &Wanted, answer: &Value, servers: &[String]) -> Verdict {
        let right = match (wanted, answer) {
            (Wanted::Echo(token), Value::Bulk(bytes)) => token.as_bytes() == bytes,
            (Wanted::EchoedError(token), Value::Error(text)) if text.ends_with(token.as_str()) => true,
            (_, Value::Error(text)) if is_failure(text, servers) => return Verdict::Error,
            (Wanted::Stored(stored), Value::Simple(text)) if text == "OK" => {
                for (key, version) in stored {
                    self.known[*key].acknowledged = *version;
                }
                true
            }
            (Wanted::Count(most), Value::Int(n)) => (0..=*most).contains(n),
            (Wanted::Values(names, Shape::One), value) => self.is_value_of(&names[0], value),
            (Wanted::Values(names, Shape::Several), Value::Array(values)) => {
                names.len() == values.len()
                    && names.iter().zip(values).all(|(name, value)| self.is_value_of(name, value))
            }
            _ => false,
        };
        if right { Verdict::Right } else { Verdict::Wrong(format!("{wanted:?} is answered by {answer:?}")) }
    }

    fn is_value_of(&self, name: &Name, value: &Value) -> bool {
        let bytes = match value {
            Value::Nil => return true,
            Value::Bulk(bytes) => bytes,
            _ => return false,
        };
        let Some(version) = version_of(&name.text, bytes) else { return false };
        let Some(own) = name.own else { return true };
        let known = self.known[own];
        version <= known.sent && (!self.steady || version >= known.acknowledged)
    }

    fn next_value(&mut self, key: usize, random: &mut Random) -> (u64, Vec<u8>) {
        self.known[key].sent += 1;
        let version = self.known[key].sent;
        let len = match random.below(400) {
            0 => STREAMED + random.below(200 << 10),
            1..5 => (12 << 10) + random.below(40 << 10),
            5..40 => random.below(5 << 10),
            _ => random.below(100),
        };
        (version, value(&self.name(key).text, version, len))
    }

    fn name(&self, own: usize) -> Name {
        Name { text: format!("{}{own}", self.prefix), own: Some(own) }
    }

    /// All of its own in some order, here and there a neighbour's.
    fn names(&self, random: &mut Random) -> Vec<Name> {
        let mut names: Vec<Name> = (0..KEYS).map(|own| self.name(own)).collect();
        for i in (1..names.len()).rev() {
            names.swap(i, random.below(i + 1));
        }
        if random.below(4) == 0 {
            let pool = self.prefix.split(':').next().unwrap_or_default();
            let text = format!("{pool}:{}:{}:{}", random.below(50), random.below(3), random.below(KEYS));
            if !text.starts_with(&self.prefix) {
                names[0] = Name { text, own: None };
            }
        }
        names
    }
}

impl Wanted {
    /// Whether a failure of the server may close the client in the middle of the answer.
    pub fn may_be_cut(&self) -> bool {
        matches!(self, Self::Values(_, Shape::One))
    }
}

/// At least its head, then as many bytes of it again: each byte depends on key, version and place.
fn value(key: &str, version: u64, len: usize) -> Vec<u8> {
    let head = format!("{key} {version} ");
    let len = len.max(head.len());
    head.bytes().cycle().take(len).collect()
}

/// The version of a value of `key`, if every byte of it is right.
fn version_of(key: &str, bytes: &[u8]) -> Option<u64> {
    let digits =
        bytes.strip_prefix(key.as_bytes())?.strip_prefix(b" ")?.split(|byte| *byte == b' ').next()?;
    let version = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (value(key, version, bytes.len()) == bytes).then_some(version)
}

/// Whether an error names one of the servers, or comes from one that has just started.
fn is_failure(text: &str, servers: &[String]) -> bool {
    let names_server = || servers.iter().any(|server| text.contains(server.as_str()));
    text.starts_with("LOADING ") || (text.starts_with("ERR ") && names_server())
}
