//! Connections to servers.
//!
//! ```text
//!   Server ─┬─ Lane 0 ── link: Idle | Connecting(pipe) | Up(Conn) | Down(cause)
//!           ├─ Lane 1 …          └─ retiring: Conns that are late with a reply, until they are empty
//!           ├─ Subscriber: hears what is published, for all clients
//!           └─ Leases: Conns that one client has for itself, and clean ones kept for the next
//!   Conn = Stream + Pipe;   Pipe = bytes to be written + FIFO of awaited replies
//! ```
//!
//! A client keeps to one lane of a server, so its requests reach the server in order. A lane's driver task connects,
//! serves, and reconnects; requests only append to the pipe and mark the connection for the end of the turn.

mod backoff;
mod conn;
mod connect;
mod lane;
mod lease;
mod loaded;
mod pipe;
mod replies;
mod server;
mod subscriber;

pub use conn::Conn;
pub use connect::needs_no_password;
pub use lane::{Fenced, Lane};
pub use lease::{Lease, LeaseLimit, LeasesSpent};
pub use loaded::Loaded;
pub use pipe::{Pipe, Request};
pub use server::{Server, Settings, Target};
pub use subscriber::{Audience, Subscriber};
