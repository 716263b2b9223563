//! The `shardwise` binary: everything is in the library.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    shardwise::app::main()
}
