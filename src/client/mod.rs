//! Connections from clients.
//!
//! [`ClientConn`] moves bytes, [`Session`] decides what a request gets, `local` words the answers that need no server.

mod conn;
mod hello;
mod local;
mod session;
mod watch;

pub use conn::{ClientConn, Closed, Phase};
pub use session::Session;
pub use watch::{ClientInfo, SLOW_KEPT, SlowRequest, Watch};
