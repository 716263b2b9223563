//! A simulated proxy, made of the real one's pure parts: scanners, router, topology, outbox, gather and pipe. Random
//! clients, splits of every message, full sockets, late replies, lost connections, dying servers, ejections and clients
//! that go; after each step and at the end it is checked that docs/ARCHITECTURE.md's "What always holds" does.
//!
//! The same seed does the same, step by step: `SIM_SEED=N cargo test --test sim` repeats one that failed.
//! `SIM_SEEDS` (2000) says how many are tried, from `SIM_FIRST` (0) on.

mod support;

mod pools;

mod sim {
    pub mod client;
    pub mod lane;
    pub mod server;
    pub mod world;
}

use std::panic::{AssertUnwindSafe, catch_unwind};

use sim::world::World;

#[test]
fn what_always_holds_holds_for_every_seed() {
    if let Some(seed) = number("SIM_SEED") {
        return World::new(seed).run();
    }
    let first = number("SIM_FIRST").unwrap_or(0);
    let seeds = number("SIM_SEEDS").unwrap_or(2_000);
    for seed in first..first + seeds {
        let run = catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
        assert!(run.is_ok(), "repeat it by: SIM_SEED={seed} cargo test --test sim");
    }
    println!("{seeds} seeds from {first} on");
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}
