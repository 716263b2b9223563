//! Bits of strings.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("bitcount", -2, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("bitfield", -2, WRITE | DENYOOM, &[one(1, RW | ACCESS | UPDATE | VARIABLE_FLAGS)], Keyed),
    row("bitfield_ro", -2, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("bitop", -4, WRITE | DENYOOM, &[one(2, OW | UPDATE), all_from(3, RO | ACCESS)], Keyed),
    row("bitpos", -3, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("getbit", 3, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("setbit", 4, WRITE | DENYOOM, &[one(1, RW | ACCESS | UPDATE)], Keyed),
];
