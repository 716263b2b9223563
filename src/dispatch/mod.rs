//! A call from its plan to its final reply: tickets out, parts in, one reply.

mod across;
mod evalsha;
mod gather;
mod pool;
mod scripts;

pub use gather::Gather;
pub use pool::{Now, Payload, Pool, Route};
pub use scripts::Scripts;
