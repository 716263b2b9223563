//! Keys, whatever their type.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("copy", -3, WRITE | DENYOOM, &[one(1, RO | ACCESS), one(2, OW | UPDATE)], Keyed)
        .unless(Unless::Database),
    row("del", -2, WRITE, &[all_from(1, RM | DELETE)], Split(Sum))
        .request(RequestPolicy::MultiShard)
        .reply(ReplyPolicy::AggSum),
    row("dump", 2, READONLY, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("exists", -2, READONLY | FAST, &[all_from(1, RO)], Split(Sum))
        .request(RequestPolicy::MultiShard)
        .reply(ReplyPolicy::AggSum),
    row("expire", -3, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("expireat", -3, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("expiretime", 2, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("keys", 2, READONLY, &[], Everywhere(AllKind::Join))
        .request(RequestPolicy::AllShards)
        .hints(RANDOM_ORDER)
        .acl(Categories::DANGEROUS.with(Categories::KEYSPACE)),
    row(
        "migrate",
        -6,
        WRITE | MOVABLE_KEYS,
        &[one(3, RW | ACCESS | DELETE), all_after("KEYS", -2, RW | ACCESS | DELETE | INCOMPLETE)],
        Unsupported(Administration),
    )
    .hints(RANDOM)
    .find_keys(KeyRule::Migrate)
    .acl(Categories::DANGEROUS.with(Categories::KEYSPACE)),
    row("move", 3, WRITE | FAST, &[one(1, RW | ACCESS | UPDATE)], Unsupported(Databases)),
    row("object", -2, 0, &[], AnyServer).subs(&[
        row("object|encoding", 3, READONLY, &[one(2, RO)], Keyed).hints(RANDOM),
        row("object|freq", 3, READONLY, &[one(2, RO)], Keyed).hints(RANDOM),
        row("object|help", 2, LOADING | STALE, &[], AnyServer),
        row("object|idletime", 3, READONLY, &[one(2, RO)], Keyed).hints(RANDOM),
        row("object|refcount", 3, READONLY, &[one(2, RO)], Keyed).hints(RANDOM),
    ]),
    row("persist", 2, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("pexpire", -3, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("pexpireat", -3, WRITE | FAST, &[one(1, RW | UPDATE)], Keyed),
    row("pexpiretime", 2, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed),
    row("pttl", 2, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("randomkey", 1, READONLY, &[], Everywhere(AllKind::Draw))
        .request(RequestPolicy::AllShards)
        .hints(RANDOM),
    row("rename", 3, WRITE, &[one(1, RW | ACCESS | DELETE), one(2, OW | UPDATE)], Keyed),
    row("renamenx", 3, WRITE | FAST, &[one(1, RW | ACCESS | DELETE), one(2, OW | INSERT)], Keyed),
    row("restore", -4, WRITE | DENYOOM, &[one(1, OW | UPDATE)], Keyed)
        .acl(Categories::DANGEROUS.with(Categories::KEYSPACE)),
    row("scan", -2, READONLY, &[], Scan).request(RequestPolicy::Special).hints(RANDOM),
    row(
        "sort",
        -2,
        WRITE | DENYOOM | MOVABLE_KEYS,
        &[one(1, RO | ACCESS), somewhere(RO | ACCESS), somewhere(OW | UPDATE)],
        Keyed,
    )
    .find_keys(KeyRule::Sort)
    .acl(Categories::DANGEROUS.with(Categories::LIST).with(Categories::SET).with(Categories::SORTED_SET)),
    row("sort_ro", -2, READONLY | MOVABLE_KEYS, &[one(1, RO | ACCESS), somewhere(RO | ACCESS)], Keyed)
        .find_keys(KeyRule::One(1))
        .acl(Categories::DANGEROUS.with(Categories::LIST).with(Categories::SET).with(Categories::SORTED_SET)),
    row("touch", -2, READONLY | FAST, &[all_from(1, RO)], Split(Sum))
        .request(RequestPolicy::MultiShard)
        .reply(ReplyPolicy::AggSum),
    row("ttl", 2, READONLY | FAST, &[one(1, RO | ACCESS)], Keyed).hints(RANDOM),
    row("type", 2, READONLY | FAST, &[one(1, RO)], Keyed),
    row("unlink", -2, WRITE | FAST, &[all_from(1, RM | DELETE)], Split(Sum))
        .request(RequestPolicy::MultiShard)
        .reply(ReplyPolicy::AggSum),
    row("wait", 3, NOSCRIPT, &[], Wait)
        .request(RequestPolicy::AllShards)
        .reply(ReplyPolicy::AggMin)
        .acl(Categories::CONNECTION),
    row("waitaof", 4, BLOCKING, &[], Wait)
        .request(RequestPolicy::AllShards)
        .reply(ReplyPolicy::AggMin)
        .acl(Categories::CONNECTION)
        .valkey(),
];
