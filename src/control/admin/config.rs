//! CONFIG: what is set, where that comes from, and another value for it.

use super::times::whole;
use super::{Admin, Answered};
use crate::command::CommandTable;
use crate::config::{Cause, Config, Override, PROCESS_SECTION, Threads};
use crate::control::reload::Report;
use crate::resp::{Args, ErrorReply, encode};
use crate::worker::SLOW_KEPT;

/// Redis's name for `slowlog_slower_than`; it counts microseconds, -1 being never.
const SLOWER_THAN: &str = "slowlog-log-slower-than";

/// Redis's name for `max_clients`.
const MAX_CLIENTS: &str = "maxclients";

impl Admin {
    /// CONFIG GET: names that fit any of the patterns.
    pub(super) fn config_get(&self, args: Args<'_>, out: &mut Vec<u8>) {
        let config = &self.sources.now().config;
        let mut all = self.redis_settings();
        all.extend(config.source.settings.iter().map(|setting| (setting.name(), setting.value.clone())));
        pairs(all, args, out);
    }

    /// CONFIG ORIGIN: the same names, and in the place of each value where it comes from.
    pub(super) fn config_origin(&self, args: Args<'_>, out: &mut Vec<u8>) {
        let sources = self.sources.now();
        let config = &sources.config;
        let by_flag = has_flag(config, sources.workers.len());
        let origin = |key: &str, cause: &Cause| match cause {
            _ if key == "threads" && by_flag => "--threads".to_owned(),
            Cause::Default => "default".to_owned(),
            Cause::Line(line) => format!("{}:{line}", config.path.display()),
            Cause::Set => "CONFIG SET".to_owned(),
        };
        let settings = config.source.settings.iter();
        pairs(settings.map(|one| (one.name(), origin(one.key, &one.cause))).collect(), args, out);
    }

    /// CONFIG SET: all of them or none, checked as the file is.
    pub(super) async fn config_set(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let config = self.sources.now().config.clone();
        let mut values = Vec::new();
        let mut rest = args.iter_from(2);
        while let Some(name) = rest.next() {
            let value = rest.next().ok_or_else(|| ErrorReply::wrong_arity("config|set"))?;
            values.push(meant(&config, name, value)?);
        }
        match self.reloads.set(values).await {
            Ok(_) => encode::simple(out, "OK"),
            Err(refused) => return Err(ErrorReply::not_reloaded(&refused.to_string())),
        }
        Ok(())
    }

    /// PROXY PREDICT: what a reload of that text would change, or what is wrong with it. Nothing changes.
    pub(super) async fn predict(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let config = self.sources.now().config.clone();
        let text = std::str::from_utf8(args.get(2).unwrap_or_default());
        let text = text.map_err(|_| ErrorReply::syntax_error())?.to_owned();
        // Passwords may be in files, and those may be slow.
        let predicted = tokio::task::spawn_blocking(move || {
            let next = Config::of_text(&text, &config.path);
            next.map(|next| Report::predict(&config, &next).to_string()).map_err(|errors| errors.to_string())
        });
        match predicted.await {
            Ok(Ok(report)) => encode::bulk(out, report.as_bytes()),
            Ok(Err(errors)) => return Err(ErrorReply::not_reloaded(&errors)),
            Err(_) => return Err(ErrorReply::not_reloaded("the configuration cannot be read")),
        }
        Ok(())
    }

    /// What Redis has a name of its own for.
    fn redis_settings(&self) -> Vec<(String, String)> {
        let sources = self.sources.now();
        let slower_than = sources.config.process.slowlog_slower_than;
        let slower_than = slower_than.map_or("-1".to_owned(), |limit| limit.as_micros().to_string());
        [
            (MAX_CLIENTS, self.max_clients().to_string()),
            (SLOWER_THAN, slower_than),
            ("slowlog-max-len", (SLOW_KEPT * sources.workers.len()).to_string()),
            ("maxmemory", "0".to_owned()),
            ("save", String::new()),
            ("appendonly", "no".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}

/// Writes those whose name fits any of the patterns.
fn pairs(all: Vec<(String, String)>, args: Args<'_>, out: &mut Vec<u8>) {
    let fits = |name: &str| args.iter_from(2).any(|pattern| CommandTable::glob(pattern, name.as_bytes()));
    let found: Vec<_> = all.into_iter().filter(|(name, _)| fits(name)).collect();
    encode::array(out, found.len() * 2);
    for (name, value) in found {
        encode::bulk(out, name.as_bytes());
        encode::bulk(out, value.as_bytes());
    }
}

/// The setting of that name: Redis's, or `key`, `shardwise.key`, `pool.key`.
fn meant(config: &Config, name: &[u8], value: &[u8]) -> Result<Override, ErrorReply> {
    let name = String::from_utf8_lossy(name).into_owned();
    let unknown = || ErrorReply::not_settable(&name);
    let text = std::str::from_utf8(value).map_err(|_| ErrorReply::syntax_error())?;
    let own = |key: &str, value: String| Override {
        section: PROCESS_SECTION.to_owned(),
        key: key.to_owned(),
        value,
    };
    if name.eq_ignore_ascii_case(SLOWER_THAN) {
        let value = match value {
            // In the file 0 is never, in Redis always.
            b"-1" => "0".to_owned(),
            text => format!("{}us", whole(text)?.max(1)),
        };
        return Ok(own("slowlog_slower_than", value));
    }
    if name.eq_ignore_ascii_case(MAX_CLIENTS) {
        return Ok(own("max_clients", text.to_owned()));
    }
    let is_it = |section: &str, key: &str, shown: String| {
        shown.eq_ignore_ascii_case(&name)
            || (section == PROCESS_SECTION && format!("{section}.{key}").eq_ignore_ascii_case(&name))
    };
    let found = config.source.settings.iter().find(|one| is_it(&one.section, one.key, one.name()));
    let found = found.ok_or_else(unknown)?;
    Ok(Override { section: found.section.clone(), key: found.key.to_owned(), value: text.to_owned() })
}

/// Whether the command line says how many workers there are.
fn has_flag(config: &Config, workers: usize) -> bool {
    workers
        != match config.process.threads {
            Threads::Auto => std::thread::available_parallelism().map_or(1, usize::from),
            Threads::Fixed(number) => number.get() as usize,
        }
}
