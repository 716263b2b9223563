//! Connections from clients.
//!
//! [`ClientConn`] moves bytes, [`Session`] decides what a request gets, `local` words the answers that need no server.

mod ages;
mod conn;
mod hello;
mod local;
mod pace;
mod session;

pub use conn::{ClientConn, Closed, Phase};
pub use session::Session;
