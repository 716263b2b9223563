//! HELLO: protocol, authentication and name in one request.

use super::local;
use super::session::Session;
use crate::config;
use crate::resp::{Args, ErrorReply, encode};

/// HELLO [protover [AUTH user password] [SETNAME name]].
///
/// Nothing is changed unless the whole request is right. RESP3 isn't spoken yet: `NOPROTO` is Redis's own word for
/// it, upon which clients go on with RESP2.
pub(super) fn hello(
    session: &mut Session,
    args: Args<'_>,
    pool: &config::Pool,
    id: u64,
    out: &mut Vec<u8>,
) -> Result<(), ErrorReply> {
    if let Some(version) = args.get(1) {
        match local::integer(version) {
            None => return Err(ErrorReply::hello_not_a_version()),
            Some(2) => {}
            Some(_) => return Err(ErrorReply::no_proto()),
        }
    }
    let options = options(args)?;
    if let Some((user, password)) = options.auth {
        session.auth_user(user, password, pool)?;
    }
    if !session.authenticated {
        return Err(ErrorReply::hello_no_auth());
    }
    if let Some(name) = options.name {
        local::set_name(session, name)?;
    }
    let facts: [(&str, &str); 5] = [
        ("server", "redis"),
        ("version", local::REDIS_VERSION),
        ("mode", "standalone"),
        ("role", "master"),
        ("proxy", concat!("shardwise-", env!("CARGO_PKG_VERSION"))),
    ];
    encode::array(out, facts.len() * 2 + 6);
    for (name, value) in facts {
        encode::bulk(out, name.as_bytes());
        encode::bulk(out, value.as_bytes());
    }
    encode::bulk(out, b"proto");
    encode::integer(out, 2);
    encode::bulk(out, b"id");
    encode::integer(out, id as i64);
    encode::bulk(out, b"modules");
    encode::array(out, 0);
    Ok(())
}

#[derive(Default)]
struct Options<'a> {
    auth: Option<(&'a [u8], &'a [u8])>,
    name: Option<&'a [u8]>,
}

fn options(args: Args<'_>) -> Result<Options<'_>, ErrorReply> {
    let mut options = Options::default();
    let mut at = 2;
    while let Some(word) = args.get(at) {
        if word.eq_ignore_ascii_case(b"AUTH")
            && let (Some(user), Some(password)) = (args.get(at + 1), args.get(at + 2))
        {
            options.auth = Some((user, password));
            at += 3;
        } else if word.eq_ignore_ascii_case(b"SETNAME")
            && let Some(name) = args.get(at + 1)
        {
            options.name = Some(name);
            at += 2;
        } else {
            return Err(ErrorReply::hello_syntax(word));
        }
    }
    Ok(options)
}
