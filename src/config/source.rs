//! What a configuration was made from: the text of the file, what CONFIG SET says instead, and where each value comes from.

use std::fmt;
use std::sync::Arc;

use super::PROCESS_SECTION;
use super::keys::{Absent, Field, Key};
use super::raw::{Entries, Node, Text};
use super::section::Given;

/// What stands for a password.
const REDACTED: &str = "(redacted)";

/// The line of what no line says: CONFIG SET.
pub(super) const NO_LINE: usize = 0;

/// Where a configuration comes from.
#[derive(Clone, Default, PartialEq)]
pub struct Source {
    /// The file as it was read.
    pub text: Arc<str>,
    /// What holds instead of what it says.
    pub set: Vec<Override>,
    /// Every key of every section: pool by pool as in the file, and the process's.
    pub settings: Vec<Setting>,
}

/// A value that holds instead of the file's.
#[derive(Clone, PartialEq, Eq)]
pub struct Override {
    /// The name of a pool, or `shardwise`.
    pub section: String,
    /// The key in it.
    pub key: String,
    /// As the file would have it.
    pub value: String,
}

/// What one key has for a value, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name of a pool, or `shardwise`.
    pub section: String,
    /// The key in it.
    pub key: &'static str,
    /// As the file has it; empty where there is none. Passwords are `(redacted)`.
    pub value: String,
    /// Who said so.
    pub cause: Cause,
}

/// Why a setting has its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody has said otherwise.
    Default,
    /// The file does, on this line.
    Line(usize),
    /// CONFIG SET did.
    Set,
}

/// Puts values in the place of what the file says.
pub(super) fn replace(root: &mut Entries, set: &[Override]) {
    if set.iter().any(|one| one.section == PROCESS_SECTION)
        && root.iter().all(|(name, _)| name.text != PROCESS_SECTION)
    {
        root.push((said(PROCESS_SECTION), Node::Map(Vec::new())));
    }
    for one in set {
        let section = root.iter_mut().find(|(name, _)| name.text == one.section);
        let Some((_, Node::Map(entries))) = section else { continue };
        let value = Node::Text(said(&one.value));
        match entries.iter_mut().find(|(key, _)| key.text == one.key) {
            Some(entry) => *entry = (said(&one.key), value),
            None => entries.push((said(&one.key), value)),
        }
    }
}

/// What a value of the file looks like to whoever asks.
pub(super) fn shown<T>(field: &Field<T>, node: &Node) -> String {
    match field {
        Field::Secret(..) => REDACTED.to_owned(),
        _ => plain(node),
    }
}

/// Every key of a section.
pub(super) fn settings<T>(section: &str, table: &'static [Key<T>], given: &Given) -> Vec<Setting> {
    let setting = |key: &Key<T>| {
        let (value, cause) = match (given.line(key.name), key.absent) {
            (Some(NO_LINE), _) => (given.shown(key.name), Cause::Set),
            (Some(line), _) => (given.shown(key.name), Cause::Line(line)),
            (None, Absent::Value(text)) => (text.to_owned(), Cause::Default),
            (None, Absent::Unset(_) | Absent::Required) => (String::new(), Cause::Default),
        };
        Setting { section: section.to_owned(), key: key.name, value, cause }
    };
    table.iter().map(setting).collect()
}

fn said(text: &str) -> Text {
    Text { text: text.to_owned(), line: NO_LINE }
}

fn plain(node: &Node) -> String {
    match node {
        Node::Text(text) => text.text.clone(),
        Node::List(items) => items.iter().map(plain).collect::<Vec<_>>().join(", "),
        Node::Map(entries) => {
            let pairs = entries.iter().map(|(key, value)| format!("{}: {}", key.text, plain(value)));
            pairs.collect::<Vec<_>>().join("; ")
        }
    }
}

// === impl Source ===

/// Without the text and the values: there may be passwords in them.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("bytes", &self.text.len())
            .field("set", &self.set)
            .finish_non_exhaustive()
    }
}

// === impl Override ===

impl fmt::Debug for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Override")
            .field("section", &self.section)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

// === impl Setting ===

impl Setting {
    /// `pool.key`, and `key` alone for what concerns the process.
    pub fn name(&self) -> String {
        match self.section.as_str() {
            PROCESS_SECTION => self.key.to_owned(),
            pool => format!("{pool}.{}", self.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    const FILE: &str = "alpha:\n  listen: 127.0.0.1:1\n  redis: true\n  redis_auth: pw\n  timeout: 400\n  servers: [h:1:1 a, h:2:1 b]\n";

    fn config(set: &[(&str, &str, &str)]) -> Result<Config, String> {
        let set = set.iter().map(|(section, key, value)| Override {
            section: (*section).to_owned(),
            key: (*key).to_owned(),
            value: (*value).to_owned(),
        });
        let config = Config::parse(FILE, Path::new("a.yml"), |_| None).unwrap();
        config.with(set.collect()).map_err(|errors| errors.to_string())
    }

    fn setting(config: &Config, name: &str) -> (String, Cause) {
        let found = config.source.settings.iter().find(|setting| setting.name() == name).expect(name);
        (found.value.clone(), found.cause)
    }

    #[test]
    fn every_setting_says_where_it_is_from() {
        let config = config(&[("alpha", "backlog", "7"), ("shardwise", "drain_timeout", "3s")]).unwrap();
        assert_eq!(setting(&config, "alpha.timeout"), ("400".into(), Cause::Line(5)));
        assert_eq!(setting(&config, "alpha.servers"), ("h:1:1 a, h:2:1 b".into(), Cause::Line(6)));
        assert_eq!(setting(&config, "alpha.backlog"), ("7".into(), Cause::Set));
        assert_eq!(setting(&config, "alpha.hash"), ("fnv1a_64".into(), Cause::Default));
        assert_eq!(setting(&config, "alpha.redis_auth"), (REDACTED.into(), Cause::Line(4)));
        assert_eq!(setting(&config, "drain_timeout"), ("3s".into(), Cause::Set));
        assert_eq!(setting(&config, "threads"), ("auto".into(), Cause::Default));
        assert_eq!((config.pools[0].backlog, config.process.drain_timeout.as_secs()), (7, 3));
        assert!(!format!("{config:?}").contains("pw"));
    }

    #[test]
    fn what_is_set_is_checked_as_the_file_is() {
        let wrong = config(&[("alpha", "timeout", "soon")]).unwrap_err();
        assert_eq!(wrong, "a.yml: alpha.timeout: 'soon' is not a number of milliseconds");
        assert!(config(&[("alpha", "servers", "h:1:1")]).unwrap_err().contains("must be a list of servers"));
    }

    #[test]
    fn the_latest_word_holds() {
        let first = config(&[("alpha", "backlog", "7"), ("alpha", "timeout", "1")]).unwrap();
        let again = Override { section: "alpha".into(), key: "backlog".into(), value: "8".into() };
        let second = first.with(vec![again]).unwrap();
        assert_eq!((second.pools[0].backlog, second.source.set.len()), (8, 2));
        assert_eq!(setting(&second, "alpha.timeout"), ("1".into(), Cause::Set));
    }
}
