//! Some of the commands of a table.

use super::table::{CommandIx, CommandTable};

/// A set of rows of one [`CommandTable`]: a bit for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSet {
    words: Vec<u64>,
}

/// What a client may always say: it could not come in, change its mind or leave without.
const ALWAYS: [&[u8]; 4] = [b"auth", b"hello", b"quit", b"reset"];

impl CommandSet {
    /// The command `name` of `table`, in any case, with its sub-commands if it has some; `container|sub-command` is one of
    /// these alone. False: there is no such command.
    pub fn add(&mut self, table: &CommandTable, name: &str) -> bool {
        let Some(ix) = table.named(name.as_bytes()) else { return false };
        let subs = table.row(ix).subs.len();
        (ix.0..=ix.0 + subs as u16).for_each(|ix| self.insert(CommandIx(ix)));
        true
    }

    /// All other commands of `table`, but for those without which a client cannot come or go.
    pub fn others(&self, table: &CommandTable) -> Self {
        let mut others = Self::default();
        let all = (0..table.len()).map(|ix| CommandIx(ix as u16));
        let always = ALWAYS.map(|name| table.named(name));
        all.filter(|ix| !self.contains(*ix) && !always.contains(&Some(*ix))).for_each(|ix| {
            // A container whose sub-commands are in has to be found itself.
            let row = table.row(ix);
            let subs = row.subs.len() as u16;
            if !(ix.0 + 1..=ix.0 + subs).any(|sub| self.contains(CommandIx(sub))) {
                others.insert(ix);
            }
        });
        others
    }

    /// Whether a command is in it.
    #[inline]
    pub fn contains(&self, ix: CommandIx) -> bool {
        self.words.get(usize::from(ix.0) / 64).is_some_and(|word| word >> (ix.0 % 64) & 1 == 1)
    }

    fn insert(&mut self, ix: CommandIx) {
        let at = usize::from(ix.0) / 64;
        if self.words.len() <= at {
            self.words.resize(at + 1, 0);
        }
        self.words[at] |= 1 << (ix.0 % 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> CommandSet {
        let mut set = CommandSet::default();
        assert!(names.iter().all(|name| set.add(CommandTable::builtin(), name)), "{names:?}");
        set
    }

    fn has(set: &CommandSet, name: &str) -> bool {
        set.contains(CommandTable::builtin().named(name.as_bytes()).unwrap())
    }

    #[test]
    fn a_container_is_meant_with_what_is_in_it() {
        let denied = set(&["FlushAll", "client", "config|get"]);
        let names = ["flushall", "client|list", "client|id", "config|get", "config|set", "get"];
        assert_eq!(names.map(|name| has(&denied, name)), [true, true, true, true, false, false]);
        assert!(!CommandSet::default().add(CommandTable::builtin(), "flushal"));
    }

    #[test]
    fn others_leave_the_way_in_and_out() {
        let denied = set(&["get", "client|id"]).others(CommandTable::builtin());
        let names = ["get", "client|id", "auth", "hello", "quit", "set", "client|list", "flushall"];
        assert_eq!(
            names.map(|name| has(&denied, name)),
            [false, false, false, false, false, true, true, true]
        );
    }
}
