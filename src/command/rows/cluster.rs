//! Redis Cluster.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("asking", 1, FAST, &[], Unsupported(Cluster)).acl(Categories::CONNECTION),
    row("cluster", -2, 0, &[], Unsupported(Cluster)).subs(&[
        row("cluster|addslots", -3, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|addslotsrange", -4, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|bumpepoch", 2, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster))
            .hints(RANDOM),
        row("cluster|cancelslotmigrations", 2, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster))
            .valkey(),
        row("cluster|count-failure-reports", 3, ADMIN | STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|countkeysinslot", 3, STALE, &[], Unsupported(Cluster)),
        row("cluster|delslots", -3, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|delslotsrange", -4, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|failover", -2, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|flushslot", -3, WRITE | ADMIN | NO_ASYNC_LOADING, &[], Unsupported(Cluster))
            .acl(Categories::KEYSPACE)
            .valkey(),
        row("cluster|flushslots", 2, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|forget", 3, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|getkeysinslot", 4, STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|getslotmigrations", 2, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster))
            .valkey(),
        row("cluster|help", 2, LOADING | STALE, &[], Unsupported(Cluster)),
        row("cluster|info", 2, STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|keyslot", 3, STALE, &[], Unsupported(Cluster)),
        row("cluster|links", 2, STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|meet", -4, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|migrateslots", -4, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)).valkey(),
        row("cluster|myid", 2, STALE, &[], Unsupported(Cluster)),
        row("cluster|myshardid", 2, LOADING | STALE, &[], Unsupported(Cluster)).hints(RANDOM).valkey(),
        row("cluster|nodes", 2, STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|replicas", 3, ADMIN | STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|replicate", -3, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|reset", -2, ADMIN | NOSCRIPT | STALE, &[], Unsupported(Cluster)),
        row("cluster|saveconfig", 2, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|set-config-epoch", 3, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|setslot", -4, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)),
        row("cluster|shards", 2, STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|slaves", 3, ADMIN | STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|slot-stats", -4, LOADING | STALE, &[], Unsupported(Cluster))
            .request(RequestPolicy::AllShards)
            .hints(RANDOM)
            .valkey(),
        row("cluster|slots", 2, STALE, &[], Unsupported(Cluster)).hints(RANDOM),
        row("cluster|syncslots", -3, ADMIN | STALE | NO_ASYNC_LOADING, &[], Unsupported(Cluster)).valkey(),
    ]),
    row("clusterscan", -2, READONLY, &[one(1, NOT_KEY)], Unsupported(Cluster))
        .request(RequestPolicy::Special)
        .reply(ReplyPolicy::Special)
        .hints(RANDOM)
        .acl(Categories::KEYSPACE)
        .valkey(),
    row("readonly", 1, LOADING | STALE | FAST, &[], Local(Accepted)).acl(Categories::CONNECTION),
    row("readwrite", 1, LOADING | STALE | FAST, &[], Local(Accepted)).acl(Categories::CONNECTION),
];
