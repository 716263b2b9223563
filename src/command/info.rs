//! What the COMMAND replies say, as plain values; encoding them is the business of whoever answers.

use super::flags::Categories;
use super::row::Row;

/// What COMMAND INFO says about one command.
#[derive(Clone, Copy, Debug)]
pub struct CommandInfo<'a> {
    /// The row: name, arity, flags, key specs, policies, hints.
    pub row: &'a Row,
    /// Its keys in the old form.
    pub range: KeyRange,
    /// Its ACL categories.
    pub categories: Categories,
}

/// Key positions in the old form, for commands whose keys it can express; all 0 for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
