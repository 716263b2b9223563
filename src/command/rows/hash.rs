//! Hashes.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("hdel", -3, WRITE | FAST, &[one(1, RW | DELETE)], Keyed),
    row("hexists", 3, READONLY | FAST, &[one(1, RO)], Keyed),
    row("hexpire", -6, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed).valkey(),
    row("hexpireat", -6, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed).valkey(),
    row("hexpiretime", -5, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed).valkey(),
    row("hget", 3, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("hgetall", 2, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM_ORDER),
    row("hgetdel", -5, WRITE | FAST, &[one(1, RW | ACCESS | DELETE)], Keyed).valkey(),
    row("hgetex", -5, WRITE | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed).valkey(),
    row("hincrby", 4, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("hincrbyfloat", 4, WRITE | DENYOOM | FAST, &[one(1, RW | ACCESS | UPDATE)], Keyed),
    row("hkeys", 2, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM_ORDER),
    row("hlen", 2, READONLY | FAST, &[one(1, RO)], Keyed),
    row("hmget", -3, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("hmset", -4, WRITE | DENYOOM | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("hpersist", -5, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed).valkey(),
    row("hpexpire", -6, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed).valkey(),
    row("hpexpireat", -6, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed).valkey(),
    row("hpexpiretime", -5, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed).valkey(),
    row("hpttl", -5, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed).valkey(),
    row("hrandfield", -2, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("hscan", -3, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("hset", -4, WRITE | DENYOOM | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("hsetex", -6, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed).valkey(),
    row("hsetnx", 4, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
    row("hstrlen", 3, READONLY | FAST, &[one(1, RO)], Keyed),
    row("httl", -5, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed).valkey(),
    row("hvals", 2, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM_ORDER),
];
