//! INFO: the proxy in the words of Redis.
//!
//! Sections and fields have Redis's names, and only what is true of a proxy is told: what clients decide by (version, mode,
//! role, whether it loads), and what it knows of itself. Counters of the traffic are on the stats port.

use std::fmt::Write;

use super::local::REDIS_VERSION;
use crate::dispatch::Pool;
use crate::resp::{Args, Protocol};

/// How much of the answer is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// All: the reply is complete.
    All,
    /// The text up to the keyspace, which only the servers know; not yet a reply.
    AllButKeyspace,
}

/// Writes the fields of a section.
type Text = fn(&Pool) -> String;

/// The sections in Redis's order; what stands behind the last comes from the servers.
const SECTIONS: [(&str, Text); 7] = [
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", |_| "loading:0\r\nasync_loading:0\r\n".to_owned()),
    ("Replication", |_| "role:master\r\nconnected_slaves:0\r\n".to_owned()),
    ("Modules", |_| String::new()),
    ("Cluster", |_| "cluster_enabled:0\r\n".to_owned()),
];

/// Words that stand for more than one section; here each means all of them.
const ALL: [&str; 3] = ["default", "all", "everything"];

/// INFO \[section …\]. Sections that don't exist are left out, as Redis does.
pub(super) fn info(args: Args<'_>, pool: &Pool, protocol: Protocol, out: &mut Vec<u8>) -> Told {
    let wants = |section: &str| {
        let named = |word: &[u8]| {
            word.eq_ignore_ascii_case(section.as_bytes())
                || ALL.iter().any(|all| word.eq_ignore_ascii_case(all.as_bytes()))
        };
        args.len() == 1 || args.iter_from(1).any(named)
    };
    let chosen = SECTIONS.iter().filter(|(section, _)| wants(section));
    let sections: Vec<String> =
        chosen.map(|(section, text)| format!("# {section}\r\n{}", text(pool))).collect();
    let text = sections.join("\r\n");
    if wants("keyspace") {
        out.extend_from_slice(text.as_bytes());
        out.extend_from_slice(if text.is_empty() { b"" } else { b"\r\n" });
        return Told::AllButKeyspace;
    }
    protocol.text(out, text.as_bytes());
    Told::All
}

fn server(pool: &Pool) -> String {
    let uptime = pool.uptime().as_secs();
    let mut text = String::new();
    line(&mut text, "redis_version", REDIS_VERSION);
    line(&mut text, "redis_mode", "standalone");
    line(&mut text, "shardwise_version", env!("CARGO_PKG_VERSION"));
    line(&mut text, "shardwise_pool", &pool.config().name);
    line(&mut text, "shardwise_servers", &pool.all_servers().len().to_string());
    line(&mut text, "os", std::env::consts::OS);
    line(&mut text, "arch_bits", &usize::BITS.to_string());
    line(&mut text, "process_id", &std::process::id().to_string());
    line(&mut text, "uptime_in_seconds", &uptime.to_string());
    line(&mut text, "uptime_in_days", &(uptime / 86_400).to_string());
    text
}

fn clients(pool: &Pool) -> String {
    let mut text = String::new();
    if let Some(most) = pool.config().client_connections.bound() {
        line(&mut text, "maxclients", &most.to_string());
    }
    text
}

/// Resident memory of the process, as the kernel tells it.
fn memory(_: &Pool) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|text| text.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    let mut text = String::new();
    if let Some(kilobytes) = kilobytes {
        line(&mut text, "used_memory", &(kilobytes * 1024).to_string());
        line(&mut text, "used_memory_rss", &(kilobytes * 1024).to_string());
    }
    text
}

fn line(text: &mut String, field: &str, value: &str) {
    let _ = write!(text, "{field}:{value}\r\n"); // a String takes everything
}
