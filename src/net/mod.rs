//! Sockets: listeners, streams and their options.

mod listen;
mod stream;

pub use listen::{
    AcceptTrouble, AfterFailure, BindError, ListenOptions, Listener, Peer, SocketFile, bind, resolve,
};
pub use stream::{Keepalive, Stream, set_keepalive};
