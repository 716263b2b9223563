//! Going to the background, and telling the foreground how the start went.
//!
//! nutcracker's parent ends with 0 before the configuration is even read. Ours waits for a word of the daemon, so that
//! `-d` ends with 0 when the proxy serves, and says why with 1 when it doesn't.

use std::io::{self, PipeReader, PipeWriter, Read, Write};

use daemonize::{Daemonize, Outcome};

/// Which of the two processes we are now.
#[derive(Debug)]
pub enum Side {
    /// The one that was started: the daemon lives (or not, and why).
    Parent(Result<(), String>),
    /// The daemon.
    Daemon(Readiness),
}

/// Tells whoever waits for the start how it went. Dropped without a word it counts as failed.
#[derive(Debug)]
pub struct Readiness(Option<PipeWriter>);

const READY: u8 = b'+';

/// Forks twice with a new session in between; no stdio, umask 0, working directory kept: as nutcracker does.
///
/// No thread may have been started yet. Returns in the parent when the daemon is ready or has failed.
pub fn detach() -> Result<Side, String> {
    let directory = std::env::current_dir().map_err(|error| format!("no working directory: {error}"))?;
    let (reader, writer) = io::pipe().map_err(|error| format!("no pipe: {error}"))?;
    match Daemonize::new().working_directory(directory).umask(0).execute() {
        Outcome::Parent(Ok(_)) => {
            drop(writer);
            Ok(Side::Parent(wait(reader)))
        }
        Outcome::Child(Ok(_)) => Ok(Side::Daemon(Readiness(Some(writer)))),
        Outcome::Parent(Err(error)) | Outcome::Child(Err(error)) => Err(error.to_string()),
    }
}

fn wait(mut daemon: PipeReader) -> Result<(), String> {
    let mut word = Vec::new();
    // Read or not, what came decides.
    let _ = daemon.read_to_end(&mut word);
    match word.split_first() {
        Some((&READY, _)) => Ok(()),
        Some((_, reason)) => Err(String::from_utf8_lossy(reason).into_owned()),
        None => Err("the daemon ended before it was ready".into()),
    }
}

impl Readiness {
    /// For a process in the foreground: nobody waits.
    pub fn nobody_waits() -> Self {
        Self(None)
    }

    /// The start has succeeded.
    pub fn ready(self) {
        self.tell(&[READY]);
    }

    /// The start has failed.
    pub fn failed(self, reason: &str) {
        self.tell(format!("-{reason}").as_bytes());
    }

    fn tell(self, word: &[u8]) {
        if let Some(mut parent) = self.0 {
            // A parent that was killed needs no word.
            let _ = parent.write_all(word);
        }
    }
}
