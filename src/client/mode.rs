//! What a client is in the middle of.
//!
//! ```text
//!             MULTI                    first key
//!   Normal ──────────▶ Multi (held) ────────────▶ Multi (on a lease) ── EXEC, DISCARD ──▶ Leaving ── answered ──▶ Normal
//!      │  WATCH                                       ▲                                       ▲
//!      ├──────────▶ Watching ─────────── MULTI ───────┘                                       │
//!      │               └──────────────── UNWATCH ─────────────────────────────────────────────┘
//!      │  BLPOP …
//!      └──────────▶ Blocked ── answered ──▶ Normal, or Watching as before
//! ```
//!
//! Traffic for one server moves between the shared connection and a lease only when nothing of the client is awaited on the one it
//! leaves. From the shared one it moves behind a fence ([`Pool::is_through`](crate::dispatch::Pool::is_through)); from a lease it moves when
//! what the lease awaits has come, and until then nothing more of the client is looked at.

use std::rc::Rc;

use super::transaction::{Farewell, Multi};
use crate::backend::Lease;

/// The state of a client that calls depend on.
pub(super) enum Mode {
    /// In the middle of nothing.
    Normal,
    /// Commands are queued until EXEC.
    Multi(Box<Multi>),
    /// Keys are watched on this connection.
    Watching(Lease),
    /// EXEC, DISCARD or UNWATCH is on its way.
    Leaving(Lease, Rc<Farewell>),
    /// Several servers may wait before they answer.
    Waiting(Vec<Lease>),
    /// The server may wait before it answers.
    Blocked {
        /// For this client alone.
        lease: Lease,
        /// Keys are watched on it, too.
        watching: bool,
    },
}

impl Mode {
    /// Whether the client's next request may be looked at. What was waited for has come then, and the connection goes back.
    pub(super) fn go_on(&mut self) -> bool {
        if matches!(self, Self::Leaving(lease, _) | Self::Blocked { lease, .. } if lease.is_busy()) {
            return false;
        }
        if matches!(self, Self::Waiting(leases) if leases.iter().any(Lease::is_busy)) {
            return false;
        }
        match std::mem::replace(self, Self::Normal) {
            Self::Leaving(lease, farewell) if farewell.was_clean() => lease.release(),
            Self::Leaving(..) => {}
            Self::Waiting(leases) => leases.into_iter().for_each(Lease::release),
            Self::Blocked { lease, watching: true } => *self = Self::Watching(lease),
            Self::Blocked { lease, watching: false } => lease.release(),
            other => *self = other,
        }
        true
    }

    /// Whether its server may be waiting, or several may.
    pub(super) fn is_blocked(&self) -> bool {
        matches!(self, Self::Blocked { .. } | Self::Waiting(_))
    }

    /// Closes the connection on which the server waits, so that the client gets an error.
    pub(super) fn unblock(&mut self) {
        if self.is_blocked() {
            self.leave();
        }
    }

    /// Gives up whatever it is in the middle of; its connection is closed.
    pub(super) fn leave(&mut self) {
        *self = Self::Normal;
    }
}
