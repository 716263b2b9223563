//! The log: text or JSON lines to the standard error or a file, with a level that signals can change.
//!
//! nutcracker's verbosity becomes a level of tracing's:
//!
//! | `-v` | nutcracker | here |
//! |---|---|---|
//! | 0…3 | emergency … error | error |
//! | 4 | warning | warn |
//! | 5 (default), 6 | notice, info | info: start, end, signals; nothing per client or request |
//! | 7 | debug | debug: also what happens to connections |
//! | 8…11 | verbose | trace |

// The log's file is the one thing that all threads may write to; nothing on the path of a request does.
#![allow(clippy::disallowed_types)]

mod repeats;

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use crate::config::LogFormat;
use crate::control::{LogSwitch, Reopened};
use crate::stats::Cell;
use repeats::Repeats;

/// nutcracker's log level, 0…11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verbosity(u8);

/// Where the log goes. Clones share the file.
#[derive(Clone, Debug)]
pub enum Sink {
    /// The standard error.
    Stderr,
    /// A file, opened for appending.
    File(Arc<LogFile>),
}

/// The log's file, which can be opened again under the same name.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    file: RwLock<Arc<File>>,
}

/// The installed log.
#[derive(Debug)]
pub struct Log {
    sink: Sink,
    verbosity: AtomicU8,
    level: reload::Handle<LevelFilter, Registry>,
    repeats: Repeats,
}

/// Makes tracing write to `sink`, for the whole process. May be called once.
pub fn install(sink: Sink, format: LogFormat, verbosity: Verbosity) -> Log {
    let (level, handle) = reload::Layer::new(verbosity.level());
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(sink.clone())
        .with_target(false)
        .with_ansi(sink.is_terminal());
    // It would complain to the standard error, and panic when nobody is there.
    let lines = lines.log_internal_errors(false);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let repeats = Repeats::default();
    tracing_subscriber::registry().with(level).with(repeats.clone()).with(lines).init();
    log_panics();
    Log { sink, verbosity: AtomicU8::new(verbosity.0), level: handle, repeats }
}

/// A thread that panics says so in the log too, and then what it always says on the standard error.
fn log_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{}", panic.to_string().replace('\n', " "));
        usual(panic);
    }));
}

// === impl Verbosity ===

impl Verbosity {
    const MAX: u8 = 11;

    /// `level`, or 11 if it is more.
    pub fn new(level: u8) -> Self {
        Self(level.min(Self::MAX))
    }

    fn level(self) -> LevelFilter {
        match self.0 {
            0..=3 => LevelFilter::ERROR,
            4 => LevelFilter::WARN,
            5 | 6 => LevelFilter::INFO,
            7 => LevelFilter::DEBUG,
            _ => LevelFilter::TRACE,
        }
    }
}

impl FromStr for Verbosity {
    type Err = &'static str;

    /// Digits only; what is more than 11 is 11, however long.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err("expected a number, 0 or more");
        }
        Ok(Self::new(text.parse().unwrap_or(Self::MAX)))
    }
}

// === impl Sink ===

impl Sink {
    /// Opens the file, if there is to be one; it is made with mode 0644.
    pub fn open(path: Option<&PathBuf>) -> io::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stderr) };
        let file = RwLock::new(Arc::new(append_to(path)?));
        Ok(Self::File(Arc::new(LogFile { path: path.clone(), file })))
    }

    /// Whether the log is a file, so that people at the terminal don't see it.
    pub fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    fn is_terminal(&self) -> bool {
        matches!(self, Self::Stderr) && io::stderr().is_terminal()
    }
}

fn append_to(path: &PathBuf) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).mode(0o644).open(path)
}

/// One line's way out; tracing writes a line at once.
#[derive(Debug)]
pub enum Line {
    /// To the standard error.
    Stderr(io::Stderr),
    /// To the file that was current when the line began.
    File(Arc<File>),
}

impl<'a> MakeWriter<'a> for Sink {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        match self {
            Self::Stderr => Line::Stderr(io::stderr()),
            Self::File(log) => Line::File(log.file.read().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stderr(stderr) => stderr.write(bytes),
            Self::File(file) => file.as_ref().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // neither is buffered
    }
}

// === impl Log ===

impl LogSwitch for Log {
    fn reopen(&self) -> Reopened {
        let Sink::File(log) = &self.sink else { return Reopened::NotAFile };
        match append_to(&log.path) {
            Ok(file) => {
                *log.file.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(file);
                Reopened::Done
            }
            Err(error) => Reopened::Failed(error),
        }
    }

    fn step(&self, by: i8) -> u8 {
        let verbosity = Verbosity::new(self.verbosity.load(Ordering::Relaxed).saturating_add_signed(by));
        self.verbosity.store(verbosity.0, Ordering::Relaxed);
        // It can fail only when no subscriber is left to log anything.
        let _ = self.level.modify(|level| *level = verbosity.level());
        verbosity.0
    }

    fn sum_up(&self, all: bool) {
        self.repeats.sum_up(all);
    }

    fn suppressed(&self) -> Arc<Cell> {
        Arc::clone(self.repeats.suppressed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_shows_lifecycle_only() {
        let level = |verbosity| Verbosity::new(verbosity).level();
        assert_eq!(level(5), LevelFilter::INFO);
        assert_eq!(
            (level(0), level(3), level(4)),
            (LevelFilter::ERROR, LevelFilter::ERROR, LevelFilter::WARN)
        );
        assert_eq!(
            (level(7), level(8), level(200)),
            (LevelFilter::DEBUG, LevelFilter::TRACE, LevelFilter::TRACE)
        );
    }

    #[test]
    fn a_file_can_be_reopened_under_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let sink = Sink::open(Some(&path)).unwrap();
        sink.make_writer().write_all(b"old\n").unwrap();
        std::fs::rename(&path, dir.path().join("log.1")).unwrap();

        let (_, level) = reload::Layer::new(LevelFilter::INFO);
        let log = Log { sink: sink.clone(), verbosity: AtomicU8::new(5), level, repeats: Repeats::default() };
        assert!(matches!(log.reopen(), Reopened::Done));
        sink.make_writer().write_all(b"new\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(std::fs::read_to_string(dir.path().join("log.1")).unwrap(), "old\n");
    }

    #[test]
    fn steps_stay_within_the_bounds() {
        let (_, level) = reload::Layer::new(LevelFilter::INFO);
        let log =
            Log { sink: Sink::Stderr, verbosity: AtomicU8::new(10), level, repeats: Repeats::default() };
        assert_eq!([log.step(1), log.step(1), log.step(-1)], [11, 11, 10]);
        log.verbosity.store(0, Ordering::Relaxed);
        assert_eq!(log.step(-1), 0);
    }
}
