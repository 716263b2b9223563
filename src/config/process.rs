//! Process-wide settings: the top-level key `shardwise:`.

use std::fmt;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use crate::units::{Limit, Listen, Secret, whole_number};

use super::error::Reason;
use super::keys::{Absent, Field, INT_MAX, Key, Origin, Zero};
use super::names::named;
use super::raw::Text;

/// Longest name of the handover socket: that of a unix socket, less what is put behind it for a moment.
const MOST_SOCKET_PATH: usize = 90;

const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;

/// Most worker threads.
const MOST_THREADS: u32 = 1024;

/// Process-wide settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Worker threads.
    pub threads: Threads,
    /// `max_clients`: most clients at once in the whole process; off: as many as file descriptors allow.
    pub max_clients: Limit<u32>,
    /// `max_buffers`: bytes in the buffers of all clients and servers together. Default 2 GiB.
    pub max_buffers: Limit<usize>,
    /// How long a drain (SIGTERM) may take before what is left is cut. Default 10 s.
    pub drain_timeout: Duration,
    /// Text or JSON lines. Default text.
    pub log_format: LogFormat,
    /// SIGHUP reloads the configuration, too. Default false.
    pub reload_on_hup: bool,
    /// The configuration is reloaded when its file has changed. Default false.
    pub reload_on_change: bool,
    /// Where a process that is started takes over from the one that runs. Default: nowhere.
    pub handover: Option<PathBuf>,
    /// `metrics`: where HTTP is answered: metrics, health, the live page; `None`: nowhere.
    pub metrics: Option<Listen>,
    /// `admin`: where redis-cli looks inside and takes control; `None`: nowhere.
    pub admin: Option<Listen>,
    /// `admin_password` or the content of `admin_password_file`: for the admin port.
    pub admin_password: Option<Secret>,
    /// `slowlog_slower_than`: requests that take so long are remembered; `None`: none is. Default 10 ms.
    pub slowlog_slower_than: Option<Duration>,
    /// `hot_keys`: the keys of one request in so many are looked at; 0: of none. Default 0.
    pub hot_keys: u32,
}

/// The section as far as its keys alone can tell.
#[derive(Default)]
pub(super) struct ProcessDraft {
    /// Everything but the password.
    pub(super) process: Process,
    pub(super) admin_password: Option<Text>,
    pub(super) admin_password_file: Option<Text>,
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
pub(super) static KEYS: &[Key<ProcessDraft>] = &[
    Key {
        name: "threads",
        origin: Origin::Shardwise,
        absent: Absent::Value("auto"),
        field: Field::Text("`auto` or a number", |draft, text| {
            draft.process.threads = Threads::parse(text)?;
            Ok(())
        }),
        meaning: "Worker threads: `auto` is one per core, a number is 1…1024. Needs a restart. `--threads` overrides it.",
    },
    Key {
        name: "max_clients",
        origin: Origin::Shardwise,
        absent: Absent::Value("0"),
        field: Field::LimitNumber(0..=INT_MAX, Zero::IsOff, |draft, v| draft.process.max_clients = v),
        meaning: "Most clients at once in the whole process; one more is refused with Redis's own error. \
                  0: as many as file descriptors allow.",
    },
    Key {
        name: "max_buffers",
        origin: Origin::Shardwise,
        absent: Absent::Value("2gb"),
        field: Field::LimitSize(MB..=1024 * GB, |draft, v| draft.process.max_buffers = v),
        meaning: "Bytes that may wait in the whole process: replies that clients haven't taken, requests that servers haven't taken, \
                  and messages that are here in part. At the bound nobody is asked for more while bytes wait for them, and whoever \
                  has more than the mean of all who have any is refused more: a client's request by an error (`OOM`), a client that \
                  does not read by being closed, a server's further requests by an error.",
    },
    Key {
        name: "drain_timeout",
        origin: Origin::Shardwise,
        absent: Absent::Value("10s"),
        field: Field::Duration(Duration::ZERO..=Duration::from_secs(86_400), |draft, v| {
            draft.process.drain_timeout = v;
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
            |draft, text| match LogFormat::from_name(text) {
                Some(format) => {
                    draft.process.log_format = format;
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
        field: Field::Flag(|draft, v| draft.process.reload_on_hup = v),
        meaning: "SIGHUP reloads the configuration and reopens the log. Without it SIGHUP only reopens the log, as \
                  logrotate expects; SIGUSR1 always reloads.",
    },
    Key {
        name: "reload_on_change",
        origin: Origin::Shardwise,
        absent: Absent::Value("false"),
        field: Field::Flag(|draft, v| draft.process.reload_on_change = v),
        meaning: "The configuration is reloaded when its file has changed, two seconds after the last change. A file \
                  that is wrong changes nothing, and is not tried again until it has changed.",
    },
    Key {
        name: "handover",
        origin: Origin::Shardwise,
        absent: Absent::Unset("a second process finds the addresses taken"),
        field: Field::Text("an absolute path", |draft, text| {
            let path = PathBuf::from(text);
            if !path.is_absolute() || text.len() > MOST_SOCKET_PATH {
                let want = format!("an absolute path of at most {MOST_SOCKET_PATH} bytes");
                return Err(Reason::Invalid { text: text.to_owned(), want });
            }
            draft.process.handover = Some(path);
            Ok(())
        }),
        meaning: "A unix socket at which a process that is started takes over from the one that runs: first the listening \
                  sockets, then every client, without closing one. Needs a restart.",
    },
    Key {
        name: "metrics",
        origin: Origin::Shardwise,
        absent: Absent::Unset("no HTTP"),
        field: Field::Text("`PORT`, `HOST:PORT` or `/PATH [PERM]`", |draft, text| {
            draft.process.metrics = Some(local(text)?);
            Ok(())
        }),
        meaning: "Where HTTP is answered: `/metrics`, `/livez`, `/readyz`, `/stats` and a live page at `/`. A port alone is \
                  one of 127.0.0.1. Read-only, without a password. Needs a restart. See docs/metrics.md.",
    },
    Key {
        name: "admin",
        origin: Origin::Shardwise,
        absent: Absent::Unset("no admin port"),
        field: Field::Text("`PORT`, `HOST:PORT` or `/PATH [PERM]`", |draft, text| {
            draft.process.admin = Some(local(text)?);
            Ok(())
        }),
        meaning: "Where redis-cli looks inside and takes control: `INFO`, `CLIENT LIST`, `SLOWLOG`, `PROXY HELP`. A port alone \
                  is one of 127.0.0.1; beyond this machine it needs a password. Needs a restart. See docs/admin.md.",
    },
    Key {
        name: "admin_password",
        origin: Origin::Shardwise,
        absent: Absent::Unset("no password is asked for"),
        field: Field::Secret("a password", |draft, text| draft.admin_password = Some(text)),
        meaning: "Password of the admin port (`redis-cli -a`). `${VARIABLE}` is taken from the environment.",
    },
    Key {
        name: "admin_password_file",
        origin: Origin::Shardwise,
        absent: Absent::Unset("no password is asked for"),
        field: Field::Secret("a file name", |draft, text| draft.admin_password_file = Some(text)),
        meaning: "A file with the password of the admin port instead, relative to this file's folder; one newline at its end is not part of it.",
    },
    Key {
        name: "slowlog_slower_than",
        origin: Origin::Shardwise,
        absent: Absent::Value("10ms"),
        field: Field::Duration(Duration::ZERO..=Duration::from_secs(3600), |draft, v| {
            draft.process.slowlog_slower_than = (!v.is_zero()).then_some(v);
        }),
        meaning: "Requests that take so long, from their admission to the server's reply, are remembered for `SLOWLOG GET` on the \
                  admin port, 128 by each worker. 0: none is.",
    },
    Key {
        name: "hot_keys",
        origin: Origin::Shardwise,
        absent: Absent::Value("0"),
        field: Field::Number(0..=1_000_000, |draft, v| draft.process.hot_keys = v),
        meaning: "The keys of one request in so many (100, say) are looked at, for `PROXY HOTKEYS` and `PROXY BIGKEYS` on the admin port and \
                  for the live page, which then show names of keys. 0: of none.",
    },
];

impl Default for Process {
    /// What holds for a file without the section.
    fn default() -> Self {
        let process = Self {
            threads: Threads::Auto,
            max_clients: Limit::off(),
            max_buffers: Limit::off(),
            drain_timeout: Duration::ZERO,
            log_format: LogFormat::Text,
            metrics: None,
            admin: None,
            admin_password: None,
            slowlog_slower_than: None,
            hot_keys: 0,
            reload_on_hup: false,
            reload_on_change: false,
            handover: None,
        };
        let mut draft = ProcessDraft { process, admin_password: None, admin_password_file: None };
        Key::set_absent(KEYS, &mut draft);
        draft.process
    }
}

/// An address of this machine's own where only a port is given.
fn local(text: &str) -> Result<Listen, Reason> {
    let is_port = text.bytes().all(|byte| byte.is_ascii_digit());
    let full = if is_port { format!("127.0.0.1:{text}") } else { text.to_owned() };
    Listen::parse(&full).map_err(Reason::Listen)
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
