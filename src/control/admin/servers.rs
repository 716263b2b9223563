//! PROXY DRAIN, RESUME, BAN, UNBAN, PROBE, RECONNECT: what an operator does to one server.

use std::time::{Duration, Instant};

use super::{Admin, Answered};
use crate::control::hold::Word;
use crate::control::probe;
use crate::control::reload;
use crate::resp::{Args, ErrorReply, encode};
use crate::topology::{PoolIx, ServerIx};
use crate::units::duration;
use crate::worker::Ask;

/// Longest ban: a year. What is to be out for longer is better taken out of the file.
const LONGEST_BAN: Duration = Duration::from_secs(366 * 86_400);

/// Names that an error lists at most.
const NAMES_SHOWN: usize = 32;

impl Admin {
    /// DRAIN, RESUME, UNBAN, and BAN when its time is known: answered when every worker knows.
    pub(super) async fn say(&self, args: Args<'_>, word: Word, out: &mut Vec<u8>) -> Answered {
        let (pool, server) = self.server(args.get(2).unwrap_or_default())?;
        let config = self.sources.now().config.clone();
        let pool = &config.pools[pool.index()];
        let server = &pool.servers[server.index()].name;
        let said = self.holds.say(&pool.name, server, word).await;
        let generation = said.map_err(|why| ErrorReply::server_stays(server, &why.to_string()))?;
        match reload::adopted(&self.sources, generation, Instant::now()).await {
            0 => encode::simple(out, "OK"),
            late => encode::simple(out, &format!("OK, but {late} workers don't know yet")),
        }
        Ok(())
    }

    /// BAN.
    pub(super) async fn ban(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let ttl = args.get(3).unwrap_or_default();
        let limit = seconds(ttl).filter(|limit| !limit.is_zero() && *limit <= LONGEST_BAN);
        let limit = limit.ok_or_else(|| ErrorReply::not_a_time(ttl))?;
        self.say(args, Word::Ban(limit), out).await
    }

    /// PROBE: one line with the outcome.
    pub(super) async fn probe(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let (pool, server) = self.server(args.get(2).unwrap_or_default())?;
        let config = self.sources.now().config.clone();
        let pool = &config.pools[pool.index()];
        let start = Instant::now();
        let result = probe::server(pool, server).await;
        let usec = start.elapsed().as_micros();
        let server = &pool.servers[server.index()];
        let outcome = match result {
            Ok(()) => "outcome=ok".to_owned(),
            Err(why) => format!("outcome=failed reason={why}"),
        };
        let line = format!(
            "pool={} name={} address={} usec={usec} {outcome}",
            pool.name, server.name, server.endpoint
        );
        encode::bulk(out, line.as_bytes());
        Ok(())
    }

    /// RECONNECT: how many connections were replaced.
    pub(super) async fn reconnect(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let (pool, server) = self.server(args.get(2).unwrap_or_default())?;
        let sources = self.sources.now();
        let pool = &sources.config.pools[pool.index()];
        let server = &pool.servers[server.index()].name;
        let Some(id) = sources.generation().id_of(&pool.name) else {
            return Err(ErrorReply::no_such_pool(&pool.name));
        };
        let replaced = self.ask_all(|to| Ask::Reconnect(id, server.clone(), to)).await;
        encode::integer(out, replaced.iter().map(|(_, count)| *count as i64).sum());
        Ok(())
    }

    /// The server that is meant by `name`, or `pool/name`.
    fn server(&self, name: &[u8]) -> Result<(PoolIx, ServerIx), ErrorReply> {
        let sources = self.sources.now();
        let pools = (0..).map(PoolIx).zip(&sources.config.pools);
        let all: Vec<_> = pools
            .flat_map(|(ix, pool)| {
                let servers = (0..).map(ServerIx).zip(&pool.servers);
                servers
                    .map(move |(server, of)| ((ix, server), &of.name, format!("{}/{}", pool.name, of.name)))
            })
            .collect();
        let is = |text: &str| text.as_bytes() == name;
        let found: Vec<_> = all.iter().filter(|(_, name, full)| is(name) || is(full)).collect();
        let listed = |names: Vec<&str>| {
            let more = if names.len() > NAMES_SHOWN { ", …" } else { "" };
            format!("{}{more}", names[..names.len().min(NAMES_SHOWN)].join(", "))
        };
        let text = String::from_utf8_lossy(name);
        match found.as_slice() {
            [(meant, ..)] => Ok(*meant),
            [] => {
                let names = listed(all.iter().map(|(_, name, _)| name.as_str()).collect());
                Err(ErrorReply::which_server(&text, "no such server", &names))
            }
            several => {
                let names = listed(several.iter().map(|(.., full)| full.as_str()).collect());
                Err(ErrorReply::which_server(&text, "several pools have a server", &names))
            }
        }
    }
}

/// Seconds, as Redis counts a TTL, or what the configuration takes for a duration.
fn seconds(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { crate::units::whole_number(text).map(Duration::from_secs) } else { duration::parse(text) }
}
