//! What shardwise does with a command that it knows only from a server.

use super::answer::{Begin, Find, Published, Spec};
use crate::command::flags::{Categories, Flags, KeyFlags};
use crate::command::row::{AllKind, Handling, Pin, TimeoutAt, Why};
use crate::command::spec::{BeginSearch, FindKeys, KeySpec};

/// Key specs that a row can have: keys are at most two runs.
const MOST_SPECS: usize = 2;

/// Where a command's keys are, as far as it can be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Where {
    /// It has none.
    Nowhere,
    /// All are found by these; the word of a keyword is in `Published`, by the place of its spec.
    Specs(Vec<Found>),
    /// There are keys that the specs don't find.
    Unknown,
}

/// A key spec of which everything is known, and fits into a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) begin: Start,
    pub(super) find: FindKeys,
    pub(super) flags: KeyFlags,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Start {
    Index(u8),
    Keyword(String, i8),
}

/// What is done with a call of `command`.
pub(super) fn handling(command: &Published, keys: &Where) -> Handling {
    let says = |flag| command.flags.contains(flag);
    let is_of = |category| command.categories.contains(category);
    if says(Flags::ADMIN) {
        return Handling::Unsupported(Why::Administration);
    }
    // What such commands change is a connection, and the servers' are shared by clients.
    if says(Flags::PUBSUB)
        || says(Flags::NO_AUTH)
        || is_of(Categories::CONNECTION)
        || is_of(Categories::TRANSACTION)
    {
        return Handling::Unsupported(Why::ConnectionState);
    }
    let may_block = says(Flags::BLOCKING) || is_of(Categories::BLOCKING);
    match keys {
        Where::Specs(_) if may_block => Handling::Pinned(Pin::Block(TimeoutAt::Unsaid)),
        Where::Specs(_) => Handling::Keyed,
        _ if may_block => Handling::Unsupported(Why::KeysUnknown),
        Where::Unknown => Handling::OnlyServer(Why::KeysUnknown),
        Where::Nowhere => match everywhere(&command.tips) {
            Some(kind) => Handling::Everywhere(kind),
            None => Handling::OnlyServer(Why::Keyless),
        },
    }
}

/// How the replies of all servers become one, for a command whose tips ask for that and say how.
fn everywhere(tips: &[String]) -> Option<AllKind> {
    let policy = |kind: &str| tips.iter().find_map(|tip| tip.strip_prefix(kind)?.strip_prefix(':'));
    match (policy("request_policy")?, policy("response_policy")?) {
        ("all_nodes" | "all_shards", "all_succeeded") => Some(AllKind::Same),
        ("all_nodes" | "all_shards", "agg_sum") => Some(AllKind::Sum),
        ("all_nodes" | "all_shards", "agg_max") => Some(AllKind::Max),
        _ => None,
    }
}

/// Where the keys of `command` are.
pub(super) fn keys(command: &Published) -> Where {
    let moves = command.flags.contains(Flags::MOVABLE_KEYS);
    let Some(specs) = &command.specs else { return by_range(command.range, moves) };
    let specs: Vec<&Spec> = specs.iter().filter(|spec| !is_no_key(spec)).collect();
    if specs.is_empty() {
        // A module that finds its keys by a function of its own may publish none.
        return if moves || command.range[0] != 0 { Where::Unknown } else { Where::Nowhere };
    }
    let found: Option<Vec<Found>> = specs.into_iter().map(found).collect();
    match found {
        Some(found) if found.len() <= MOST_SPECS && !(moves && is_plain(&found, command)) => {
            Where::Specs(found)
        }
        _ => Where::Unknown,
    }
}

/// Redis says that keys move when the old form doesn't find all of them. Where it would, it is because a function of the module
/// finds them, and the spec only tells what the module said for older servers.
fn is_plain(found: &[Found], command: &Published) -> bool {
    let plain = |spec: &Found| matches!((&spec.begin, spec.find), (Start::Index(_), FindKeys::Range { .. }));
    (command.is_module || found.len() == 1) && found.iter().all(plain)
}

fn is_no_key(spec: &Spec) -> bool {
    spec.flags.is_some_and(|flags| flags.contains(KeyFlags::NOT_KEY))
}

fn found(spec: &Spec) -> Option<Found> {
    let flags = spec.flags.unwrap_or(KeyFlags::NONE);
    if flags.contains(KeyFlags::INCOMPLETE) {
        return None;
    }
    let begin = match &spec.begin {
        // Argument 0 is the command's name.
        Begin::Index(at) => Start::Index(u8::try_from(*at).ok().filter(|at| *at > 0)?),
        Begin::Keyword(word, from) => {
            Start::Keyword(word.clone(), i8::try_from(*from).ok().filter(|at| *at != 0)?)
        }
        Begin::Unknown => return None,
    };
    let step = |step: i64| u8::try_from(step).ok().filter(|step| *step > 0);
    let find = match spec.find {
        Find::Range([last, distance, limit]) => FindKeys::Range {
            last: i8::try_from(last).ok()?,
            step: step(distance)?,
            limit: u8::try_from(limit).ok()?,
        },
        Find::KeyNum([number, first, distance]) => FindKeys::KeyNum {
            number: u8::try_from(number).ok()?,
            first: u8::try_from(first).ok()?,
            step: step(distance)?,
        },
        Find::Unknown => return None,
    };
    Some(Found { begin, find, flags })
}

/// Before Redis 7.0 there is only the old form.
fn by_range([first, last, step]: [i64; 3], moves: bool) -> Where {
    let spec = || {
        let begin = u8::try_from(first).ok()?;
        let last = if last < 0 { last } else { last.checked_sub(first).filter(|span| *span >= 0)? };
        let find = Find::Range([last, step, 0]);
        found(&Spec { flags: None, begin: Begin::Index(begin.into()), find })
    };
    match (first, moves) {
        (0, false) => Where::Nowhere,
        (_, true) => Where::Unknown,
        _ => spec().map_or(Where::Unknown, |found| Where::Specs(vec![found])),
    }
}

impl Found {
    /// As a row has it; `word` gives a keyword a place for good.
    pub(super) fn spec(&self, word: impl FnOnce(&str) -> Option<&'static str>) -> Option<KeySpec> {
        let begin = match &self.begin {
            Start::Index(at) => BeginSearch::Index(*at),
            Start::Keyword(text, from) => BeginSearch::Keyword { word: word(text)?, from: *from },
        };
        Some(KeySpec { begin, find: self.find, flags: self.flags })
    }
}
