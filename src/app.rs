//! Assembly and command line.

/// Runs the program; the exit code is what the process ends with.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
