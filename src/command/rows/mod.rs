//! The rows, in Redis's groups: one file each.
//!
//! A row reads: name, number of arguments (negative: at least), flags, where the keys are (with what is done to them),
//! how shardwise handles it. `tests/commands.rs` compares all but the last with live servers.

mod bitmap;
mod cluster;
mod connection;
mod generic;
mod geo;
mod hash;
mod hyperloglog;
mod list;
mod pubsub;
mod scripting;
mod server;
mod set;
mod sorted_set;
mod stream;
mod string;
mod transactions;

use super::row::{Group, Row};

/// Every row, by group, in alphabetical order.
pub(super) const SECTIONS: &[(Group, &[Row])] = &[
    (Group::Bitmap, bitmap::ROWS),
    (Group::Cluster, cluster::ROWS),
    (Group::Connection, connection::ROWS),
    (Group::Generic, generic::ROWS),
    (Group::Geo, geo::ROWS),
    (Group::Hash, hash::ROWS),
    (Group::HyperLogLog, hyperloglog::ROWS),
    (Group::List, list::ROWS),
    (Group::PubSub, pubsub::ROWS),
    (Group::Scripting, scripting::ROWS),
    (Group::Server, server::ROWS),
    (Group::Set, set::ROWS),
    (Group::SortedSet, sorted_set::ROWS),
    (Group::Stream, stream::ROWS),
    (Group::String, string::ROWS),
    (Group::Transactions, transactions::ROWS),
];

/// What the files of rows need.
mod words {
    pub(super) use super::super::flags::{Categories, flag::*, hint::*, key::*};
    pub(super) use super::super::keys::KeyRule;
    pub(super) use super::super::row::ClientQuery::*;
    pub(super) use super::super::row::CommandQuery::*;
    pub(super) use super::super::row::Handling::*;
    pub(super) use super::super::row::Local::*;
    pub(super) use super::super::row::SplitKind::*;
    pub(super) use super::super::row::Why::*;
    pub(super) use super::super::row::{ReplyPolicy, RequestPolicy, Row, row};
    pub(super) use super::super::spec::*;
}
