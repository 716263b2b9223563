//! Where a request ends, and where a reply ends: paid for every byte that passes.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shardwise::resp::{Limits, ReplyScanner, RequestScanner, Scanned, encode};

fn requests(criterion: &mut Criterion) {
    let set = request(&[b"SET", b"user:0123456789:", b"xxx"]);
    let get = request(&[b"GET", b"user:0123456789:"]);
    let large = request(&[b"SET", b"user:0123456789:", &[b'x'; 1000]]);
    let mget = request(&[&[&b"MGET"[..]], &[&b"user:0123456789:"[..]; 16][..]].concat());
    let mut group = criterion.benchmark_group("scan-request");
    for (name, packet, count) in [
        ("GET", get.clone(), 1),
        ("SET", set.clone(), 1),
        ("SET-1000", large, 1),
        ("MGET-16", mget, 1),
        ("GET-pipeline-16", get.repeat(16), 16),
        ("SET-pipeline-16", set.repeat(16), 16),
    ] {
        group.throughput(Throughput::Elements(count));
        let (mut scanner, mut spans, limits) = (RequestScanner::default(), Vec::new(), Limits::default());
        group.bench_with_input(BenchmarkId::from_parameter(name), &packet, |bencher, packet| {
            bencher.iter(|| {
                let mut rest = black_box(packet.as_slice());
                while let Ok(Scanned::Array(len)) = scanner.scan(rest, &mut spans, &limits) {
                    black_box(&spans);
                    rest = &rest[len..];
                }
                assert!(rest.is_empty(), "whole requests only");
            });
        });
    }
    group.finish();
}

/// The same pipeline in packets that end anywhere: what resuming costs.
fn pieces(criterion: &mut Criterion) {
    let packet = request(&[b"SET", b"user:0123456789:", b"xxx"]).repeat(16);
    let mut group = criterion.benchmark_group("scan-request-in-pieces");
    group.throughput(Throughput::Elements(16));
    for piece in [1, 10, 100] {
        let (mut scanner, mut spans, limits) = (RequestScanner::default(), Vec::new(), Limits::default());
        group.bench_with_input(BenchmarkId::from_parameter(piece), &packet, |bencher, packet| {
            bencher.iter(|| {
                let (mut start, mut end) = (0, 0);
                while end < packet.len() {
                    end = (end + piece).min(packet.len());
                    while let Ok(Scanned::Array(len)) =
                        scanner.scan(black_box(&packet[start..end]), &mut spans, &limits)
                    {
                        start += len;
                    }
                }
                assert_eq!(start, packet.len(), "whole requests only");
            });
        });
    }
    group.finish();
}

fn replies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan-reply");
    for (name, reply) in [
        ("OK", b"+OK\r\n".to_vec()),
        ("integer", b":12345\r\n".to_vec()),
        ("bulk-3", bulks(1, 3)),
        ("bulk-1000", bulks(1, 1000)),
        ("bulk-60000", bulks(1, 60_000)),
        ("array-100", [b"*100\r\n".to_vec(), bulks(100, 3)].concat()),
        ("array-600", [b"*600\r\n".to_vec(), bulks(600, 3)].concat()),
    ] {
        group.throughput(Throughput::Bytes(reply.len() as u64));
        let mut scanner = ReplyScanner::default();
        group.bench_with_input(BenchmarkId::from_parameter(name), &reply, |bencher, reply| {
            bencher.iter(|| {
                let len = scanner.scan(black_box(reply)).expect("it is well formed");
                assert_eq!(len, Some(reply.len()));
            });
        });
    }
    group.finish();
}

fn request(args: &[&[u8]]) -> Vec<u8> {
    let mut packet = Vec::new();
    encode::array(&mut packet, args.len());
    args.iter().for_each(|arg| encode::bulk(&mut packet, arg));
    packet
}

fn bulks(count: usize, len: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..count).for_each(|_| encode::bulk(&mut bytes, &vec![b'x'; len]));
    bytes
}

criterion_group!(benches, requests, pieces, replies);
criterion_main!(benches);
