//! CLIENT, as far as it concerns the client's own connection: shardwise tells a client of itself, never of others.

use std::rc::Rc;

use super::conn::ClientConn;
use super::local::{Answer, integer, simple};
use super::session::{Session, Verdict};
use crate::exchange::{Outbox, Recipient, Replies};
use crate::resp::{Args, ErrorReply, Protocol, encode};

/// What a client says of the library that it uses (CLIENT SETINFO); empty: nothing.
#[derive(Debug, Default)]
pub(super) struct Library {
    pub(super) name: Box<[u8]>,
    pub(super) version: Box<[u8]>,
}

/// CLIENT INFO.
pub(super) fn info(command: &str, session: &Session, client: &ClientConn, out: &mut Vec<u8>) -> Answer {
    session.target.protocol.text(out, &line(command, session, client));
    Ok(())
}

/// CLIENT LIST \[TYPE type | ID id …\]: the client itself, if it is among those that are asked for.
pub(super) fn list(args: Args<'_>, session: &Session, client: &ClientConn, out: &mut Vec<u8>) -> Answer {
    let is_word = |at: usize, word: &[u8]| args.get(at).is_some_and(|arg| arg.eq_ignore_ascii_case(word));
    let is_listed = match args.len() {
        2 => true,
        4 if is_word(2, b"TYPE") => match args.get(3).unwrap_or_default() {
            kind if kind.eq_ignore_ascii_case(b"normal") => !session.is_subscribed(),
            kind if kind.eq_ignore_ascii_case(b"pubsub") => session.is_subscribed(),
            kind if [&b"master"[..], b"slave", b"replica"]
                .iter()
                .any(|other| kind.eq_ignore_ascii_case(other)) =>
            {
                false
            }
            kind => return Err(ErrorReply::client_type(kind)),
        },
        4.. if is_word(2, b"ID") => {
            let ids: Option<Vec<i64>> = args.iter_from(3).map(integer).collect();
            ids.ok_or_else(ErrorReply::client_id)?.contains(&(client.id() as i64))
        }
        _ => return Err(ErrorReply::syntax_error()),
    };
    let text = if is_listed { line("client|list", session, client) } else { Vec::new() };
    session.target.protocol.text(out, &text);
    Ok(())
}

/// CLIENT REPLY ON | OFF | SKIP. Only ON is answered.
pub(super) fn reply(args: Args<'_>, recipient: &Rc<dyn Recipient>) -> Result<Verdict, ErrorReply> {
    let word = args.get(2).unwrap_or_default();
    let outbox = recipient.outbox();
    if word.eq_ignore_ascii_case(b"ON") {
        outbox.set_replies(Replies::On);
        Outbox::answer(recipient, |out| encode::simple(out, "OK"));
    } else if word.eq_ignore_ascii_case(b"OFF") {
        outbox.set_replies(Replies::Off);
    } else if word.eq_ignore_ascii_case(b"SKIP") {
        if outbox.replies() == Replies::On {
            outbox.set_replies(Replies::SkipNext);
        }
    } else {
        return Err(ErrorReply::syntax_error());
    }
    Ok(Verdict::Done)
}

/// CLIENT NO-EVICT and NO-TOUCH ON | OFF: accepted. The proxy evicts no client for its memory, and whether a read counts as
/// one is a matter of server connections, which are shared.
pub(super) fn switch(args: Args<'_>, out: &mut Vec<u8>) -> Answer {
    let word = args.get(2).unwrap_or_default();
    if word.eq_ignore_ascii_case(b"ON") || word.eq_ignore_ascii_case(b"OFF") {
        return simple("OK", out);
    }
    Err(ErrorReply::syntax_error())
}

/// CLIENT TRACKINGINFO of a client that tracks nothing.
pub(super) fn tracking_info(protocol: Protocol, out: &mut Vec<u8>) -> Answer {
    protocol.map(out, 3);
    encode::bulk(out, b"flags");
    protocol.set(out, 1);
    encode::bulk(out, b"off");
    encode::bulk(out, b"redirect");
    encode::integer(out, -1);
    encode::bulk(out, b"prefixes");
    encode::array(out, 0);
    Ok(())
}

/// A line as CLIENT LIST has it, with the fields that a proxy knows.
fn line(command: &str, session: &Session, client: &ClientConn) -> Vec<u8> {
    let (remote, local) = client.addresses();
    let (id, db) = (client.id(), session.target.db);
    let resp = session.target.protocol.number();
    let [sub, psub, ssub] = session.subscriptions.as_ref().map_or([0; 3], |own| own.counts());
    let flag = if session.is_subscribed() { 'P' } else { 'N' };
    let mut line = format!("id={id} addr={remote} laddr={local} name=").into_bytes();
    line.extend_from_slice(session.name.as_deref().unwrap_or_default());
    line.extend_from_slice(
        format!(" flags={flag} db={db} cmd={command} user=default redir=-1 resp={resp}").as_bytes(),
    );
    line.extend_from_slice(format!(" sub={sub} psub={psub} ssub={ssub}").as_bytes());
    let library = session.library.as_deref();
    line.extend_from_slice(b" lib-name=");
    line.extend_from_slice(library.map_or(&[], |library| &library.name));
    line.extend_from_slice(b" lib-ver=");
    line.extend_from_slice(library.map_or(&[], |library| &library.version));
    line.push(b'\n');
    line
}
