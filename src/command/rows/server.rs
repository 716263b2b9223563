//! A server.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("acl", -2, 0, &[], Unsupported(Administration)).subs(&[
        row("acl|cat", -2, NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|deluser", -3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|dryrun", -4, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|genpass", -2, NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|getuser", 3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|help", 2, LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|list", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|load", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|log", -2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|save", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|setuser", -3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|users", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("acl|whoami", 2, NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
    ]),
    row("bgrewriteaof", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, &[], Unsupported(Administration)),
    row("bgsave", -1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, &[], Unsupported(Administration)),
    row("command", -1, LOADING | STALE, &[], Local(Command(All)))
        .hints(RANDOM_ORDER)
        .acl(Categories::CONNECTION)
        .subs(&[
            row("command|count", 2, LOADING | STALE, &[], Local(Command(Count))).acl(Categories::CONNECTION),
            row("command|docs", -2, LOADING | STALE, &[], AnyServer)
                .hints(RANDOM_ORDER)
                .acl(Categories::CONNECTION),
            row("command|getkeys", -3, LOADING | STALE, &[], Local(Command(GetKeys)))
                .acl(Categories::CONNECTION),
            row("command|getkeysandflags", -3, LOADING | STALE, &[], Unsupported(KeyFlags))
                .acl(Categories::CONNECTION),
            row("command|help", 2, LOADING | STALE, &[], Local(Help)).acl(Categories::CONNECTION),
            row("command|info", -2, LOADING | STALE, &[], Local(Command(Info)))
                .hints(RANDOM_ORDER)
                .acl(Categories::CONNECTION),
            row("command|list", -2, LOADING | STALE, &[], Local(Command(List)))
                .hints(RANDOM_ORDER)
                .acl(Categories::CONNECTION),
        ]),
    row("commandlog", -2, 0, &[], Unsupported(Administration)).valkey().subs(&[
        row("commandlog|get", 4, ADMIN | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .hints(RANDOM)
            .valkey(),
        row("commandlog|help", 2, LOADING | STALE, &[], Unsupported(Administration)).valkey(),
        row("commandlog|len", 3, ADMIN | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AggSum)
            .hints(RANDOM)
            .valkey(),
        row("commandlog|reset", 3, ADMIN | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AllSucceeded)
            .valkey(),
    ]),
    row("config", -2, 0, &[], Local(Help)).subs(&[
        row("config|get", -3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Local(ConfigGet)),
        row("config|help", 2, LOADING | STALE, &[], Local(Help)),
        row("config|resetstat", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("config|rewrite", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("config|set", -4, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AllSucceeded),
    ]),
    row("dbsize", 1, READONLY | FAST, &[], Everywhere(AllKind::Sum))
        .request(RequestPolicy::AllShards)
        .reply(ReplyPolicy::AggSum)
        .acl(Categories::KEYSPACE),
    row("debug", -2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
    row("failover", -1, ADMIN | NOSCRIPT | STALE, &[], Unsupported(Replication)),
    row("flushall", -1, WRITE, &[], Everywhere(AllKind::Same))
        .request(RequestPolicy::AllShards)
        .reply(ReplyPolicy::AllSucceeded)
        .acl(Categories::DANGEROUS.with(Categories::KEYSPACE)),
    row("flushdb", -1, WRITE, &[], Everywhere(AllKind::Same))
        .request(RequestPolicy::AllShards)
        .reply(ReplyPolicy::AllSucceeded)
        .acl(Categories::DANGEROUS.with(Categories::KEYSPACE)),
    row("info", -1, LOADING | STALE, &[], Local(ServerInfo))
        .request(RequestPolicy::AllShards)
        .reply(ReplyPolicy::Special)
        .hints(RANDOM)
        .acl(Categories::DANGEROUS),
    row("lastsave", 1, LOADING | STALE | FAST, &[], Unsupported(Administration))
        .hints(RANDOM)
        .acl(Categories::ADMIN.with(Categories::DANGEROUS)),
    row("latency", -2, 0, &[], Unsupported(Administration)).subs(&[
        row("latency|doctor", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("latency|graph", 3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("latency|help", 2, LOADING | STALE, &[], Unsupported(Administration)),
        row("latency|histogram", -2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("latency|history", 3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("latency|latest", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("latency|reset", -2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AllSucceeded),
    ]),
    row("lolwut", -1, READONLY | FAST, &[], AnyServer),
    row("memory", -2, 0, &[], Local(Help)).subs(&[
        row("memory|doctor", 2, 0, &[], Unsupported(Administration))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("memory|help", 2, LOADING | STALE, &[], Local(Help)),
        row("memory|malloc-stats", 2, 0, &[], Unsupported(Administration))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("memory|purge", 2, 0, &[], Unsupported(Administration))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::AllSucceeded),
        row("memory|stats", 2, 0, &[], Unsupported(Administration))
            .request(RequestPolicy::AllShards)
            .reply(ReplyPolicy::Special)
            .hints(RANDOM),
        row("memory|usage", -3, READONLY, &[one(2, RO)], Keyed),
    ]),
    row("module", -2, 0, &[], Unsupported(Administration)).subs(&[
        row("module|help", 2, LOADING | STALE, &[], Unsupported(Administration)),
        row("module|list", 2, ADMIN | NOSCRIPT, &[], Unsupported(Administration)).hints(RANDOM_ORDER),
        row("module|load", -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, &[], Unsupported(Administration)),
        row("module|loadex", -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, &[], Unsupported(Administration)),
        row("module|unload", 3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING, &[], Unsupported(Administration)),
    ]),
    row("monitor", 1, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
    row("psync", -3, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, &[], Unsupported(Replication)),
    row("replconf", -1, ADMIN | NOSCRIPT | LOADING | STALE | ALLOW_BUSY, &[], Unsupported(Replication)),
    row("replicaof", 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING, &[], Unsupported(Replication)),
    row("restore-asking", -4, WRITE | DENYOOM | ASKING, &[one(1, OW | UPDATE)], Unsupported(Internal))
        .acl(Categories::DANGEROUS.with(Categories::KEYSPACE)),
    row("role", 1, NOSCRIPT | LOADING | STALE | FAST, &[], Unsupported(Replication))
        .acl(Categories::ADMIN.with(Categories::DANGEROUS)),
    row("save", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, &[], Unsupported(Administration)),
    row(
        "shutdown",
        -1,
        ADMIN | NOSCRIPT | LOADING | STALE | NO_MULTI | ALLOW_BUSY,
        &[],
        Unsupported(Administration),
    ),
    row("slaveof", 3, ADMIN | NOSCRIPT | STALE | NO_ASYNC_LOADING, &[], Unsupported(Replication)),
    row("slowlog", -2, 0, &[], Unsupported(Administration)).subs(&[
        row("slowlog|get", -2, ADMIN | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .hints(RANDOM),
        row("slowlog|help", 2, LOADING | STALE, &[], Unsupported(Administration)),
        row("slowlog|len", 2, ADMIN | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AggSum)
            .hints(RANDOM),
        row("slowlog|reset", 2, ADMIN | LOADING | STALE, &[], Unsupported(Administration))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AllSucceeded),
    ]),
    row("swapdb", 3, WRITE | FAST, &[], Unsupported(Databases))
        .acl(Categories::DANGEROUS.with(Categories::KEYSPACE)),
    row("sync", 1, ADMIN | NOSCRIPT | NO_ASYNC_LOADING | NO_MULTI, &[], Unsupported(Replication)),
    row("time", 1, LOADING | STALE | FAST, &[], AnyServer).hints(RANDOM),
];
