//! CLIENT: who is there.

use std::time::Duration;

use super::info::command_name;
use super::times::whole;
use super::{Admin, Answered};
use crate::resp::{Args, ErrorReply, encode};
use crate::worker::{Ask, ClientInfo, KillFilter};

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
        db,
        protocol,
        ..
    } = client;
    let resp = protocol.number();
    let [sub, psub, ssub] = client.subscriptions;
    let flag = if sub + psub + ssub > 0 { 'P' } else { 'N' };
    format!(
        "id={id} addr={address} laddr={local_address} fd=-1 name={name} age={} idle={} flags={flag} db={db} sub={sub} psub={psub} ssub={ssub} \
         multi=-1 qbuf={unread} qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll={pending} omem={unsent} \
         tot-mem={} events=r cmd={} user=default redir=-1 resp={resp} pool={pool} worker={worker}\n",
        age.as_secs(),
        idle.as_secs(),
        unread + unsent,
        command_name(*command),
    )
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
