//! HyperLogLogs.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("pfadd", -2, WRITE | DENYOOM | FAST, &[one(1, RW | INSERT)], Keyed),
    row("pfcount", -2, READONLY, &[all_from(1, RW | ACCESS)], Keyed),
    row("pfdebug", 3, WRITE | DENYOOM | ADMIN, &[one(2, RW | ACCESS)], Unsupported(Internal)),
    row("pfmerge", -2, WRITE | DENYOOM, &[one(1, RW | ACCESS | INSERT), all_from(2, RO | ACCESS)], Keyed),
    row("pfselftest", 1, ADMIN, &[], Unsupported(Internal)),
];
