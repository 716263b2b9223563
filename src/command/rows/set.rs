//! Sets.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("sadd", -3, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
    row("scard", 2, READONLY | FAST, &[one(1, RO)], Keyed),
    row("sdiff", -2, READONLY, &[all_from(1, RO | ACCESS)], Keyed).hints(RANDOM_ORDER),
    row("sdiffstore", -3, WRITE | DENYOOM, &[one(1, OW | UPDATE), all_from(2, RO | ACCESS)], Keyed),
    row("sinter", -2, READONLY, &[all_from(1, RO | ACCESS)], Keyed).hints(RANDOM_ORDER),
    row("sintercard", -3, READONLY | MOVABLE_KEYS, &[counted(1, 1, RO | ACCESS)], Keyed),
    row("sinterstore", -3, WRITE | DENYOOM, &[one(1, RW | UPDATE), all_from(2, RO | ACCESS)], Keyed),
    row("sismember", 3, READONLY | FAST, &[one(1, RO)], Keyed),
    row("smembers", 2, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM_ORDER),
    row("smismember", -3, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("smove", 4, WRITE | FAST, &[one(1, RW | ACCESS | DELETE), one(2, RW | INSERT)], Keyed),
    row("spop", -2, WRITE | FAST, &[one(1, RW | ACCESS | DELETE)], Keyed).hints(RANDOM),
    row("srandmember", -2, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("srem", -3, WRITE | FAST, &[one(1, RW | DELETE)], Keyed),
    row("sscan", -3, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("sunion", -2, READONLY, &[all_from(1, RO | ACCESS)], Keyed).hints(RANDOM_ORDER),
    row("sunionstore", -3, WRITE | DENYOOM, &[one(1, OW | UPDATE), all_from(2, RO | ACCESS)], Keyed),
];
