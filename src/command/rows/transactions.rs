//! Transactions.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("discard", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, &[], Transaction(Discard)),
    row("exec", 1, NOSCRIPT | LOADING | STALE | SKIP_SLOWLOG, &[], Transaction(Exec)),
    row("multi", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, &[], Transaction(Multi)),
    row("unwatch", 1, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, &[], Transaction(Unwatch)),
    row("watch", -2, NOSCRIPT | LOADING | STALE | FAST | ALLOW_BUSY, &[all_from(1, RO)], Pinned(Watch)),
];
