//! What it costs to find where requests and replies end.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use shardwise::resp::{ArgSpan, Limits, ReplyScanner, RequestScanner, Scanned};

#[path = "../tests/round_trip/mod.rs"]
mod round_trip;

use round_trip::{array, bulk, keys, request};

fn requests(criterion: &mut Criterion) {
    let key = keys().next().expect("endless");
    let keys: Vec<String> = keys().take(16).collect();
    let get = request(["GET", &key]);
    let limits = Limits::default();
    let mut group = criterion.benchmark_group("requests");
    for (name, bytes) in [
        ("GET", get.clone()),
        ("SET of 3 bytes", request(["SET", &key, "xyz"])),
        ("SET of 1 KB", request([b"SET", key.as_bytes(), &[b'x'; 1024]])),
        ("16 GETs", get.repeat(16)),
        ("MGET of 16 keys", request(["MGET"].into_iter().chain(keys.iter().map(String::as_str)))),
    ] {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let mut spans = Vec::new();
        group.bench_function(name, |bencher| {
            bencher.iter(|| scan_all(black_box(&bytes), &mut spans, &limits))
        });
    }
    group.finish();
}

fn replies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replies");
    for (name, bytes) in [
        ("+OK", b"+OK\r\n".to_vec()),
        ("bulk of 3 bytes", bulk("xyz")),
        ("bulk of 1 KB", bulk([b'x'; 1024])),
        ("LRANGE of 600", array(&vec![bulk("xyz"); 600])),
    ] {
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group
            .bench_function(name, |bencher| bencher.iter(|| ReplyScanner::default().scan(black_box(&bytes))));
    }
    group.finish();
}

/// Every request in `bytes`; how many there were.
fn scan_all(bytes: &[u8], spans: &mut Vec<ArgSpan>, limits: &Limits) -> usize {
    let (mut scanner, mut at, mut found) = (RequestScanner::default(), 0, 0);
    while at < bytes.len() {
        let Ok(Scanned::Array(len)) = scanner.scan(&bytes[at..], spans, limits) else {
            unreachable!("whole requests")
        };
        at += len;
        found += 1;
    }
    found
}

criterion_group!(benches, requests, replies);
criterion_main!(benches);
