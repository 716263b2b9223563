//! All that isn't traffic.

mod dealer;
mod doors;
mod health;
mod probe;
mod report;
mod signals;
mod stats_port;
