//! Reading one mapping by its table of keys.

use std::collections::{HashMap, HashSet};

use crate::units::Quoted;

use super::error::Reason;
use super::findings::Findings;
use super::keys::{Absent, Field, Key};
use super::raw::{Entries, Node};
use super::{PROCESS_SECTION, pool_keys, process, source};

/// Names longer than this are compared with nothing: the comparison is quadratic.
const COMPARED_BYTES: usize = 64;

/// Thousandths of unlikeness (1 − Jaro-Winkler) up to which a name is taken for a slip.
const SLIP: u32 = 180;

/// Which keys a section has, on which lines.
#[derive(Debug, Default)]
pub(super) struct Given {
    lines: HashMap<&'static str, usize>,
    /// Those with a value that was refused.
    refused: HashSet<&'static str>,
    /// What each looks like, see [`source::shown`].
    shown: HashMap<&'static str, String>,
}

/// Reads `entries` into `into`, after setting it to what holds when nothing is given.
///
/// `path` and `line` are those of the section. Faults are noted in `findings`, and reading goes on behind them.
pub(super) fn read<T>(
    entries: Entries,
    table: &'static [Key<T>],
    into: &mut T,
    (path, line): (&str, usize),
    findings: &mut Findings,
) -> Given {
    Key::set_absent(table, into);
    let mut given = Given::default();
    for (name, node) in entries {
        let key_path = join(path, &name.text);
        let Some(key) = table.iter().find(|key| key.name == name.text) else {
            findings.error(name.line, key_path, Reason::Unknown, Some(nearest_key(&name.text, table)));
            continue;
        };
        if let Some(first) = given.line(key.name) {
            findings.error(name.line, key_path, Reason::Duplicate(first), None);
            continue;
        }
        given.lines.insert(key.name, name.line);
        given.shown.insert(key.name, source::shown(&key.field, &node));
        let hint = hint(&key.field, &node);
        if let Err(reason) = key.field.set(into, node) {
            given.refused.insert(key.name);
            findings.error(name.line, key_path, reason, hint);
        }
    }
    for key in table {
        if key.absent == Absent::Required && given.line(key.name).is_none() {
            let reason = match key.field {
                Field::List(..) => Reason::NoServers,
                _ => Reason::Missing(key.name),
            };
            findings.error(line, path, reason, None);
        }
    }
    given
}

/// `path` and the `name` below it; names that aren't plain are quoted.
pub(super) fn join(path: &str, name: &str) -> String {
    let dot = if path.is_empty() { "" } else { "." };
    let plain = !name.is_empty()
        && name.len() <= COMPARED_BYTES
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if plain { format!("{path}{dot}{name}") } else { format!("{path}{dot}{}", Quoted(name)) }
}

/// What a top-level key that is no mapping may have been meant for.
pub(super) fn misplaced(name: &str) -> Option<String> {
    if process::KEYS.iter().any(|key| key.name == name) {
        return Some(format!("put '{name}' under '{PROCESS_SECTION}:'"));
    }
    let ours = pool_keys::KEYS.iter().any(|key| key.name == name);
    ours.then(|| format!("put '{name}' under the name of a pool"))
}

impl Given {
    /// Line of the key, if it is given.
    pub(super) fn line(&self, key: &str) -> Option<usize> {
        self.lines.get(key).copied()
    }

    /// What the key's value looks like; empty if it isn't given.
    pub(super) fn shown(&self, key: &str) -> String {
        self.shown.get(key).cloned().unwrap_or_default()
    }

    /// Whether the key is given with a value that was refused, so that another one stands in its place.
    pub(super) fn is_refused(&self, key: &str) -> bool {
        self.refused.contains(key)
    }
}

fn nearest_key<T>(name: &str, table: &[Key<T>]) -> String {
    let here = |candidate: &str| table.iter().any(|key| key.name == candidate);
    if !here(name) && process::KEYS.iter().any(|key| key.name == name) {
        return format!("'{name}' belongs under the top-level '{PROCESS_SECTION}:'");
    }
    if !here(name) && pool_keys::KEYS.iter().any(|key| key.name == name) {
        return format!("'{name}' belongs under the name of a pool");
    }
    if name == "<<" {
        return "merging mappings is not supported".to_owned();
    }
    match nearest(name, table.iter().map(|key| key.name)) {
        Some((key, true)) => format!("did you mean '{key}'?"),
        Some((key, false)) => format!("the nearest valid key is '{key}'"),
        None => "the valid keys are in docs/configuration.md".to_owned(),
    }
}

fn hint<T>(field: &Field<T>, node: &Node) -> Option<String> {
    match (field, node) {
        (Field::List(..), _) => None,
        (_, Node::Text(text)) => match nearest(&text.text, field.choices().into_iter()) {
            Some((choice, true)) if choice != text.text => Some(format!("did you mean '{choice}'?")),
            _ if field.choices().len() > 2 => Some(format!("use one of {}", field.choices().join(", "))),
            _ => None,
        },
        // Brackets are the reason why a text is taken for something else.
        (Field::Text(..) | Field::Secret(..), Node::Map(_) | Node::List(_)) => {
            Some("a text with brackets needs quotes around it".to_owned())
        }
        _ => None,
    }
}

/// The candidate most like `name`, and whether it is like enough to be a slip of the pen.
fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<(&'static str, bool)> {
    if name.len() > COMPARED_BYTES {
        return None;
    }
    let name = name.to_ascii_lowercase().replace('-', "_");
    // Whole thousandths, because floats have no order; among equals the first wins.
    let unlike = |candidate: &str| 1000 - (strsim::jaro_winkler(&name, candidate) * 1000.0) as u32;
    let nearest = candidates.min_by_key(|candidate| unlike(candidate))?;
    Some((nearest, unlike(nearest) <= SLIP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestion(name: &str) -> String {
        nearest_key(name, pool_keys::KEYS)
    }

    #[test]
    fn slips_are_recognised() {
        for (slip, meant) in [
            ("hash_tagg", "hash_tag"),
            ("Timeout", "timeout"),
            ("time_out", "timeout"),
            ("server-connections", "server_connections"),
            ("server_conections", "server_connections"),
            ("auto_eject_host", "auto_eject_hosts"),
            ("reids", "redis"),
            ("lisen", "listen"),
            ("distibution", "distribution"),
            ("preconect", "preconnect"),
            ("tcp_keepalive", "tcpkeepalive"),
            ("redis_database", "redis_db"),
        ] {
            assert!(suggestion(slip).contains(&format!("'{meant}'")), "{slip}: {}", suggestion(slip));
        }
    }

    #[test]
    fn keys_of_the_other_section_are_sent_there() {
        assert_eq!(suggestion("threads"), "'threads' belongs under the top-level 'shardwise:'");
        assert_eq!(nearest_key("timeout", process::KEYS), "'timeout' belongs under the name of a pool");
    }

    #[test]
    fn what_is_like_nothing_still_gets_an_answer() {
        assert!(suggestion("zzzzzzzzzz").starts_with("the nearest valid key is '"));
        assert!(suggestion(&"x".repeat(1_000_000)).contains("docs/configuration.md"));
    }

    #[test]
    fn odd_names_are_quoted_in_paths() {
        assert_eq!(join("alpha", "hash_tagg"), "alpha.hash_tagg");
        assert_eq!(join("", "alpha-1"), "alpha-1");
        assert_eq!(join("", "a b\n"), "'a b\\n'");
        assert_eq!(join("alpha", ""), "alpha.''");
    }
}
