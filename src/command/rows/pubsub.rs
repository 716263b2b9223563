//! Publish/subscribe.

use super::words::*;
use crate::resp::Space;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("psubscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Subscribe(Space::Pattern)),
    row("publish", 3, PUBSUB | LOADING | STALE | FAST, &[], Publish),
    row("pubsub", -2, 0, &[], Local(Help)).subs(&[
        row("pubsub|channels", -2, PUBSUB | LOADING | STALE, &[], Everywhere(AllKind::Join)),
        row("pubsub|help", 2, LOADING | STALE, &[], Local(Help)),
        row("pubsub|numpat", 2, PUBSUB | LOADING | STALE, &[], Everywhere(AllKind::Max)),
        row("pubsub|numsub", -2, PUBSUB | LOADING | STALE, &[], Everywhere(AllKind::Counts)),
        row("pubsub|shardchannels", -2, PUBSUB | LOADING | STALE, &[], Everywhere(AllKind::Join)),
        row("pubsub|shardnumsub", -2, PUBSUB | LOADING | STALE, &[], Everywhere(AllKind::Counts)),
    ]),
    row("punsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Unsubscribe(Space::Pattern)),
    row("spublish", 3, PUBSUB | LOADING | STALE | FAST, &[one(1, NOT_KEY)], Publish),
    row(
        "ssubscribe",
        -2,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        &[all_from(1, NOT_KEY)],
        Subscribe(Space::Shard),
    ),
    row("subscribe", -2, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Subscribe(Space::Channel)),
    row(
        "sunsubscribe",
        -1,
        PUBSUB | NOSCRIPT | LOADING | STALE,
        &[all_from(1, NOT_KEY)],
        Unsubscribe(Space::Shard),
    ),
    row("unsubscribe", -1, PUBSUB | NOSCRIPT | LOADING | STALE, &[], Unsubscribe(Space::Channel)),
];
