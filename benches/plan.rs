//! What it costs to plan a call, and to fold the replies of its parts.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use shardwise::command::CommandTable;
use shardwise::resp::{Args, Limits, RequestScanner};
use shardwise::router::Fold;

#[path = "../tests/round_trip/mod.rs"]
mod round_trip;

use round_trip::{Owners, array, bulk, keys, request};

fn plans(criterion: &mut Criterion) {
    let keys: Vec<String> = keys().take(16).collect();
    let get = request(["GET", &keys[0]]);
    let mget = request(["MGET"].into_iter().chain(keys.iter().map(String::as_str)));
    let mset = request(["MSET"].into_iter().chain(keys[..10].iter().flat_map(|key| [key.as_str(), "xyz"])));
    let mut group = criterion.benchmark_group("plan");
    for (name, bytes, servers) in [
        ("GET", &get, 4),
        ("MGET of 16 keys over 2 servers", &mget, 2),
        ("MGET of 16 keys over 4 servers", &mget, 4),
        ("MSET of 10 keys over 4 servers", &mset, 4),
    ] {
        let owners = Owners::new(servers);
        let mut spans = Vec::new();
        RequestScanner::default().scan(bytes, &mut spans, &Limits::default()).expect("a request");
        let call = CommandTable::builtin().lookup(Args::new(bytes, &spans)).expect("a command");
        group.bench_function(name, |bencher| bencher.iter(|| owners.plan(black_box(&call))));
    }
    group.finish();
}

fn folds(criterion: &mut Criterion) {
    let halves = [array(&vec![bulk("xyz"); 8]), array(&vec![bulk("xyz"); 8])];
    let sums = [b":3\r\n".to_vec(), b":4\r\n".to_vec(), b":5\r\n".to_vec(), b":4\r\n".to_vec()];
    let mut group = criterion.benchmark_group("fold");
    for (name, fold, parts) in [
        ("Concat of 16 values", Fold::Concat { order: (0..16).map(|i| i % 2).collect() }, &halves[..]),
        ("Sum of 4", Fold::Sum, &sums[..]),
    ] {
        let mut out = Vec::new();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                out.clear();
                fold.merge(black_box(parts), &mut out).expect("they can be merged");
                out.len()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, plans, folds);
criterion_main!(benches);
