//! Which arguments of a call are keys.

use crate::resp::Args;

use super::flags::{Flags, KeyFlags};
use super::options;
use super::row::Row;
use super::spec::{BeginSearch, FindKeys, KeySpec};

/// The indexes of the arguments that are keys, in order, as at most two runs: no command has more
/// (ZUNIONSTORE: its destination, and the counted ones). Nothing is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    head: Run,
    tail: Run,
}

/// Iterates over the indexes of [`Keys`].
#[derive(Clone, Debug)]
pub struct KeyIter {
    head: Run,
    tail: Run,
}

/// Why the keys of a call can't be told. A server answers every such call with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The argument that should be the number of keys is no integer, or negative.
    NotANumber,
    /// The number of keys is 0, and the command needs one.
    NoKey,
    /// More keys are announced than arguments follow, or a key's place is past the last argument.
    Missing,
    /// Keys and their values or ids don't pair up.
    Unpaired,
    /// MIGRATE has a key in its place and a list of keys.
    TwoPlaces,
    /// The word that the keys follow isn't there.
    NoKeyword,
}

/// How to find the keys of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyRule {
    /// There are none.
    None,
    /// One key, at this argument.
    One(u8),
    /// As the specs say.
    Specs,
    /// SORT: the key, and the last STORE.
    Sort,
    /// GEORADIUS: the key, and the last STORE or STOREDIST among the options, which begin at this argument.
    GeoStore(u8),
    /// XREAD and XREADGROUP: the first half of what follows STREAMS.
    Streams,
    /// MIGRATE: the key, or what follows KEYS.
    Migrate,
}

/// Indexes `first`, `first + step`, …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u32,
    count: u32,
    step: u32,
}

/// A run without any index.
const NO_RUN: Run = Run { first: 0, count: 0, step: 1 };

// === impl Keys ===

impl Keys {
    /// No key.
    pub const NONE: Keys = Keys { head: NO_RUN, tail: NO_RUN };

    /// How many there are.
    pub fn len(&self) -> usize {
        (self.head.count + self.tail.count) as usize
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.head.count == 0
    }

    #[inline]
    /// The only key, if there is just one.
    pub fn single(&self) -> Option<usize> {
        (self.len() == 1).then_some(self.head.first as usize)
    }

    /// The first key.
    pub fn first(&self) -> Option<usize> {
        (!self.is_empty()).then_some(self.head.first as usize)
    }

    /// Their indexes in order.
    pub fn iter(&self) -> KeyIter {
        KeyIter { head: self.head, tail: self.tail }
    }

    /// The key at `index`.
    pub(super) fn one(index: usize) -> Keys {
        Keys { head: Run::new(index, 1, 1), tail: NO_RUN }
    }

    /// `count` keys from `first` on.
    pub(super) fn run(first: usize, count: usize) -> Keys {
        Keys { head: Run::new(first, count, 1), tail: NO_RUN }
    }

    /// These, and then the key at `index`.
    pub(super) fn and_one(mut self, index: usize) -> Keys {
        self.push(Run::new(index, 1, 1));
        self
    }

    /// Appends `run`, to the last run if it goes on where that ends.
    fn push(&mut self, run: Run) {
        let last = if self.tail.count > 0 { &mut self.tail } else { &mut self.head };
        if last.count == 0 {
            *last = run;
        } else if last.step == run.step && last.end() == run.first {
            last.count += run.count;
        } else {
            debug_assert_eq!(self.tail.count, 0, "no row has more than two runs of keys, as a test checks");
            self.tail = run;
        }
    }
}

impl IntoIterator for Keys {
    type Item = usize;
    type IntoIter = KeyIter;

    fn into_iter(self) -> KeyIter {
        self.iter()
    }
}

// === impl KeyIter ===

impl Iterator for KeyIter {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.head.pop().or_else(|| self.tail.pop())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.head.count + self.tail.count) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for KeyIter {}

// === impl Run ===

impl Run {
    /// A request has at most 1,048,576 arguments, so 32 bits are enough for their indexes.
    fn new(first: usize, count: usize, step: usize) -> Run {
        Run { first: first as u32, count: count as u32, step: step as u32 }
    }

    /// The index that the next one would have.
    fn end(&self) -> u32 {
        self.first + self.count * self.step
    }

    fn pop(&mut self) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let index = self.first;
        self.count -= 1;
        self.first += self.step;
        Some(index as usize)
    }
}

// === impl KeyRule ===

impl KeyRule {
    /// The rule for a command whose specs tell everything.
    pub(super) const fn of(specs: &[KeySpec]) -> KeyRule {
        let mut rule = KeyRule::None;
        let mut i = 0;
        while i < specs.len() {
            if !specs[i].flags.contains(KeyFlags::NOT_KEY) {
                rule = match (rule, specs[i].begin, specs[i].find) {
                    (KeyRule::None, BeginSearch::Index(at), FindKeys::Range { last: 0, .. }) => {
                        KeyRule::One(at)
                    }
                    _ => KeyRule::Specs,
                };
            }
            i += 1;
        }
        rule
    }

    /// The keys of a call of `row`.
    #[inline]
    pub(super) fn find(self, row: &Row, args: Args<'_>) -> Result<Keys, KeyError> {
        match self {
            KeyRule::One(at) if usize::from(at) < args.len() => Ok(Keys::one(at.into())),
            KeyRule::One(_) => Err(KeyError::Missing),
            KeyRule::None => Ok(Keys::NONE),
            _ => self.find_several(row, args),
        }
    }

    fn find_several(self, row: &Row, args: Args<'_>) -> Result<Keys, KeyError> {
        match self {
            KeyRule::None | KeyRule::One(_) | KeyRule::Specs => by_specs(row, args),
            KeyRule::Sort => options::sort_keys(args),
            KeyRule::GeoStore(from) => options::geo_store_keys(args, from.into()),
            KeyRule::Streams => options::stream_keys(args),
            KeyRule::Migrate => options::migrate_keys(args),
        }
    }
}

fn by_specs(row: &Row, args: Args<'_>) -> Result<Keys, KeyError> {
    let mut keys = Keys::NONE;
    for spec in row.keys.iter().filter(|spec| !spec.flags.contains(KeyFlags::NOT_KEY)) {
        let Some(first) = begin(spec, args) else { continue };
        let run = match spec.find {
            FindKeys::Range { last, step, limit } => {
                range(args, first, last.into(), step.into(), limit.into())?
            }
            FindKeys::KeyNum { number, first: offset, step } => {
                counted(args, first + usize::from(number), first + usize::from(offset), step.into())?
            }
            FindKeys::Unknown => continue,
        };
        if run.count > 0 {
            keys.push(run);
        }
    }
    if keys.is_empty() && !row.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(KeyError::NoKey);
    }
    Ok(keys)
}

/// Where the search begins; `None` if the keyword isn't there.
fn begin(spec: &KeySpec, args: Args<'_>) -> Option<usize> {
    match spec.begin {
        BeginSearch::Index(at) => Some(at.into()),
        BeginSearch::Keyword { word, from } => {
            let is_here = |at: &usize| args.get(*at).is_some_and(|arg| options::is_word(arg, word));
            // As Redis does it: forwards the last argument isn't looked at, backwards the first two aren't.
            let found = if from >= 0 {
                (usize::from(from.unsigned_abs())..args.len().saturating_sub(1)).find(is_here)
            } else {
                let start = args.len().saturating_sub(from.unsigned_abs().into());
                (2..=start).rev().find(is_here)
            };
            found.map(|at| at + 1)
        }
        BeginSearch::Unknown => None,
    }
}

/// Keys from `first` to `last`, which counts from `first`, or from the end if negative.
fn range(args: Args<'_>, first: usize, last: isize, step: usize, limit: usize) -> Result<Run, KeyError> {
    let left = args.len().checked_sub(first).ok_or(KeyError::Missing)?;
    if left == 0 && last < 0 {
        // An open range may be empty: `PFMERGE key` has no sources, and makes an empty key.
        return Ok(NO_RUN);
    }
    let span = match usize::try_from(last) {
        Ok(last) => last + 1,
        Err(_) => {
            let share = if limit > 1 { left / limit } else { left };
            share.checked_add_signed(last + 1).ok_or(KeyError::Missing)?
        }
    };
    if span == 0 || span > left {
        return Err(KeyError::Missing);
    }
    if last < 0 && span % step != 0 {
        return Err(KeyError::Unpaired);
    }
    Ok(Run::new(first, span.div_ceil(step), step))
}

/// As many keys from `first` on as argument `number` says.
fn counted(args: Args<'_>, number: usize, first: usize, step: usize) -> Result<Run, KeyError> {
    let count = args.get(number).and_then(natural).ok_or(KeyError::NotANumber)?;
    if count == 0 {
        return Ok(NO_RUN);
    }
    // The place of the last key, computed so that no announced count can overflow.
    let last = (count - 1).checked_mul(step).and_then(|span| span.checked_add(first));
    match last {
        Some(last) if last < args.len() => Ok(Run::new(first, count, step)),
        _ => Err(KeyError::Missing),
    }
}

/// A number as strictly as Redis reads it: no sign, no leading zero, no space.
fn natural(digits: &[u8]) -> Option<usize> {
    let canonical = match digits {
        [b'0'] => true,
        [b'1'..=b'9', ..] => digits.len() <= 19,
        _ => false,
    };
    if !canonical {
        return None;
    }
    digits.iter().try_fold(0usize, |number, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        number.checked_mul(10)?.checked_add(digit.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strictly_as_redis_does() {
        for (digits, number) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("1048576", Some(1_048_576)),
            ("9223372036854775807", Some(9_223_372_036_854_775_807)),
            ("", None),
            ("-0", None),
            ("-1", None),
            ("+1", None),
            ("01", None),
            ("00", None),
            (" 1", None),
            ("1 ", None),
            ("1a", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(natural(digits.as_bytes()), number, "{digits:?}");
        }
    }

    #[test]
    fn runs_that_go_on_are_one() {
        let mut keys = Keys::one(1).and_one(2).and_one(3);
        assert_eq!(keys, Keys::run(1, 3));
        keys.push(Run::new(9, 2, 2));
        assert_eq!(keys.iter().collect::<Vec<_>>(), [1, 2, 3, 9, 11]);
        assert_eq!((keys.len(), keys.first(), keys.single()), (5, Some(1), None));
        assert_eq!(keys.iter().len(), 5);
        assert_eq!((Keys::NONE.len(), Keys::NONE.first(), Keys::NONE.single()), (0, None, None));
        assert_eq!(Keys::one(4).single(), Some(4));
    }
}
