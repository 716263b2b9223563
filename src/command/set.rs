//! Some of the commands of a table.

use super::call::Call;
use super::table::{CommandIx, CommandTable};

/// Some commands: of one [`CommandTable`] a bit for each row, and names of commands that only servers know.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandSet {
    words: Vec<u64>,
    /// What was added, in lower case, whether the table knows it or not.
    names: Vec<Box<str>>,
    /// Whether commands that the table doesn't know are in it unless `names` has them, instead of if.
    has_others: bool,
}

/// What a client may always say: it could not come in, change its mind or leave without.
const ALWAYS: [&[u8]; 4] = [b"auth", b"hello", b"quit", b"reset"];

impl CommandSet {
    /// The command `name` of `table`, in any case, with its sub-commands if it has some; `container|sub-command` is one of
    /// these alone. False: the table has no such command, it is added for servers that know it.
    pub fn add(&mut self, table: &CommandTable, name: &str) -> bool {
        self.names.push(name.to_ascii_lowercase().into());
        let Some(ix) = table.named(name.as_bytes()) else { return false };
        let subs = table.row(ix).subs.len();
        (ix.0..=ix.0 + subs as u16).for_each(|ix| self.insert(CommandIx(ix)));
        true
    }

    /// All other commands of `table`, but for those without which a client cannot come or go.
    pub fn others(&self, table: &CommandTable) -> Self {
        let mut others = Self { words: Vec::new(), names: self.names.clone(), has_others: !self.has_others };
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

    /// Whether the command of `call` is in it.
    #[inline]
    pub fn refuses(&self, call: &Call<'_>) -> bool {
        if call.ix == CommandIx::LEARNED { self.has_learned(call.row.name) } else { self.contains(call.ix) }
    }

    /// The names that `table` doesn't know.
    pub fn unknown<'a>(&'a self, table: &CommandTable) -> impl Iterator<Item = &'a str> {
        self.names.iter().map(|name| &**name).filter(|name| table.named(name.as_bytes()).is_none())
    }

    /// Whether a command is in it of which a server has told; with its container it is meant, too.
    fn has_learned(&self, name: &str) -> bool {
        let container = name.split('|').next().unwrap_or_default();
        self.names.iter().any(|one| **one == *name || **one == *container) != self.has_others
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
    fn what_only_servers_know_is_found_by_its_name() {
        let mut denied = CommandSet::default();
        for (name, is_known) in [("Json.Set", false), ("cms|merge", false), ("object", true), ("get", true)] {
            assert_eq!(denied.add(CommandTable::builtin(), name), is_known, "{name}");
        }
        let names = ["json.set", "cms|merge", "object|new", "json.get", "cms", "cms|init"];
        assert_eq!(names.map(|name| denied.has_learned(name)), [true, true, true, false, false, false]);
        let others = denied.others(CommandTable::builtin());
        assert_eq!(names.map(|name| others.has_learned(name)), [false, false, false, true, true, true]);
        let unknown: Vec<_> = denied.unknown(CommandTable::builtin()).collect();
        assert_eq!(unknown, ["json.set", "cms|merge"]);
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
