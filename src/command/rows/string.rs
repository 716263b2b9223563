//! Strings.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("append", 3, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
    row("decr", 2, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("decrby", 3, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("delifeq", 3, WRITE | FAST, &[one(1, RM | DELETE)], Keyed).valkey(),
    row("get", 2, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("getdel", 2, WRITE | FAST, &[one(1, RW | ACCESS | DELETE)], Keyed),
    row("getex", -2, WRITE | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("getrange", 4, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("getset", 3, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("incr", 2, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("incrby", 3, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("incrbyfloat", 3, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("lcs", -3, READONLY, &[range(1, 1, 1, RO | ACCESS)], Keyed),
    row("mget", -2, READONLY | FAST, &[all_from(1, RO | ACCESS)], Split(Concat))
        .request(RequestPolicy::MultiShard),
    row("mset", -3, WRITE | DENYOOM, &[range(1, -1, 2, OW | UPDATE)], Split(AllOk))
        .request(RequestPolicy::MultiShard)
        .reply(ReplyPolicy::AllSucceeded),
    row("msetex", -4, WRITE | DENYOOM | MOVABLE_KEYS, &[counted(1, 2, OW | UPDATE)], Keyed)
        .request(RequestPolicy::MultiShard)
        .reply(ReplyPolicy::AllSucceeded)
        .valkey(),
    row("msetnx", -3, WRITE | DENYOOM, &[range(1, -1, 2, OW | INSERT)], Keyed)
        .request(RequestPolicy::MultiShard)
        .reply(ReplyPolicy::AggMin),
    row("psetex", 4, WRITE | DENYOOM, &[one(1, OW | UPDATE)], Keyed),
    row("set", -3, WRITE | DENYOOM, &[one(1, RW | ACCESS | UPDATE | VARIABLE_FLAGS)], Keyed),
    row("setex", 4, WRITE | DENYOOM, &[one(1, OW | UPDATE)], Keyed),
    row("setnx", 3, WRITE | DENYOOM | FAST, &[one(1, OW | INSERT)], Keyed),
    row("setrange", 4, WRITE | DENYOOM, &[one(1, RW | UPDATE)], Keyed),
    row("strlen", 2, READONLY | FAST, &[one(1, RO)], Keyed),
    row("substr", 4, READONLY, &[one(1, RO | ACCESS)], Keyed),
];
