//! The real nutcracker, to compare with.

use tempfile::TempDir;

use super::shardwise::wait_listening;
use super::{Port, Process, locate};

/// A running nutcracker.
#[derive(Debug)]
pub struct Nutcracker {
    process: Process,
    _dir: TempDir,
    _stats: Port,
}

impl Nutcracker {
    /// Starts one with this configuration and waits until all its pools listen.
    pub fn start(yaml: &str) -> Self {
        let dir =
            tempfile::Builder::new().prefix("shardwise-nutcracker-").tempdir().expect("a temporary folder");
        let stats = Port::claim();
        std::fs::write(dir.path().join("nutcracker.yml"), yaml).expect("a file in a folder of our own");
        let args = ["-c", "nutcracker.yml", "-a", "127.0.0.1", "-s", &stats.number().to_string(), "-v", "4"];
        let mut process =
            Process::start("nutcracker", locate("nutcracker"), &args.map(str::to_owned), dir.path());
        wait_listening(&mut process, yaml);
        Self { process, _dir: dir, _stats: stats }
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }
}
