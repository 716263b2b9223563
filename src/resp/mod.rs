//! The wire format both ways: delimiting requests and replies, encoding, and the wording of every error.
//!
//! Everything here is pure: bytes in, values out.

mod args;
mod error_reply;

pub use args::{ArgSpan, Args};
pub use error_reply::ErrorReply;
