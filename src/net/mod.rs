//! Sockets: listeners, streams and their options.

mod stream;

pub use stream::{Keepalive, Stream, set_keepalive};
