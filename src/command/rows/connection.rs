//! The client's connection.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("auth", -2, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, &[], Local(Auth)),
    row("client", -2, 0, &[], Local(Help)).subs(&[
        row("client|caching", 3, NOSCRIPT | LOADING | STALE, &[], Unsupported(Tracking)),
        row("client|capa", -3, NOSCRIPT | LOADING | STALE | ALLOW_BUSY, &[], Unsupported(ConnectionState))
            .valkey(),
        row("client|getname", 2, NOSCRIPT | LOADING | STALE, &[], Local(Client(GetName))),
        row("client|getredir", 2, NOSCRIPT | LOADING | STALE, &[], Local(Client(GetRedir))),
        row("client|help", 2, LOADING | STALE, &[], Local(Help)),
        row("client|id", 2, NOSCRIPT | LOADING | STALE, &[], Local(Client(Id))),
        row("client|import-source", 3, NOSCRIPT | LOADING | STALE, &[], Unsupported(ConnectionState))
            .valkey(),
        row("client|info", 2, NOSCRIPT | LOADING | STALE, &[], Local(Client(ClientInfo))).hints(RANDOM),
        row("client|kill", -3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("client|list", -2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Local(Client(ListClients)))
            .hints(RANDOM),
        row("client|no-evict", 3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Local(Client(NoEvict))),
        row("client|no-touch", 3, NOSCRIPT | LOADING | STALE | ALLOW_BUSY, &[], Local(Client(NoTouch)))
            .valkey(),
        row("client|pause", -3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("client|reply", 3, NOSCRIPT | LOADING | STALE, &[], Local(Client(Reply))),
        row("client|setinfo", 4, NOSCRIPT | LOADING | STALE | ALLOW_BUSY, &[], Local(Client(SetInfo)))
            .request(RequestPolicy::AllNodes)
            .reply(ReplyPolicy::AllSucceeded)
            .valkey(),
        row("client|setname", 3, NOSCRIPT | LOADING | STALE, &[], Local(Client(SetName))),
        row("client|tracking", -3, NOSCRIPT | LOADING | STALE, &[], Unsupported(Tracking)),
        row("client|trackinginfo", 2, NOSCRIPT | LOADING | STALE, &[], Local(Client(TrackingInfo))),
        row("client|unblock", -3, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
        row("client|unpause", 2, ADMIN | NOSCRIPT | LOADING | STALE, &[], Unsupported(Administration)),
    ]),
    row("echo", 2, LOADING | STALE | FAST, &[], Local(Echo)),
    row("hello", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, &[], Local(Hello)),
    row("ping", -1, FAST, &[], Local(Ping))
        .request(RequestPolicy::AllShards)
        .reply(ReplyPolicy::AllSucceeded),
    row("quit", -1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, &[], Local(Quit)),
    row("reset", 1, NOSCRIPT | LOADING | STALE | FAST | NO_AUTH | ALLOW_BUSY, &[], Local(Reset)),
    row("select", 2, LOADING | STALE | FAST, &[], Local(Select)),
];
