//! The `shardwise` binary: everything is in the library.
#![forbid(unsafe_code)]

/// Chosen by measurement (docs/performance.md): less memory per idle client, less CPU for large values.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    shardwise::app::main()
}
