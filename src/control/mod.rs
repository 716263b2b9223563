//! All that isn't traffic.

mod health;
mod probe;
