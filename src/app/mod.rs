//! Assembly and command line: from arguments to a running process and its exit code.

mod bench;
mod check;
mod cli;
mod daemon;
mod describe;
mod explain;
mod logging;
mod pid_file;
mod running;
mod serve;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use crate::config::{Config, Warning};
use cli::Request;

/// Runs the program; the exit code is what the process ends with: 0 if all went as asked, else 1, and 2 for a
/// configuration that `check` finds wrong.
pub fn main() -> ExitCode {
    match cli::parse(std::env::args_os()) {
        Ok(Request::Serve(options)) => serve::serve(&options),
        Ok(Request::Test { conf_file }) => test(&conf_file),
        Ok(Request::Check(options)) => check::check(&options),
        Ok(Request::Describe) => print(&describe::stats()),
        Ok(Request::Bench(options)) => bench::bench(&options),
        Ok(Request::Explain(options)) => match explain::explain(&options) {
            Ok(text) => print(&text),
            Err(reason) => refuse(&reason),
        },
        Err(cli::Stop::Shown(text)) => print(&text),
        Err(cli::Stop::Refused(text)) => refuse(text.trim_end()),
    }
}

/// `-t`: says whether a configuration file is right, and if not, why.
fn test(conf_file: &Path) -> ExitCode {
    let shown = conf_file.display();
    match Config::load(conf_file) {
        Ok(config) => {
            for warning in &config.warnings {
                complain(&with_line(conf_file, warning));
            }
            complain(&format!("shardwise: configuration file '{shown}' syntax is ok"));
            ExitCode::SUCCESS
        }
        Err(errors) => {
            complain(&errors.to_string());
            refuse(&format!("shardwise: configuration file '{shown}' syntax is invalid"))
        }
    }
}

fn with_line(conf_file: &Path, warning: &Warning) -> String {
    match warning.line {
        Some(line) => format!("{}:{line}: warning: {}", conf_file.display(), warning.text),
        None => format!("{}: warning: {}", conf_file.display(), warning.text),
    }
}

/// Writes what was asked for to the standard output.
fn print(text: &str) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE, // a reader that left (`| head`) is no reason to panic
    }
}

/// Says why something is not done.
fn refuse(reason: &str) -> ExitCode {
    complain(reason);
    ExitCode::FAILURE
}

/// One line, or some, to the standard error. Unlike `eprintln!` it doesn't panic when nobody is there.
fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
