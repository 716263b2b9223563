//! From the bytes of a request to its row and keys. Aim: no more than 10 ns for the lookup of GET and SET.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use shardwise::command::{CommandIx, CommandTable};
use shardwise::resp::{ArgSpan, Args};

/// A request without its framing: the table looks at the arguments only.
fn request(words: &str) -> (Vec<u8>, Vec<ArgSpan>) {
    let mut start = 0;
    let spans = words.split(' ').map(|word| {
        let span = ArgSpan { start, len: word.len() as u32 };
        start += span.len + 1;
        span
    });
    (words.as_bytes().to_vec(), spans.collect())
}

fn lookup(criterion: &mut Criterion) {
    let table = CommandTable::builtin();
    let mut group = criterion.benchmark_group("lookup");
    for words in ["GET k", "set k v", "ZREVRANGEBYSCORE k 1 0", "OBJECT ENCODING k", "NOPE k"] {
        let (raw, spans) = request(words);
        group.bench_function(words, |bencher| {
            bencher.iter(|| {
                let args = Args::new(black_box(&raw), black_box(&spans));
                table.lookup(args).map_or(CommandIx(0), |call| call.ix)
            });
        });
    }
    group.finish();
}

fn keys(criterion: &mut Criterion) {
    let table = CommandTable::builtin();
    let mut group = criterion.benchmark_group("lookup and keys");
    for words in [
        "GET k",
        "MGET a b c d e f g h i j",
        "ZUNIONSTORE d 2 a b",
        "XREADGROUP GROUP g c COUNT 10 STREAMS a b > >",
    ] {
        let (raw, spans) = request(words);
        group.bench_function(words, |bencher| {
            bencher.iter(|| {
                let call = table.lookup(Args::new(black_box(&raw), black_box(&spans))).expect("a call");
                black_box(call.handling());
                call.keys().expect("keys").iter().sum::<usize>()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, lookup, keys);
criterion_main!(benches);
