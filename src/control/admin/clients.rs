//! CLIENT and CONFIG: who is there, and what is set.

use std::time::Duration;

use super::info::command_name;
use super::times::whole;
use super::{Admin, Answered};
use crate::command::CommandTable;
use crate::resp::{Args, ErrorReply, encode};
use crate::worker::{Ask, ClientInfo, KillFilter, SLOW_KEPT};

/// Longest pause: a day.
const LONGEST_PAUSE: u64 = 86_400_000;

impl Admin {
    /// CLIENT LIST.
    pub(super) async fn client_list(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let id = match (args.get(2), args.get(3)) {
            (None, _) => None,
            (Some(word), Some(id)) if word.eq_ignore_ascii_case(b"id") => Some(whole(id)?),
            (Some(word), Some(kind))
                if word.eq_ignore_ascii_case(b"type") && kind.eq_ignore_ascii_case(b"normal") =>
            {
                None
            }
            _ => return Err(ErrorReply::syntax_error()),
        };
        let mut lines = Vec::new();
        for (worker, clients) in self.ask_all(|to| Ask::Clients(id, to)).await {
            lines.extend(clients.into_iter().map(|client| (client.id, line(worker, &client))));
        }
        lines.sort_by_key(|(id, _)| *id);
        let text: String = lines.into_iter().map(|(_, line)| line).collect();
        encode::bulk(out, text.as_bytes());
        Ok(())
    }

    /// CLIENT KILL: the old form is told whether the one client was there, the new one how many.
    pub(super) async fn client_kill(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let mut filter = KillFilter::default();
        let old_form = args.len() == 3;
        if old_form {
            filter.address = args.get(2).map(text);
        }
        let mut rest = args.iter_from(2);
        while !old_form && let Some(word) = rest.next() {
            let value = rest.next().ok_or_else(ErrorReply::syntax_error)?;
            match word.to_ascii_lowercase().as_slice() {
                b"id" => filter.id = Some(whole(value)?),
                b"addr" => filter.address = Some(text(value)),
                b"laddr" => filter.local_address = Some(text(value)),
                b"pool" => filter.pool = Some(text(value)),
                b"maxage" => filter.max_age = Some(whole(value)?),
                b"skipme" => {}
                b"type" if value.eq_ignore_ascii_case(b"normal") => {}
                _ => return Err(ErrorReply::syntax_error()),
            }
        }
        let killed: u64 = self.ask_all(|to| Ask::Kill(filter.clone(), to)).await.iter().map(|(_, n)| n).sum();
        match (old_form, killed) {
            (true, 0) => return Err(ErrorReply::no_such_client()),
            (true, _) => encode::simple(out, "OK"),
            (false, killed) => encode::integer(out, killed as i64),
        }
        Ok(())
    }

    /// CLIENT PAUSE: everything waits; writes can't be paused alone.
    pub(super) fn client_pause(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let limit = whole(args.get(2).unwrap_or_default())?.min(LONGEST_PAUSE);
        if args.get(3).is_some_and(|mode| !mode.eq_ignore_ascii_case(b"all")) {
            return Err(ErrorReply::syntax_error());
        }
        self.tell_all(|| Ask::Pause(Some(Duration::from_millis(limit))));
        encode::simple(out, "OK");
        Ok(())
    }

    /// CONFIG GET: names that fit any of the patterns.
    pub(super) fn config_get(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let fits = |name: &str| args.iter_from(2).any(|pattern| CommandTable::glob(pattern, name.as_bytes()));
        let found: Vec<_> = self.settings().into_iter().filter(|(name, _)| fits(name)).collect();
        encode::array(out, found.len() * 2);
        for (name, value) in found {
            encode::bulk(out, name.as_bytes());
            encode::bulk(out, value.as_bytes());
        }
        Ok(())
    }

    /// CONFIG SET of the one setting that can change without a reload.
    pub(super) fn config_set(&self, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let name = args.get(2).unwrap_or_default();
        if !name.eq_ignore_ascii_case(b"slowlog-log-slower-than") {
            return Err(ErrorReply::not_settable(&String::from_utf8_lossy(name)));
        }
        let micros = match args.get(3).unwrap_or_default() {
            b"-1" => u64::MAX,
            text => whole(text)?,
        };
        self.slower_than.set(micros);
        self.tell_all(|| Ask::SlowerThan(micros));
        encode::simple(out, "OK");
        Ok(())
    }

    /// Settings under Redis's names where it has them, and under their own.
    fn settings(&self) -> Vec<(String, String)> {
        let sources = self.sources.now();
        let config = &sources.config;
        let slower_than = match self.slower_than.get() {
            u64::MAX => "-1".to_owned(),
            micros => micros.to_string(),
        };
        let mut settings: Vec<(String, String)> = [
            ("maxclients", self.max_clients().to_string()),
            ("slowlog-log-slower-than", slower_than),
            ("slowlog-max-len", (SLOW_KEPT * sources.workers.len()).to_string()),
            ("maxmemory", "0".to_owned()),
            ("save", String::new()),
            ("appendonly", "no".to_owned()),
            ("threads", config.process.threads.to_string()),
            ("drain_timeout", format!("{:?}", config.process.drain_timeout)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for pool in &config.pools {
            let timeout = pool.timeout.map_or("0".to_owned(), |timeout| timeout.as_millis().to_string());
            let values = [
                ("listen", pool.listen.to_string()),
                ("timeout", timeout),
                ("servers", pool.servers.len().to_string()),
                ("server_connections", pool.server_connections.to_string()),
                ("auto_eject_hosts", pool.auto_eject_hosts.to_string()),
                ("read_only", pool.read_only.to_string()),
            ];
            settings.extend(values.map(|(key, value)| (format!("{}.{key}", pool.name), value)));
        }
        settings
    }
}

/// A client in the form of Redis's CLIENT LIST, with pool and worker behind.
fn line(worker: usize, client: &ClientInfo) -> String {
    let ClientInfo {
        id,
        pool,
        address,
        local_address,
        name,
        age,
        idle,
        command,
        pending,
        unsent,
        unread,
        ..
    } = client;
    let [sub, psub, ssub] = client.subscriptions;
    let flag = if sub + psub + ssub > 0 { 'P' } else { 'N' };
    format!(
        "id={id} addr={address} laddr={local_address} fd=-1 name={name} age={} idle={} flags={flag} db=0 sub={sub} psub={psub} ssub={ssub} \
         multi=-1 qbuf={unread} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll={pending} omem={unsent} \
         tot-mem={} events=r cmd={} user=default redir=-1 resp=2 pool={pool} worker={worker}\n",
        age.as_secs(),
        idle.as_secs(),
        unread + unsent,
        command_name(*command),
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
