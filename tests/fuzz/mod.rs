//! The bodies of the fuzz targets: each takes any bytes and panics when something is wrong. `fuzz/` runs them under
//! libFuzzer (`make fuzz`), `tests/fuzz_bodies.rs` over the kept inputs.

pub mod calls;
pub mod config;
pub mod resp;

#[path = "../pools/mod.rs"]
pub mod pools;
