//! The proxy under test, as its users start it.

use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use rustix::process::Signal;
use tempfile::TempDir;

use super::ports::{listens, listens_unix};
use super::{PATIENCE, Port, Process};

/// A running shardwise with a configuration of this test's own.
#[derive(Debug)]
pub struct Shardwise {
    process: Process,
    stats: Port,
    dir: TempDir,
}

impl Shardwise {
    /// The program that cargo built for this test.
    pub const PROGRAM: &str = env!("CARGO_BIN_EXE_shardwise");

    /// Starts it with this configuration and two workers, and waits until all its pools listen.
    pub fn start(yaml: &str) -> Self {
        Self::with_args(yaml, &["--threads", "2"])
    }

    /// Starts it with this configuration and further arguments, and waits until all its pools listen.
    ///
    /// The stats port is a reserved one ([`Self::stats`]), the log goes to [`Self::log`].
    pub fn with_args(yaml: &str, args: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("shardwise-").tempdir().expect("a temporary folder");
        let stats = Port::claim();
        std::fs::write(dir.path().join(CONFIG), yaml).expect("a file in a folder of our own");
        let stats_port = stats.number().to_string();
        let mut all = vec!["-c", CONFIG, "-a", "127.0.0.1", "-s", &stats_port];
        all.extend_from_slice(args);
        let all: Vec<String> = all.into_iter().map(str::to_owned).collect();
        let mut process = Process::start("shardwise", Self::PROGRAM, &all, dir.path());
        wait_listening(&mut process, yaml);
        Self { process, stats, dir }
    }

    /// Runs it with `args` to its end (`explain`, `-t`, a wrong configuration) in a folder where `conf.yml`
    /// holds `yaml`.
    pub fn run(yaml: &str, args: &[&str]) -> Output {
        let dir = tempfile::Builder::new().prefix("shardwise-").tempdir().expect("a temporary folder");
        std::fs::write(dir.path().join(CONFIG), yaml).expect("a file in a folder of our own");
        Command::new(Self::PROGRAM).args(args).current_dir(dir.path()).output().expect("the program starts")
    }

    /// Puts another configuration in the place of its file, as an editor does, and has it reloaded by SIGUSR1: what
    /// the log says of that.
    #[track_caller]
    pub fn reload(&mut self, yaml: &str) -> String {
        let before = self.log().len();
        let new = self.dir.path().join("conf.new");
        std::fs::write(&new, yaml).expect("a file in a folder of our own");
        std::fs::rename(new, self.config_path()).expect("the same folder");
        self.signal(Signal::USR1);
        let said = || self.log()[before..].to_owned();
        let ends = [", adopted in ", "reload refused: nothing has changed"];
        super::wait_until("the end of a reload", PATIENCE, || ends.iter().any(|end| said().contains(end)));
        said()
    }

    /// The configuration file it was started with; a test of reload rewrites it.
    pub fn config_path(&self) -> PathBuf {
        self.dir.path().join(CONFIG)
    }

    /// Its working folder.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The stats port's answer now.
    pub fn stats(&self) -> serde_json::Value {
        let mut stream = TcpStream::connect(self.stats.socket_addr()).expect("the stats port accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("the stats port answers and closes");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("the stats are no JSON ({e}):\n{text}"))
    }

    /// Sends it a signal.
    pub fn signal(&mut self, signal: Signal) {
        self.process.signal(signal);
    }

    /// SIGTERM, then waits at most `limit` for the end: its exit code (`None`: killed by a signal).
    #[track_caller]
    pub fn terminate(&mut self, limit: Duration) -> Option<i32> {
        self.signal(Signal::TERM);
        self.wait_exit(limit)
    }

    /// Waits at most `limit` for the end: its exit code (`None`: killed by a signal).
    #[track_caller]
    pub fn wait_exit(&mut self, limit: Duration) -> Option<i32> {
        self.process.wait_exit(limit).code()
    }

    /// Whether it still runs.
    pub fn is_running(&mut self) -> bool {
        self.process.exited().is_none()
    }
}

const CONFIG: &str = "conf.yml";

/// Waits until something listens at every `listen:` of the configuration.
#[track_caller]
pub(super) fn wait_listening(process: &mut Process, yaml: &str) {
    let values = yaml.lines().filter_map(|line| line.trim().strip_prefix("listen:"));
    let addresses: Vec<&str> = values.map(|value| value.trim().trim_matches(['"', '\''])).collect();
    assert!(!addresses.is_empty(), "no pool listens:\n{yaml}");
    process.wait_ready(|| {
        addresses.iter().all(|address| match address.strip_prefix('/') {
            Some(_) => listens_unix(address.split(' ').next().unwrap_or_default()),
            None => address.rsplit(':').next().and_then(|port| port.parse().ok()).is_some_and(listens),
        })
    });
}
