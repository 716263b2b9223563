//! The admin port: redis-cli and redis_exporter look inside and take control. It speaks RESP2, with Redis's own commands
//! and field names where the meaning is the same.
//!
//! What it asks of workers goes to them as rare orders and is answered between two turns of their loops; numbers are
//! read from their cells. Nothing here is on the path of a client's request.

mod clients;
mod config;
mod info;
mod monitor;
mod proxy;
mod servers;
mod table;
mod times;

use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tracing::{debug, info, warn};

use super::hold::{Holds, Word};
use super::hot_keys::By;
use super::questions;
use super::reload::Reloads;
use super::report::Current;
use super::visitors::{Door, Visitor, welcome};
use crate::config::MOST_BYTES;
use crate::resp::{ArgSpan, Args, ErrorReply, Limits, RequestScanner, Scanned, encode, inline_to_array};
use crate::units::Secret;
use crate::worker::{Ask, Order};
use monitor::Monitoring;
use table::{AdminCommand, Verb};

pub use table::admin_reference;

/// Connections at once; more wait in the kernel's queue.
const CONNECTIONS: usize = 64;

/// Longest that a connection may be silent.
const IDLE: Duration = Duration::from_secs(600);

/// Longest that taking an answer may take.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// Bounds of a request: an operator types it, or `shardwise check` sends a file.
const LIMITS: Limits = Limits {
    max_args: 1024,
    // A whole configuration.
    max_bulk: MOST_BYTES,
    max_inline: 64 << 10,
    max_request: MOST_BYTES + (64 << 10),
    authenticated: true,
};

/// What the commands work on.
pub struct Admin {
    sources: Current,
    workers: Vec<UnboundedSender<Order>>,
    reloads: Reloads,
    holds: Holds,
}

/// What becomes of a command: its reply has been written, or an error is the reply.
type Answered = Result<(), ErrorReply>;

/// One connection's state.
struct Visit {
    authenticated: bool,
    name: Vec<u8>,
    address: String,
    /// It has said MONITOR.
    monitoring: Option<Monitoring>,
}

/// Serves until it is dropped. Inside a `LocalRuntime` only.
pub async fn serve(door: Door, admin: Admin) {
    let admin = Rc::new(admin);
    welcome(door, CONNECTIONS, "admin", move |visitor| {
        let admin = Rc::clone(&admin);
        async move {
            let address = visitor.address.clone();
            if let Err(error) = converse(visitor, &admin).await {
                debug!(address, %error, "an admin connection ended");
            }
        }
    })
    .await;
}

/// Reads requests and answers each, until the visitor leaves.
async fn converse(visitor: Visitor, admin: &Admin) -> io::Result<()> {
    let Visitor { mut stream, address } = visitor;
    let authenticated = admin.password().is_none();
    let mut visit = Visit { authenticated, name: Vec::new(), address, monitoring: None };
    let (mut buffer, mut scanner, mut spans) = (BytesMut::new(), RequestScanner::default(), Vec::new());
    loop {
        let mut out = Vec::new();
        let open = answer_all(admin, &mut visit, &mut buffer, &mut scanner, &mut spans, &mut out).await;
        timeout(WRITE_LIMIT, stream.write_all(&out)).await??;
        if !open {
            return stream.shutdown().await;
        }
        let read = match &mut visit.monitoring {
            Some(monitoring) => monitoring.watch(&mut stream, &mut buffer).await?,
            None => timeout(IDLE, stream.read_buf(&mut buffer)).await??,
        };
        if read == 0 {
            return stream.shutdown().await;
        }
    }
}

/// Answers every complete request in `buffer`; false when the connection ends behind them.
async fn answer_all(
    admin: &Admin,
    visit: &mut Visit,
    buffer: &mut BytesMut,
    scanner: &mut RequestScanner,
    spans: &mut Vec<ArgSpan>,
    out: &mut Vec<u8>,
) -> bool {
    while !buffer.is_empty() {
        let limits = Limits { authenticated: visit.authenticated, ..LIMITS };
        let len = match scanner.scan(buffer, spans, &limits) {
            Ok(Scanned::Incomplete) => return true,
            Ok(Scanned::Nothing(len)) => len,
            Ok(Scanned::Array(len)) => {
                if !admin.answer(visit, Args::new(&buffer[..len], spans), out).await {
                    return false;
                }
                len
            }
            Ok(Scanned::Inline { line, len }) => {
                let Ok(array) = inline_to_array(&buffer[..line]) else { return false };
                let mut spans = Vec::new();
                let scanned = RequestScanner::default().scan(&array, &mut spans, &limits);
                if matches!(scanned, Ok(Scanned::Array(_)))
                    && !admin.answer(visit, Args::new(&array, &spans), out).await
                {
                    return false;
                }
                len
            }
            Err(error) => {
                error.reply().encode(out);
                return false;
            }
        };
        buffer.advance(len);
    }
    true
}

// === impl Admin ===

impl Admin {
    /// Works on these sources, and gives orders to these workers.
    pub fn new(
        sources: Current,
        workers: Vec<UnboundedSender<Order>>,
        reloads: Reloads,
        holds: Holds,
    ) -> Self {
        Self { sources, workers, reloads, holds }
    }

    /// Answers one request; false when the connection ends behind it.
    async fn answer(&self, visit: &mut Visit, args: Args<'_>, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let (answered, open) = match table::find(args) {
            Err(error) if visit.authenticated => (Err(error), true),
            Ok(command) if visit.authenticated || command.is_open_to_all() => {
                let answered = self.run(command, visit, args, out).await;
                (answered, command.verb != Verb::Quit)
            }
            _ => (Err(ErrorReply::no_auth()), true),
        };
        if let Err(error) = answered {
            out.truncate(start);
            error.encode(out);
        }
        open
    }

    async fn run(
        &self,
        command: &AdminCommand,
        visit: &mut Visit,
        args: Args<'_>,
        out: &mut Vec<u8>,
    ) -> Answered {
        if command.changes {
            info!(address = %visit.address, "admin: {}", command.usage());
        }
        match command.verb {
            Verb::Ping => match args.get(1) {
                Some(message) => encode::bulk(out, message),
                None => encode::simple(out, "PONG"),
            },
            Verb::Monitor => return self.monitor(visit, args, out),
            Verb::Reset => {
                visit.monitoring = None;
                visit.authenticated = self.password().is_none();
                encode::simple(out, "RESET");
            }
            Verb::Auth => return self.auth(visit, args, out),
            Verb::Quit | Verb::Ok => encode::simple(out, "OK"),
            Verb::Empty => encode::array(out, 0),
            Verb::Help => table::help(args.name(), out),
            Verb::ClientId => encode::integer(out, 0),
            Verb::ClientName => match args.get(2) {
                Some(name) => {
                    visit.name = name.to_vec();
                    encode::simple(out, "OK");
                }
                None => encode::bulk(out, &visit.name),
            },
            Verb::CommandCount => encode::integer(out, self.commands()),
            Verb::Info => encode::bulk(out, self.info(args).as_bytes()),
            Verb::ClientList => return self.client_list(args, out).await,
            Verb::ClientKill => return self.client_kill(args, out).await,
            Verb::ClientPause => return self.client_pause(args, out),
            Verb::ClientUnpause => {
                self.tell_all(|| Ask::Pause(None));
                encode::simple(out, "OK");
            }
            Verb::ConfigGet => self.config_get(args, out),
            Verb::ConfigOrigin => self.config_origin(args, out),
            Verb::ConfigReload => return self.reload(out).await,
            Verb::ConfigSet => return self.config_set(args, out).await,
            Verb::SlowlogGet => return self.slowlog_get(args, out).await,
            Verb::SlowlogLen => {
                let slow = self.ask_all(Ask::Slow).await;
                encode::integer(out, slow.iter().map(|(_, entries)| entries.len() as i64).sum());
            }
            Verb::SlowlogReset => {
                self.tell_all(|| Ask::ForgetSlow);
                encode::simple(out, "OK");
            }
            Verb::LatencyHistogram => self.latency_histogram(args, out),
            Verb::MemoryStats => self.memory_stats(out),
            Verb::ProxyPools => self.proxy_pools(out),
            Verb::ProxyServers => self.proxy_servers(args, out),
            Verb::ProxyWorkers => self.proxy_workers(out),
            Verb::ProxyHotKeys => return self.proxy_keys(By::Requests, args, out).await,
            Verb::ProxyBigKeys => return self.proxy_keys(By::Bytes, args, out).await,
            Verb::ProxyExplain => return self.proxy_explain(args, out),
            Verb::ProxyPredict => return self.predict(args, out).await,
            Verb::ProxyDrain => return self.say(args, Word::Drain, out).await,
            Verb::ProxyResume => return self.say(args, Word::Resume, out).await,
            Verb::ProxyBan => return self.ban(args, out).await,
            Verb::ProxyUnban => return self.say(args, Word::Unban, out).await,
            Verb::ProxyProbe => return self.probe(args, out).await,
            Verb::ProxyReconnect => return self.reconnect(args, out).await,
        }
        Ok(())
    }

    /// The password that holds now; a reload may bring another one.
    fn password(&self) -> Option<Secret> {
        self.sources.now().config.process.admin_password.clone()
    }

    /// CONFIG RELOAD: what has changed, or why nothing has.
    async fn reload(&self, out: &mut Vec<u8>) -> Answered {
        match self.reloads.reload().await {
            Ok(report) => encode::bulk(out, report.to_string().as_bytes()),
            Err(refused) => return Err(ErrorReply::not_reloaded(&refused.to_string())),
        }
        Ok(())
    }

    fn auth(&self, visit: &mut Visit, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let (user, password) = match (args.get(1), args.get(2)) {
            (Some(user), Some(password)) => (user, password),
            (password, _) => (&b"default"[..], password.unwrap_or_default()),
        };
        let Some(secret) = self.password() else { return Err(ErrorReply::auth_not_set()) };
        if user != b"default" || !secret.matches(password) {
            warn!(address = %visit.address, "admin: wrong password");
            return Err(ErrorReply::wrong_pass());
        }
        visit.authenticated = true;
        encode::simple(out, "OK");
        Ok(())
    }

    /// Every worker's answer, with its index. A worker that doesn't answer in time is left out.
    async fn ask_all<T>(&self, ask: impl Fn(oneshot::Sender<T>) -> Ask) -> Vec<(usize, T)> {
        questions::ask_all(&self.workers, ask).await
    }

    fn tell_all(&self, ask: impl Fn() -> Ask) {
        for worker in &self.workers {
            // One that has ended has no clients.
            let _ = worker.send(Order::Ask(ask()));
        }
    }
}
