//! Key specs: where a command's keys are, in Redis's own vocabulary, and the short words for them that the rows use.

use super::flags::KeyFlags;

/// One group of keys of a command. Most commands have one; RENAME has two, SORT three.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    /// How the search for the keys begins.
    pub begin: BeginSearch,
    /// How they are found from there on.
    pub find: FindKeys,
    /// What the command does with them.
    pub flags: KeyFlags,
}

/// Where the search for keys begins. Arguments are counted from 0, the command's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeginSearch {
    /// At this argument.
    Index(u8),
    /// Behind the first occurrence of a word, in any case.
    Keyword {
        /// The word, in upper case.
        word: &'static str,
        /// The first argument looked at; negative: from the end, backwards.
        from: i8,
    },
    /// Redis doesn't say.
    Unknown,
}

/// How keys are found once the beginning is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindKeys {
    /// The beginning and what follows it.
    Range {
        /// Last key, relative to the beginning; negative: from the last argument (-1) backwards.
        last: i8,
        /// Distance from one key to the next.
        step: u8,
        /// With `last: -1`: 2 takes half of the arguments that are left; 0 and 1 take all.
        limit: u8,
    },
    /// A number tells how many keys follow.
    KeyNum {
        /// Where the number is, relative to the beginning.
        number: u8,
        /// Where the first key is, relative to the beginning.
        first: u8,
        /// Distance from one key to the next.
        step: u8,
    },
    /// Redis doesn't say.
    Unknown,
}

/// One key, argument `index`.
pub(super) const fn one(index: u8, flags: u16) -> KeySpec {
    range(index, 0, 1, flags)
}

/// All arguments from `index` on.
pub(super) const fn all_from(index: u8, flags: u16) -> KeySpec {
    range(index, -1, 1, flags)
}

/// Every `step`th argument from `index` to `last` (relative to `index`; negative: counted from the end).
pub(super) const fn range(index: u8, last: i8, step: u8, flags: u16) -> KeySpec {
    KeySpec {
        begin: BeginSearch::Index(index),
        find: FindKeys::Range { last, step, limit: 0 },
        flags: KeyFlags::of(flags),
    }
}

/// Argument `index` is the number of keys, which follow it `step` arguments apart.
pub(super) const fn counted(index: u8, step: u8, flags: u16) -> KeySpec {
    KeySpec {
        begin: BeginSearch::Index(index),
        find: FindKeys::KeyNum { number: 0, first: 1, step },
        flags: KeyFlags::of(flags),
    }
}

/// One key behind `word`, which is looked for from argument `from` on.
pub(super) const fn one_after(word: &'static str, from: i8, flags: u16) -> KeySpec {
    after(word, from, FindKeys::Range { last: 0, step: 1, limit: 0 }, flags)
}

/// All arguments behind `word`, which is looked for from argument `from` on.
pub(super) const fn all_after(word: &'static str, from: i8, flags: u16) -> KeySpec {
    after(word, from, FindKeys::Range { last: -1, step: 1, limit: 0 }, flags)
}

/// The first half of the arguments behind `word`, which is looked for from argument `from` on.
pub(super) const fn half_after(word: &'static str, from: i8, flags: u16) -> KeySpec {
    after(word, from, FindKeys::Range { last: -1, step: 1, limit: 2 }, flags)
}

/// Keys whose place Redis doesn't publish.
pub(super) const fn somewhere(flags: u16) -> KeySpec {
    KeySpec { begin: BeginSearch::Unknown, find: FindKeys::Unknown, flags: KeyFlags::of(flags) }
}

const fn after(word: &'static str, from: i8, find: FindKeys, flags: u16) -> KeySpec {
    KeySpec { begin: BeginSearch::Keyword { word, from }, find, flags: KeyFlags::of(flags) }
}
