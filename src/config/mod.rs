//! From YAML to a typed configuration that nothing downstream has to check again.
//!
//! ```text
//! text ──raw──▶ tree of texts, lists, mappings ──section + keys──▶ Draft ──draft──▶ Pool
//!               (each text with its line)          (a table: one row a key)
//! ```
//!
//! A nutcracker.yml works as it is: top-level keys are pools, with twemproxy's keys, defaults and meanings. Keys of
//! shardwise's own sit in the same pool; what concerns the whole process is under the one reserved top-level key,
//! `shardwise:`. Reading goes on behind a fault, so that an operator sees all of them at once.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::units::Endpoint;

mod diff;
mod docs;
mod draft;
mod error;
mod findings;
mod kept;
mod keys;
mod names;
mod pool;
mod pool_keys;
mod process;
mod raw;
mod secret;
mod section;
mod server;
mod source;
#[cfg(test)]
mod tests;

pub use diff::{Change, diff};
pub use docs::reference;
pub use error::{ConfigError, ConfigErrors, Reason, SecretError, ServerError};
pub use findings::Warning;
pub use kept::{Kept, KeptPool};
pub use pool::{Distribution, Ping, Pool, ProxyProtocol, Readmit};
pub use process::{LogFormat, Process, Threads};
pub use secret::{Outside, SecretFile};
pub use server::Server;
pub use source::{Cause, Override, Setting, Source};

use findings::Findings;
use raw::{Entries, Node, Text};

/// The top-level key that is no pool.
pub const PROCESS_SECTION: &str = "shardwise";

/// Bytes of a configuration file; a larger one is refused. Room for some 100,000 servers.
pub const MOST_BYTES: usize = 4 << 20;

/// Bytes of a file with a password; what is behind them is left out, as no password is so long.
const MOST_SECRET_BYTES: u64 = 64 << 10;

/// A whole configuration file, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Where it was read from; reload reads it again.
    pub path: PathBuf,
    /// Process-wide settings (top-level key `shardwise:`).
    pub process: Process,
    /// The pools, sorted by name, shorter names first (twemproxy's order, visible in the stats); 1…65535.
    pub pools: Vec<Pool>,
    /// What was accepted but deserves a word in the log, in the order of the file.
    pub warnings: Vec<Warning>,
    /// What it was made from.
    pub source: Source,
}

// === impl Config ===

impl Config {
    /// Reads and checks the file `path`, with the files and the environment variables that its passwords name.
    ///
    /// # Errors
    ///
    /// All faults of the file.
    pub fn load(path: &Path) -> Result<Self, ConfigErrors> {
        let text = read_text(path).map_err(|reason| ConfigError::whole(path, reason))?;
        Self::of_text(&text, path)
    }

    /// Checks `text` as if it were the file `path`, with the files and the environment variables that its passwords name.
    ///
    /// # Errors
    ///
    /// All faults of the text.
    pub fn of_text(text: &str, path: &Path) -> Result<Self, ConfigErrors> {
        Self::read(text, path, &outside(), Vec::new())
    }

    /// The same but for these values. What was said so before still holds; the file itself is not read again.
    ///
    /// # Errors
    ///
    /// All faults of the whole.
    pub fn with(&self, set: Vec<Override>) -> Result<Self, ConfigErrors> {
        let is_new =
            |one: &Override| set.iter().all(|new| (&new.section, &new.key) != (&one.section, &one.key));
        let mut all: Vec<Override> = self.source.set.iter().filter(|one| is_new(one)).cloned().collect();
        all.extend(set);
        Self::read(&self.source.text, &self.path, &outside(), all)
    }

    /// Checks `text`, which was read from `path`, with `env` for the variables of passwords. A `redis_auth_file` is a
    /// fault here, as nothing is read; see [`Config::parse_with`].
    ///
    /// # Errors
    ///
    /// All faults of the text.
    pub fn parse(
        text: &str,
        path: &Path,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigErrors> {
        let secret_file = |_: &Path| Err(io::Error::from(io::ErrorKind::Unsupported));
        Self::parse_with(text, path, &Outside { env: &env, secret_file: &secret_file })
    }

    /// Checks `text`, which was read from `path`; passwords may come from `outside`.
    ///
    /// # Errors
    ///
    /// All faults of the text.
    pub fn parse_with(text: &str, path: &Path, outside: &Outside) -> Result<Self, ConfigErrors> {
        Self::read(text, path, outside, Vec::new())
    }

    fn read(text: &str, path: &Path, outside: &Outside, set: Vec<Override>) -> Result<Self, ConfigErrors> {
        if text.len() > MOST_BYTES {
            return Err(ConfigError::whole(path, Reason::TooLarge(MOST_BYTES)).into());
        }
        let mut root = raw::read(text).map_err(|fault| ConfigError {
            line: fault.at.map(|(line, _)| line),
            column: fault.at.map(|(_, column)| column),
            hint: fault.hint.map(str::to_owned),
            ..ConfigError::whole(path, fault.reason)
        })?;
        source::replace(&mut root, &set);
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut reading = Reading {
            findings: Findings::new(path),
            sources: draft::Sources { folder, outside },
            process: Process::default(),
            pools: Vec::new(),
            memcached: Vec::new(),
            names: HashMap::new(),
            listens: HashMap::new(),
            settings: Vec::new(),
        };
        for (name, node) in root {
            reading.entry(name, node);
        }
        reading.conclude(path, text, set)
    }
}

/// What passwords come from in a running process.
fn outside() -> Outside<'static> {
    Outside { env: &|name| std::env::var(name).ok(), secret_file: &read_secret }
}

/// twemproxy's order of pools and servers: shorter names first, then by bytes.
fn length_first(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// A file of which some entries have been read.
struct Reading<'a> {
    findings: Findings,
    sources: draft::Sources<'a>,
    process: Process,
    pools: Vec<Pool>,
    /// Pools that aren't `redis: true`, with their lines.
    memcached: Vec<(String, usize)>,
    /// Line of each top-level key.
    names: HashMap<String, usize>,
    /// Who listens where, and the line that says so.
    listens: HashMap<Endpoint, (String, usize)>,
    settings: Vec<Setting>,
}

// === impl Reading ===

impl Reading<'_> {
    /// One top-level key: a pool, or the process-wide section.
    fn entry(&mut self, name: Text, node: Node) {
        let path = section::join("", &name.text);
        let fault = if name.text.is_empty() {
            Some((Reason::Empty, None))
        } else if let Some(&first) = self.names.get(&name.text) {
            Some((Reason::Duplicate(first), None))
        } else {
            wrong_section(&name.text, &node)
        };
        self.names.entry(name.text.clone()).or_insert(name.line);
        match (fault, node) {
            (Some((reason, hint)), _) => self.findings.error(name.line, path, reason, hint),
            (None, Node::Map(entries)) if name.text == PROCESS_SECTION => self.process(name, entries),
            (None, Node::Map(entries)) => self.pool(name, entries),
            (None, Node::Text(_) | Node::List(_)) => {}
        }
    }

    fn process(&mut self, name: Text, entries: Entries) {
        let pool_like = |(key, _): &(Text, Node)| key.text == "listen" || key.text == "servers";
        if entries.iter().any(pool_like) {
            let hint = Some("rename this pool".to_owned());
            self.findings.error(name.line, name.text, Reason::Reserved, hint);
            return;
        }
        let settings =
            draft::read_process(&name, entries, &mut self.process, &self.sources, &mut self.findings);
        self.settings.extend(settings);
    }

    fn pool(&mut self, name: Text, entries: Entries) {
        let line = name.line;
        let draft::Read { pool, is_memcached, listen_line, settings } =
            draft::read(name, entries, &self.sources, &mut self.findings);
        if is_memcached {
            self.memcached.push((pool.name.clone(), line));
        }
        if let Some(listen_line) = listen_line {
            self.note_listen(&pool, listen_line);
        }
        self.settings.extend(settings);
        self.pools.push(pool);
    }

    fn note_listen(&mut self, pool: &Pool, line: usize) {
        let endpoint = pool.listen.endpoint();
        match self.listens.get(&endpoint) {
            Some((other, first)) => {
                let reason = Reason::SharedListen { pool: other.clone(), line: *first };
                let path = section::join(&section::join("", &pool.name), "listen");
                self.findings.error(line, path, reason, None);
            }
            None => {
                self.listens.insert(endpoint, (pool.name.clone(), line));
            }
        }
    }

    fn conclude(mut self, path: &Path, text: &str, set: Vec<Override>) -> Result<Config, ConfigErrors> {
        if let Some(&(_, line)) = self.memcached.first() {
            self.findings.whole(Some(line), Reason::Memcached(self.memcached));
        }
        let only_process = self.names.keys().all(|name| name == PROCESS_SECTION);
        if only_process && self.findings.is_clean() {
            self.findings.whole(None, Reason::NoPools);
        }
        if self.pools.len() > usize::from(u16::MAX) {
            self.findings.whole(None, Reason::TooMany("pools"));
        }
        let warnings = self.findings.conclude()?;
        let mut pools = self.pools;
        pools.sort_by(|a, b| length_first(&a.name, &b.name));
        let mut settings = self.settings;
        if settings.iter().all(|setting| setting.section != PROCESS_SECTION) {
            settings.extend(source::settings(PROCESS_SECTION, process::KEYS, &section::Given::default()));
        }
        let source = Source { text: text.into(), set, settings };
        Ok(Config { path: path.to_owned(), process: self.process, pools, warnings, source })
    }
}

/// What is wrong with a top-level value that is no mapping.
fn wrong_section(name: &str, node: &Node) -> Option<(Reason, Option<String>)> {
    match node {
        Node::Map(_) => None,
        Node::Text(text) if text.text.is_empty() => Some((Reason::Empty, section::misplaced(name))),
        Node::Text(_) | Node::List(_) => {
            let reason = Reason::WrongType { want: "a mapping of settings".to_owned(), found: node.kind() };
            Some((reason, section::misplaced(name)))
        }
    }
}

fn read_text(path: &Path) -> Result<String, Reason> {
    let unreadable = |error: io::Error| Reason::Unreadable(error.to_string());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > MOST_BYTES {
        return Err(Reason::TooLarge(MOST_BYTES));
    }
    String::from_utf8(bytes).map_err(|_| Reason::NotUtf8)
}

fn read_secret(path: &Path) -> io::Result<SecretFile> {
    use std::os::unix::fs::PermissionsExt;

    let file = std::fs::File::open(path)?;
    let is_public = file.metadata()?.permissions().mode() & 0o044 != 0;
    let mut bytes = Vec::new();
    file.take(MOST_SECRET_BYTES).read_to_end(&mut bytes)?;
    Ok(SecretFile { bytes, is_public })
}
