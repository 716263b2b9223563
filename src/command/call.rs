//! One call of a command: its row, and what its arguments make of it.

use std::time::Duration;

use crate::resp::{Args, ErrorReply};

use super::keys::{KeyError, Keys};
use super::options;
use super::row::{Handling, Pin, Row, TimeoutAt, Unless, Why};
use super::table::CommandIx;

/// A request whose command is known and whose number of arguments is right.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// Index of the row in its table, for counters.
    pub ix: CommandIx,
    /// The row of the command or sub-command.
    pub row: &'a Row,
    /// The request.
    pub args: Args<'a>,
}

/// A request that is no call of a known command.
#[derive(Clone, Copy, Debug)]
pub enum CallError<'a> {
    /// There is no such command.
    UnknownCommand(Args<'a>),
    /// The container has no such sub-command.
    UnknownSubcommand(Args<'a>),
    /// The command takes another number of arguments.
    WrongArity(&'a Row),
}

// === impl Call ===

impl Call<'_> {
    /// What to do with the call, its arguments considered: XREAD with BLOCK is pinned, without it isn't.
    #[inline]
    pub fn handling(&self) -> Handling {
        match self.row.unless {
            Unless::Never => self.row.handling,
            Unless::Block if options::has_block(self.args) => Handling::Pinned(Pin::Block(TimeoutAt::Option)),
            Unless::Database if options::has_database(self.args) => Handling::Unsupported(Why::Databases),
            Unless::Block | Unless::Database => self.row.handling,
        }
    }

    /// Which arguments are keys, in the order of Redis's own COMMAND GETKEYS.
    ///
    /// An error means that the arguments contradict themselves, and that a server would answer the call with an error
    /// of its own wording whatever it holds; so any server may be asked for it.
    #[inline]
    pub fn keys(&self) -> Result<Keys, KeyError> {
        self.row.rule.find(self.row, self.args)
    }

    /// How long the call asks its server to wait; `None`: without end.
    ///
    /// Zero for what no server takes for a time: it answers that with an error at once.
    pub fn wait(&self, at: TimeoutAt) -> Option<Duration> {
        options::wait(self.args, at)
    }

    /// The refusal of a call whose handling is [`Handling::Unsupported`].
    pub fn refusal(&self, why: Why) -> ErrorReply {
        let subcommand = self.row.name.contains('|').then(|| self.args.get(1)).flatten();
        ErrorReply::unsupported_command(self.args.name(), subcommand, why.phrase())
    }
}

// === impl CallError ===

impl CallError<'_> {
    /// The answer, in Redis's own words.
    pub fn reply(&self) -> ErrorReply {
        match self {
            CallError::UnknownCommand(args) => ErrorReply::unknown_command(args.name(), args.iter_from(1)),
            CallError::UnknownSubcommand(args) => {
                ErrorReply::unknown_subcommand(args.name(), args.get(1).unwrap_or_default())
            }
            CallError::WrongArity(row) => ErrorReply::wrong_arity(row.name),
        }
    }
}
