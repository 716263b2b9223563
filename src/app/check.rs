//! `shardwise check`: what is wrong with a file, and what a reload of it would change: offline, or as a running proxy says.

use std::path::Path;
use std::process::ExitCode;

use super::cli::CheckOptions;
use super::{complain, print, running, with_line};
use crate::config::Config;
use crate::control::reload::Report;

/// What a wrong file, of either side, ends with.
const WRONG: u8 = 2;

/// Warnings and faults go to the standard error, what would change to the standard output.
pub fn check(options: &CheckOptions) -> ExitCode {
    let Some(config) = load(&options.file) else { return ExitCode::from(WRONG) };
    for warning in &config.warnings {
        complain(&with_line(&options.file, warning));
    }
    let Some(running) = &options.against else {
        let servers: usize = config.pools.iter().map(|pool| pool.servers.len()).sum();
        let pools = config.pools.len();
        return print(&format!("{} is valid: {pools} pools, {servers} servers\n", options.file.display()));
    };
    if let Some(address) = running::address(running) {
        return match running::predict(&address, &config.source.text) {
            Ok(report) => print(&format!("{report}\n")),
            Err(why) => {
                complain(&format!("{running}: {why}"));
                ExitCode::from(WRONG)
            }
        };
    }
    let Some(running) = load(Path::new(running)) else { return ExitCode::from(WRONG) };
    print(&format!("{}\n", Report::predict(&running, &config)))
}

fn load(file: &Path) -> Option<Config> {
    Config::load(file).inspect_err(|errors| complain(&errors.to_string())).ok()
}
