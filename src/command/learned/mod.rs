//! Commands that only the servers know: those of modules, and of servers newer than this table.
//!
//! ```text
//!  reply to COMMAND ── answer ──▶ Published … ── policy ──▶ Row ── Lexicon::intern ──▶ &'static Row
//!                                                                                          │
//!  Learned (of a pool) ◀── Lexicon::merge ── Learned (of each server) ◀────────────────────┘
//! ```
//!
//! Control asks, and publishes what a pool's servers know with the generation. Only what the built-in table doesn't know
//! is looked for here, so that the common path pays nothing for it.

mod answer;
mod lexicon;
mod policy;

pub use answer::AnswerError;
pub use lexicon::{Lexicon, MOST_LEARNED};

use super::call::{Call, CallError};
use super::info::is_supported;
use super::row::Row;
use super::table::{CommandIx, CommandTable};
use crate::resp::Args;

/// What some servers know and the built-in table doesn't. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Sorted by name, at most [`MOST_LEARNED`]. One that has the name of a built-in container holds only the sub-commands
    /// that the container lacks.
    rows: Box<[&'static Row]>,
}

/// Longest name that is learned or looked for, in bytes; a longer one is unknown.
const MOST_NAME: usize = 64;

// === impl Learned ===

impl Learned {
    /// `rows` in any order; of several with a name the first counts.
    fn new(mut rows: Vec<&'static Row>) -> Self {
        rows.sort_by_key(|row| row.name);
        rows.dedup_by_key(|row| row.name);
        rows.truncate(MOST_LEARNED);
        Self { rows: rows.into() }
    }

    /// How many commands there are, new sub-commands of built-in containers not counted.
    pub fn len(&self) -> usize {
        self.commands().count()
    }

    /// Whether nothing was learned.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The row of a request that the built-in table doesn't know; `None`: nor is it known here.
    ///
    /// Allocates nothing. All learned commands share the index [`CommandIx::LEARNED`].
    pub fn lookup<'a>(&self, args: Args<'a>) -> Option<Result<Call<'a>, CallError<'a>>> {
        let mut row = self.named(args.name())?;
        if !row.subs.is_empty()
            && let Some(word) = args.get(1)
        {
            row = match find_sub(row, word) {
                Some(sub) => sub,
                None => return Some(Err(CallError::UnknownSubcommand(args))),
            };
        }
        if row.takes(args.len()) {
            Some(Ok(Call { ix: CommandIx::LEARNED, row, args }))
        } else {
            Some(Err(CallError::WrongArity(row)))
        }
    }

    /// The commands that are supported, for COMMAND, COMMAND COUNT and COMMAND LIST.
    pub fn commands(&self) -> impl Iterator<Item = &'static Row> {
        let is_new = |row: &&Row| CommandTable::builtin().named(row.name.as_bytes()).is_none();
        self.rows.iter().copied().filter(is_new).filter(|row| is_supported(row))
    }

    /// All names, new sub-commands and what is refused among them.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let is_new = |name: &str| CommandTable::builtin().named(name.as_bytes()).is_none();
        let rows = self.rows.iter().flat_map(|row| [*row].into_iter().chain(row.subs));
        rows.map(|row| row.name).filter(move |name| is_new(name))
    }

    /// The command that COMMAND INFO calls `name`; `container|sub-command` is one, too.
    pub fn command_named(&self, name: &[u8]) -> Option<&'static Row> {
        let row = match name.iter().position(|byte| *byte == b'|') {
            Some(at) => find_sub(self.named(&name[..at])?, &name[at + 1..])?,
            None => {
                self.named(name).filter(|row| CommandTable::builtin().named(row.name.as_bytes()).is_none())?
            }
        };
        is_supported(row).then_some(row)
    }

    fn named(&self, name: &[u8]) -> Option<&'static Row> {
        let mut buffer = [0; MOST_NAME];
        let lower = buffer.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let at = self.rows.binary_search_by_key(&&*lower, |row| row.name.as_bytes()).ok()?;
        Some(self.rows[at])
    }
}

fn find_sub(container: &Row, word: &[u8]) -> Option<&'static Row> {
    let skip = container.name.len() + 1;
    container.subs.iter().find(|sub| sub.name.as_bytes()[skip..].eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests;
