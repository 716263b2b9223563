//! The load generator behind `shardwise bench`: the same load on several targets in turn, and what each made of it.
//!
//! ```text
//!   rounds    every test on every target, round after round, so that all see the same machine
//!     └ turn       one test on one target: connects, starts all threads at once, collects their samples, ends
//!         └ thread      a one-thread tokio runtime; its clients, one scratch buffer, one histogram
//!             └ client       one connection's life: connect, batch out, replies in, reconnect after a fault
//!   report    what all turns gave: table, histogram, JSON, CSV, one HTML page
//! ```
//!
//! A batch of `pipeline` requests leaves in one write; the next one when all its replies are there, as with
//! redis-benchmark. Replies are delimited by [`crate::resp::ReplyScanner`] and looked into only for their first byte, or
//! for their value when values are verified. Nothing is allocated for a request.
//!
//! With a rate (open loop) requests are due at times that do not depend on replies, and a latency counts from when its
//! request was due: a target that stalls is charged for everybody who would have come meanwhile.
//!
//! Nothing here prints: a [`Watcher`] is told how it goes.

mod batch;
mod client;
mod connect;
mod cpu;
mod fault;
mod pacer;
mod random;
pub mod report;
mod rounds;
mod script;
mod settings;
mod tally;
mod template;
mod tests_of;
mod thread;
mod turn;
mod verify;
mod workload;

pub use fault::Faults;
pub use rounds::{Outcome, Row, TurnFigures, run};
pub use script::{command, read_script};
pub use settings::{Length, Settings, Target};
pub use tests_of::named;
pub use turn::{Progress, Watcher};
pub use workload::Workload;
