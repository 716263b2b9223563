//! Keys that are found only by reading options in order, as the commands themselves do.
//!
//! The published specs search for a word anywhere, and so take a key or a consumer that happens to be called STORE or
//! STREAMS for the option. Words that no command of Redis 7.0 knows are skipped: whatever a later version means by them,
//! its keys are still found behind the words known here.

use std::time::Duration;

use crate::resp::Args;

use super::keys::{KeyError, Keys};
use super::row::TimeoutAt;

/// The key and the last STORE of `SORT key [BY pattern] [LIMIT offset count] [GET pattern …] … [STORE key]`.
/// Keys that BY and GET build from what the server holds can't be told by anybody else.
pub(super) fn sort_keys(args: Args<'_>) -> Result<Keys, KeyError> {
    key_and_store(args, 2, |word| match () {
        () if is_word(word, "STORE") => Step::Store,
        () if is_word(word, "LIMIT") => Step::Skip(2),
        () if is_word(word, "BY") || is_word(word, "GET") => Step::Skip(1),
        () => Step::Skip(0),
    })
}

/// The key and the last STORE or STOREDIST of GEORADIUS, whose options begin at `from`.
pub(super) fn geo_store_keys(args: Args<'_>, from: usize) -> Result<Keys, KeyError> {
    key_and_store(args, from, |word| match () {
        () if is_word(word, "STORE") || is_word(word, "STOREDIST") => Step::Store,
        () if is_word(word, "COUNT") => Step::Skip(1),
        () => Step::Skip(0),
    })
}

/// The keys of XREAD and XREADGROUP: the first half of what follows STREAMS, ids being the other half.
pub(super) fn stream_keys(args: Args<'_>) -> Result<Keys, KeyError> {
    let first = stream_options(args).streams.ok_or(KeyError::NoKeyword)? + 1;
    match args.len() - first {
        0 => Err(KeyError::Missing),
        left if left % 2 != 0 => Err(KeyError::Unpaired),
        left => Ok(Keys::run(first, left / 2)),
    }
}

/// Whether XREAD or XREADGROUP has the option BLOCK, and so may wait.
pub(super) fn has_block(args: Args<'_>) -> bool {
    stream_options(args).block.is_some()
}

/// A century: as good as without end, and no clock overflows by it.
const LONGEST_WAIT: Duration = Duration::from_secs(100 * 366 * 24 * 3600);

/// How long a blocking call asks to wait; `None`: without end.
pub(super) fn wait(args: Args<'_>, at: TimeoutAt) -> Option<Duration> {
    let (number, unit) = match at {
        TimeoutAt::Unsaid => return None,
        TimeoutAt::First => (args.get(1), 1.0),
        TimeoutAt::Last => (args.get(args.len() - 1), 1.0),
        TimeoutAt::LastMillis => (args.get(args.len() - 1), 0.001),
        TimeoutAt::Option => (stream_options(args).block.and_then(|at| args.get(at)), 0.001),
    };
    let number = number.and_then(|text| std::str::from_utf8(text).ok()?.parse::<f64>().ok()).unwrap_or(-1.0);
    match number {
        0.0 => None,
        number if number > 0.0 => Some(
            Duration::try_from_secs_f64(number * unit).map_or(LONGEST_WAIT, |wait| wait.min(LONGEST_WAIT)),
        ),
        _ => Some(Duration::ZERO),
    }
}

/// Whether `COPY source destination [DB database] [REPLACE]` names a database.
pub(super) fn has_database(args: Args<'_>) -> bool {
    args.iter_from(3).any(|arg| is_word(arg, "DB"))
}

/// `MIGRATE host port key|"" db timeout [COPY] [REPLACE] [AUTH password | AUTH2 user password] [KEYS key …]`
pub(super) fn migrate_keys(args: Args<'_>) -> Result<Keys, KeyError> {
    let key = args.get(3).ok_or(KeyError::Missing)?;
    let mut at = 6;
    while let Some(word) = args.get(at) {
        match () {
            () if is_word(word, "KEYS") => return keys_of_list(args, key, at + 1),
            () if is_word(word, "AUTH") => at += 2,
            () if is_word(word, "AUTH2") => at += 3,
            () => at += 1,
        }
    }
    Ok(Keys::one(3))
}

/// Whether `arg` is `word` (upper case) in any case. Redis compares options as C strings: what follows a NUL doesn't count.
pub(super) fn is_word(arg: &[u8], word: &str) -> bool {
    match arg.split_at_checked(word.len()) {
        Some((head, tail)) => head.eq_ignore_ascii_case(word.as_bytes()) && matches!(tail, [] | [0, ..]),
        None => false,
    }
}

/// What an option means for the search of a destination.
enum Step {
    /// The next argument is the destination.
    Store,
    /// So many arguments belong to the option.
    Skip(usize),
}

/// Argument 1 and the destination, of which the last one counts, as in Redis.
fn key_and_store(args: Args<'_>, from: usize, step: impl Fn(&[u8]) -> Step) -> Result<Keys, KeyError> {
    if args.len() < 2 {
        return Err(KeyError::Missing);
    }
    let mut destination = None;
    let mut at = from;
    while let Some(word) = args.get(at) {
        match step(word) {
            Step::Store => {
                destination = Some(at + 1).filter(|to| *to < args.len()).or(destination);
                at += 2;
            }
            Step::Skip(values) => at += 1 + values,
        }
    }
    let key = Keys::one(1);
    Ok(destination.map_or(key, |to| key.and_one(to)))
}

/// MIGRATE takes either one key in its place or a list, which may be empty; both together are an error.
fn keys_of_list(args: Args<'_>, key: &[u8], first: usize) -> Result<Keys, KeyError> {
    if !key.is_empty() {
        return Err(KeyError::TwoPlaces);
    }
    Ok(Keys::run(first, args.len() - first))
}

/// What stands before the keys of XREAD and XREADGROUP.
struct StreamOptions {
    /// Index of the word STREAMS.
    streams: Option<usize>,
    /// Index of the time behind the option BLOCK.
    block: Option<usize>,
}

fn stream_options(args: Args<'_>) -> StreamOptions {
    let mut block = None;
    let mut at = 1;
    while let Some(word) = args.get(at) {
        at += match () {
            () if is_word(word, "STREAMS") => return StreamOptions { streams: Some(at), block },
            () if is_word(word, "BLOCK") => {
                block = Some(at + 1);
                2
            }
            () if is_word(word, "COUNT") => 2,
            () if is_word(word, "GROUP") => 3,
            () => 1,
        };
    }
    StreamOptions { streams: None, block }
}
