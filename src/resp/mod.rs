//! The wire format both ways: delimiting requests and replies, encoding, and the wording of every error.
//!
//! Everything here is pure: bytes in, values out. Nothing recurses, nothing is allocated because of an announced
//! length, and any split of the input gives the same result as the whole (`tests` in [`request`] and [`reply`]).

mod args;
pub mod encode;
mod error_reply;
mod inline;
mod length;
pub mod protocol;
pub mod pubsub;
mod reply;
pub mod request;

pub use args::{ArgSpan, Args};
pub use error_reply::ErrorReply;
pub use inline::inline_to_array;
pub use protocol::Protocol;
pub use pubsub::Space;
pub use reply::{ReplyError, ReplyScanner};
pub use request::{Limits, ProtocolError, RequestScanner, Scanned};
