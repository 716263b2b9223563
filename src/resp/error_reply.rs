//! The wording of every error that a client can see, in one place.

use std::borrow::Cow;

/// An error reply as text, without the leading `-` and the closing CRLF.
/// The first word is Redis's own code (`ERR`, `NOAUTH`, `CROSSSLOT`, …): clients dispatch on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply(Cow<'static, str>);

impl ErrorReply {
    /// For the constructors beside this one; other modules use those.
    fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    /// The text as it is sent, without `-` and CRLF.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Redis's own text for a wrong number of arguments; `name` in lower case (`get`, `config|get`).
    pub fn wrong_arity(name: &str) -> Self {
        Self::text(format!("ERR wrong number of arguments for '{name}' command"))
    }

    /// Redis's form of a framing error; the connection closes behind it.
    pub fn protocol(what: &'static str) -> Self {
        Self::text(format!("ERR Protocol error: {what}"))
    }

    /// An argument that starts with `byte` instead of `$`.
    pub fn protocol_expected_bulk(byte: u8) -> Self {
        Self::text(format!("ERR Protocol error: expected '$', got '{}'", printable(byte)))
    }

    /// A request that its server did not answer: what happened, which server, and what is known beyond.
    pub fn server_failed(words: &str, server: &str, detail: &str) -> Self {
        Self::text(format!("ERR {words}: {server}{detail}"))
    }

    /// Writes the error as it goes over the wire.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(b'-');
        out.extend(self.0.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        out.extend_from_slice(b"\r\n");
    }
}

/// A byte that is safe inside a line of text.
fn printable(byte: u8) -> char {
    if byte.is_ascii_graphic() || byte == b' ' { byte as char } else { '?' }
}
