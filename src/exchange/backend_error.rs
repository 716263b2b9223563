//! What can go wrong with a server, as a plain value.

use std::fmt;
use std::rc::Rc;

use crate::resp::ErrorReply;

/// A request could not be answered by its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendError {
    /// What happened.
    pub cause: Cause,
    /// The server in words, `NAME (ADDRESS)`: clients and logs see it.
    pub server: Rc<str>,
}

/// What happened to a server or its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody listens there.
    Refused,
    /// No connection within the connect timeout.
    ConnectTimeout,
    /// The request could not be written within the pool's timeout.
    QueueTimeout,
    /// Written, and not answered within the pool's timeout.
    ResponseTimeout,
    /// The connection broke while the answer was awaited.
    Reset,
    /// The server closed the connection while the answer was awaited.
    Closed,
    /// The host's name does not resolve.
    Unresolved,
    /// Any other failure to connect.
    Unreachable,
    /// The server refused AUTH, HELLO or SELECT on the new connection.
    Handshake,
    /// The server sent something that is not RESP, or that nobody asked for.
    Protocol,
    /// So much waits for this server already that no more is taken.
    QueueFull,
    /// The proxy is going down.
    Shutdown,
}

impl fmt::Display for Cause {
    /// In words, for the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "nobody listens there",
            Self::ConnectTimeout => "no connection in time",
            Self::QueueTimeout => "not written in time",
            Self::ResponseTimeout => "no reply in time",
            Self::Reset => "the connection broke",
            Self::Closed => "the server closed the connection",
            Self::Unresolved => "the name does not resolve",
            Self::Unreachable => "not reachable",
            Self::Handshake => "AUTH, HELLO or SELECT failed",
            Self::Protocol => "not a RESP reply",
            Self::QueueFull => "too much is waiting",
            Self::Shutdown => "the proxy is shutting down",
        })
    }
}

impl BackendError {
    /// The error line for the client: twemproxy's first words, then the server.
    pub fn reply(&self) -> ErrorReply {
        let (words, detail) = match self.cause {
            Cause::Refused => ("Connection refused", ""),
            Cause::ConnectTimeout => ("Connection timed out", ", connecting"),
            Cause::QueueTimeout => ("Connection timed out", ", waiting to be sent"),
            Cause::ResponseTimeout => ("Connection timed out", ", no reply in time"),
            Cause::Reset => ("Connection reset by peer", ""),
            Cause::Closed => ("Connection reset by peer", ", closed by the server"),
            Cause::Unresolved => ("Host is down", ", its name does not resolve"),
            Cause::Unreachable => ("Host is down", ""),
            Cause::Handshake => ("Connection refused", ", AUTH, HELLO or SELECT failed"),
            Cause::Protocol => ("Invalid argument", ", not a RESP reply"),
            Cause::QueueFull => ("Connection busy", ", too much is waiting for this server"),
            Cause::Shutdown => ("Connection refused", ", the proxy is shutting down"),
        };
        ErrorReply::server_failed(words, &self.server, detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_see_twemproxys_words_and_the_server() {
        for (cause, text) in [
            (Cause::Refused, "ERR Connection refused: server1 (127.0.0.1:6379)"),
            (Cause::ResponseTimeout, "ERR Connection timed out: server1 (127.0.0.1:6379), no reply in time"),
            (Cause::Reset, "ERR Connection reset by peer: server1 (127.0.0.1:6379)"),
            (Cause::Unresolved, "ERR Host is down: server1 (127.0.0.1:6379), its name does not resolve"),
        ] {
            let error = BackendError { cause, server: "server1 (127.0.0.1:6379)".into() };
            assert_eq!(error.reply().as_str(), text);
        }
    }
}
