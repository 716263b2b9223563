//! Reads the reply to COMMAND, of RESP2.
//!
//! It comes from a server, which may be anything: nothing recurses, nothing is allocated because of an announced length,
//! and what makes no sense is an error or is left out.

use std::fmt;

use super::MOST_NAME;
use crate::command::flags::{Categories, Flags, KeyFlags};

/// A command as a server publishes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Published {
    /// Lower case; a sub-command has its container's name in front.
    pub(super) name: String,
    /// Number of arguments as in a row; what a row can't say is -1, for the server to judge.
    pub(super) arity: i8,
    pub(super) flags: Flags,
    /// It belongs to a module.
    pub(super) is_module: bool,
    /// First key, last key and step in the old form.
    pub(super) range: [i64; 3],
    pub(super) categories: Categories,
    /// Tips that shardwise acts on.
    pub(super) tips: Vec<String>,
    /// `None`: a server older than Redis 7.0, which has only `range`.
    pub(super) specs: Option<Vec<Spec>>,
    /// Sub-commands, which have none themselves.
    pub(super) subs: Vec<Published>,
}

/// A key spec. What it doesn't say in numbers that a row can hold is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) flags: Option<KeyFlags>,
    pub(super) begin: Begin,
    pub(super) find: Find,
}

/// Where a spec begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Begin {
    Index(i64),
    Keyword(String, i64),
    #[default]
    Unknown,
}

/// How a spec goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Find {
    /// Last, step, limit.
    Range([i64; 3]),
    /// Number, first, step.
    KeyNum([i64; 3]),
    #[default]
    Unknown,
}

/// The bytes are no reply to COMMAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerError;

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its answer to COMMAND makes no sense")
    }
}

impl std::error::Error for AnswerError {}

/// Most key specs, tips, flags or sub-commands that are looked at; more are skipped, but count as said below.
const MOST_PARTS: usize = 128;

/// Calls `take` with each command that makes sense.
pub(super) fn read(reply: &[u8], mut take: impl FnMut(Published)) -> Result<(), AnswerError> {
    let mut cursor = Cursor { bytes: reply, at: 0 };
    let commands = cursor.array().ok_or(AnswerError)?;
    for _ in 0..commands {
        if let Some(command) = cursor.command(true)? {
            take(command);
        }
    }
    Ok(())
}

/// A place in the reply.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// The head of a value; for an array its elements follow.
enum Item<'a> {
    Text(&'a [u8]),
    Number(i64),
    Array(usize),
    Nothing,
}

impl<'a> Cursor<'a> {
    /// `None`: the bytes end, or are no RESP2.
    fn item(&mut self) -> Option<Item<'a>> {
        let rest = &self.bytes[self.at..];
        let end = memchr::memchr(b'\n', rest)?;
        let (kind, line) = rest[..end].strip_suffix(b"\r")?.split_first()?;
        self.at += end + 1;
        let number = || std::str::from_utf8(line).ok()?.parse::<i64>().ok();
        Some(match kind {
            b'+' | b'-' => Item::Text(line),
            b':' => Item::Number(number()?),
            b'$' | b'*' if number()? == -1 => Item::Nothing,
            b'*' => Item::Array(usize::try_from(number()?).ok()?),
            b'$' => {
                let len = usize::try_from(number()?).ok()?;
                let text = self.bytes.get(self.at..self.at.checked_add(len)?)?;
                self.at = self.at.checked_add(len)?.checked_add(2)?;
                (self.at <= self.bytes.len()).then_some(Item::Text(text))?
            }
            _ => return None,
        })
    }

    /// The next value is an array of so many; anything else makes no sense.
    fn array(&mut self) -> Option<usize> {
        match self.item()? {
            Item::Array(count) => Some(count),
            _ => None,
        }
    }

    /// Passes over one value with all that is in it.
    fn skip(&mut self) -> Result<(), AnswerError> {
        self.skip_many(1)
    }

    fn skip_many(&mut self, count: usize) -> Result<(), AnswerError> {
        let mut left = count;
        while left > 0 {
            left -= 1;
            if let Item::Array(more) = self.item().ok_or(AnswerError)? {
                left = left.checked_add(more).ok_or(AnswerError)?;
            }
        }
        Ok(())
    }

    /// A number; another value is passed over, and `None`.
    fn number(&mut self) -> Result<Option<i64>, AnswerError> {
        match self.item().ok_or(AnswerError)? {
            Item::Number(number) => Ok(Some(number)),
            Item::Array(more) => self.skip_many(more).map(|()| None),
            Item::Text(_) | Item::Nothing => Ok(None),
        }
    }

    /// A text; another value is passed over, and `None`.
    fn text(&mut self) -> Result<Option<&'a [u8]>, AnswerError> {
        match self.item().ok_or(AnswerError)? {
            Item::Text(text) => Ok(Some(text)),
            Item::Array(more) => self.skip_many(more).map(|()| None),
            Item::Number(_) | Item::Nothing => Ok(None),
        }
    }

    /// An array of texts; other values are passed over.
    fn texts(&mut self, mut take: impl FnMut(&'a [u8])) -> Result<(), AnswerError> {
        let count = match self.item().ok_or(AnswerError)? {
            Item::Array(count) => count,
            _ => return Ok(()),
        };
        for _ in 0..count {
            if let Some(text) = self.text()? {
                take(text);
            }
        }
        Ok(())
    }

    /// An array of names and values: `take` reads the value of each name, or passes over it.
    fn fields(
        &mut self,
        mut take: impl FnMut(&mut Self, &'a [u8]) -> Result<(), AnswerError>,
    ) -> Result<(), AnswerError> {
        let count = match self.item().ok_or(AnswerError)? {
            Item::Array(count) => count,
            _ => return Ok(()),
        };
        for _ in 0..count / 2 {
            match self.text()? {
                Some(name) => take(self, name)?,
                None => self.skip()?,
            }
        }
        self.skip_many(count % 2)
    }

    /// One command; `None`: none that could be called.
    fn command(&mut self, with_subs: bool) -> Result<Option<Published>, AnswerError> {
        let fields = match self.item().ok_or(AnswerError)? {
            Item::Array(fields) => fields,
            _ => return Ok(None),
        };
        if fields < 6 {
            return self.skip_many(fields).map(|()| None);
        }
        let name = self.text()?.filter(|name| is_name(name)).map(lower);
        let arity = self.number()?.and_then(|arity| i8::try_from(arity).ok()).filter(|arity| *arity != 0);
        let (mut flags, mut is_module) = (Flags::NONE, false);
        self.texts(|word| match Flags::named(word) {
            Some(flag) => flags = flags.with(flag),
            None => is_module |= word == b"module",
        })?;
        let mut range = [0; 3];
        for place in &mut range {
            *place = self.number()?.unwrap_or_default();
        }
        let (mut categories, mut tips) = (Categories::NONE, Vec::new());
        if fields > 6 {
            self.texts(|word| {
                categories = Categories::named(word).map_or(categories, |one| categories.with(one));
            })?;
        }
        if fields > 7 {
            self.texts(|tip| {
                if tip.contains(&b':') && tip.len() <= MOST_NAME && tips.len() < MOST_PARTS {
                    tips.push(lower(tip));
                }
            })?;
        }
        let mut specs = None;
        if fields > 8 {
            specs = Some(self.specs()?);
        }
        let mut subs = Vec::new();
        if fields > 9 {
            let count = match self.item().ok_or(AnswerError)? {
                Item::Array(count) => count,
                _ => 0,
            };
            for _ in 0..count {
                // A sub-command has none itself: so this ends at the second level.
                let sub = if with_subs { self.command(false)? } else { self.skip().map(|()| None)? };
                subs.extend(sub.filter(|_| subs.len() < MOST_PARTS));
            }
        }
        self.skip_many(fields.saturating_sub(10))?;
        let arity = arity.unwrap_or(-1);
        Ok(name.map(|name| Published { name, arity, flags, is_module, range, categories, tips, specs, subs }))
    }

    fn specs(&mut self) -> Result<Vec<Spec>, AnswerError> {
        let mut specs = Vec::new();
        let count = match self.item().ok_or(AnswerError)? {
            Item::Array(count) => count,
            _ => 0,
        };
        for _ in 0..count {
            let mut spec = Spec::default();
            self.fields(|cursor, name| match name {
                b"flags" => {
                    let mut flags = KeyFlags::NONE;
                    cursor
                        .texts(|word| flags = KeyFlags::named(word).map_or(flags, |one| flags.with(one)))?;
                    spec.flags = Some(flags);
                    Ok(())
                }
                b"begin_search" => {
                    spec.begin = cursor.begin()?;
                    Ok(())
                }
                b"find_keys" => {
                    spec.find = cursor.find()?;
                    Ok(())
                }
                _ => cursor.skip(),
            })?;
            if specs.len() < MOST_PARTS {
                specs.push(spec);
            }
        }
        Ok(specs)
    }

    fn begin(&mut self) -> Result<Begin, AnswerError> {
        let (kind, numbers, word) = self.search(["index", "startfrom", ""])?;
        Ok(match (kind, numbers, word) {
            (b"index", [Some(at), ..], _) => Begin::Index(at),
            (b"keyword", [_, Some(from), _], Some(word)) if is_name(word) => {
                Begin::Keyword(String::from_utf8_lossy(word).to_ascii_uppercase(), from)
            }
            _ => Begin::Unknown,
        })
    }

    fn find(&mut self) -> Result<Find, AnswerError> {
        // The step has one name in both kinds.
        let at = self.at;
        if let (b"range", [Some(last), Some(step), Some(limit)], _) =
            self.search(["lastkey", "keystep", "limit"])?
        {
            return Ok(Find::Range([last, step, limit]));
        }
        self.at = at;
        if let (b"keynum", [Some(number), Some(first), Some(step)], _) =
            self.search(["keynumidx", "firstkey", "keystep"])?
        {
            return Ok(Find::KeyNum([number, first, step]));
        }
        Ok(Find::Unknown)
    }

    /// `type`, and the numbers of these names below `spec`, and its `keyword`.
    #[allow(clippy::type_complexity)] // of this file only
    fn search(
        &mut self,
        names: [&str; 3],
    ) -> Result<(&'a [u8], [Option<i64>; 3], Option<&'a [u8]>), AnswerError> {
        let (mut kind, mut numbers, mut word) = (&b""[..], [None; 3], None);
        self.fields(|cursor, name| match name {
            b"type" => {
                kind = cursor.text()?.unwrap_or_default();
                Ok(())
            }
            b"spec" => cursor.fields(|cursor, name| {
                if name == b"keyword" {
                    word = cursor.text()?;
                } else if let Some(at) = names.iter().position(|wanted| wanted.as_bytes() == name) {
                    numbers[at] = cursor.number()?;
                } else {
                    cursor.skip()?;
                }
                Ok(())
            }),
            _ => cursor.skip(),
        })?;
        Ok((kind, numbers, word))
    }
}

/// Whether it can be a word of a request line: what a name holds else could do harm in logs and in error replies.
fn is_name(name: &[u8]) -> bool {
    (1..=MOST_NAME).contains(&name.len()) && name.iter().all(|byte| byte.is_ascii_graphic())
}

fn lower(name: &[u8]) -> String {
    String::from_utf8_lossy(name).to_ascii_lowercase()
}
