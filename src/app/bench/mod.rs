//! `shardwise bench`: runs the load generator and writes its reports.

mod options;
mod progress;
mod stop;

use std::path::Path;
use std::process::ExitCode;

use rlimit::Resource;

pub use options::BenchOptions;

use super::{complain, print, refuse};
use crate::load::{self, Outcome, report};

/// Descriptors that are needed beside those of clients.
const OWN_DESCRIPTORS: u64 = 64;

/// What shells say of a program that SIGINT has ended.
pub const INTERRUPTED: u8 = 130;

/// Runs all, and writes what was asked for. Errors of targets are results, not failures. After SIGINT
/// the reports are of what was done until then, and the exit code is 130.
pub fn bench(options: &BenchOptions) -> ExitCode {
    let (targets, tests) = match options.targets().and_then(|targets| Ok((targets, options.tests()?))) {
        Ok(read) => read,
        Err(why) => return refuse(&format!("shardwise bench: {why}")),
    };
    let settings = options.settings();
    if let Some(warning) = raise_descriptors(settings.clients as u64 + OWN_DESCRIPTORS) {
        complain(&format!("shardwise bench: {warning}"));
    }
    let stop = match stop::Stop::at_interrupt() {
        Ok(stop) => stop,
        Err(error) => return refuse(&format!("shardwise bench: cannot wait for SIGINT: {error}")),
    };
    let outcome = match load::run(&settings, &targets, &tests, &mut progress::Bar::new(options.quiet, stop)) {
        Ok(outcome) if outcome.rows.is_empty() => {
            return refuse("shardwise bench: stopped before anything was measured");
        }
        Ok(outcome) => outcome,
        Err(why) => return refuse(&format!("shardwise bench: {why}")),
    };
    let code = match write_reports(options, &outcome) {
        Ok(Some(shown)) => print(&shown),
        Ok(None) => print(&table(options, &outcome)),
        Err(why) => return refuse(&format!("{}\nshardwise bench: {why}", report::table(&outcome))),
    };
    if outcome.stopped { ExitCode::from(INTERRUPTED) } else { code }
}

fn table(options: &BenchOptions, outcome: &Outcome) -> String {
    let mut text = report::table(outcome);
    if !options.quiet {
        text.push_str(&report::histogram(outcome));
    }
    text
}

/// Writes each report to its file; what is to go to the standard output instead of the table comes back.
fn write_reports(options: &BenchOptions, outcome: &Outcome) -> Result<Option<String>, String> {
    let reports = [
        (&options.json, (|outcome| format!("{:#}\n", report::json(outcome))) as fn(&Outcome) -> String),
        (&options.csv, report::csv),
        (&options.html, |outcome| report::html(outcome, "shardwise bench", &machine())),
    ];
    let mut shown = None;
    for (path, write) in reports {
        match path {
            None => {}
            Some(path) if path == Path::new("-") => {
                shown.get_or_insert_with(String::new).push_str(&write(outcome));
            }
            Some(path) => {
                std::fs::write(path, write(outcome))
                    .map_err(|error| format!("{}: {error}", path.display()))?;
            }
        }
    }
    Ok(shown)
}

/// The generator's machine, as far as /proc tells.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model =
        cpu.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split_once(": "));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = read("/proc/sys/kernel/osrelease");
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "{cores} cores ({}), Linux {}, shardwise {version}",
        model.map_or("unknown", |(_, model)| model),
        kernel.trim()
    )
}

/// Raises the limit of open files; says so if it stays too low.
fn raise_descriptors(needed: u64) -> Option<String> {
    let (soft, hard) = Resource::NOFILE.get().ok()?;
    if soft >= needed || Resource::NOFILE.set(needed, hard.max(needed)).is_ok() {
        return None;
    }
    let _ = Resource::NOFILE.set(hard, hard); // as many as there can be
    (hard < needed).then(|| {
        format!("{needed} descriptors are needed and {hard} allowed: some clients will not connect (ulimit -n, LimitNOFILE)")
    })
}
