//! What the COMMAND replies say, as plain values; encoding them is the business of whoever answers.
//!
//! Only what shardwise supports is told: for a client, the rest are unknown commands.

use crate::resp::{Args, ErrorReply};

use super::call::{Call, CallError};
use super::flags::{Categories, Flags};
use super::glob;
use super::keys::KeyRule;
use super::learned::Learned;
use super::options::is_word;
use super::row::{Group, Handling, ReplyPolicy, RequestPolicy, Row};
use super::spec::{BeginSearch, FindKeys, KeySpec};
use super::table::{CommandIx, CommandTable};

/// What COMMAND INFO says about one command, beside what its row says.
#[derive(Clone, Copy, Debug)]
pub struct CommandInfo<'a> {
    /// Name, arity, flags, key specs, policies and hints.
    pub row: &'a Row,
    /// Its keys in the old form.
    pub range: KeyRange,
    /// Its ACL categories.
    pub categories: Categories,
}

/// Key positions in the old form, for commands whose keys it can express; all 0 for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// First key.
    pub first: i32,
    /// Last key; negative: counted from the end.
    pub last: i32,
    /// Distance between keys.
    pub step: i32,
}

/// Why COMMAND GETKEYS has no keys to answer with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetKeysError {
    /// There is no such command.
    UnknownCommand,
    /// The command has no keys at all.
    NoKeyArguments,
    /// The command takes another number of arguments.
    WrongArity,
    /// The arguments contradict themselves.
    BadArguments,
}

// === impl CommandTable ===

impl CommandTable {
    /// What COMMAND INFO says about a row.
    pub fn info(&self, ix: CommandIx) -> CommandInfo<'_> {
        let entry = self.entry(ix);
        CommandInfo {
            row: &entry.row,
            range: KeyRange::of(entry.row.keys),
            categories: categories(&entry.row, entry.group, entry.subs > 0),
        }
    }

    /// The commands that COMMAND lists, without sub-commands. Their number is the answer to COMMAND COUNT.
    pub fn commands(&self) -> impl Iterator<Item = CommandIx> {
        self.supported().filter(|ix| !self.entry(*ix).is_sub)
    }

    /// The sub-commands that COMMAND lists below a container.
    pub fn subcommands(&self, container: CommandIx) -> impl Iterator<Item = CommandIx> {
        let last = container.0 + self.entry(container).subs;
        self.supported().filter(move |ix| container.0 < ix.0 && ix.0 <= last)
    }

    /// The command that COMMAND INFO and COMMAND DOCS call `name` (`get`, `config|get`, in any case).
    pub fn command_named(&self, name: &[u8]) -> Option<CommandIx> {
        self.named(name).filter(|ix| is_supported(self.row(*ix)))
    }

    /// The names that a COMMAND LIST request asks for, those of sub-commands and of `learned` commands among them.
    pub fn list(&self, learned: &Learned, args: Args<'_>) -> Result<Vec<&'static str>, ErrorReply> {
        let option = |at, word| args.get(at).is_some_and(|arg| is_word(arg, word));
        let wanted: Box<dyn Fn(&CommandInfo<'_>) -> bool> = match (args.len(), args.get(4)) {
            (2, _) => Box::new(|_| true),
            (5, Some(_)) if !option(2, "FILTERBY") => return Err(ErrorReply::syntax_error()),
            // Servers don't tell which module a command is of.
            (5, Some(_)) if option(3, "MODULE") => Box::new(|_| false),
            (5, Some(category)) if option(3, "ACLCAT") => {
                let category = Categories::named(&[b"@", category].concat());
                Box::new(move |info| category.is_some_and(|category| info.categories.contains(category)))
            }
            (5, Some(pattern)) if option(3, "PATTERN") => {
                Box::new(move |info| glob::matches(pattern, info.row.name.as_bytes()))
            }
            _ => return Err(ErrorReply::syntax_error()),
        };
        let own = self.supported().map(|ix| (self.row(ix).name, self.info(ix)));
        let new = learned.commands().flat_map(|row| [row].into_iter().chain(row.subs));
        let new = new.filter(|row| is_supported(row)).map(|row| (row.name, CommandInfo::of_learned(row)));
        Ok(own.chain(new).filter(|(_, info)| wanted(info)).map(|(name, _)| name).collect())
    }

    /// The keys of the request behind COMMAND GETKEYS.
    pub fn getkeys<'a>(&self, learned: &Learned, args: Args<'a>) -> Result<Vec<&'a [u8]>, GetKeysError> {
        let inner = args.without(2).ok_or(GetKeysError::UnknownCommand)?;
        let (ix, row) = match (self.find(inner), learned.lookup(inner)) {
            (Ok(ix), _) => (ix, self.row(ix)),
            (Err(_), Some(Ok(call))) => (call.ix, call.row),
            (Err(_), Some(Err(CallError::WrongArity(_)))) => return Err(GetKeysError::WrongArity),
            (Err(_), _) => return Err(GetKeysError::UnknownCommand),
        };
        if !is_supported(row) {
            return Err(GetKeysError::UnknownCommand);
        }
        if row.rule == KeyRule::None {
            return Err(GetKeysError::NoKeyArguments);
        }
        if !row.takes(inner.len()) {
            return Err(GetKeysError::WrongArity);
        }
        match (Call { ix, row, args: inner }).keys() {
            Ok(keys) => Ok(keys.iter().filter_map(|at| inner.get(at)).collect()),
            Err(_) if row.flags.contains(Flags::NO_MANDATORY_KEYS) => Ok(Vec::new()),
            Err(_) => Err(GetKeysError::BadArguments),
        }
    }

    /// The lines that answer HELP of a container: which of its sub-commands there are. `ix` is the container's row, or the
    /// row of its HELP.
    pub fn help(&self, ix: CommandIx) -> Vec<String> {
        let name = self.row(ix).name.split('|').next().unwrap_or_default();
        let container = self.named(name.as_bytes()).unwrap_or(ix);
        let heading = format!("{} <subcommand>; shardwise supports:", name.to_uppercase());
        let words = self.subcommands(container).filter_map(|sub| self.row(sub).name.split('|').nth(1));
        std::iter::once(heading).chain(words.map(str::to_uppercase)).collect()
    }

    fn supported(&self) -> impl Iterator<Item = CommandIx> {
        self.rows().filter(|(_, row)| is_supported(row)).map(|(ix, _)| ix)
    }
}

// === impl CommandInfo ===

impl CommandInfo<'_> {
    /// What COMMAND INFO says about a row that was learned.
    pub fn of_learned(row: &'static Row) -> CommandInfo<'static> {
        let categories = row.categories.unwrap_or(Categories::NONE);
        CommandInfo { row, range: KeyRange::of(row.keys), categories }
    }

    /// Redis's tips.
    pub fn tips(&self) -> impl Iterator<Item = &'static str> {
        let policies = [self.row.request.tip(), self.row.reply.tip()];
        self.row.hints.names().chain(policies.into_iter().flatten())
    }
}

// === impl GetKeysError ===

impl GetKeysError {
    /// The answer, in Redis's own words.
    pub fn reply(self) -> ErrorReply {
        match self {
            GetKeysError::UnknownCommand => ErrorReply::getkeys_unknown_command(),
            GetKeysError::NoKeyArguments => ErrorReply::getkeys_no_keys(),
            GetKeysError::WrongArity => ErrorReply::getkeys_wrong_arity(),
            GetKeysError::BadArguments => ErrorReply::getkeys_bad_arguments(),
        }
    }
}

// === impl KeyRange ===

impl KeyRange {
    /// As Redis derives it: what the specs with a fixed beginning cover together, where one goes on after the other.
    fn of(specs: &[KeySpec]) -> KeyRange {
        if let [KeySpec { begin: BeginSearch::Index(at), find: FindKeys::Range { last, step, .. }, .. }] =
            specs
        {
            let (first, step) = (i32::from(*at), i32::from(*step));
            return KeyRange { first, last: absolute(first, *last), step };
        }
        let mut whole = KeyRange::default();
        for spec in specs {
            let (BeginSearch::Index(at), FindKeys::Range { last, step: 1, .. }) = (spec.begin, spec.find)
            else {
                continue;
            };
            let at = i32::from(at);
            if whole.step == 0 {
                whole = KeyRange { first: at, last: absolute(at, last), step: 1 };
            } else if whole.last == at - 1 {
                whole.last = absolute(at, last);
            }
        }
        whole
    }
}

/// The last key of a spec that begins at `first`; negative ones count from the end already.
fn absolute(first: i32, last: i8) -> i32 {
    if last < 0 { last.into() } else { first + i32::from(last) }
}

// === impl RequestPolicy ===

impl RequestPolicy {
    /// The tip as Redis writes it.
    pub const fn tip(self) -> Option<&'static str> {
        match self {
            RequestPolicy::Default => None,
            RequestPolicy::AllNodes => Some("request_policy:all_nodes"),
            RequestPolicy::AllShards => Some("request_policy:all_shards"),
            RequestPolicy::MultiShard => Some("request_policy:multi_shard"),
            RequestPolicy::Special => Some("request_policy:special"),
        }
    }
}

// === impl ReplyPolicy ===

impl ReplyPolicy {
    /// The tip as Redis writes it.
    pub const fn tip(self) -> Option<&'static str> {
        match self {
            ReplyPolicy::Default => None,
            ReplyPolicy::OneSucceeded => Some("response_policy:one_succeeded"),
            ReplyPolicy::AllSucceeded => Some("response_policy:all_succeeded"),
            ReplyPolicy::AggSum => Some("response_policy:agg_sum"),
            ReplyPolicy::AggMin => Some("response_policy:agg_min"),
            ReplyPolicy::AggMax => Some("response_policy:agg_max"),
            ReplyPolicy::AggLogicalAnd => Some("response_policy:agg_logical_and"),
            ReplyPolicy::AggLogicalOr => Some("response_policy:agg_logical_or"),
            ReplyPolicy::Special => Some("response_policy:special"),
        }
    }
}

// === impl Group ===

impl Group {
    /// The ACL category of the group's commands.
    const fn category(self) -> Option<Categories> {
        match self {
            Group::Bitmap => Some(Categories::BITMAP),
            Group::Connection => Some(Categories::CONNECTION),
            Group::Generic => Some(Categories::KEYSPACE),
            Group::Geo => Some(Categories::GEO),
            Group::Hash => Some(Categories::HASH),
            Group::HyperLogLog => Some(Categories::HYPERLOGLOG),
            Group::List => Some(Categories::LIST),
            Group::Scripting => Some(Categories::SCRIPTING),
            Group::Set => Some(Categories::SET),
            Group::SortedSet => Some(Categories::SORTED_SET),
            Group::Stream => Some(Categories::STREAM),
            Group::String => Some(Categories::STRING),
            Group::Transactions => Some(Categories::TRANSACTION),
            // Those of the flags say enough.
            Group::Cluster | Group::PubSub | Group::Server => None,
        }
    }
}

/// The categories that the flags imply, and the row's own or its group's.
fn categories(row: &Row, group: Group, is_container: bool) -> Categories {
    let of_group = group.category().filter(|_| !is_container);
    let own = row.categories.or(of_group).unwrap_or(Categories::NONE);
    let is_script = own.contains(Categories::SCRIPTING);
    let fast = row.flags.contains(Flags::FAST);
    [
        (row.flags.contains(Flags::WRITE), Categories::WRITE),
        (row.flags.contains(Flags::READONLY) && !is_script, Categories::READ),
        (row.flags.contains(Flags::ADMIN), Categories::ADMIN.with(Categories::DANGEROUS)),
        (row.flags.contains(Flags::PUBSUB), Categories::PUBSUB),
        (row.flags.contains(Flags::BLOCKING), Categories::BLOCKING),
        (fast, Categories::FAST),
        (!fast, Categories::SLOW),
    ]
    .into_iter()
    .filter(|(holds, _)| *holds)
    .fold(own, |all, (_, category)| all.with(category))
}

pub(super) fn is_supported(row: &Row) -> bool {
    !matches!(row.handling, Handling::Unsupported(_))
}
