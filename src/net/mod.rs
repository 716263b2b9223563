//! Sockets: listeners, streams and their options.

pub mod handover;
mod listen;
mod proxy_header;
mod stream;

pub use listen::{
    AcceptTrouble, AfterFailure, BindError, ListenOptions, Listener, Peer, SocketFile, bind, resolve,
};
pub use proxy_header::{Announced, MAX_HEADER, ProxyHeader, proxy_header};
pub use stream::{Keepalive, Stream, set_keepalive};
