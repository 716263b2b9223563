//! What a key of the configuration is: one row each. Reading, suggestions and documentation all read that row.

use std::ops::RangeInclusive;
use std::time::Duration;

use crate::units::{Limit, Mode, duration, size, whole_number};

use super::error::Reason;
use super::raw::{Entries, Node, Text};

/// One key of a section whose values end up in a `T`.
pub(super) struct Key<T: 'static> {
    pub(super) name: &'static str,
    pub(super) origin: Origin,
    pub(super) absent: Absent,
    pub(super) field: Field<T>,
    /// One or two sentences, for the documentation.
    pub(super) meaning: &'static str,
}

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// nutcracker knows it.
    Twemproxy,
    /// Ours.
    Shardwise,
}

/// What holds when the key isn't given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    /// It must be given.
    Required,
    /// No value; what that means.
    Unset(&'static str),
    /// As if this were given.
    Value(&'static str),
}

/// What a key takes, and where that goes.
pub(super) enum Field<T: 'static> {
    /// `true` or `false`.
    Flag(fn(&mut T, bool)),
    /// Decimal digits.
    Number(RangeInclusive<u32>, fn(&mut T, u32)),
    /// Decimal digits: milliseconds, as twemproxy writes durations.
    Millis(fn(&mut T, Duration)),
    /// A duration with or without its unit.
    Duration(RangeInclusive<Duration>, fn(&mut T, Duration)),
    /// Bytes with or without a unit.
    Size(RangeInclusive<u64>, fn(&mut T, usize)),
    /// A limit: a number, and its mode behind it. The second is what 0 means.
    LimitNumber(RangeInclusive<u32>, Zero, fn(&mut T, Limit<u32>)),
    /// A limit in bytes, and its mode behind it.
    LimitSize(RangeInclusive<u64>, fn(&mut T, Limit<usize>)),
    /// A limit of time, and its mode behind it.
    LimitDuration(RangeInclusive<Duration>, fn(&mut T, Limit<Duration>)),
    /// One of some words, described by the word or two; `false` when it is none of them.
    Choice(&'static str, fn() -> Vec<&'static str>, fn(&mut T, &str) -> bool),
    /// A text with a grammar of its own, described by the word or two.
    Text(&'static str, fn(&mut T, &str) -> Result<(), Reason>),
    /// A password, or the name of a file with one: never repeated in an error.
    Secret(&'static str, fn(&mut T, Text)),
    /// A mapping, described by the word or two.
    Mapping(&'static str, fn(&mut T, Entries) -> Result<(), Reason>),
    /// A list, described by the word or two.
    List(&'static str, fn(&mut T, Vec<Node>)),
}

/// What 0 means as a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    /// The same as `off`, as twemproxy's own keys have it.
    IsOff,
    /// Nothing: it is out of range.
    IsRefused,
}

/// Most milliseconds of twemproxy's own keys, and most of its numbers: its C `int`.
pub(super) const INT_MAX: u32 = i32::MAX as u32;

// === impl Key ===

impl<T> Key<T> {
    /// Sets `into` to what holds when no key is given.
    pub(super) fn set_absent(table: &[Self], into: &mut T) {
        for key in table {
            if let Absent::Value(text) = key.absent {
                key.field.set_text(into, text).expect("a test reads every default");
            }
        }
    }
}

// === impl Field ===

impl<T> Field<T> {
    /// Checks `node` and puts it into its place.
    pub(super) fn set(&self, into: &mut T, node: Node) -> Result<(), Reason> {
        match (self, node) {
            (Self::List(_, set), Node::List(items)) => set(into, items),
            (Self::Mapping(_, set), Node::Map(entries)) => return set(into, entries),
            // No list is an empty list, which the reader of its items complains of.
            (Self::List(_, set), Node::Text(text)) if text.text.is_empty() => set(into, Vec::new()),
            (_, Node::Text(text)) if text.text.is_empty() => return Err(Reason::Empty),
            (Self::Secret(_, set), Node::Text(text)) => set(into, text),
            (_, Node::Text(text)) => return self.set_text(into, &text.text),
            (_, node) => return Err(self.wrong_type(&node)),
        }
        Ok(())
    }

    /// What it takes, in the words of an error: `must be …`, `… is not …`.
    pub(super) fn wanted(&self) -> String {
        match self {
            Self::Flag(_) => "true or false".to_owned(),
            Self::Number(..) => "a number".to_owned(),
            Self::Millis(_) => "a number of milliseconds".to_owned(),
            Self::Duration(..) => "a duration like 500ms or 2s".to_owned(),
            Self::Size(..) => "a size like 4096, 64kb or 1mb".to_owned(),
            Self::LimitNumber(..) => "a limit like 100, 100 observe or off".to_owned(),
            Self::LimitSize(..) => "a limit like 64kb, 1mb observe or off".to_owned(),
            Self::LimitDuration(..) => "a limit like 500ms, 2s observe or off".to_owned(),
            Self::Choice(what, ..)
            | Self::Text(what, _)
            | Self::Secret(what, _)
            | Self::Mapping(what, _)
            | Self::List(what, _) => (*what).to_owned(),
        }
    }

    /// Least and most, as the file would write them.
    pub(super) fn range(&self) -> Option<String> {
        match self {
            Self::Number(range, _) | Self::LimitNumber(range, ..) => {
                Some(format!("{}…{}", range.start(), range.end()))
            }
            Self::Millis(_) => Some(format!("0…{INT_MAX}")),
            Self::Duration(range, _) | Self::LimitDuration(range, _) => {
                Some(format!("{}…{}", duration::show(*range.start()), duration::show(*range.end())))
            }
            Self::Size(range, _) | Self::LimitSize(range, _) => {
                Some(format!("{}…{}", size::show(*range.start()), size::show(*range.end())))
            }
            _ => None,
        }
    }

    /// The words it takes, where these are all there is.
    pub(super) fn choices(&self) -> Vec<&'static str> {
        match self {
            Self::Choice(_, names, _) => names(),
            Self::Flag(_) => vec!["true", "false"],
            _ => Vec::new(),
        }
    }

    pub(super) fn is_choice(&self) -> bool {
        matches!(self, Self::Choice(..))
    }

    fn set_text(&self, into: &mut T, text: &str) -> Result<(), Reason> {
        match self {
            Self::Flag(set) => match text {
                "true" => set(into, true),
                "false" => set(into, false),
                _ => return Err(self.invalid(text)),
            },
            Self::Number(range, set) => set(into, self.in_range(text, range)?),
            Self::Millis(set) => {
                let millis = self.number(text)?;
                if millis > u64::from(INT_MAX) {
                    return Err(self.out_of_range(text));
                }
                set(into, Duration::from_millis(millis));
            }
            Self::Duration(range, set) => set(into, self.duration(text, range)?),
            Self::Size(range, set) => set(into, self.size(text, range)?),
            Self::LimitNumber(range, zero, set) => {
                let number = |text: &str| match self.number(text)? {
                    0 if *zero == Zero::IsOff => Ok(None),
                    _ => self.in_range(text, range).map(Some),
                };
                set(into, limit(text, number)?);
            }
            Self::LimitSize(range, set) => set(into, limit(text, |text| self.size(text, range).map(Some))?),
            Self::LimitDuration(range, set) => {
                set(into, limit(text, |text| self.duration(text, range).map(Some))?);
            }
            Self::Choice(.., set) => {
                if !set(into, text) {
                    return Err(self.invalid(text));
                }
            }
            Self::Text(_, set) => return set(into, text),
            Self::Secret(..) | Self::Mapping(..) | Self::List(..) => {
                return Err(Reason::WrongType { want: self.wanted(), found: "a text" });
            }
        }
        Ok(())
    }

    fn in_range(&self, text: &str, range: &RangeInclusive<u32>) -> Result<u32, Reason> {
        let number = u32::try_from(self.number(text)?).ok().filter(|number| range.contains(number));
        number.ok_or_else(|| self.out_of_range(text))
    }

    fn duration(&self, text: &str, range: &RangeInclusive<Duration>) -> Result<Duration, Reason> {
        let given = duration::parse(text).ok_or_else(|| self.invalid(text))?;
        if range.contains(&given) { Ok(given) } else { Err(self.out_of_range(text)) }
    }

    fn size(&self, text: &str, range: &RangeInclusive<u64>) -> Result<usize, Reason> {
        let given = size::parse(text).ok_or_else(|| self.invalid(text))?;
        let given = usize::try_from(given).ok().filter(|_| range.contains(&given));
        given.ok_or_else(|| self.out_of_range(text))
    }

    fn number(&self, text: &str) -> Result<u64, Reason> {
        match whole_number(text) {
            Some(number) => Ok(number),
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => Err(self.out_of_range(text)),
            None => Err(self.invalid(text)),
        }
    }

    fn invalid(&self, text: &str) -> Reason {
        Reason::Invalid { text: text.to_owned(), want: self.wanted() }
    }

    fn out_of_range(&self, text: &str) -> Reason {
        Reason::OutOfRange { text: text.to_owned(), range: self.range().unwrap_or_default() }
    }

    fn wrong_type(&self, node: &Node) -> Reason {
        Reason::WrongType { want: self.wanted(), found: node.kind() }
    }
}

/// A limit from its text; `read` gives `None` for a bound that means that there is none.
fn limit<V: Copy + PartialOrd + Default>(
    text: &str,
    read: impl Fn(&str) -> Result<Option<V>, Reason>,
) -> Result<Limit<V>, Reason> {
    match Mode::split_from(text) {
        (_, Mode::Off) => Ok(Limit::off()),
        (bound, mode) => Ok(read(bound)?.map_or_else(Limit::off, |at| Limit { at, mode })),
    }
}
