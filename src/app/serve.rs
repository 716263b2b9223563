//! The start, in order: configuration, background, log, signals, pid file, limits, all listening sockets, workers.
//!
//! Whatever fails on the way stops the start with a reason, and nothing is left running.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::runtime::{Builder, LocalRuntime};
use tracing::{error, info, warn};

use super::cli::ServeOptions;
use super::daemon::{self, Readiness, Side};
use super::logging::{self, Log, Sink};
use super::pid_file::PidFile;
use super::refuse;
use crate::config::{Config, LogFormat, Threads};
use crate::control::handover::{self, Predecessor};
use crate::control::{self, Control, Doors, Ended, Inherited, OpenError, Signals, systemd};
use crate::net;
use crate::units::Listen;

/// Why the proxy did not start, after the log was there.
#[derive(Debug)]
enum StartError {
    PidFile(PathBuf, io::Error),
    Runtime(io::Error),
    Handover(PathBuf, io::Error),
    Open(OpenError),
    Workers(io::Error),
}

/// Runs the proxy to its end.
pub fn serve(options: &ServeOptions) -> ExitCode {
    let sink = match Sink::open(options.output.as_ref()) {
        Ok(sink) => sink,
        Err(error) => {
            return refuse(&format!("shardwise: cannot open the log {:?}: {error}", options.output));
        }
    };
    let config = match Config::load(&options.conf_file) {
        Ok(config) => config,
        Err(errors) => return refuse_config(options, sink, &errors.to_string()),
    };
    let readiness = match options.daemonize.then(daemon::detach) {
        None => Readiness::nobody_waits(),
        Some(Ok(Side::Daemon(readiness))) => readiness,
        Some(Ok(Side::Parent(Ok(())))) => return ExitCode::SUCCESS,
        Some(Ok(Side::Parent(Err(reason)))) => return refuse(&format!("shardwise: {reason}")),
        Some(Err(reason)) => return refuse(&format!("shardwise: cannot go to the background: {reason}")),
    };
    let to_file = sink.is_file();
    let log = logging::install(sink, config.process.log_format, options.verbose);
    match run(options, Arc::new(config), log, readiness) {
        Ok(Ended::Drained) => ExitCode::SUCCESS,
        Ok(Ended::Cut | Ended::WorkerLost(_)) => ExitCode::FAILURE,
        Err((readiness, reason)) => {
            error!("cannot start: {reason}");
            readiness.failed(&reason.to_string());
            if to_file && !options.daemonize {
                return refuse(&format!("shardwise: {reason}"));
            }
            ExitCode::FAILURE
        }
    }
}

/// Errors of the configuration go to whoever started us, and to the log's file for those who look there.
fn refuse_config(options: &ServeOptions, sink: Sink, errors: &str) -> ExitCode {
    if sink.is_file() {
        let _log = logging::install(sink, LogFormat::Text, options.verbose);
        for line in errors.lines() {
            error!("{line}");
        }
    }
    refuse(errors)
}

fn run(
    options: &ServeOptions,
    config: Arc<Config>,
    log: Log,
    readiness: Readiness,
) -> Result<Ended, (Readiness, StartError)> {
    let (runtime, control, pid_file) = match start(options, config, log) {
        Ok(started) => started,
        Err(reason) => return Err((readiness, reason)),
    };
    readiness.ready();
    systemd::ready();
    let ended = runtime.block_on(control.run());
    // A host name that is still being looked up must not hold up the end.
    runtime.shutdown_background();
    drop(pid_file);
    info!("ended");
    Ok(ended)
}

type Started = (LocalRuntime, Control, Option<PidFile>);

fn start(options: &ServeOptions, config: Arc<Config>, log: Log) -> Result<Started, StartError> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(Default::default())
        .map_err(StartError::Runtime)?;
    let inside = runtime.enter();
    // Before anything that a signal would have to end in an orderly way.
    let signals = Signals::install().map_err(StartError::Runtime)?;
    let pid_file = match &options.pid_file {
        Some(path) => Some(PidFile::write(path).map_err(|error| StartError::PidFile(path.clone(), error))?),
        None => None,
    };
    give_memory_back();
    let workers = workers(options.threads.unwrap_or(config.process.threads));
    announce(options, &config, workers);
    let stats = Listen::Tcp { host: options.stats_addr.clone(), port: options.stats_port };
    let (predecessor, inherited) = inherited(&config)?;
    let doors = Doors::open(&config, workers, &stats, inherited).map_err(StartError::Open)?;
    control::announce(&config);
    let control = Control::start(config, workers, doors, signals, Box::new(log), predecessor)
        .map_err(StartError::Workers)?;
    drop(inside);
    Ok((runtime, control, pid_file))
}

/// Sockets that are open already: a running process's that we take over from, and systemd's.
fn inherited(config: &Config) -> Result<(Option<Predecessor>, Inherited), StartError> {
    let mut inherited = Inherited { listeners: net::handover::from_systemd(), with_files: false };
    if !inherited.listeners.is_empty() {
        info!(sockets = inherited.listeners.len(), "systemd has opened listening sockets");
    }
    let Some(path) = &config.process.handover else { return Ok((None, inherited)) };
    match handover::take_over(path).map_err(|error| StartError::Handover(path.clone(), error))? {
        Some((predecessor, taken)) => {
            info!(sockets = taken.listeners.len(), "taking over from the process at {}", path.display());
            inherited.listeners.extend(taken.listeners);
            inherited.with_files = true;
            Ok((Some(predecessor), inherited))
        }
        None => Ok((None, inherited)),
    }
}

/// Lets the allocator return what a burst took even when nothing happens afterwards. After the fork of `-d`, since it
/// starts a thread.
fn give_memory_back() {
    if let Err(error) = tikv_jemalloc_ctl::background_thread::write(true) {
        warn!(%error, "the allocator's thread does not start: memory goes back to the system later");
    }
}

fn workers(threads: Threads) -> usize {
    match threads {
        Threads::Auto => std::thread::available_parallelism().map_or(1, usize::from),
        Threads::Fixed(number) => number.get() as usize,
    }
}

fn announce(options: &ServeOptions, config: &Config, workers: usize) {
    info!(
        workers,
        config = %config.path.display(),
        "shardwise {} built for {} {} started on pid {}",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH,
        std::process::id(),
    );
    for warning in &config.warnings {
        warn!(line = warning.line, "{}", warning.text);
    }
    info!(
        "stats on {}:{} (-a; nutcracker's default is all addresses, ours is 127.0.0.1)",
        options.stats_addr, options.stats_port,
    );
    if options.stats_interval.is_some() {
        info!("-i, --stats-interval has no effect: stats are always live");
    }
    if options.mbuf_size.is_some() {
        info!("-m, --mbuf-size has no effect: there are no mbufs");
    }
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PidFile(path, error) => write!(f, "cannot write the pid file {}: {error}", path.display()),
            Self::Runtime(error) => write!(f, "cannot set up control: {error}"),
            Self::Handover(path, error) => {
                write!(f, "cannot take over from the process at {}: {error}", path.display())
            }
            Self::Open(error) => error.fmt(f),
            Self::Workers(error) => write!(f, "cannot start the workers: {error}"),
        }
    }
}
