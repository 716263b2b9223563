//! What a command is: one declarative row each, and what a request of it asks for.
//!
//! ```text
//!  Args ──▶ CommandTable::lookup ──▶ Call { ix, row, args } ──▶ handling()  split, answered here, refused, …
//!                   │                                     └───▶ keys()      indexes of the arguments that are keys
//!                   └─ CallError: unknown, wrong number of arguments
//! ```
//!
//! Everything that shardwise knows about a command is in its row (`rows/`), in Redis's own vocabulary; parser, router,
//! fold, `docs/commands.md` and the COMMAND replies read that row. `tests/commands.rs` compares the rows with live servers.
//! Nothing here does I/O, and the path from a request to its key allocates nothing.

mod call;
mod flags;
mod glob;
mod info;
mod keys;
mod learned;
mod options;
mod row;
mod rows;
mod set;
mod spec;
mod table;

pub use call::{Call, CallError};
pub use flags::{Categories, Flags, Hints, KeyFlags};
pub use info::{CommandInfo, GetKeysError, KeyRange};
pub use keys::{KeyError, KeyIter, Keys};
pub use learned::{AnswerError, Learned, Lexicon, MOST_LEARNED};
pub use row::{
    AllKind, ClientQuery, CommandQuery, Group, Handling, Local, Origin, Pin, ReplyPolicy, RequestPolicy, Row,
    ScriptUse, SplitKind, TimeoutAt, Transaction, Unless, Why,
};
pub use set::CommandSet;
pub use spec::{BeginSearch, FindKeys, KeySpec};
pub use table::{CommandIx, CommandTable};
