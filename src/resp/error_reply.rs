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
}
