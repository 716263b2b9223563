//! SLOWLOG, LATENCY, MEMORY: where time and memory go.

use std::collections::BTreeMap;

use super::info::command_name;
use super::{Admin, Answered};
use crate::control::process;
use crate::resp::{Args, ErrorReply, encode};
use crate::stats::Snapshot;
use crate::worker::{Ask, SlowRequest};

/// Entries that SLOWLOG GET gives without being told how many, as Redis does.
const SLOW_SHOWN: usize = 10;

/// Powers of two of microseconds that LATENCY HISTOGRAM tells of.
const POWERS: std::ops::RangeInclusive<u32> = 0..=26;

impl Admin {
    /// SLOWLOG GET: Redis's six fields, and ours behind them.
    pub(super) async fn slowlog_get(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let count = match args.get(2) {
            None => SLOW_SHOWN,
            Some(b"-1") => usize::MAX,
            Some(text) => whole(text)? as usize,
        };
        let mut slow: Vec<SlowRequest> =
            self.ask_all(Ask::Slow).await.into_iter().flat_map(|(_, entries)| entries).collect();
        slow.sort_by_key(|entry| std::cmp::Reverse(entry.at));
        slow.truncate(count);
        encode::array(out, slow.len());
        for entry in &slow {
            encode::array(out, 11);
            encode::integer(out, entry.at as i64);
            encode::integer(out, (entry.at / 1_000_000) as i64);
            encode::integer(out, (entry.queue + entry.answer) as i64);
            encode::array(out, 1);
            encode::bulk(out, command_name(entry.command).as_bytes());
            encode::bulk(out, entry.address.as_bytes());
            encode::bulk(out, entry.name.as_bytes());
            encode::bulk(out, format!("client={}", entry.client).as_bytes());
            encode::bulk(out, format!("pool={}", entry.pool).as_bytes());
            encode::bulk(out, format!("server={}", entry.server).as_bytes());
            encode::bulk(out, format!("queue_usec={}", entry.queue).as_bytes());
            encode::bulk(out, format!("server_usec={}", entry.answer).as_bytes());
        }
        Ok(())
    }

    /// LATENCY HISTOGRAM, in Redis's form.
    pub(super) fn latency_histogram(&self, args: Args<'_>, out: &mut Vec<u8>) {
        let mut commands = self.by_command();
        if args.len() > 2 {
            let asked = |name: &str| args.iter_from(2).any(|arg| arg.eq_ignore_ascii_case(name.as_bytes()));
            commands.retain(|name, _| asked(name));
        }
        encode::array(out, commands.len() * 2);
        for (name, times) in &commands {
            let mut buckets: Vec<(u32, u64)> =
                POWERS.map(|power| (power, times.below_power(power))).collect();
            buckets.dedup_by_key(|(_, below)| *below);
            buckets.retain(|(_, below)| *below > 0);
            encode::bulk(out, name.as_bytes());
            encode::array(out, 4);
            encode::bulk(out, b"calls");
            encode::integer(out, times.count() as i64);
            encode::bulk(out, b"histogram_usec");
            encode::array(out, buckets.len() * 2);
            for (power, below) in buckets {
                encode::integer(out, 1 << power);
                encode::integer(out, below as i64);
            }
        }
    }

    /// MEMORY STATS, as far as a proxy has them.
    pub(super) fn memory_stats(&self, out: &mut Vec<u8>) {
        let stats = [
            ("peak.allocated", process::status_kilobytes("VmHWM:") * 1024),
            ("total.allocated", process::status_kilobytes("VmRSS:") * 1024),
            ("clients.count", self.of_pools("client_connections")),
            ("servers.queued.bytes", self.of_servers("in_queue_bytes")),
            ("servers.awaited.bytes", self.of_servers("out_queue_bytes")),
        ];
        encode::array(out, stats.len() * 2);
        for (name, value) in stats {
            encode::bulk(out, name.as_bytes());
            encode::integer(out, value as i64);
        }
    }

    /// Every command that was used, over all pools, by name.
    pub(super) fn by_command(&self) -> BTreeMap<&'static str, Snapshot> {
        let mut all: BTreeMap<&'static str, Snapshot> = BTreeMap::new();
        let sources = self.sources.now();
        for pool in 0..sources.config.pools.len() {
            for (command, times) in sources.command_times(pool) {
                all.entry(command_name(command)).or_default().merge(&times);
            }
        }
        all
    }
}

/// A number that isn't negative.
pub(super) fn whole(text: &[u8]) -> Result<u64, ErrorReply> {
    let text = std::str::from_utf8(text).ok();
    text.and_then(crate::units::whole_number).ok_or_else(ErrorReply::not_an_integer)
}
