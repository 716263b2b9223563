//! Where a key goes, and why, for people.

use std::fmt;

use super::{Group, Owner, Ring, ServerIx, Topology, crc32_on_ketama};
use crate::config;
use crate::hash::{self, Algorithm, KeyHash};
use crate::units::Endpoint;

/// The way of one key to its server. `Display` tells it in a few aligned lines, without a newline at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Name of the pool.
    pub pool: String,
    /// The key.
    pub key: Vec<u8>,
    /// What of the key counts.
    pub hashed: Hashed,
    /// The pool's function and its value, if one was computed.
    pub hash: Option<(Algorithm, u32)>,
    /// Where that leads.
    pub place: Place,
    /// Whose place it is; `None` when it is nobody's, or drawn by lot.
    pub server: Option<Destination>,
    /// What else to know.
    pub notes: Vec<Note>,
}

/// What of a key is hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hashed {
    /// Nothing: the key makes no difference.
    Nothing,
    /// Nothing: the key is empty, and its hash is 0 by definition.
    EmptyKey,
    /// All of it; the pool has no hash tag.
    Whole,
    /// All of it, because it has no text between the pool's tag delimiters.
    Untagged([u8; 2]),
    /// The text between the pool's tag delimiters.
    Tag {
        /// Opening and closing byte.
        delimiters: [u8; 2],
        /// What is between them.
        text: Vec<u8>,
    },
}

/// Where a hash value leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To the pool's only server.
    OnlyServer,
    /// To a point of a ketama ring.
    Point {
        /// From 0.
        index: usize,
        /// How many there are.
        points: usize,
        /// Its position.
        value: u32,
        /// Whether the hash lies behind the last point.
        wrapped: bool,
    },
    /// To a slot of a modula wheel.
    ModulaSlot {
        /// From 0.
        slot: u64,
        /// How many there are.
        slots: u64,
    },
    /// To one of so many servers, drawn anew each time.
    Drawn {
        /// How many.
        servers: usize,
    },
    /// To a Redis Cluster slot.
    ClusterSlot(u16),
    /// Nowhere: no server is live.
    Nowhere,
}

/// A server, as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Its index.
    pub server: ServerIx,
    /// Its name: the ring label.
    pub name: String,
    /// Where it listens.
    pub address: String,
}

/// Something that makes a difference to the pool's other keys too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// These servers are out, and the owners were computed without them.
    Out(Vec<String>),
    /// The hash is too narrow for the ring.
    NarrowHash(Algorithm),
}

/// Where `topology` sends `key`, and why. The topology must have been made from `pool`.
pub fn explain(pool: &config::Pool, topology: &Topology, key: &[u8]) -> Explanation {
    let (hashed, hash) = hashing(topology, key);
    let (place, server) = placing(topology, key, hash.map_or(0, |(_, value)| value));
    Explanation {
        pool: pool.name.clone(),
        key: key.to_vec(),
        hashed,
        hash,
        place,
        server: server.and_then(|server| destination(pool, server)),
        notes: notes(pool, topology),
    }
}

fn hashing(topology: &Topology, key: &[u8]) -> (Hashed, Option<(Algorithm, u32)>) {
    let hash = &topology.hash;
    match topology.owner() {
        Owner::Ring(Ring::Random(_)) | Owner::Single(_) | Owner::Nobody => (Hashed::Nothing, None),
        Owner::Ring(_) if key.is_empty() => (Hashed::EmptyKey, None),
        Owner::Ring(_) => (part(hash, key), Some((hash.algorithm, hash.of(key)))),
        Owner::Slots(_) => (part(hash, key), None),
    }
}

fn part(hash: &KeyHash, key: &[u8]) -> Hashed {
    let text = hash.hashed_part(key);
    match hash.tag {
        None => Hashed::Whole,
        // A tag's text is always shorter than its key.
        Some(delimiters) if text.len() == key.len() => Hashed::Untagged(delimiters),
        Some(delimiters) => Hashed::Tag { delimiters, text: text.to_vec() },
    }
}

fn placing(topology: &Topology, key: &[u8], hash: u32) -> (Place, Option<ServerIx>) {
    match topology.owner() {
        Owner::Ring(Ring::Ketama(continuum)) => {
            let point = continuum.point(hash);
            let (index, value) = (point.index, point.value);
            (
                Place::Point { index, points: continuum.len(), value, wrapped: value < hash },
                Some(point.server),
            )
        }
        Owner::Ring(Ring::Modula(wheel)) => {
            (Place::ModulaSlot { slot: wheel.slot(hash), slots: wheel.slots() }, Some(wheel.server(hash)))
        }
        Owner::Ring(Ring::Random(servers)) => (Place::Drawn { servers: servers.len() }, None),
        Owner::Slots(_) => {
            let slot = hash::slot(key);
            (Place::ClusterSlot(slot), topology.server_of(Group::Slot(slot)))
        }
        Owner::Single(server) => (Place::OnlyServer, Some(*server)),
        Owner::Nobody => (Place::Nowhere, None),
    }
}

fn destination(pool: &config::Pool, server: ServerIx) -> Option<Destination> {
    let of = pool.servers.get(server.index())?;
    Some(Destination { server, name: of.name.clone(), address: address(&of.endpoint) })
}

fn address(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
        Endpoint::Tcp { host, port } => format!("{host}:{port}"),
        Endpoint::Unix(path) => path.display().to_string(),
    }
}

fn notes(pool: &config::Pool, topology: &Topology) -> Vec<Note> {
    let servers = pool.servers.iter().zip(topology.live());
    let out: Vec<String> = servers.filter(|(_, live)| !**live).map(|(of, _)| of.name.clone()).collect();
    let mut notes = Vec::new();
    if !out.is_empty() {
        notes.push(Note::Out(out));
    }
    if crc32_on_ketama(pool) {
        notes.push(Note::NarrowHash(pool.hash.algorithm));
    }
    notes
}

// === impl Explanation ===

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "key     {} in pool {}", Quoted(&self.key), self.pool)?;
        writeln!(f, "hashed  {}", self.hashed)?;
        if let Some((algorithm, value)) = self.hash {
            writeln!(f, "hash    {value} (0x{value:08x}) by {algorithm}")?;
        }
        writeln!(f, "{:<8}{}", self.place.label(), self.place)?;
        match (&self.server, self.place) {
            (Some(server), _) => write!(f, "server  {server}")?,
            (None, Place::Drawn { .. }) => write!(f, "server  any of them")?,
            (None, _) => write!(f, "server  none: the key can't be served now")?,
        }
        self.notes.iter().try_for_each(|note| write!(f, "\nnote    {note}"))
    }
}

// === impl Hashed ===

impl fmt::Display for Hashed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing: every key is treated alike"),
            Self::EmptyKey => f.write_str("nothing: the key is empty, which counts as hash 0"),
            Self::Whole => f.write_str("the whole key"),
            Self::Untagged([open, close]) => {
                let (open, close) = (open.escape_ascii(), close.escape_ascii());
                write!(f, "the whole key: there is no text between {open} and {close}")
            }
            Self::Tag { delimiters: [open, close], text } => {
                let (open, close) = (open.escape_ascii(), close.escape_ascii());
                write!(f, "{}, the tag between {open} and {close}", Quoted(text))
            }
        }
    }
}

// === impl Place ===

impl Place {
    /// What the line about it begins with.
    fn label(self) -> &'static str {
        match self {
            Self::Point { .. } => "ketama",
            Self::ModulaSlot { .. } => "modula",
            Self::Drawn { .. } => "random",
            Self::ClusterSlot(_) => "slot",
            Self::OnlyServer | Self::Nowhere => "ring",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::OnlyServer => f.write_str("none: the pool has one server"),
            Self::Point { index, points, value, wrapped } => {
                // People count from 1.
                write!(f, "point {} of {points}, at {value}: ", index + 1)?;
                f.write_str(match wrapped {
                    false => "the first at or after the hash",
                    true => "the hash is behind the last point, so the first has it",
                })
            }
            Self::ModulaSlot { slot, slots } => write!(f, "slot {slot}: the hash modulo {slots}"),
            Self::Drawn { servers } => {
                write!(f, "one of {servers} servers, drawn anew for each key of each request")
            }
            Self::ClusterSlot(slot) => write!(f, "{slot}: CRC-16 modulo {}", hash::SLOTS),
            Self::Nowhere => f.write_str("none: no server of the pool is live"),
        }
    }
}

// === impl Destination ===

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if self.name != self.address { write!(f, " at {}", self.address) } else { Ok(()) }
    }
}

// === impl Note ===

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Out(names) => write!(f, "out at present: {}", names.join(", ")),
            Self::NarrowHash(algorithm) => write!(
                f,
                "{algorithm} gives {} bits only: with ketama nearly all keys go to one server",
                algorithm.bits()
            ),
        }
    }
}

/// Bytes in double quotes: text as text, everything else escaped.
struct Quoted<'a>(&'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"")?;
        for chunk in self.0.utf8_chunks() {
            for char in chunk.valid().chars() {
                match char {
                    // The one that escape_debug adds without need between double quotes.
                    '\'' => f.write_str("'")?,
                    _ => write!(f, "{}", char.escape_debug())?,
                }
            }
            write!(f, "{}", chunk.invalid().escape_ascii())?;
        }
        f.write_str("\"")
    }
}
