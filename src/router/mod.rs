//! From a call to a plan: which servers get what, and how their replies become one. Pure.
//!
//! ```text
//!  Call ── keys ── Topology ──▶ Plan::One     all keys on one server (or none: the first live server)
//!                             │ Plan::Split   one part per server, and a Fold
//!                             │ Plan::Pin     one server, on a connection of the client's own
//!                             │ Plan::Transaction  as the client's state says
//!                             │ Plan::Local   answered by the proxy
//!                             └ Plan::Refuse  an error for the client
//! ```

mod fold;
mod plan;

pub use fold::{Fold, FoldError};
pub use plan::{Part, Plan, Refusal, Rules, plan};
