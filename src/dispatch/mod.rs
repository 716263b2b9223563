//! A call from its plan to its final reply: tickets out, parts in, one reply.

mod across;
mod evalsha;
mod gather;
mod hub;
mod pool;
mod scripts;

pub use gather::Gather;
pub use hub::{Hub, Listener, MOST_SUBSCRIPTIONS};
pub use pool::{Now, Payload, Pool, Route};
pub use scripts::Scripts;
