//! From a scanned request to its plan, and from the parts' replies back to one.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use shardwise::command::CommandTable;
use shardwise::config::Distribution;
use shardwise::hash::KeyHash;
use shardwise::resp::{ArgSpan, Args, Limits, RequestScanner, encode};
use shardwise::router::{Plan, Rules, plan};
use shardwise::topology::{Draw, Topology};

#[path = "../tests/pools/mod.rs"]
mod pools;

/// Look-up, arity, keys, hash, ring: all that is decided about a request.
fn plans(criterion: &mut Criterion) {
    let pool = pools::pool(KeyHash::default(), Distribution::Ketama, pools::servers(&[1; 4]));
    let (topology, draw) = (Topology::all_live(&pool), Draw::seeded(1));
    let mut group = criterion.benchmark_group("plan");
    for (name, words) in [
        ("GET", words("GET", 1, 1)),
        ("SET", words("SET", 1, 2)),
        ("MGET-2", words("MGET", 2, 1)),
        ("MGET-16", words("MGET", 16, 1)),
        ("MGET-100", words("MGET", 100, 1)),
        ("MSET-10", words("MSET", 10, 2)),
    ] {
        let request = Request::new(&words);
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter(|| {
                let call =
                    CommandTable::builtin().lookup(black_box(request.args())).expect("a known command");
                plan(&call, &topology, &draw, Rules::default())
            });
        });
    }
    group.finish();
}

fn folds(criterion: &mut Criterion) {
    let pool = pools::pool(KeyHash::default(), Distribution::Ketama, pools::servers(&[1; 4]));
    let (topology, draw) = (Topology::all_live(&pool), Draw::seeded(1));
    let mut group = criterion.benchmark_group("fold");
    for keys in [2, 16, 100] {
        let request = Request::new(&words("MGET", keys, 1));
        let call = CommandTable::builtin().lookup(request.args()).expect("a known command");
        let Plan::Split { parts, fold } = plan(&call, &topology, &draw, Rules::default()) else {
            unreachable!("these keys are on several servers");
        };
        let replies: Vec<Vec<u8>> = parts.iter().map(|part| values(part.keys.len())).collect();
        let mut out = Vec::new();
        group.bench_function(BenchmarkId::new("MGET", keys), |bencher| {
            bencher.iter(|| {
                out.clear();
                fold.merge(black_box(&replies), &mut out).expect("all parts answered well");
            });
        });
    }
    group.finish();
}

/// A command with so many keys, each followed by what belongs to it.
fn words(name: &str, keys: usize, per_key: usize) -> Vec<Vec<u8>> {
    let keys = (0..keys).flat_map(|key| {
        let value = std::iter::repeat_n(b"xxx".to_vec(), per_key - 1);
        std::iter::once(format!("user:{key:010}:").into_bytes()).chain(value)
    });
    std::iter::once(name.into()).chain(keys).collect()
}

fn values(count: usize) -> Vec<u8> {
    let mut reply = Vec::new();
    encode::array(&mut reply, count);
    (0..count).for_each(|_| encode::bulk(&mut reply, b"xxx"));
    reply
}

/// As a client's connection has it.
struct Request {
    raw: Vec<u8>,
    spans: Vec<ArgSpan>,
}

impl Request {
    fn new(words: &[Vec<u8>]) -> Self {
        let (mut raw, mut spans) = (Vec::new(), Vec::new());
        encode::array(&mut raw, words.len());
        words.iter().for_each(|word| encode::bulk(&mut raw, word));
        RequestScanner::default().scan(&raw, &mut spans, &Limits::default()).expect("it is well formed");
        Self { raw, spans }
    }

    fn args(&self) -> Args<'_> {
        Args::new(&self.raw, &self.spans)
    }
}

criterion_group!(benches, plans, folds);
criterion_main!(benches);
