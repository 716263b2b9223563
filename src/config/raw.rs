//! YAML to a plain tree of texts, lists and mappings, each text with its line. The only file that names serde_yaml.
//!
//! Two passes, because serde_yaml tells neither the kind of a value without interpreting it (`0x10` would arrive as
//! 16) nor where a value is. The first pass ([`Outline`]) interprets and keeps only the kinds. The second
//! ([`Reader`]) knows from them how to ask for each value: scalars are asked for as text, by a visitor that keeps the
//! text and then fails on purpose, because the errors are what serde_yaml puts locations into.
//!
//! The YAML library underneath never recurses, but it is quadratic in the depth of brackets and in the number of
//! `%TAG` lines; [`refuse_costly`] keeps both from it. Aliases multiply what a file contains: [`MOST_VALUES`] and
//! [`MOST_TEXT`] bound the result.

use std::convert::Infallible;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error as _, MapAccess, SeqAccess, Visitor};

use super::error::Reason;

/// Values in a file, those of aliases counted each time. More: refused.
const MOST_VALUES: usize = 500_000;

/// Bytes of all texts together, those of aliases counted each time. More: refused.
const MOST_TEXT: usize = 4 * super::MOST_BYTES;

/// Depth of a value in a list in a pool; what is deeper can't be meant.
const MOST_DEPTH: usize = 4;

/// Flow brackets open at once. More: refused before the YAML library sees them.
const MOST_BRACKETS: usize = 64;

/// A scalar, as text: bare, quoted and block forms look alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) text: String,
    /// Where it starts, from 1; for an alias, where its anchor is.
    pub(super) line: usize,
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Text(Text),
    List(Vec<Node>),
    /// In the order of the file, duplicates included.
    Map(Entries),
}

/// A mapping.
pub(super) type Entries = Vec<(Text, Node)>;

/// Why there is no tree.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// Line and column, from 1.
    pub(super) at: Option<(usize, usize)>,
    pub(super) reason: Reason,
}

/// Reads `text`, which must hold one YAML document with a mapping at its top.
pub(super) fn read(text: &str) -> Result<Entries, Fault> {
    refuse_costly(text)?;
    let mut documents = serde_yaml::Deserializer::from_str(text);
    let Some(document) = documents.next() else {
        return Err(Fault { at: None, reason: Reason::NoPools });
    };
    let mut kinds = Vec::new();
    Outline { kinds: &mut kinds, depth: 0 }.deserialize(document).map_err(Fault::from)?;
    if documents.next().is_some() {
        return Err(Fault { at: None, reason: Reason::SecondDocument });
    }
    match kinds.first() {
        Some(Kind::Map) => {}
        Some(Kind::List) => return Err(not_pools("a list")),
        Some(Kind::Text) => return Err(not_pools("a text")),
        None => return Err(Fault { at: None, reason: Reason::NoPools }),
    }

    let mut reader = Reader { kinds: kinds.into_iter(), text_left: MOST_TEXT };
    match reader.deserialize(serde_yaml::Deserializer::from_str(text))? {
        Node::Map(entries) => Ok(entries),
        // The outline has just said that it is a mapping.
        Node::Text(_) | Node::List(_) => Err(not_pools("something else")),
    }
}

impl Node {
    /// What it is, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "a mapping",
        }
    }
}

fn not_pools(found: &'static str) -> Fault {
    Fault { at: None, reason: Reason::WrongType { want: "a mapping of pools".to_owned(), found } }
}

/// Refuses what would keep the YAML library busy for hours.
///
/// Brackets are counted where a flow collection may start, so not in the middle of a word and not after a quote.
/// Closing ones in comments and quoted texts are counted too, which at worst lets through what would be slow.
fn refuse_costly(text: &str) -> Result<(), Fault> {
    let mut open = 0_usize;
    for (number, line) in text.lines().enumerate() {
        let refused = |column, why: &str| {
            Err(Fault { at: Some((number + 1, column)), reason: Reason::Yaml(why.to_owned()) })
        };
        if line.starts_with('%') {
            return refused(1, "directives are not accepted");
        }
        let mut before = ' ';
        for (column, char) in line.chars().enumerate() {
            match char {
                '[' | '{' if before.is_whitespace() || "[{,:".contains(before) => open += 1,
                ']' | '}' => open = open.saturating_sub(1),
                _ => {}
            }
            if open > MOST_BRACKETS {
                return refused(column + 1, "brackets are nested too deeply");
            }
            before = char;
        }
    }
    Ok(())
}

// === impl Fault ===

impl From<serde_yaml::Error> for Fault {
    fn from(error: serde_yaml::Error) -> Self {
        let at = error.location().map(|location| (location.line(), location.column()));
        let mut why = error.to_string();
        if let Some((line, column)) = at {
            // It goes to the front; a second place in the same words ("while parsing … at …") stays.
            why = why.replacen(&format!(" at line {line} column {column}"), "", 1);
        }
        Self { at, reason: Reason::Yaml(why) }
    }
}

/// What a value is, without what is in it.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Text,
    List,
    Map,
}

/// The first pass: the kinds of all values, depth first, keys left out.
struct Outline<'a> {
    kinds: &'a mut Vec<Kind>,
    depth: usize,
}

impl Outline<'_> {
    fn below(&mut self) -> Outline<'_> {
        Outline { kinds: self.kinds, depth: self.depth + 1 }
    }

    fn note<E: serde::de::Error>(self, kind: Kind) -> Result<(), E> {
        self.enter(kind).map(drop)
    }

    fn enter<E: serde::de::Error>(self, kind: Kind) -> Result<Self, E> {
        if self.kinds.len() == MOST_VALUES {
            return Err(E::custom(format_args!("more than {MOST_VALUES} values")));
        }
        if self.depth == MOST_DEPTH && !matches!(kind, Kind::Text) {
            return Err(E::custom("nested deeper than any setting"));
        }
        self.kinds.push(kind);
        Ok(self)
    }
}

impl<'de> DeserializeSeed<'de> for Outline<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Every scalar is a text, whatever YAML takes it for.
macro_rules! scalars_are_texts {
    ($($visit:ident: $type:ty),* $(,)?) => {
        $(fn $visit<E: serde::de::Error>(self, _: $type) -> Result<(), E> { self.note(Kind::Text) })*
    };
}

impl<'de> Visitor<'de> for Outline<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a list or a mapping")
    }

    scalars_are_texts! {
        visit_bool: bool,
        visit_i64: i64,
        visit_i128: i128,
        visit_u64: u64,
        visit_u128: u128,
        visit_f64: f64,
        visit_str: &str,
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.note(Kind::Text)
    }

    /// An empty document.
    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let mut outline = self.enter(Kind::List)?;
        while items.next_element_seed(outline.below())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut outline = self.enter(Kind::Map)?;
        while entries.next_key_seed(ScalarKey)?.is_some() {
            entries.next_value_seed(outline.below())?;
        }
        Ok(())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<(), A::Error> {
        Err(A::Error::custom("tags are not accepted"))
    }
}

/// A key in the first pass: nothing but a scalar will do.
struct ScalarKey;

impl<'de> DeserializeSeed<'de> for ScalarKey {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for ScalarKey {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a pool or a key")
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}

/// The second pass: the values themselves.
struct Reader {
    kinds: std::vec::IntoIter<Kind>,
    /// Bytes of text that may still come.
    text_left: usize,
}

impl Reader {
    fn text<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<Text, D::Error> {
        let mut kept = None;
        let Err(error) = deserializer.deserialize_str(KeepAndFail(&mut kept));
        let Some(text) = kept else {
            return Err(error);
        };
        self.text_left = self
            .text_left
            .checked_sub(text.len())
            .ok_or_else(|| D::Error::custom(format_args!("more than {MOST_TEXT} bytes of text")))?;
        Ok(Text { text, line: line_of(&error.to_string()) })
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reader {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        match self.kinds.next() {
            Some(Kind::Text) => self.text(deserializer).map(Node::Text),
            Some(Kind::List) => deserializer.deserialize_seq(self),
            Some(Kind::Map) => deserializer.deserialize_map(self),
            None => Err(D::Error::custom("more values than a moment ago")),
        }
    }
}

impl<'de> Visitor<'de> for &mut Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list or a mapping")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(&mut *self)? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Node, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = entries.next_key_seed(Key(self))? {
            map.push((key, entries.next_value_seed(&mut *self)?));
        }
        Ok(Node::Map(map))
    }
}

/// A key in the second pass.
struct Key<'a>(&'a mut Reader);

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = Text;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Text, D::Error> {
        self.0.text(deserializer)
    }
}

/// Keeps a scalar and fails, so that the error tells where the scalar is.
struct KeepAndFail<'a>(&'a mut Option<String>);

impl Visitor<'_> for KeepAndFail<'_> {
    type Value = Infallible;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Infallible, E> {
        *self.0 = Some(text.to_owned());
        Err(E::custom("kept"))
    }
}

/// The line in an error of [`KeepAndFail`]: serde's traits know no location, only serde_yaml's own type does, and
/// that appears here as text (`… kept at line 3 column 5`). The very first character has none.
fn line_of(error: &str) -> usize {
    error
        .rsplit_once("kept at line ")
        .and_then(|(_, place)| place.split_once(' '))
        .and_then(|(line, _)| line.parse().ok())
        .unwrap_or(1)
}
