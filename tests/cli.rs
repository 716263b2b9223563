//! The program from outside: options, exit codes, start and end, signals, log, pid file, stats port.

mod cli {
    mod background;
    mod bench;
    mod bench_faults;
    mod descriptors;
    mod ejection;
    mod log;
    mod options;
    mod signals;
    mod start;
    mod stats;
    mod systemd;
}
mod support;

use std::path::Path;
use std::process::{Command, Output};

use support::{Port, Shardwise, pool_of};

/// The YAML of one pool with a server that nobody runs.
fn yaml(listen: &str) -> String {
    pool_of("alpha", listen, &["127.0.0.1:1:1 one".into(), "127.0.0.1:2:1 two".into()], "")
}

/// Runs the program to its end in `dir`.
fn run_in(dir: &Path, args: &[&str]) -> Output {
    Command::new(Shardwise::PROGRAM).args(args).current_dir(dir).output().expect("the program starts")
}

/// Runs the program to its end in `dir` with the arguments that it needs to serve `yaml`, and some more.
fn run_to_serve(dir: &Path, yaml: &str, more: &[&str]) -> Output {
    std::fs::write(dir.join("conf.yml"), yaml).expect("a file in a folder of our own");
    let stats = Port::claim();
    let stats_port = stats.number().to_string();
    let mut args = vec!["-c", "conf.yml", "-s", &stats_port, "--threads", "1"];
    args.extend_from_slice(more);
    run_in(dir, &args)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
