//! PROXY: pools, servers, workers, and where a request would go. Lines of `key=value`.

use std::time::SystemTime;

use super::info::number;
use super::{Admin, Answered};
use crate::command::{Call, CommandTable};
use crate::config;
use crate::control::exposition::micros;
use crate::control::report::{Number, Sources};
use crate::resp::{Args, ErrorReply, encode};
use crate::router::{Plan, Rules, plan};
use crate::topology::{self, Draw, ServerIx};

/// A line's pairs.
type Line = Vec<String>;

impl Admin {
    pub(super) fn proxy_pools(&self, out: &mut Vec<u8>) {
        write(&self.pool_lines(), out);
    }

    pub(super) fn proxy_servers(&self, args: Args<'_>, out: &mut Vec<u8>) {
        write(&self.server_lines(args.get(2)), out);
    }

    pub(super) fn proxy_workers(&self, out: &mut Vec<u8>) {
        write(&self.worker_lines(), out);
    }

    /// What the router makes of a request, and the way of each of its keys.
    pub(super) fn proxy_explain(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let name = args.get(2).unwrap_or_default();
        let generation = self.sources.now().generation();
        let pools = generation.config.pools.iter().zip(&generation.pools);
        let Some((pool, topology)) = pools.into_iter().find(|(pool, _)| pool.name.as_bytes() == name) else {
            return Err(ErrorReply::no_such_pool(&String::from_utf8_lossy(name)));
        };
        let request = args.without(3).ok_or_else(ErrorReply::syntax_error)?;
        let call = CommandTable::builtin().lookup(request).map_err(|error| error.reply())?;
        let plan = plan(&call, topology, &Draw::seeded(1), Rules { read_only: pool.read_only });
        let mut lines = vec![told(&plan, &call, pool)];
        for at in call.keys().map(|keys| keys.iter().collect::<Vec<_>>()).unwrap_or_default() {
            let key = request.get(at).unwrap_or_default();
            let explained = topology::explain(pool, topology, key).to_string();
            lines.extend(explained.lines().map(str::to_owned));
        }
        encode::array(out, lines.len());
        lines.iter().for_each(|line| encode::bulk(out, line.as_bytes()));
        Ok(())
    }

    pub(super) fn pool_lines(&self) -> Vec<Line> {
        let sources = &*self.sources.now();
        let generation = sources.generation();
        let line = |(ix, pool): (usize, &config::Pool)| {
            let numbers = sources.pool_numbers(ix);
            let of = |name| number(&numbers, name);
            let live =
                generation.pools.get(ix).map_or(0, |pool| pool.live().iter().filter(|live| **live).count());
            let write = sources.write_times(ix);
            vec![
                format!("name={}", pool.name),
                format!("listen={}", pool.listen),
                format!("clients={}", of("client_connections")),
                format!("requests={}", of("client_requests")),
                format!("errors={}", of("forward_error")),
                format!("slow={}", of("slow_requests")),
                format!("servers={}", pool.servers.len()),
                format!("live={live}"),
                format!("write_p50_usec={}", write.quantile(0.5)),
                format!("write_p99_usec={}", write.quantile(0.99)),
            ]
        };
        sources.config.pools.iter().enumerate().map(line).collect()
    }

    /// Of one pool, or of all.
    pub(super) fn server_lines(&self, pool: Option<&[u8]>) -> Vec<Line> {
        let sources = &*self.sources.now();
        let pools = sources.config.pools.iter().enumerate();
        let wanted = pools.filter(|(_, config)| pool.is_none_or(|name| config.name.as_bytes() == name));
        wanted
            .flat_map(|(ix, config)| {
                (0..config.servers.len()).map(move |server| Self::server_line(sources, ix, server))
            })
            .collect()
    }

    fn server_line(sources: &Sources, pool: usize, server: usize) -> Line {
        let config = &sources.config.pools[pool];
        let numbers = sources.server_numbers(pool, server);
        let of = |name| number(&numbers, name);
        let [queue, answer] =
            ["queue_seconds", "answer_seconds"].map(|name| sources.server_times(pool, server, name));
        vec![
            format!("pool={}", config.name),
            format!("name={}", config.servers[server].name),
            format!("address={}", config.servers[server].endpoint),
            format!("live={}", of("live")),
            format!("state={}", state(&numbers)),
            format!("share={:.1}%", of("ring_share") as f64 / 10_000.0),
            format!("connections={}", of("server_connections")),
            format!("requests={}", of("requests")),
            format!("waiting={}", of("in_queue")),
            format!("awaited={}", of("out_queue")),
            format!("timeouts={}", of("server_timedout")),
            format!("failures={}", of("failed_attempts")),
            format!("queue_p50_usec={}", queue.quantile(0.5)),
            format!("queue_p99_usec={}", queue.quantile(0.99)),
            format!("server_p50_usec={}", answer.quantile(0.5)),
            format!("server_p99_usec={}", answer.quantile(0.99)),
        ]
    }

    pub(super) fn worker_lines(&self) -> Vec<Line> {
        let now = micros(SystemTime::now());
        let line = |(index, worker): (usize, &std::sync::Arc<crate::worker::WorkerStats>)| {
            let clients: u64 = worker.pools.iter().map(|pool| pool.pool.client_connections.value()).sum();
            let requests: u64 = worker.pools.iter().map(|pool| pool.pool.client_requests.value()).sum();
            let seen = now.saturating_sub(worker.own.loop_seen_at.value()) / 1000;
            vec![
                format!("worker={index}"),
                format!("clients={clients}"),
                format!("requests={requests}"),
                format!("loop_seen_ms_ago={seen}"),
                format!("loop_late_usec={}", worker.own.loop_late.value()),
            ]
        };
        let sources = self.sources.now();
        sources.workers.iter().enumerate().map(line).collect()
    }
}

/// Why a server owns keys or not. A ban says how many seconds are left of it.
fn state(numbers: &[Number]) -> String {
    let of = |name| number(numbers, name);
    let now = micros(SystemTime::now());
    match of("banned_until").saturating_sub(now).div_ceil(1_000_000) {
        0 if of("drained") == 1 => "drained".to_owned(),
        0 if of("live") == 1 => "live".to_owned(),
        0 => "ejected".to_owned(),
        left => format!("banned:{left}"),
    }
}

/// What becomes of a call, in one line.
fn told(plan: &Plan, call: &Call<'_>, pool: &config::Pool) -> String {
    let name = |server: ServerIx| pool.servers.get(server.index()).map_or("?", |server| server.name.as_str());
    match plan {
        Plan::One(server) => format!("whole to one server: {}", name(*server)),
        Plan::Split { parts, .. } => {
            let servers: Vec<&str> = parts.iter().map(|part| name(part.server)).collect();
            format!("split over {} servers: {}", servers.len(), servers.join(", "))
        }
        Plan::All { servers, .. } => format!("whole to every server: {}", servers.len()),
        Plan::Scan(_) => "to the server that the cursor names, with that server's own cursor".to_owned(),
        Plan::Refuse(refusal) => format!("refused: {}", refusal.reply(call, &pool.name).as_str()),
        Plan::Pin { .. } => "on a server connection of the client's own".to_owned(),
        Plan::Transaction(_) => "part of a transaction: its server is that of the first key".to_owned(),
        Plan::Wait => "to every server that the client has written to".to_owned(),
        Plan::Subscribe(_) | Plan::Unsubscribe(_) => {
            "the client's subscriptions: at the owner of a channel, at every live server for a pattern"
                .to_owned()
        }
        Plan::Local(_) => "answered by the proxy itself".to_owned(),
    }
}

fn write(lines: &[Line], out: &mut Vec<u8>) {
    encode::array(out, lines.len());
    lines.iter().for_each(|line| encode::bulk(out, line.join(" ").as_bytes()));
}
