//! Publish/subscribe.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Unsupported(PubSub)),
    row("publish", 3, PUBSUB | LOADING | STALE | FAST, &[], Unsupported(PubSub)),
    row("pubsub", -2, 0, &[], Unsupported(PubSub)).subs(&[
        row("pubsub|channels", -2, PUBSUB | LOADING | STALE, &[], Unsupported(PubSub)),
        row("pubsub|help", 2, LOADING | STALE, &[], Unsupported(PubSub)),
        row("pubsub|numpat", 2, PUBSUB | LOADING | STALE, &[], Unsupported(PubSub)),
        row("pubsub|numsub", -2, PUBSUB | LOADING | STALE, &[], Unsupported(PubSub)),
        row("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, &[], Unsupported(PubSub)),
        row("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, &[], Unsupported(PubSub)),
    ]),
    row("punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Unsupported(PubSub)),
    row("spublish", 3, PUBSUB | LOADING | STALE | FAST, &[one(1, NOT_KEY)], Unsupported(PubSub)),
    row("ssubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, &[all_from(1, NOT_KEY)], Unsupported(PubSub)),
    row("subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Unsupported(PubSub)),
    row(
        "sunsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        &[all_from(1, NOT_KEY)],
        Unsupported(PubSub),
    ),
    row("unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Unsupported(PubSub)),
];
