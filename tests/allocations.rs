//! A request and its reply cost no heap allocation (docs/ARCHITECTURE.md, "No allocation on the common path").
//!
//! The round trip has everything but sockets, clock and tasks. The allocator of this whole binary counts, so there
//! is one test only. When it fails, `DHAT=1` in the environment writes where: open dhat-heap.json in DHAT's viewer.

mod round_trip;

use round_trip::script::{Order, Script};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// Rounds before counting: buffers have been lent by then, and have grown to what a round needs.
const WARM_UP: usize = 50;
/// Requests counted, at least.
const REQUESTS: usize = 10_000;

#[test]
fn a_request_and_its_reply_allocate_nothing() {
    let profiler = dhat::Profiler::builder();
    let in_detail = std::env::var_os("DHAT").is_some();
    let _profiler = if in_detail { profiler.build() } else { profiler.testing().build() };
    let too_many: Vec<String> = [
        // What, from how many clients in the same turn, and how many blocks a round may take.
        (Script::get(), 1, 0),
        (Script::set(), 1, 0),
        (Script::pipeline("16 GETs of one server", 1), 1, 0),
        (Script::pipeline("16 GETs of four servers", 4), 1, 0),
        (Script::scattered("16 GETs of 16 servers, answered as asked", Order::Asked), 1, 0),
        (Script::scattered("16 GETs of 16 servers, the last answered first", Order::Reversed), 1, 0),
        (Script::get(), 50, 0),
        // The buffer for their server grows anew every turn, because one so large is not kept.
        (Script::get(), 1000, 9),
        (Script::pipeline("16 GETs of one server", 1), 1000, 13),
        // Not the common path: the parts, their keys and replies, and the merged reply.
        (Script::mget("MGET of 16 keys over two servers", 2), 1, 13),
        (Script::mget("MGET of 16 keys over four servers", 4), 1, 17),
    ]
    .into_iter()
    .filter_map(|(script, clients, most)| {
        let rounds = (REQUESTS / clients).max(10);
        let blocks = blocks(&script, clients, rounds);
        (blocks > most * rounds as u64)
            .then(|| format!("{}, {clients} clients: {blocks} blocks in {rounds} rounds", script.name))
    })
    .collect();
    assert!(too_many.is_empty(), "{too_many:#?}");
}

/// Blocks allocated in so many rounds.
fn blocks(script: &Script, clients: usize, rounds: usize) -> u64 {
    let stage = script.stage(clients);
    (0..WARM_UP).for_each(|_| stage.play(script, clients));
    let before = dhat::HeapStats::get().total_blocks;
    (0..rounds).for_each(|_| stage.play(script, clients));
    dhat::HeapStats::get().total_blocks - before
}
