//! INFO: Redis's sections and field names where the meaning is the same, so that what reads a Redis reads this.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Admin;
use crate::command::{CommandIx, CommandTable};
use crate::control::process;
use crate::control::report::Number;
use crate::resp::Args;

/// The version of Redis whose behaviour shardwise shows.
const REDIS_VERSION: &str = "7.0.15";

/// Name of a section, what writes it, and whether it is shown without being asked for.
type Section = (&'static str, fn(&Admin, &mut String), bool);

const SECTIONS: &[Section] = &[
    ("server", Admin::info_server, true),
    ("clients", Admin::info_clients, true),
    ("memory", Admin::info_memory, true),
    ("stats", Admin::info_stats, true),
    ("replication", Admin::info_replication, true),
    ("cpu", Admin::info_cpu, true),
    ("commandstats", Admin::info_commandstats, false),
    ("latencystats", Admin::info_latencystats, false),
    ("pools", Admin::info_pools, true),
    ("servers", Admin::info_servers, true),
    ("workers", Admin::info_workers, true),
    ("keyspace", |_, _| {}, true),
];

// Writing to a String does not fail.
macro_rules! field {
    ($out:expr, $($text:tt)*) => {{
        let _ = write!($out, $($text)*);
        $out.push_str("\r\n");
    }};
}

impl Admin {
    /// The sections that were asked for, as text.
    pub(super) fn info(&self, args: Args<'_>) -> String {
        let asked = |word: &str| args.iter_from(1).any(|arg| arg.eq_ignore_ascii_case(word.as_bytes()));
        let by_default = args.len() == 1 || asked("default");
        let all = asked("all") || asked("everything");
        let mut out = String::new();
        for (name, write, shown) in SECTIONS {
            if all || (by_default && *shown) || asked(name) {
                if !out.is_empty() {
                    out.push_str("\r\n");
                }
                let (first, rest) = name.split_at(1);
                field!(out, "# {}{rest}", first.to_uppercase());
                write(self, &mut out);
            }
        }
        out
    }

    fn info_server(&self, out: &mut String) {
        let sources = &self.sources.now();
        let uptime = sources.started.elapsed().as_secs();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        field!(out, "redis_version:{REDIS_VERSION}");
        field!(out, "redis_mode:standalone");
        field!(out, "shardwise_version:{}", env!("CARGO_PKG_VERSION"));
        field!(out, "os:{} {}", std::env::consts::OS, std::env::consts::ARCH);
        field!(out, "arch_bits:{}", usize::BITS);
        field!(out, "multiplexing_api:epoll");
        field!(out, "process_id:{}", std::process::id());
        field!(out, "server_time_usec:{}", now.as_micros());
        field!(out, "uptime_in_seconds:{uptime}");
        field!(out, "uptime_in_days:{}", uptime / 86_400);
        field!(out, "config_file:{}", sources.config.path.display());
        field!(out, "workers:{}", sources.workers.len());
        field!(out, "generation:{}", sources.generation().number);
        field!(out, "draining:{}", u8::from(sources.draining.get()));
    }

    fn info_clients(&self, out: &mut String) {
        let waiting = self.of_servers("in_queue") + self.of_servers("out_queue");
        field!(out, "connected_clients:{}", self.of_pools("client_connections"));
        field!(out, "maxclients:{}", self.max_clients());
        field!(out, "requests_in_flight:{waiting}");
    }

    fn info_memory(&self, out: &mut String) {
        let [used, peak, virtual_size] =
            ["VmRSS:", "VmHWM:", "VmSize:"].map(|name| process::status_kilobytes(name) * 1024);
        field!(out, "used_memory:{used}");
        field!(out, "used_memory_human:{:.2}M", used as f64 / 1_048_576.0);
        field!(out, "used_memory_rss:{used}");
        field!(out, "used_memory_peak:{peak}");
        field!(out, "used_memory_vm_total:{virtual_size}");
        field!(out, "maxmemory:0");
        field!(out, "mem_allocator:jemalloc");
    }

    fn info_stats(&self, out: &mut String) {
        field!(out, "total_connections_received:{}", self.of_pools("client_total"));
        field!(out, "total_commands_processed:{}", self.of_pools("client_requests"));
        field!(out, "rejected_connections:{}", self.of_pools("client_refused"));
        field!(out, "total_error_replies:{}", self.of_pools("forward_error"));
        field!(out, "client_errors:{}", self.of_pools("client_err"));
        field!(out, "slow_requests:{}", self.of_pools("slow_requests"));
        field!(out, "server_connections_opened:{}", self.of_servers("server_total"));
        field!(out, "server_timeouts:{}", self.of_servers("server_timedout"));
        field!(out, "server_ejects:{}", self.of_pools("server_ejects"));
        field!(out, "server_request_bytes:{}", self.of_servers("request_bytes"));
        field!(out, "server_reply_bytes:{}", self.of_servers("response_bytes"));
        field!(out, "log_lines_suppressed:{}", self.sources.now().suppressed.value());
    }

    /// A proxy replicates nothing; who asks for the role learns that writes are taken.
    fn info_replication(&self, out: &mut String) {
        field!(out, "role:master");
        field!(out, "connected_slaves:0");
    }

    fn info_cpu(&self, out: &mut String) {
        let (user, system) = process::cpu_seconds();
        field!(out, "used_cpu_sys:{system:.6}");
        field!(out, "used_cpu_user:{user:.6}");
    }

    fn info_commandstats(&self, out: &mut String) {
        for (name, times) in self.by_command() {
            let (calls, usec) = (times.count(), times.sum);
            let per_call = usec as f64 / calls.max(1) as f64;
            field!(
                out,
                "cmdstat_{name}:calls={calls},usec={usec},usec_per_call={per_call:.2},rejected_calls=0,failed_calls=0"
            );
        }
    }

    fn info_latencystats(&self, out: &mut String) {
        for (name, times) in self.by_command() {
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|part| times.quantile(part));
            field!(out, "latency_percentiles_usec_{name}:p50={p50}.000,p99={p99}.000,p99.9={p999}.000");
        }
    }

    fn info_pools(&self, out: &mut String) {
        for (index, line) in self.pool_lines().iter().enumerate() {
            field!(out, "pool{index}:{}", line.join(","));
        }
    }

    fn info_servers(&self, out: &mut String) {
        for (index, line) in self.server_lines(None).iter().enumerate() {
            field!(out, "server{index}:{}", line.join(","));
        }
    }

    fn info_workers(&self, out: &mut String) {
        for (index, line) in self.worker_lines().iter().enumerate() {
            field!(out, "worker{index}:{}", line.join(","));
        }
    }

    /// Sum of one number over all pools.
    pub(super) fn of_pools(&self, name: &str) -> u64 {
        let sources = self.sources.now();
        let pools = 0..sources.config.pools.len();
        pools.map(|pool| number(&sources.pool_numbers(pool), name)).sum()
    }

    /// Sum of one number over all servers.
    pub(super) fn of_servers(&self, name: &str) -> u64 {
        let sources = self.sources.now();
        let pools = sources.config.pools.iter().enumerate();
        let servers =
            pools.flat_map(|(pool, config)| (0..config.servers.len()).map(move |server| (pool, server)));
        servers.map(|(pool, server)| number(&sources.server_numbers(pool, server), name)).sum()
    }

    /// Most clients at once: what is configured, or what file descriptors allow.
    pub(super) fn max_clients(&self) -> u64 {
        let configured = self.sources.now().config.process.max_clients.bound().map(u64::from);
        configured.unwrap_or_else(|| rlimit::Resource::NOFILE.get_soft().unwrap_or(0))
    }

    /// How many commands pools know.
    pub(super) fn commands(&self) -> i64 {
        CommandTable::builtin().commands().count() as i64
    }
}

/// One number of some.
pub(super) fn number(numbers: &[Number], name: &str) -> u64 {
    numbers.iter().find(|(given, _)| *given == name).map_or(0, |(_, value)| *value)
}

/// The name of a command, `none` for no command.
pub(super) fn command_name(command: u16) -> &'static str {
    let table = CommandTable::builtin();
    if usize::from(command) < table.len() { table.row(CommandIx(command)).name } else { "NULL" }
}
