//! Where learned rows stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Learned;
use super::answer::{self, AnswerError, Published};
use super::policy::{self, Where};
use crate::command::flags::Flags;
use crate::command::keys::KeyRule;
use crate::command::row::{Handling, Row, Why, row};
use crate::command::spec::KeySpec;
use crate::command::table::CommandTable;

/// Most commands that are learned of one server or one pool; more are left out.
pub const MOST_LEARNED: usize = 1024;

/// Every row that was ever learned, each once, for as long as the process runs: so that workers may hold them without counting, as
/// they hold the built-in ones.
///
/// What a row takes is never given back. So there is a bound for all of them, far above what modules have; past it nothing new is
/// learned until the process is restarted.
#[derive(Debug)]
pub struct Lexicon {
    rows: HashMap<&'static str, Vec<&'static Row>>,
    words: BTreeSet<&'static str>,
    /// Bytes that may still be taken.
    left: usize,
    is_full: bool,
}

/// Bytes that all learned rows may take together, sub-commands, specs and names included.
const MOST_BYTES: usize = 1 << 20;

impl Default for Lexicon {
    fn default() -> Self {
        Self::bounded(MOST_BYTES)
    }
}

impl Lexicon {
    /// One that takes so many bytes at most.
    pub fn bounded(bytes: usize) -> Self {
        Self { rows: HashMap::new(), words: BTreeSet::new(), left: bytes, is_full: false }
    }

    /// Whether something could not be learned because of the bound.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// What `reply`, a server's reply to COMMAND in RESP2, tells beyond the built-in table.
    pub fn learn(&mut self, reply: &[u8]) -> Result<Learned, AnswerError> {
        let mut rows = Vec::new();
        answer::read(reply, |command| {
            if rows.len() < MOST_LEARNED {
                rows.extend(self.row_of(command));
            }
        })?;
        Ok(Learned::new(rows))
    }

    /// What a pool knows whose servers know these, in the pool's order.
    pub fn merge<'a>(&mut self, servers: impl IntoIterator<Item = &'a Learned>) -> Learned {
        let mut all: BTreeMap<&'static str, &'static Row> = BTreeMap::new();
        for row in servers.into_iter().flat_map(|learned| learned.rows.iter().copied()) {
            match all.get(row.name).copied() {
                None => {
                    all.insert(row.name, row);
                }
                Some(known) if std::ptr::eq(known, row) => {}
                Some(known) => {
                    // Where there is no room for what both agree on, nobody knows it.
                    match self.agreed(known, row) {
                        Some(agreed) => all.insert(row.name, agreed),
                        None => all.remove(row.name),
                    };
                }
            }
        }
        Learned::new(all.into_values().collect())
    }

    /// The row of a command that the built-in table lacks, in whole or in part.
    fn row_of(&mut self, command: Published) -> Option<&'static Row> {
        if command.name.contains('|') {
            return None;
        }
        let table = CommandTable::builtin();
        let is_known = table.named(command.name.as_bytes()).is_some();
        let prefix = format!("{}|", command.name);
        let mut subs = Vec::new();
        for sub in
            command.subs.iter().filter(|sub| sub.name.len() > prefix.len() && sub.name.starts_with(&prefix))
        {
            let new = table.named(sub.name.as_bytes()).is_none();
            let row = self.draft(sub).filter(|_| new);
            // Of a known container, what has no key concerns a server or a connection.
            subs.extend(row.filter(|row| !is_known || row.handling == Handling::Keyed));
        }
        if is_known && subs.is_empty() {
            return None;
        }
        let whole = self.draft(&command)?;
        let subs = self.place(subs)?;
        self.intern(Row { subs, ..whole })
    }

    /// A row without sub-commands, of which only the name and what it points to have a place for good.
    fn draft(&mut self, command: &Published) -> Option<Row> {
        let keys = policy::keys(command);
        let handling = policy::handling(command, &keys);
        let specs: Vec<KeySpec> = match &keys {
            Where::Specs(found) => {
                found.iter().map(|spec| spec.spec(|word| self.word(word))).collect::<Option<_>>()?
            }
            Where::Nowhere | Where::Unknown => Vec::new(),
        };
        let name = self.word(&command.name)?;
        let specs = self.specs(name, specs)?;
        let draft = row(name, command.arity, 0, specs, handling);
        let rule = KeyRule::of(specs);
        Some(Row { flags: command.flags, rule, ..draft }.acl(command.categories))
    }

    /// A row for servers that publish a command differently.
    fn agreed(&mut self, one: &'static Row, other: &'static Row) -> Option<&'static Row> {
        let is_alike = one.keys == other.keys && one.handling == other.handling && one.subs == other.subs;
        if !is_alike {
            let keys = &[];
            let handling = Handling::Unsupported(Why::Disagreement);
            return self.intern(Row { keys, rule: KeyRule::of(keys), handling, subs: &[], ..*one });
        }
        // Whoever reads only on one server may write on the other; what one takes the other may judge.
        let cautious = if one.flags.contains(Flags::READONLY) { other } else { one };
        let arity = if one.arity == other.arity { one.arity } else { -1 };
        self.intern(Row { arity, ..*cautious })
    }

    fn intern(&mut self, row: Row) -> Option<&'static Row> {
        let known = self.rows.get(row.name).and_then(|rows| rows.iter().find(|known| ***known == row));
        if let Some(known) = known {
            return Some(known);
        }
        self.take(size_of::<Row>())?;
        let row: &'static Row = Box::leak(Box::new(row));
        self.rows.entry(row.name).or_default().push(row);
        Some(row)
    }

    fn place(&mut self, subs: Vec<Row>) -> Option<&'static [Row]> {
        if subs.is_empty() {
            return Some(&[]);
        }
        let name = subs[0].name.split('|').next().unwrap_or_default();
        let known = self.rows.get(name).into_iter().flatten().find(|row| row.subs == subs);
        if let Some(known) = known {
            return Some(known.subs);
        }
        self.take(size_of_val(&*subs))?;
        Some(subs.leak())
    }

    fn specs(&mut self, name: &str, specs: Vec<KeySpec>) -> Option<&'static [KeySpec]> {
        if specs.is_empty() {
            return Some(&[]);
        }
        let container = name.split('|').next().unwrap_or_default();
        let rows = self.rows.get(container).into_iter().flatten();
        let known = rows.flat_map(|row| row.subs.iter().chain([*row])).find(|row| row.keys == specs);
        if let Some(known) = known {
            return Some(known.keys);
        }
        self.take(size_of_val(&*specs))?;
        Some(specs.leak())
    }

    fn word(&mut self, word: &str) -> Option<&'static str> {
        if let Some(known) = self.words.get(word) {
            return Some(known);
        }
        self.take(word.len())?;
        let word: &'static str = Box::leak(word.into());
        self.words.insert(word);
        Some(word)
    }

    /// Takes so many bytes, if they are left.
    fn take(&mut self, bytes: usize) -> Option<()> {
        let left = self.left.checked_sub(bytes);
        self.is_full |= left.is_none();
        self.left = left?;
        Some(())
    }
}
