//! Strings.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("get", 2, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("set", -3, WRITE | DENYOOM, &[one(1, RW | ACCESS | UPDATE | VARIABLE_FLAGS)], Keyed),
    row("mget", -2, READONLY | FAST, &[all_from(1, RO | ACCESS)], Split(SplitKind::Concat))
        .request(MultiShard),
    row("mset", -3, WRITE | DENYOOM, &[range(1, -1, 2, OW | UPDATE)], Split(SplitKind::AllOk))
        .request(MultiShard)
        .reply(ReplyPolicy::AllSucceeded),
];
