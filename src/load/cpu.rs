//! CPU time of processes.

use rustix::time::{ClockId, clock_gettime};

/// Linux's USER_HZ: the unit of /proc/PID/stat. It is 100 on every architecture that is built today.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds that all threads of this process have used, in user mode and in the kernel.
pub fn own_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// The same of other processes, all together; `None` when there are none or one of them is gone.
pub fn seconds_of(pids: &[u32]) -> Option<f64> {
    if pids.is_empty() {
        return None;
    }
    pids.iter().map(|pid| ticks(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).sum()
}

fn ticks(stat: &str) -> Option<f64> {
    // The program's name stands in parentheses and may contain anything; utime and stime are 14th and 15th of all.
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    Some(ticks / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_fields() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 1 0 100 1000 10";
        assert_eq!(ticks(stat), Some(2.0));
        assert_eq!(ticks("nonsense"), None);
        assert!(seconds_of(&[std::process::id()]).is_some());
        assert_eq!(seconds_of(&[]), None);
    }
}
