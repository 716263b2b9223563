//! Lists.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row(
        "blmove",
        6,
        WRITE | DENYOOM | NOSCRIPT | BLOCKING,
        &[one(1, RW | ACCESS | DELETE), one(2, RW | INSERT)],
        Pinned(Block(TimeoutAt::Last)),
    ),
    row(
        "blmpop",
        -5,
        WRITE | BLOCKING | MOVABLE_KEYS,
        &[counted(2, 1, RW | ACCESS | DELETE)],
        Pinned(Block(TimeoutAt::First)),
    ),
    row(
        "blpop",
        -3,
        WRITE | NOSCRIPT | BLOCKING,
        &[range(1, -2, 1, RW | ACCESS | DELETE)],
        Pinned(Block(TimeoutAt::Last)),
    ),
    row(
        "brpop",
        -3,
        WRITE | NOSCRIPT | BLOCKING,
        &[range(1, -2, 1, RW | ACCESS | DELETE)],
        Pinned(Block(TimeoutAt::Last)),
    ),
    row(
        "brpoplpush",
        4,
        WRITE | DENYOOM | NOSCRIPT | BLOCKING,
        &[one(1, RW | ACCESS | DELETE), one(2, RW | INSERT)],
        Pinned(Block(TimeoutAt::Last)),
    ),
    row("lindex", 3, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("linsert", 5, WRITE | DENYOOM, &[one(1, RW | INSERT)], Keyed),
    row("llen", 2, READONLY | FAST, &[one(1, RO)], Keyed),
    row("lmove", 5, WRITE | DENYOOM, &[one(1, RW | ACCESS | DELETE), one(2, RW | INSERT)], Keyed),
    row("lmpop", -4, WRITE | MOVABLE_KEYS, &[counted(1, 1, RW | ACCESS | DELETE)], Keyed),
    row("lpop", -2, WRITE | FAST, &[one(1, RW | ACCESS | DELETE)], Keyed),
    row("lpos", -3, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("lpush", -3, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
    row("lpushx", -3, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
    row("lrange", 4, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("lrem", 4, WRITE, &[one(1, RW | DELETE)], Keyed),
    row("lset", 4, WRITE | DENYOOM, &[one(1, RW | UPDATE)], Keyed),
    row("ltrim", 4, WRITE, &[one(1, RW | DELETE)], Keyed),
    row("rpop", -2, WRITE | FAST, &[one(1, RW | ACCESS | DELETE)], Keyed),
    row("rpoplpush", 3, WRITE | DENYOOM, &[one(1, RW | ACCESS | DELETE), one(2, RW | INSERT)], Keyed),
    row("rpush", -3, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
    row("rpushx", -3, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
];
