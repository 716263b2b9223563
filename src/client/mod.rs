//! Connections from clients.
//!
//! [`ClientConn`] moves bytes, [`Session`] decides what a request gets, `local` words the answers that need no server.

mod conn;
mod hello;
mod local;
mod session;

pub use conn::{ClientConn, Closed, Moved, Phase};
pub use session::{Carried, Session};
