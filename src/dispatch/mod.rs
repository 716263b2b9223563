//! A call from its plan to its final reply: tickets out, parts in, one reply.

mod across;
mod evalsha;
mod gather;
mod pool;
mod scripts;

pub use gather::Gather;
pub use pool::{Payload, Pool};
pub use scripts::Scripts;
