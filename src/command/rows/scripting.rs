//! Scripts and functions.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row(
        "eval",
        -3,
        NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | NO_MANDATORY_KEYS,
        &[counted(2, 1, RW | ACCESS | UPDATE)],
        Keyed,
    )
    .script(ScriptUse::Body),
    row(
        "eval_ro",
        -3,
        READONLY | NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | NO_MANDATORY_KEYS,
        &[counted(2, 1, RO | ACCESS)],
        Keyed,
    )
    .script(ScriptUse::Body),
    row(
        "evalsha",
        -3,
        NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | NO_MANDATORY_KEYS,
        &[counted(2, 1, RW | ACCESS | UPDATE)],
        Keyed,
    )
    .script(ScriptUse::Sha),
    row(
        "evalsha_ro",
        -3,
        READONLY | NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | NO_MANDATORY_KEYS,
        &[counted(2, 1, RO | ACCESS)],
        Keyed,
    )
    .script(ScriptUse::Sha),
    row(
        "fcall",
        -3,
        NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | NO_MANDATORY_KEYS,
        &[counted(2, 1, RW | ACCESS | UPDATE)],
        Keyed,
    ),
    row(
        "fcall_ro",
        -3,
        READONLY | NOSCRIPT | STALE | SKIP_MONITOR | MOVABLE_KEYS | NO_MANDATORY_KEYS,
        &[counted(2, 1, RO | ACCESS)],
        Keyed,
    ),
    row("function", -2, 0, &[], Local(Help)).subs(&[
        row("function|delete", 3, WRITE | NOSCRIPT, &[], Everywhere(AllKind::Same))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::AllSucceeded),
        row("function|dump", 2, NOSCRIPT, &[], AnyServer),
        row("function|flush", -2, WRITE | NOSCRIPT, &[], Everywhere(AllKind::Same))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::AllSucceeded),
        row("function|help", 2, LOADING | STALE, &[], Local(Help)),
        row("function|kill", 2, NOSCRIPT | ALLOW_BUSY, &[], Unsupported(ScriptAdmin))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::OneSucceeded),
        row("function|list", -2, NOSCRIPT, &[], AnyServer).hints(RANDOM_ORDER),
        row("function|load", -3, WRITE | DENYOOM | NOSCRIPT, &[], Everywhere(AllKind::Same))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::AllSucceeded),
        row("function|restore", -3, WRITE | DENYOOM | NOSCRIPT, &[], Everywhere(AllKind::Same))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::AllSucceeded),
        row("function|stats", 2, NOSCRIPT | ALLOW_BUSY, &[], Unsupported(ScriptAdmin))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
    ]),
    row("script", -2, 0, &[], Local(Help)).subs(&[
        row("script|debug", -3, NOSCRIPT, &[], Unsupported(ScriptAdmin)),
        row("script|exists", -3, NOSCRIPT, &[], Everywhere(AllKind::And))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::AggLogicalAnd),
        row("script|flush", -2, NOSCRIPT, &[], Everywhere(AllKind::Same))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AllSucceeded)
            .script(ScriptUse::Flush),
        row("script|help", 2, LOADING | STALE, &[], Local(Help)),
        row("script|kill", 2, NOSCRIPT | ALLOW_BUSY, &[], Unsupported(ScriptAdmin))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::OneSucceeded),
        row("script|load", 3, NOSCRIPT | STALE, &[], Everywhere(AllKind::Same))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AllSucceeded)
            .script(ScriptUse::Load),
        row("script|show", 3, NOSCRIPT | STALE, &[], Unsupported(ScriptAdmin)).valkey(),
    ]),
];
