//! Sockets: listening ones, and (to come) the streams of the data path.

mod listen;

pub use listen::{AcceptTrouble, AfterFailure, BindError, ListenOptions, Listener, Peer, SocketFile, bind};
