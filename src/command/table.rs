//! All rows, and the way from the bytes of a name to its row.

use std::sync::OnceLock;

use crate::resp::Args;

use super::call::{Call, CallError};
use super::row::{Group, Row};
use super::rows::SECTIONS;

/// Index of a row in its [`CommandTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommandIx(pub u16);

impl CommandIx {
    /// That of all commands that were learned from servers, of which no table has a row.
    pub const LEARNED: CommandIx = CommandIx(u16::MAX - 1);
}

/// The commands that a pool knows, with a way to find them by name.
#[derive(Debug)]
pub struct CommandTable {
    /// Every command, each container followed by its sub-commands.
    entries: Box<[Entry]>,
    names: NameIndex,
}

/// A row in its table.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) row: Row,
    pub(super) group: Group,
    /// Number of sub-commands, which are the entries that follow.
    pub(super) subs: u16,
    /// Whether it is one.
    pub(super) is_sub: bool,
}

// === impl CommandTable ===

impl CommandTable {
    /// The rows that shardwise was built with.
    pub fn builtin() -> &'static CommandTable {
        static BUILTIN: OnceLock<CommandTable> = OnceLock::new();
        BUILTIN.get_or_init(CommandTable::build)
    }

    /// The row of a request, as Redis finds it: by the name in any case, for a container also by the word behind it.
    /// The number of arguments is right in what is returned.
    #[inline]
    pub fn lookup<'a>(&'a self, args: Args<'a>) -> Result<Call<'a>, CallError<'a>> {
        let ix = self.find(args)?;
        let row = self.row(ix);
        if !row.takes(args.len()) {
            return Err(CallError::WrongArity(row));
        }
        Ok(Call { ix, row, args })
    }

    /// Whether `text` matches Redis's glob `pattern`, in any case.
    pub fn glob(pattern: &[u8], text: &[u8]) -> bool {
        super::glob::matches(pattern, text)
    }

    /// Number of rows; every [`CommandIx`] of this table is less.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// A row by its index.
    pub fn row(&self, ix: CommandIx) -> &Row {
        &self.entries[usize::from(ix.0)].row
    }

    /// The group that a row belongs to.
    pub fn group(&self, ix: CommandIx) -> Group {
        self.entries[usize::from(ix.0)].group
    }

    /// All rows, each container followed by its sub-commands.
    pub fn rows(&self) -> impl Iterator<Item = (CommandIx, &Row)> {
        (0..).map(CommandIx).zip(self.entries.iter().map(|entry| &entry.row))
    }

    /// The row of a request, whatever its number of arguments.
    #[inline]
    pub(super) fn find<'a>(&'a self, args: Args<'a>) -> Result<CommandIx, CallError<'a>> {
        let ix = self.names.find(&self.entries, args.name()).ok_or(CallError::UnknownCommand(args))?;
        if self.entries[usize::from(ix)].subs > 0
            && let Some(word) = args.get(1)
        {
            return self.find_sub(ix, word).map(CommandIx).ok_or(CallError::UnknownSubcommand(args));
        }
        Ok(CommandIx(ix))
    }

    pub(super) fn entry(&self, ix: CommandIx) -> &Entry {
        &self.entries[usize::from(ix.0)]
    }

    /// The command of that name, which for a sub-command is `container|sub-command`.
    pub(super) fn named(&self, name: &[u8]) -> Option<CommandIx> {
        match name.iter().position(|byte| *byte == b'|') {
            Some(at) => {
                let container = self.names.find(&self.entries, &name[..at])?;
                self.find_sub(container, &name[at + 1..]).map(CommandIx)
            }
            None => self.names.find(&self.entries, name).map(CommandIx),
        }
    }

    fn find_sub(&self, container: u16, word: &[u8]) -> Option<u16> {
        let skip = self.entries[usize::from(container)].row.name.len() + 1;
        let first = container + 1;
        (first..first + self.entries[usize::from(container)].subs).find(|ix| {
            let name = self.entries[usize::from(*ix)].row.name;
            name.as_bytes()[skip..].eq_ignore_ascii_case(word)
        })
    }

    fn build() -> CommandTable {
        let mut entries = Vec::new();
        for (group, rows) in SECTIONS {
            for row in *rows {
                let subs = u16::try_from(row.subs.len()).expect("a container has a few dozen sub-commands");
                entries.push(Entry { row: *row, group: *group, subs, is_sub: false });
                for sub in row.subs {
                    entries.push(Entry { row: *sub, group: *group, subs: 0, is_sub: true });
                }
            }
        }
        let names = NameIndex::build(&entries);
        CommandTable { entries: entries.into(), names }
    }
}

/// From the name of a command, in any case, to its entry: open addressing, probed linearly.
#[derive(Debug)]
struct NameIndex {
    slots: Box<[Slot; SLOTS]>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// [`head`] of the name.
    head: u64,
    /// Bit 5 of each byte of `head` that is a letter: what its two cases differ in.
    letters: u64,
    /// Length of the name; 0: the slot is free.
    len: u16,
    ix: u16,
}

/// Four times as many as there are commands, so that nearly every search ends at its first slot.
const SLOTS: usize = 1024;

const FREE: Slot = Slot { head: 0, letters: 0, len: 0, ix: 0 };

/// Bytes of a name that [`head`] holds.
const HEAD: usize = 8;

// === impl NameIndex ===

impl NameIndex {
    fn build(entries: &[Entry]) -> NameIndex {
        let mut slots = Box::new([FREE; SLOTS]);
        let names = entries.iter().enumerate().filter(|(_, entry)| !entry.is_sub);
        for (ix, entry) in names {
            let name = entry.row.name.as_bytes();
            let slot = Slot {
                head: head(name),
                letters: letters(head(name)),
                len: u16::try_from(name.len()).expect("a name has a few dozen bytes"),
                ix: u16::try_from(ix).expect("there are a few hundred commands"),
            };
            let free = probes(slot.head, name.len()).find(|at| slots[*at].len == 0);
            slots[free.expect("there are more slots than commands")] = slot;
        }
        NameIndex { slots }
    }

    #[inline]
    fn find(&self, entries: &[Entry], name: &[u8]) -> Option<u16> {
        let head = head(name);
        for at in probes(head, name.len()) {
            let slot = &self.slots[at];
            if slot.len == 0 {
                return None;
            }
            let is_same_head = head | slot.letters == slot.head && usize::from(slot.len) == name.len();
            if is_same_head && has_tail(entries[usize::from(slot.ix)].row.name, name) {
                return Some(slot.ix);
            }
        }
        None
    }
}

/// The slots in which a name may be, in order.
#[inline]
fn probes(head: u64, len: usize) -> impl Iterator<Item = usize> {
    // Both cases of a letter must lead to the same slot. Other bytes that become alike do no harm.
    let folded = head | u64::from_le_bytes([0x20; 8]);
    // Fibonacci hashing: the upper bits of the product depend on all bits of the factor.
    let hash = (folded ^ ((len as u64) << 56)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let first = (hash >> (64 - SLOTS.trailing_zeros())) as usize;
    (first..first + SLOTS).map(|at| at % SLOTS)
}

/// Up to eight bytes of the name. Names of the same length up to eight are equal if their heads are.
#[inline]
fn head(name: &[u8]) -> u64 {
    match name {
        _ if let Some(head) = name.first_chunk::<HEAD>() => u64::from_le_bytes(*head),
        _ if let (Some(head), Some(tail)) = (name.first_chunk::<4>(), name.last_chunk::<4>()) => {
            u64::from(u32::from_le_bytes(*head)) | u64::from(u32::from_le_bytes(*tail)) << 32
        }
        [a, b, c] => u64::from_le_bytes([*a, *b, *c, 0, 0, 0, 0, 0]),
        [a, b] => u64::from_le_bytes([*a, *b, 0, 0, 0, 0, 0, 0]),
        [a] => (*a).into(),
        _ => 0,
    }
}

fn letters(head: u64) -> u64 {
    u64::from_le_bytes(head.to_le_bytes().map(|byte| if byte.is_ascii_alphabetic() { 0x20 } else { 0 }))
}

/// Whether two names of the same length are alike behind their heads.
#[inline]
fn has_tail(known: &str, name: &[u8]) -> bool {
    match name.get(HEAD..) {
        Some(tail) => known.as_bytes()[HEAD..].eq_ignore_ascii_case(tail),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use crate::resp::ArgSpan;

    use super::*;

    fn find(name: &[u8]) -> Option<&'static str> {
        let table = CommandTable::builtin();
        table.named(name).map(|ix| table.row(ix).name)
    }

    #[test]
    fn every_name_is_found_in_any_case_and_only_once() {
        let table = CommandTable::builtin();
        for (ix, row) in table.rows() {
            for name in [row.name.to_uppercase(), row.name.to_lowercase()] {
                assert_eq!(table.named(name.as_bytes()), Some(ix), "{name}");
            }
        }
    }

    #[test]
    fn names_that_are_nearly_right_are_not_found() {
        for (_, row) in CommandTable::builtin().rows() {
            let name = row.name.as_bytes();
            for at in 0..name.len() {
                // Bit 5 is what upper and lower case differ in, and digits, `_` and `|` have it, too.
                let mut other = name.to_vec();
                other[at] ^= 0x20;
                let is_letter = name[at].is_ascii_alphabetic();
                assert_eq!(find(&other).is_some(), is_letter, "{}", other.escape_ascii());
            }
            assert_eq!(find(&[name, b"\0"].concat()), None, "{}", row.name);
        }
        assert_eq!(find(b""), None);
        assert_eq!(find(b"|"), None);
        assert_eq!(find(&[b'x'; 100_000]), None);
    }

    #[test]
    fn a_subcommand_alone_is_no_command() {
        let spans = [ArgSpan { start: 0, len: 10 }];
        assert!(CommandTable::builtin().lookup(Args::new(b"config|get", &spans)).is_err());
    }

    #[test]
    fn names_are_found_at_their_first_slots() {
        let table = CommandTable::builtin();
        let mut steps = Vec::new();
        for entry in table.entries.iter().filter(|entry| !entry.is_sub) {
            let name = entry.row.name.as_bytes();
            let at = probes(head(name), name.len()).position(|at| {
                let slot = &table.names.slots[at];
                slot.len > 0 && table.entries[usize::from(slot.ix)].row.name == entry.row.name
            });
            steps.push(at.expect("each name has a slot"));
        }
        assert!(steps.iter().all(|step| *step < 4), "{steps:?}");
    }
}
