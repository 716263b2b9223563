//! Process-wide settings: the top-level key `shardwise:`.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::units::{Limit, whole_number};

use super::error::Reason;
use super::keys::{Absent, Field, INT_MAX, Key, Origin, Zero};
use super::names::named;

/// Most worker threads.
const MOST_THREADS: u32 = 1024;

/// Process-wide settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Worker threads.
    pub threads: Threads,
    /// `max_clients`: most clients at once in the whole process; off: as many as file descriptors allow.
    pub max_clients: Limit<u32>,
    /// How long a drain (SIGTERM) may take before what is left is cut. Default 10 s.
    pub drain_timeout: Duration,
    /// Text or JSON lines. Default text.
    pub log_format: LogFormat,
    /// SIGHUP reloads the configuration, too. Default false.
    pub reload_on_hup: bool,
    /// The configuration is reloaded when its file has changed. Default false.
    pub reload_on_change: bool,
}

/// How many worker threads to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One per core.
    Auto,
    /// Exactly so many, 1…1024.
    Fixed(NonZeroU32),
}

/// Form of the log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

named!(LogFormat { Text = "text", Json = "json" });

/// The keys of the section, in the order of the documentation.
pub(super) static KEYS: &[Key<Process>] = &[
    Key {
        name: "threads",
        origin: Origin::Shardwise,
        absent: Absent::Value("auto"),
        field: Field::Text("`auto` or a number", |process, text| {
            process.threads = Threads::parse(text)?;
            Ok(())
        }),
        meaning: "Worker threads: `auto` is one per core, a number is 1…1024. Needs a restart. `--threads` overrides it.",
    },
    Key {
        name: "max_clients",
        origin: Origin::Shardwise,
        absent: Absent::Value("0"),
        field: Field::LimitNumber(0..=INT_MAX, Zero::IsOff, |process, v| process.max_clients = v),
        meaning: "Most clients at once in the whole process; one more is refused with Redis's own error. \
                  0: as many as file descriptors allow.",
    },
    Key {
        name: "drain_timeout",
        origin: Origin::Shardwise,
        absent: Absent::Value("10s"),
        field: Field::Duration(Duration::ZERO..=Duration::from_secs(86_400), |process, v| {
            process.drain_timeout = v;
        }),
        meaning: "How long SIGTERM and SIGINT wait for requests in flight before what is left is cut.",
    },
    Key {
        name: "log_format",
        origin: Origin::Shardwise,
        absent: Absent::Value("text"),
        field: Field::Choice(
            "text or json",
            || LogFormat::ALL.iter().map(|format| format.name()).collect(),
            |process, text| match LogFormat::from_name(text) {
                Some(format) => {
                    process.log_format = format;
                    true
                }
                None => false,
            },
        ),
        meaning: "Log lines for people, or one JSON object a line. Needs a restart.",
    },
    Key {
        name: "reload_on_hup",
        origin: Origin::Shardwise,
        absent: Absent::Value("false"),
        field: Field::Flag(|process, v| process.reload_on_hup = v),
        meaning: "SIGHUP reloads the configuration and reopens the log. Without it SIGHUP only reopens the log, as \
                  logrotate expects; SIGUSR1 always reloads.",
    },
    Key {
        name: "reload_on_change",
        origin: Origin::Shardwise,
        absent: Absent::Value("false"),
        field: Field::Flag(|process, v| process.reload_on_change = v),
        meaning: "The configuration is reloaded when its file has changed, two seconds after the last change. A file \
                  that is wrong changes nothing, and is not tried again until it has changed.",
    },
];

impl Default for Process {
    /// What holds for a file without the section.
    fn default() -> Self {
        let mut process = Self {
            threads: Threads::Auto,
            max_clients: Limit::off(),
            drain_timeout: Duration::ZERO,
            log_format: LogFormat::Text,
            reload_on_hup: false,
            reload_on_change: false,
        };
        Key::set_absent(KEYS, &mut process);
        process
    }
}

// === impl Threads ===

impl Threads {
    fn parse(text: &str) -> Result<Self, Reason> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Reason::Invalid { text: text.to_owned(), want: "'auto' or a number".to_owned() });
        }
        whole_number(text)
            .and_then(|number| u32::try_from(number).ok())
            .filter(|&number| number <= MOST_THREADS)
            .and_then(NonZeroU32::new)
            .map(Self::Fixed)
            .ok_or_else(|| Reason::OutOfRange { text: text.to_owned(), range: format!("1…{MOST_THREADS}") })
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Fixed(number) => number.fmt(f),
        }
    }
}
