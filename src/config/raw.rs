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
    /// What may have been meant.
    pub(super) hint: Option<&'static str>,
}

/// Reads `text`, which must hold one YAML document with a mapping at its top.
pub(super) fn read(text: &str) -> Result<Entries, Fault> {
    refuse_costly(text)?;
    let mut documents = serde_yaml::Deserializer::from_str(text);
    let Some(document) = documents.next() else {
        return Err(Fault::whole(Reason::NoPools));
    };
    let faulty = |error| Fault::of_yaml(error, text);
    let mut kinds = Vec::new();
    Outline { kinds: &mut kinds, depth: 0 }.deserialize(document).map_err(faulty)?;
    if documents.next().is_some() {
        return Err(Fault::whole(Reason::SecondDocument));
    }
    match kinds.first() {
        Some(Kind::Map) => {}
        Some(Kind::List) => return Err(not_pools("a list")),
        Some(Kind::Text) => return Err(not_pools("a text")),
        None => return Err(Fault::whole(Reason::NoPools)),
    }

    let mut reader = Reader { kinds: kinds.into_iter(), text_left: MOST_TEXT };
    match reader.deserialize(serde_yaml::Deserializer::from_str(text)).map_err(faulty)? {
        Node::Map(entries) => Ok(entries),
        // The outline has just said that it is a mapping.
        Node::Text(_) | Node::List(_) => Err(not_pools("something else")),
    }
}

// === impl Node ===

impl Node {
    /// Where it starts, or the first text in it.
    pub(super) fn line(&self) -> Option<usize> {
        match self {
            Self::Text(text) => Some(text.line),
            Self::List(items) => items.first().and_then(Self::line),
            Self::Map(entries) => entries.first().map(|(key, _)| key.line),
        }
    }

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
    Fault::whole(Reason::WrongType { want: "a mapping of pools".to_owned(), found })
}

/// Refuses what would keep the YAML library busy for hours.
///
/// Brackets are counted where a flow collection may start, so not in the middle of a word and not after a quote.
/// Closing ones in comments and quoted texts are counted too, which at worst lets through what would be slow.
fn refuse_costly(text: &str) -> Result<(), Fault> {
    let mut open = 0_usize;
    for (number, line) in text.lines().enumerate() {
        let refused = |column, why: &str| {
            let reason = Reason::Yaml(why.to_owned());
            Err(Fault { at: Some((number + 1, column)), reason, hint: None })
        };
        // A lone carriage return ends a line, too.
        if line.split('\r').any(|part| part.starts_with('%')) {
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

impl Fault {
    fn whole(reason: Reason) -> Self {
        Self { at: None, reason, hint: None }
    }

    fn of_yaml(error: serde_yaml::Error, text: &str) -> Self {
        let at = error.location().map(|location| (location.line(), location.column()));
        let mut why = error.to_string();
        if let Some((line, column)) = at {
            // It goes to the front; a second place in the same words ("while parsing … at …") stays.
            why = why.replacen(&format!(" at line {line} column {column}"), "", 1);
        }
        let line = at.and_then(|(line, _)| text.lines().nth(line.saturating_sub(1)));
        let hint = line.and_then(|line| hint(line, &why));
        Self { at, reason: Reason::Yaml(why), hint }
    }
}

/// The two slips that YAML itself explains badly.
fn hint(line: &str, why: &str) -> Option<&'static str> {
    let indent = line.len() - line.trim_start().len();
    if line[..indent].contains('\t') {
        return Some("YAML is indented with spaces, not with tabs");
    }
    let in_brackets = why.starts_with("did not find") && line.contains(['[', '{']);
    in_brackets.then_some("a text with brackets needs quotes around it")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str, line: usize) -> Text {
        Text { text: text.to_owned(), line }
    }

    fn node(content: &str, line: usize) -> Node {
        Node::Text(text(content, line))
    }

    fn refused(yaml: &str) -> (Option<usize>, String) {
        let fault = read(yaml).expect_err("it must be refused");
        (fault.at.map(|(line, _)| line), fault.reason.to_string())
    }

    #[test]
    fn scalars_are_text_whatever_yaml_takes_them_for() {
        let yaml = "a:\n  - 0x10\n  - True\n  - '1'\n  - \"\\x41\"\n  - 1_000\n  - ~\n  -\n  - 1e3\n  - -7\n  - .inf\n";
        let contents = ["0x10", "True", "1", "A", "1_000", "~", "", "1e3", "-7", ".inf"];
        let items = contents.iter().zip(2..).map(|(content, line)| node(content, line)).collect();
        assert_eq!(read(yaml), Ok(vec![(text("a", 1), Node::List(items))]));
    }

    #[test]
    fn every_text_has_its_line() {
        let yaml = "\n# comment\na: {b: c,\n  d: e}\n\n\"f\":\n  |-\n   g\n? h\n: [i,\n\n  j]\n";
        let expected = vec![
            (text("a", 3), Node::Map(vec![(text("b", 3), node("c", 3)), (text("d", 4), node("e", 4))])),
            (text("f", 6), node("g", 7)),
            (text("h", 9), Node::List(vec![node("i", 10), node("j", 12)])),
        ];
        assert_eq!(read(yaml), Ok(expected));
    }

    /// serde_yaml leaves the place out of an error at the first character of the input.
    #[test]
    fn the_first_character_has_a_line_too() {
        assert_eq!(read("a: b"), Ok(vec![(text("a", 1), node("b", 1))]));
        let path_like = "&k 'x at line 7 column 7: kept at line 7 column 7': {a: *k}";
        let entries = read(path_like).expect("an alias of a key");
        assert_eq!(entries[0].0.line, 1);
        assert_eq!(entries[0].1.line(), Some(1));
    }

    #[test]
    fn an_alias_is_where_its_anchor_is() {
        let yaml = "a:\n  x: &v 1\nb:\n  x: *v\n";
        let entry =
            |name: &str, line| (text(name, line), Node::Map(vec![(text("x", line + 1), node("1", 2))]));
        assert_eq!(read(yaml), Ok(vec![entry("a", 1), entry("b", 3)]));
    }

    #[test]
    fn duplicates_are_kept_for_whoever_judges_them() {
        assert_eq!(
            read("a: 1\na: 2\n"),
            Ok(vec![(text("a", 1), node("1", 1)), (text("a", 2), node("2", 2))])
        );
    }

    #[test]
    fn what_is_not_one_mapping_is_refused() {
        for (yaml, line, why) in [
            ("", None, "has no pools"),
            ("# nothing\n", None, "has no pools"),
            ("- a", None, "must be a mapping of pools, not a list"),
            ("a", None, "must be a mapping of pools, not a text"),
            ("a: b\n---\nc: d\n", None, "must contain one YAML document, a second one starts"),
            ("a: b\n c: d\n", Some(2), "syntax is invalid: mapping values are not allowed in this context"),
            ("a: *b\n", Some(1), "syntax is invalid: unknown anchor"),
            ("a:\n  b: !c d\n", Some(2), "syntax is invalid: a.b: tags are not accepted"),
            ("%YAML 1.1\n---\na: b\n", Some(1), "syntax is invalid: directives are not accepted"),
        ] {
            assert_eq!(refused(yaml), (line, why.to_owned()), "{yaml:?}");
        }
    }

    #[test]
    fn what_would_take_too_long_is_refused() {
        let nested = "syntax is invalid: brackets are nested too deeply".to_owned();
        assert_eq!(refused(&"[".repeat(100_000)), (Some(1), nested.clone()));
        assert_eq!(refused(&"{a: ".repeat(100_000)), (Some(1), nested.clone()));
        assert_eq!(refused(&"[\n".repeat(100_000)), (Some(65), nested));
        let deep: String = (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
        assert_eq!(
            refused(&deep),
            (Some(5), "syntax is invalid: a.a.a.a: nested deeper than any setting".to_owned())
        );
        assert_eq!(
            refused("a: &a [*a]"),
            (Some(1), "syntax is invalid: a[0][0][0]: nested deeper than any setting".to_owned())
        );
    }

    /// Words with brackets in them, and brackets in quotes, are no nesting.
    #[test]
    fn brackets_in_texts_do_not_count() {
        let yaml: String =
            (0..1000).map(|n| format!("p{n}: {{a: \"[::1]\", b: '{{', c: x}}\nq{n}: x[{{\n")).collect();
        assert_eq!(read(&yaml).map(|entries| entries.len()), Ok(2000));
    }

    #[test]
    fn aliases_can_not_blow_up_a_small_file() {
        let list = |item: &str| format!("[{}]", vec![item; 1000].join(","));
        let many = format!("a: &a {}\nb: &b {}\nc: {}\n", list("x"), list("*a"), list("*b"));
        assert!(refused(&many).1.contains("more than 500000 values"), "{:?}", refused(&many));
        let long = format!("a: &a {}\nb: {}\n", "x".repeat(100_000), list("*a"));
        assert!(refused(&long).1.contains("bytes of text"), "{:?}", refused(&long));
    }
}
