//! The live page, and the numbers that it asks for once a second.

use std::time::SystemTime;

use serde_json::{Value, json};

use super::exposition::micros;
use super::report::{Number, Sources};
use crate::stats::Snapshot;

/// The page: self-contained, it loads nothing from elsewhere.
pub const PAGE: &str = include_str!("page.html");

/// What of other hosts the page may load: nothing.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The numbers now, and hot and big keys if they are known.
pub fn live(sources: &Sources, keys: Value) -> Value {
    let pools = 0..sources.config.pools.len();
    json!({
        "at": micros(SystemTime::now()),
        "version": env!("CARGO_PKG_VERSION"),
        "uptime": sources.started.elapsed().as_secs(),
        "workers": sources.workers.len(),
        "generation": sources.generation().number,
        "draining": sources.draining.get(),
        "keys": keys,
        "pools": pools.map(|ix| pool(sources, ix)).collect::<Vec<_>>(),
    })
}

fn pool(sources: &Sources, ix: usize) -> Value {
    let config = &sources.config.pools[ix];
    let numbers = sources.pool_numbers(ix);
    json!({
        "name": config.name,
        "listen": config.listen.to_string(),
        "clients": number(&numbers, "client_connections"),
        "requests": number(&numbers, "client_requests"),
        "errors": number(&numbers, "forward_error"),
        "servers": (0..config.servers.len()).map(|server| self::server(sources, ix, server)).collect::<Vec<_>>(),
    })
}

fn server(sources: &Sources, pool: usize, ix: usize) -> Value {
    let config = &sources.config.pools[pool].servers[ix];
    let numbers = sources.server_numbers(pool, ix);
    json!({
        "name": config.name,
        "address": config.endpoint.to_string(),
        "live": number(&numbers, "live") == 1,
        "share": number(&numbers, "ring_share") as f64 / 1e6,
        "connections": number(&numbers, "server_connections"),
        "requests": number(&numbers, "requests"),
        "waiting": number(&numbers, "in_queue") + number(&numbers, "out_queue"),
        "failures": number(&numbers, "failed_attempts"),
        "queue": buckets(&sources.server_times(pool, ix, "queue_seconds")),
        "answer": buckets(&sources.server_times(pool, ix, "answer_seconds")),
    })
}

fn number(numbers: &[Number], name: &str) -> u64 {
    numbers.iter().find(|(given, _)| *given == name).map_or(0, |(_, value)| *value)
}

fn buckets(times: &Snapshot) -> Vec<(u64, u64)> {
    times.buckets().filter(|(_, count)| *count > 0).collect()
}
