//! How answers are compared: what the reference is asked once the proxy has answered, and what makes both agree.

use std::collections::HashSet;
use std::time::{SystemTime, UNIX_EPOCH};

use shardwise::command::Handling;

use crate::history::author::Step;
use crate::history::coverage::row_of;
use crate::support::Value;

/// What an answer is compared with.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// The reference's answer, byte for byte.
    Same,
    /// The same elements in any order.
    Unordered,
    /// The same pairs in any order.
    Pairs,
    /// A whole scan in one answer: the same groups of so many elements, in any order.
    Scanned(usize),
    /// Clocks: numbers at most so far apart. Negative ones mean something else and are the same.
    Near(i64),
    /// The same but for points in time and idle times.
    Clock,
    /// A number above 0 where the reference has one, too.
    Present,
    /// The same, but for sets and large hashes, whose elements come in any order, and streams, which hold times: those are
    /// of the same type.
    Dumped,
    /// Random elements of what this command finds at the reference.
    Sampled(&'static str),
    /// The same with pairs.
    SampledPairs(&'static str),
    /// Random elements that are gone now: the reference loses the same ones.
    Popped,
    /// An id made from the clock: the reference is given the same one.
    AutoId,
    /// TIME.
    ServerTime,
    /// Another client's key, which changes at any time: every value in the answer names its key.
    Foreign,
}

/// A command for the reference.
pub type Command = Vec<Vec<u8>>;

/// What the reference is asked when the proxy has answered `step` by `reply`.
pub fn questions(step: &Step, reply: &Value) -> Vec<Command> {
    let key = |at: usize| step.args[step.keys[at]].clone();
    if is_refused_across_servers(step, reply) {
        return Vec::new();
    }
    match (step.check, reply) {
        (Check::Foreign, _) => Vec::new(),
        (Check::Sampled(census) | Check::SampledPairs(census), _) => {
            let mut words: Command = census.split(' ').map(Into::into).collect();
            words.insert(1, key(0));
            vec![words]
        }
        (Check::Popped, Value::Nil | Value::Bulk(_) | Value::Array(_)) => {
            let mut questions = vec![vec![b"SCARD".to_vec(), key(0)]];
            let gone = elements(reply);
            if !gone.is_empty() {
                questions.push([b"SREM".to_vec(), key(0)].into_iter().chain(gone).collect());
            }
            questions
        }
        (Check::AutoId, Value::Bulk(id)) => {
            let mut again = step.args.clone();
            let star = again.iter_mut().find(|arg| *arg == b"*").expect("the phrase has one");
            star.clone_from(id);
            vec![again]
        }
        _ => vec![step.args.clone()],
    }
}

/// Whether the proxy's `reply` to `step` is right, given the reference's answers to the [`questions`].
pub fn agrees(step: &Step, reply: &Value, answers: &[Value]) -> bool {
    let [first, rest @ ..] = answers else {
        return is_refused_across_servers(step, reply) || names_its_keys(step, reply);
    };
    if matches!((reply, first), (Value::Error(_), _) | (_, Value::Error(_))) {
        return reply == first;
    }
    match step.check {
        Check::Same => reply == first,
        Check::Unordered => sorted(reply, 1) == sorted(first, 1),
        Check::Pairs => sorted(reply, 2) == sorted(first, 2),
        Check::Scanned(size) => match (reply, first) {
            (Value::Array(ours), Value::Array(theirs)) => {
                ours[0] == Value::bulk("0")
                    && ours[0] == theirs[0]
                    && sorted(&ours[1], size) == sorted(&theirs[1], size)
            }
            _ => false,
        },
        Check::Near(distance) => near(reply, first, distance),
        Check::Clock => same_but_for_clocks(reply, first),
        Check::Present => match (reply, first) {
            (Value::Int(ours), Value::Int(theirs)) => *ours > 0 && *theirs > 0,
            _ => reply == first,
        },
        Check::Dumped => same_dump(reply, first),
        Check::Sampled(_) => is_sample(step, reply, first, 1),
        Check::SampledPairs(_) => is_sample(step, reply, first, 2),
        Check::Popped => is_popped(step, reply, first.int(), rest),
        Check::AutoId => reply == first && (*reply == Value::Nil || is_recent_id(reply)),
        Check::ServerTime => reply.items().len() == 2 && is_recent(reply.items()[0].bytes()),
        Check::Foreign => unreachable!("the reference isn't asked about other clients' keys"),
    }
}

/// `-CROSSSLOT`, where that may be: keys of several hash tags, in a command that isn't split.
fn is_refused_across_servers(step: &Step, reply: &Value) -> bool {
    if !reply.is_error("CROSSSLOT") {
        return false;
    }
    let tags: HashSet<&[u8]> = step.keys.iter().map(|key| tag(&step.args[*key])).collect();
    let is_whole = matches!(row_of(&step.args).map(|row| row.usual_handling()), Some(Handling::Keyed));
    is_whole && tags.len() > 1
}

fn names_its_keys(step: &Step, reply: &Value) -> bool {
    let mut keys = step.keys.iter().map(|key| tag(&step.args[*key]));
    match reply {
        // An MGET: as many values as keys, each of its own.
        Value::Array(values) if step.args[0].eq_ignore_ascii_case(b"MGET") => {
            values.len() == step.keys.len() && values.iter().zip(keys).all(|(value, tag)| names(value, tag))
        }
        _ => keys.next().is_some_and(|tag| names(reply, tag)),
    }
}

fn names(value: &Value, tag: &[u8]) -> bool {
    match value {
        Value::Bulk(bytes) => bytes.windows(tag.len()).any(|part| part == tag),
        Value::Array(values) => values.iter().all(|value| names(value, tag)),
        Value::Nil => true,
        Value::Error(text) => text.starts_with("WRONGTYPE"),
        // Nothing that RESP2 has besides these.
        _ => false,
    }
}

/// `{…}` of a key, braces included.
fn tag(key: &[u8]) -> &[u8] {
    let end = key.iter().position(|byte| *byte == b'}').expect("every key here has a tag");
    &key[..=end]
}

/// The strings in an answer that is one string, several, or none.
fn elements(reply: &Value) -> Vec<Vec<u8>> {
    match reply {
        Value::Nil => Vec::new(),
        Value::Array(values) => values.iter().map(|value| value.bytes().to_vec()).collect(),
        value => vec![value.bytes().to_vec()],
    }
}

/// Groups of `size` elements in a definite order; `None` for what is no array of such.
fn sorted(reply: &Value, size: usize) -> Option<Vec<Vec<&[u8]>>> {
    let Value::Array(values) = reply else { return None };
    let strings = values.iter().map(|value| match value {
        Value::Bulk(bytes) => Some(bytes.as_slice()),
        _ => None,
    });
    let strings: Vec<&[u8]> = strings.collect::<Option<_>>()?;
    let mut groups: Vec<Vec<&[u8]>> = strings.chunks(size).map(<[_]>::to_vec).collect();
    groups.sort_unstable();
    Some(groups)
}

fn near(ours: &Value, theirs: &Value, distance: i64) -> bool {
    match (ours, theirs) {
        (Value::Int(ours), Value::Int(theirs)) if *ours >= 0 && *theirs >= 0 => {
            ours.abs_diff(*theirs) <= distance as u64
        }
        _ => ours == theirs,
    }
}

/// Compares what XINFO and XPENDING answer.
fn same_but_for_clocks(ours: &Value, theirs: &Value) -> bool {
    /// Milliseconds since 1970, and nothing else here, are so large.
    const TIMES: i64 = 1_000_000_000_000;
    const DISTANCE: i64 = 60_000;
    match (ours, theirs) {
        (Value::Int(a), Value::Int(b)) if *a > TIMES && *b > TIMES => near(ours, theirs, DISTANCE),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let is_pending =
                matches!(a.as_slice(), [Value::Bulk(_), Value::Bulk(_), Value::Int(_), Value::Int(_)]);
            a.iter().zip(b).enumerate().all(|(at, (ours, theirs))| {
                let is_idle_time = (is_pending && at == 2) || (at > 0 && a[at - 1] == Value::bulk("idle"));
                if is_idle_time { near(ours, theirs, DISTANCE) } else { same_but_for_clocks(ours, theirs) }
            })
        }
        _ => ours == theirs,
    }
}

fn same_dump(ours: &Value, theirs: &Value) -> bool {
    /// The first byte of dumped strings, sorted sets, small hashes, and lists.
    const ORDERED: [u8; 5] = [0, 5, 16, 17, 18];
    match (ours, theirs) {
        (Value::Bulk(a), Value::Bulk(b)) if !ORDERED.contains(&a[0]) => a[0] == b[0],
        _ => ours == theirs,
    }
}

/// Whether `reply` is what a command with or without a count may have picked from `census`, both in groups of `size`.
fn is_sample(step: &Step, reply: &Value, census: &Value, size: usize) -> bool {
    let Some(all) = sorted(census, size) else { return false };
    let known: HashSet<_> = all.iter().collect();
    let Some(count) = count(step) else {
        return match reply {
            Value::Nil => all.is_empty(),
            Value::Bulk(one) => known.contains(&vec![one.as_slice()]),
            _ => false,
        };
    };
    let Some(picked) = sorted(reply, size) else { return false };
    let distinct: HashSet<_> = picked.iter().collect();
    let right_number = match count {
        0.. => picked.len() == all.len().min(count as usize) && distinct.len() == picked.len(),
        _ => picked.len() == if all.is_empty() { 0 } else { count.unsigned_abs() as usize },
    };
    right_number && distinct.is_subset(&known)
}

/// `before`: how many there were at the reference; `removed`: its answer to SREM, if there was something to remove.
fn is_popped(step: &Step, reply: &Value, before: i64, removed: &[Value]) -> bool {
    let gone = elements(reply).len() as i64;
    let expected = match count(step) {
        Some(count) => matches!(reply, Value::Array(_)) && gone == count.min(before),
        None => !matches!(reply, Value::Array(_)) && gone == before.min(1),
    };
    expected && (gone == 0 || removed == [Value::Int(gone)])
}

/// The count behind the key, if there is one.
fn count(step: &Step) -> Option<i64> {
    step.args
        .get(2)
        .map(|count| String::from_utf8_lossy(count).parse().expect("the phrase has a number there"))
}

fn is_recent_id(id: &Value) -> bool {
    let millis = id.bytes().split(|byte| *byte == b'-').next().unwrap_or_default();
    millis.len() > 3 && is_recent(&millis[..millis.len() - 3])
}

/// Whether these digits are a time (in seconds since 1970) within a minute of now.
fn is_recent(seconds: &[u8]) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is past 1970").as_secs();
    String::from_utf8_lossy(seconds).parse::<u64>().is_ok_and(|time| time.abs_diff(now) <= 60)
}
