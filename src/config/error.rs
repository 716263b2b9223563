//! Why a file is refused: every fault with its place, and the nearest thing that would be right.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::units::{AddressError, Quoted, size};

/// All that is wrong with a file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    pub(super) errors: Vec<ConfigError>,
    /// Faults found beyond those.
    pub(super) left_out: usize,
}

/// One fault of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, as it was named.
    pub file: PathBuf,
    /// From 1; `None` when the fault is the file's as a whole.
    pub line: Option<usize>,
    /// From 1, in characters; known where the YAML itself is broken.
    pub column: Option<usize>,
    /// `pool`, `pool.key` or `pool.key[index]`; empty for the file as a whole.
    pub path: String,
    /// What is wrong.
    pub reason: Reason,
    /// What may have been meant.
    pub hint: Option<String>,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The file can't be read; the system's words.
    Unreadable(String),
    /// More bytes than so many.
    TooLarge(usize),
    /// It isn't UTF-8.
    NotUtf8,
    /// The YAML is broken; the parser's words.
    Yaml(String),
    /// There is a second YAML document.
    SecondDocument,
    /// There is no pool.
    NoPools,
    /// More pools or servers than can be numbered.
    TooMany(&'static str),
    /// There is no such key.
    Unknown,
    /// It was given before, on this line.
    Duplicate(usize),
    /// The value, or the name, is empty.
    Empty,
    /// A key that must be there isn't.
    Missing(&'static str),
    /// `servers` is missing or empty.
    NoServers,
    /// Another kind of value is needed.
    WrongType {
        /// What is needed.
        want: String,
        /// What is there: a text, a list or a mapping.
        found: &'static str,
    },
    /// The text isn't what the key takes.
    Invalid {
        /// The text.
        text: String,
        /// What it ought to be: `a number`.
        want: String,
    },
    /// Below or above what the key takes.
    OutOfRange {
        /// The text.
        text: String,
        /// Least and most, as the file would write them.
        range: String,
    },
    /// `listen` is no address.
    Listen(AddressError),
    /// An entry of `servers` is no server.
    Server(ServerError),
    /// The name of a server was given before, in the entry on this line.
    DuplicateServer {
        /// Name, or address where none was given.
        name: String,
        /// Line of the first.
        line: usize,
    },
    /// Weights add up to more than 32 bits.
    Weights,
    /// Another pool has the same address.
    SharedListen {
        /// The other pool.
        pool: String,
        /// Line of its `listen`.
        line: usize,
    },
    /// A pool has the name of the process-wide section.
    Reserved,
    /// Pools that aren't `redis: true`, with their lines.
    Memcached(Vec<(String, usize)>),
    /// A password can't be had.
    Secret(SecretError),
    /// Two settings exclude each other; says which and why.
    Conflict(&'static str),
}

/// Why an entry of `servers` is no server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerError {
    /// Neither HOST:PORT:WEIGHT nor /PATH:WEIGHT, with or without a name.
    Format,
    /// The weight is no number of 1…2147483647.
    Weight(String),
    /// The weight is 0.
    ZeroWeight,
    /// Port, or path.
    Address(AddressError),
}

/// Why a password can't be had. Never says anything of the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretError {
    /// The environment has no such variable.
    Unset(String),
    /// `${` without a variable's name and `}`.
    Malformed,
    /// Nothing is left of it.
    Empty,
    /// The file can't be read.
    File {
        /// Where it was looked for.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
}

// === impl ConfigErrors ===

impl ConfigErrors {
    /// The faults in the order of the file, a hundred at most.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.errors.iter()
    }
}

impl fmt::Display for ConfigErrors {
    /// One fault a line, without a newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.errors.iter().enumerate() {
            if at != 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        if self.left_out != 0 {
            write!(f, "\nand {} more", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self { errors: vec![error], left_out: 0 }
    }
}

// === impl ConfigError ===

impl ConfigError {
    /// A fault of the file as a whole.
    pub(super) fn whole(file: &Path, reason: Reason) -> Self {
        Self { file: file.to_owned(), line: None, column: None, path: String::new(), reason, hint: None }
    }
}

impl fmt::Display for ConfigError {
    /// `FILE:LINE: PATH: REASON; HINT`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        f.write_str(": ")?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        self.reason.fmt(f)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

// === impl Reason ===

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Self::TooLarge(most) => write!(f, "is larger than {}", size::show(*most as u64)),
            Self::NotUtf8 => f.write_str("is not UTF-8"),
            Self::Yaml(why) => write!(f, "syntax is invalid: {why}"),
            Self::SecondDocument => f.write_str("must contain one YAML document, a second one starts"),
            Self::NoPools => f.write_str("has no pools"),
            Self::TooMany(what) => write!(f, "has more than {} {what}", u16::MAX),
            Self::Unknown => f.write_str("is unknown"),
            Self::Duplicate(line) => write!(f, "is a duplicate, line {line} has it already"),
            Self::Empty => f.write_str("is empty"),
            Self::Missing(key) => write!(f, "has no {key}"),
            Self::NoServers => f.write_str("has no servers"),
            Self::WrongType { want, found } => write!(f, "must be {want}, not {found}"),
            Self::Invalid { text, want } => write!(f, "{} is not {want}", Quoted(text)),
            Self::OutOfRange { text, range } => {
                write!(f, "{} is out of range, must be {range}", Quoted(text))
            }
            Self::Listen(why) => why.fmt(f),
            Self::Server(why) => why.fmt(f),
            Self::DuplicateServer { name, line } => {
                write!(f, "server {} is a duplicate, line {line} has it already", Quoted(name))
            }
            Self::Weights => write!(f, "has weights that add up to more than {}", u32::MAX),
            Self::SharedListen { pool, line } => {
                write!(f, "is a duplicate, pool {} listens there already (line {line})", Quoted(pool))
            }
            Self::Reserved => f.write_str("this name is reserved for process-wide settings"),
            Self::Memcached(pools) => show_memcached(f, pools),
            Self::Secret(why) => why.fmt(f),
            Self::Conflict(why) => f.write_str(why),
        }
    }
}

fn show_memcached(f: &mut fmt::Formatter<'_>, pools: &[(String, usize)]) -> fmt::Result {
    f.write_str(if pools.len() == 1 { "memcached pool " } else { "memcached pools " })?;
    for (at, (name, line)) in pools.iter().enumerate() {
        let comma = if at == 0 { "" } else { ", " };
        write!(f, "{comma}{} (line {line})", Quoted(name))?;
    }
    let whose = if pools.len() == 1 { "the pool needs" } else { "each needs" };
    write!(f, ": shardwise speaks Redis only, {whose} 'redis: true'")
}

// === impl ServerError ===

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format => f.write_str("must be HOST:PORT:WEIGHT [NAME] or /PATH:WEIGHT [NAME]"),
            Self::Weight(text) => {
                write!(f, "has an invalid weight {}, must be 1…{}", Quoted(text), i32::MAX)
            }
            Self::ZeroWeight => f.write_str("has a zero weight"),
            Self::Address(why) => why.fmt(f),
        }
    }
}

// === impl SecretError ===

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset(name) => write!(f, "the environment has no variable {}", Quoted(name)),
            Self::Malformed => f.write_str("has '${' without a variable's name and '}' after it"),
            Self::Empty => f.write_str("is empty"),
            Self::File { path, why } => write!(f, "{} cannot be read: {why}", path.display()),
        }
    }
}
