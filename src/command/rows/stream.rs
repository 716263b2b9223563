//! Streams.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("xack", -4, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("xadd", -5, WRITE | DENYOOM | FAST, &[one(1, RW | UPDATE)], Keyed).hints(RANDOM),
    row("xautoclaim", -6, WRITE | FAST, &[one(1, RW | DELETE)], Keyed).hints(RANDOM),
    row("xclaim", -6, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed).hints(RANDOM),
    row("xdel", -3, WRITE | FAST, &[one(1, RW | DELETE)], Keyed),
    row("xgroup", -2, 0, &[], AnyServer).subs(&[
        row("xgroup|create", -5, WRITE | DENYOOM, &[one(2, RW | INSERT)], Keyed),
        row("xgroup|createconsumer", 5, WRITE | DENYOOM, &[one(2, RW | INSERT)], Keyed),
        row("xgroup|delconsumer", 5, WRITE, &[one(2, RW | DELETE)], Keyed),
        row("xgroup|destroy", 4, WRITE, &[one(2, RW | DELETE)], Keyed),
        row("xgroup|help", 2, LOADING | STALE, &[], AnyServer),
        row("xgroup|setid", -5, WRITE, &[one(2, RW | UPDATE)], Keyed),
    ]),
    row("xinfo", -2, 0, &[], AnyServer).subs(&[
        row("xinfo|consumers", 4, READONLY, &[one(2, RO | ACCESS)], Keyed).hints(RANDOM),
        row("xinfo|groups", 3, READONLY, &[one(2, RO | ACCESS)], Keyed),
        row("xinfo|help", 2, LOADING | STALE, &[], AnyServer),
        row("xinfo|stream", -3, READONLY, &[one(2, RO | ACCESS)], Keyed),
    ]),
    row("xlen", 2, READONLY | FAST, &[one(1, RO)], Keyed),
    row("xpending", -3, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("xrange", -4, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("xread", -4, READONLY | BLOCKING | MOVABLE_KEYS, &[half_after("STREAMS", 1, RO | ACCESS)], Keyed)
        .find_keys(KeyRule::Streams)
        .unless(Unless::Block),
    row("xreadgroup", -7, WRITE | BLOCKING | MOVABLE_KEYS, &[half_after("STREAMS", 4, RO | ACCESS)], Keyed)
        .find_keys(KeyRule::Streams)
        .unless(Unless::Block),
    row("xrevrange", -4, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("xsetid", -3, WRITE | DENYOOM | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("xtrim", -4, WRITE, &[one(1, RW | DELETE)], Keyed).hints(RANDOM),
];
