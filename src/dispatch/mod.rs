//! A call from its plan to its final reply: tickets out, parts in, one reply.

mod gather;
mod pool;

pub use gather::Gather;
pub use pool::{Now, Payload, Pool, Route};
