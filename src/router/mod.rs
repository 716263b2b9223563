//! From a call to a plan: which servers get what, and how their replies become one. Pure.
//!
//! ```text
//!  Call ── keys ── Topology ──▶ Plan::One     all keys on one server (or none: the first live server)
//!                             │ Plan::Split   one part per server, and a Fold
//!                             │ Plan::All     the same to every server, and a Fold
//!                             │ Plan::Scan    the server that a SCAN has come to
//!                             │ Plan::Pin     one server, on a connection of the client's own
//!                             │ Plan::Transaction  as the client's state says
//!                             │ Plan::Local   answered by the proxy
//!                             └ Plan::Refuse  an error for the client
//! ```

mod fold;
mod keyspace;
mod plan;
mod scan;

pub use fold::{Fold, FoldError};
pub use plan::{Part, Plan, Refusal, Rules, plan};
pub use scan::{BadCursor, Scan};
