//! shardwise: a Redis sharding proxy.
#![forbid(unsafe_code)]

pub mod app;
pub mod backend;
pub mod client;
pub mod command;
pub mod config;
pub mod control;
pub mod dispatch;
pub mod exchange;
pub mod hash;
pub mod net;
pub mod resp;
pub mod router;
pub mod stats;
pub mod topology;
pub mod units;
pub mod worker;
