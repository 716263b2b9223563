//! What it costs to find a key's server: the hashes, ring look-up, ring building.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shardwise::config::Distribution;
use shardwise::hash::{Algorithm, CharSign, KeyHash};
use shardwise::topology::{Continuum, Draw, Owner, Ring, Topology};

#[path = "../tests/pools/mod.rs"]
mod pools;

fn hashes(criterion: &mut Criterion) {
    for length in [16, 64] {
        let key: Vec<u8> = b"user:0123456789:".iter().copied().cycle().take(length).collect();
        let mut group = criterion.benchmark_group(format!("hash-{length}"));
        group.throughput(Throughput::Bytes(length as u64));
        for algorithm in Algorithm::ALL {
            let hash = KeyHash { algorithm, char_sign: CharSign::Signed, tag: None };
            group.bench_function(algorithm.name(), |bencher| bencher.iter(|| hash.of(black_box(&key))));
        }
        group.finish();
    }
}

/// The chosen look-up beside the plain one, over hash values that no branch predictor knows.
fn lookup(criterion: &mut Criterion) {
    let draw = Draw::seeded(1);
    let hashes: Vec<u32> = (0..1 << 16).map(|_| draw.below(u32::MAX)).collect();
    let mut group = criterion.benchmark_group("lookup");
    for servers in [4, 100] {
        let topology = topology(servers);
        let continuum = continuum(&topology);
        let mut next = hashes.iter().cycle();
        group.bench_function(BenchmarkId::new("continuum", servers), |bencher| {
            bencher.iter(|| continuum.server(*next.next().expect("endless")));
        });

        let (values, owners): (Vec<_>, Vec<_>) = continuum.points().unzip();
        let mut next = hashes.iter().cycle();
        group.bench_function(BenchmarkId::new("binary-search", servers), |bencher| {
            bencher.iter(|| {
                let hash = *next.next().expect("endless");
                let position = values.partition_point(|&value| value < hash);
                owners[if position == owners.len() { 0 } else { position }]
            });
        });

        let keys: Vec<String> = (0..1 << 12).map(|number| format!("user:{number:010}:")).collect();
        let mut next = keys.iter().cycle();
        group.bench_function(BenchmarkId::new("key-xxh3_64", servers), |bencher| {
            bencher.iter(|| topology.server(next.next().expect("endless").as_bytes(), &draw));
        });
    }
    group.finish();
}

fn build(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("build");
    group.sample_size(20);
    for servers in [4, 100] {
        group.bench_function(BenchmarkId::from_parameter(servers), |bencher| {
            bencher.iter(|| topology(servers))
        });
    }
    group.finish();
}

fn topology(servers: usize) -> Topology {
    let hash = KeyHash { algorithm: Algorithm::Xxh3_64, ..KeyHash::default() };
    Topology::all_live(&pools::pool(hash, Distribution::Ketama, pools::servers(&vec![1; servers])))
}

fn continuum(topology: &Topology) -> &Continuum {
    match topology.owner() {
        Owner::Ring(Ring::Ketama(continuum)) => continuum,
        other => unreachable!("several servers on ketama are {other:?}"),
    }
}

criterion_group!(benches, hashes, lookup, build);
criterion_main!(benches);
