//! The whole way of requests and replies through one worker, without sockets, clock and tasks.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};

#[path = "../tests/round_trip/mod.rs"]
mod round_trip;

use round_trip::script::{Order, Script};

fn round_trips(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("round trip");
    for (script, clients) in [
        (Script::get(), 1),
        (Script::get(), 50),
        (Script::set(), 1),
        (Script::pipeline("16 GETs of one server", 1), 1),
        (Script::pipeline("16 GETs of four servers", 4), 1),
        (Script::scattered("16 GETs, answered as asked", Order::Asked), 1),
        (Script::scattered("16 GETs, the last answered first", Order::Reversed), 1),
        (Script::mget("MGET of 16 keys over four servers", 4), 1),
    ] {
        let stage = script.stage(clients);
        let name =
            if clients > 1 { format!("{} of {clients} clients", script.name) } else { script.name.into() };
        group.throughput(Throughput::Elements(u64::from(script.requests) * clients as u64));
        group.bench_function(name, |bencher| bencher.iter(|| stage.play(&script, clients)));
    }
    group.finish();
}

criterion_group!(benches, round_trips);
criterion_main!(benches);
