//! HELLO: protocol, authentication and name in one request.

use super::local;
use super::session::Session;
use crate::backend::Target;
use crate::config;
use crate::resp::{Args, ErrorReply, Protocol, encode};

/// HELLO [protover [AUTH user password] [SETNAME name]].
///
/// Nothing is changed unless the whole request is right. The answer is in the protocol that was asked for.
pub(super) fn hello(
    session: &mut Session,
    args: Args<'_>,
    pool: &config::Pool,
    id: u64,
    out: &mut Vec<u8>,
) -> Result<(), ErrorReply> {
    let protocol = match args.get(1).map(local::integer) {
        None => session.target.protocol,
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return Err(ErrorReply::no_proto()),
        Some(None) => return Err(ErrorReply::hello_not_a_version()),
    };
    let options = options(args)?;
    let target = session.may_change_target(Target { protocol, ..session.target })?;
    if let Some((user, password)) = options.auth {
        session.auth_user(user, password, pool)?;
    }
    if !session.authenticated {
        return Err(ErrorReply::hello_no_auth());
    }
    if let Some(name) = options.name {
        local::set_name(session, name)?;
    }
    session.target = target;
    let facts: [(&str, &str); 5] = [
        ("server", "redis"),
        ("version", local::REDIS_VERSION),
        ("mode", "standalone"),
        ("role", "master"),
        ("proxy", concat!("shardwise-", env!("CARGO_PKG_VERSION"))),
    ];
    protocol.map(out, facts.len() + 3);
    for (name, value) in facts {
        encode::bulk(out, name.as_bytes());
        encode::bulk(out, value.as_bytes());
    }
    encode::bulk(out, b"proto");
    encode::integer(out, protocol.number());
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
