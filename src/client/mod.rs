//! Connections from clients.
//!
//! [`ClientConn`] moves bytes, [`Session`] decides what a request gets, `local` words the answers that need no server. A client that
//! is in the middle of something (a transaction, a blocking call) is in another `mode` than the normal one.

mod about;
mod ages;
mod conn;
mod hello;
mod incoming;
mod info;
mod local;
mod mode;
mod monitor;
mod pace;
mod session;
mod subscribing;
mod tally;
mod transaction;
mod wait;
mod watch;

pub use conn::{ClientConn, Closed, Moved, Phase};
pub use monitor::Monitor;
pub use session::{Carried, Session};
pub use tally::{KeySample, Tally};
pub use watch::{ClientInfo, SLOW_KEPT, SlowRequest, Watch};
