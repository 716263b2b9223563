//! The rows, in Redis's groups: one file each.
//!
//! A row reads: name, number of arguments (negative: at least), flags, where the keys are (with what is done to them),
//! how shardwise handles it. `tests/commands.rs` compares all but the last with live servers.

mod string;

use super::row::{Group, Row};

/// Every row.
pub(super) const SECTIONS: &[(Group, &[Row])] = &[(Group::String, string::ROWS)];

/// What the files of rows need.
mod words {
    pub(super) use super::super::flags::{flag::*, hint::*, key::*};
    pub(super) use super::super::row::Handling::*;
    pub(super) use super::super::row::RequestPolicy::*;
    pub(super) use super::super::row::{ReplyPolicy, Row, SplitKind, row};
    pub(super) use super::super::spec::*;
}
