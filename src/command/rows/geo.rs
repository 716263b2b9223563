//! Geo sets.

use super::words::*;

/// Every command of the group.
pub const ROWS: &[Row] = &[
    row("geoadd", -5, WRITE | DENYOOM, &[one(1, RW | UPDATE)], Keyed),
    row("geodist", -4, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("geohash", -2, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("geopos", -2, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row(
        "georadius",
        -6,
        WRITE | DENYOOM | MOVABLE_KEYS,
        &[one(1, RO | ACCESS), one_after("STORE", 6, OW | UPDATE), one_after("STOREDIST", 6, OW | UPDATE)],
        Keyed,
    )
    .find_keys(KeyRule::GeoStore(6)),
    row("georadius_ro", -6, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row(
        "georadiusbymember",
        -5,
        WRITE | DENYOOM | MOVABLE_KEYS,
        &[one(1, RO | ACCESS), one_after("STORE", 5, OW | UPDATE), one_after("STOREDIST", 5, OW | UPDATE)],
        Keyed,
    )
    .find_keys(KeyRule::GeoStore(5)),
    row("georadiusbymember_ro", -5, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("geosearch", -7, READONLY, &[one(1, RO | ACCESS)], Keyed),
    row("geosearchstore", -8, WRITE | DENYOOM, &[one(1, OW | UPDATE), one(2, RO | ACCESS)], Keyed),
];
