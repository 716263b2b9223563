//! The process as the system sees it, for metrics and INFO.

use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};

use super::exposition::micros;
use crate::stats::ProcessBlock;

/// Reads it now. What the system doesn't tell stays 0.
pub fn block(started_at: SystemTime) -> ProcessBlock {
    let block = ProcessBlock::default();
    block.start_time.set(micros(started_at));
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    block.cpu.set((cpu.tv_sec as u64).saturating_mul(1_000_000).saturating_add(cpu.tv_nsec as u64 / 1000));
    block.resident_memory_bytes.set(status_kilobytes("VmRSS:").saturating_mul(1024));
    block.open_fds.set(std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64));
    block.max_fds.set(rlimit::Resource::NOFILE.get_soft().unwrap_or(0));
    block
}

/// Processor time in user and in system mode, in seconds.
pub fn cpu_seconds() -> (f64, f64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The second field, the program's name, may contain anything up to its closing parenthesis.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    let seconds =
        |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0) / per_second;
    (seconds(11), seconds(12))
}

/// A line of /proc/self/status, in kilobytes.
pub fn status_kilobytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
