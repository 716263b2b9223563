//! Transactions.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("discard", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, &[], Unsupported(Transactions)),
    row("exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG, &[], Unsupported(Transactions)),
    row("multi", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, &[], Unsupported(Transactions)),
    row("unwatch", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, &[], Unsupported(Transactions)),
    row(
        "watch",
        -2,
        NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY,
        &[all_from(1, RO)],
        Unsupported(Transactions),
    ),
];
