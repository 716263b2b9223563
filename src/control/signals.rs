//! The signals that the process acts on, as one stream.

use std::fmt;
use std::io;

use tokio::signal::unix::{self, SignalKind};

/// Linux's numbers, which tokio has no names for.
const SIGTTIN: i32 = 21;
const SIGTTOU: i32 = 22;

/// A signal that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Reopen the log.
    Hup,
    /// Drain and end.
    Int,
    /// Drain and end.
    Term,
    /// Reload the configuration.
    Usr1,
    /// Nothing.
    Usr2,
    /// Log more.
    Ttin,
    /// Log less.
    Ttou,
}

/// Catches all of [`Signal`] from the moment it exists; what comes before it is received waits in it.
#[derive(Debug)]
pub struct Signals {
    hup: unix::Signal,
    int: unix::Signal,
    term: unix::Signal,
    usr1: unix::Signal,
    usr2: unix::Signal,
    ttin: unix::Signal,
    ttou: unix::Signal,
}

impl Signals {
    /// Installs the handlers. Inside a runtime only.
    pub fn install() -> io::Result<Self> {
        let on = |signal: Signal| unix::signal(SignalKind::from_raw(signal.number()));
        Ok(Self {
            hup: on(Signal::Hup)?,
            int: on(Signal::Int)?,
            term: on(Signal::Term)?,
            usr1: on(Signal::Usr1)?,
            usr2: on(Signal::Usr2)?,
            ttin: on(Signal::Ttin)?,
            ttou: on(Signal::Ttou)?,
        })
    }

    /// The next signal. Cancelling this loses none.
    pub async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.term.recv() => Signal::Term,
            _ = self.int.recv() => Signal::Int,
            _ = self.hup.recv() => Signal::Hup,
            _ = self.usr1.recv() => Signal::Usr1,
            _ = self.usr2.recv() => Signal::Usr2,
            _ = self.ttin.recv() => Signal::Ttin,
            _ = self.ttou.recv() => Signal::Ttou,
        }
    }
}

impl Signal {
    /// The kernel's number.
    pub fn number(self) -> i32 {
        match self {
            Self::Hup => SignalKind::hangup().as_raw_value(),
            Self::Int => SignalKind::interrupt().as_raw_value(),
            Self::Term => SignalKind::terminate().as_raw_value(),
            Self::Usr1 => SignalKind::user_defined1().as_raw_value(),
            Self::Usr2 => SignalKind::user_defined2().as_raw_value(),
            Self::Ttin => SIGTTIN,
            Self::Ttou => SIGTTOU,
        }
    }

    /// Its name (`SIGHUP`).
    pub fn name(self) -> &'static str {
        match self {
            Self::Hup => "SIGHUP",
            Self::Int => "SIGINT",
            Self::Term => "SIGTERM",
            Self::Usr1 => "SIGUSR1",
            Self::Usr2 => "SIGUSR2",
            Self::Ttin => "SIGTTIN",
            Self::Ttou => "SIGTTOU",
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {} ({})", self.number(), self.name())
    }
}
