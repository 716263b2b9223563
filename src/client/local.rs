//! Answers that need no server.

use super::about;
use super::session::Session;
use crate::backend::Target;
use crate::command::{ClientQuery, CommandInfo, CommandIx, CommandQuery, CommandTable, Learned, Row};
use crate::config::{self, Ping};
use crate::resp::{Args, ErrorReply, Protocol, encode};

/// The version of Redis whose behaviour shardwise shows, for clients that look at it.
pub(super) const REDIS_VERSION: &str = "7.0.15";

/// The parameters that redis-benchmark and others ask for. A proxy saves nothing itself.
const PARAMETERS: [(&str, &str); 2] = [("save", ""), ("appendonly", "no")];

/// An answer has been written, or an error is the answer.
pub(super) type Answer = Result<(), ErrorReply>;

pub(super) fn simple(text: &str, out: &mut Vec<u8>) -> Answer {
    encode::simple(out, text);
    Ok(())
}

pub(super) fn bulk(bytes: &[u8], out: &mut Vec<u8>) -> Answer {
    encode::bulk(out, bytes);
    Ok(())
}

pub(super) fn ping(args: Args<'_>, pool: &config::Pool, out: &mut Vec<u8>) -> Answer {
    match (pool.ping, args.get(1), args.len()) {
        (Ping::Reject, ..) => Err(ErrorReply::ping_rejected(&pool.name)),
        (Ping::Reply, None, _) => simple("PONG", out),
        (Ping::Reply, Some(message), 2) => bulk(message, out),
        (Ping::Reply, ..) => Err(ErrorReply::wrong_arity("ping")),
    }
}

/// One of the first `databases`, or the pool's own. Keys that are watched belong to a database, and stay the client's only there.
pub(super) fn select(
    args: Args<'_>,
    pool: &config::Pool,
    session: &mut Session,
    out: &mut Vec<u8>,
) -> Answer {
    let db = args.get(1).and_then(integer).ok_or_else(ErrorReply::not_an_integer)?;
    let db = u32::try_from(db).ok().filter(|db| *db < pool.databases.get() || *db == pool.redis_db);
    let db = db.ok_or_else(ErrorReply::db_out_of_range)?;
    session.target = session.may_change_target(Target { db, ..session.target })?;
    simple("OK", out)
}

pub(super) fn config_get(args: Args<'_>, protocol: Protocol, out: &mut Vec<u8>) -> Answer {
    let asked = |name: &str| args.iter_from(2).any(|pattern| CommandTable::glob(pattern, name.as_bytes()));
    let found: Vec<_> = PARAMETERS.iter().filter(|(name, _)| asked(name)).collect();
    protocol.map(out, found.len());
    for (name, value) in found {
        encode::bulk(out, name.as_bytes());
        encode::bulk(out, value.as_bytes());
    }
    Ok(())
}

pub(super) fn client(
    query: ClientQuery,
    args: Args<'_>,
    session: &mut Session,
    id: u64,
    out: &mut Vec<u8>,
) -> Answer {
    match query {
        ClientQuery::Id => encode::integer(out, id as i64),
        ClientQuery::GetName => match &session.name {
            Some(name) => encode::bulk(out, name),
            None => session.target.protocol.null(out),
        },
        ClientQuery::SetName => {
            set_name(session, args.get(2).unwrap_or_default())?;
            encode::simple(out, "OK");
        }
        ClientQuery::SetInfo => {
            set_info(args, session)?;
            encode::simple(out, "OK");
        }
        ClientQuery::NoEvict | ClientQuery::NoTouch => about::switch(args, out)?,
        ClientQuery::GetRedir => encode::integer(out, -1),
        ClientQuery::TrackingInfo => about::tracking_info(session.target.protocol, out)?,
        ClientQuery::Reply | ClientQuery::ClientInfo | ClientQuery::ListClients => {
            unreachable!("the session answers these, which concern more than its own state")
        }
    }
    Ok(())
}

/// An empty name takes the name away, as in Redis.
pub(super) fn set_name(session: &mut Session, name: &[u8]) -> Answer {
    if !name.iter().all(u8::is_ascii_graphic) {
        return Err(ErrorReply::client_name());
    }
    session.name = (!name.is_empty()).then(|| name.into());
    Ok(())
}

/// CLIENT SETINFO LIB-NAME | LIB-VER value: checked as Redis does.
fn set_info(args: Args<'_>, session: &mut Session) -> Answer {
    let (attribute, value) = (args.get(2).unwrap_or_default(), args.get(3).unwrap_or_default());
    let name =
        ["lib-name", "lib-ver"].into_iter().find(|name| attribute.eq_ignore_ascii_case(name.as_bytes()));
    match name {
        None => Err(ErrorReply::setinfo_option(attribute)),
        Some(name) if !value.iter().all(u8::is_ascii_graphic) => Err(ErrorReply::setinfo_value(name)),
        Some(name) => {
            let library = session.library.get_or_insert_default();
            let field = if name == "lib-name" { &mut library.name } else { &mut library.version };
            *field = value.into();
            Ok(())
        }
    }
}

pub(super) fn command(
    query: CommandQuery,
    args: Args<'_>,
    (table, learned): (&CommandTable, &Learned),
    protocol: Protocol,
    out: &mut Vec<u8>,
) -> Answer {
    match query {
        CommandQuery::All => all(table, learned, protocol, out),
        CommandQuery::Count => encode::integer(out, (table.commands().count() + learned.len()) as i64),
        CommandQuery::Info if args.len() == 2 => all(table, learned, protocol, out),
        CommandQuery::Info => {
            encode::array(out, args.len() - 2);
            for name in args.iter_from(2) {
                match (table.command_named(name), learned.command_named(name)) {
                    (Some(ix), _) => info(table, ix, protocol, out),
                    (None, Some(row)) => learned_info(row, protocol, out),
                    (None, None) => protocol.null(out),
                }
            }
        }
        CommandQuery::List => {
            let names = table.list(learned, args)?;
            encode::array(out, names.len());
            names.iter().for_each(|name| encode::bulk(out, name.as_bytes()));
        }
        CommandQuery::GetKeys => {
            let keys = table.getkeys(learned, args).map_err(|error| error.reply())?;
            encode::array(out, keys.len());
            keys.iter().for_each(|key| encode::bulk(out, key));
        }
    }
    Ok(())
}

pub(super) fn help(table: &CommandTable, ix: CommandIx, out: &mut Vec<u8>) -> Answer {
    let lines = table.help(ix);
    encode::array(out, lines.len());
    lines.iter().for_each(|line| encode::simple(out, line));
    Ok(())
}

/// A decimal number as Redis takes it from a client.
pub(super) fn integer(bytes: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn all(table: &CommandTable, learned: &Learned, protocol: Protocol, out: &mut Vec<u8>) {
    encode::array(out, table.commands().count() + learned.len());
    table.commands().for_each(|ix| info(table, ix, protocol, out));
    learned.commands().for_each(|row| learned_info(row, protocol, out));
}

/// One entry of COMMAND: ten fields since Redis 7.0. Key specs are left out: the old form is what clients read.
fn info(table: &CommandTable, ix: CommandIx, protocol: Protocol, out: &mut Vec<u8>) {
    fields(&table.info(ix), protocol, out);
    let subs: Vec<_> = table.subcommands(ix).collect();
    protocol.set(out, subs.len());
    subs.into_iter().for_each(|sub| self::info(table, sub, protocol, out));
}

/// The same of a command that was learned from a server.
fn learned_info(row: &'static Row, protocol: Protocol, out: &mut Vec<u8>) {
    fields(&CommandInfo::of_learned(row), protocol, out);
    protocol.set(out, row.subs.len());
    row.subs.iter().for_each(|sub| learned_info(sub, protocol, out));
}

/// The first nine of the ten.
fn fields(info: &CommandInfo<'_>, protocol: Protocol, out: &mut Vec<u8>) {
    encode::array(out, 10);
    encode::bulk(out, info.row.name.as_bytes());
    encode::integer(out, i64::from(info.row.arity));
    simples(out, protocol, info.row.flags.names());
    for position in [info.range.first, info.range.last, info.range.step] {
        encode::integer(out, i64::from(position));
    }
    simples(out, protocol, info.categories.names());
    let tips: Vec<_> = info.tips().collect();
    protocol.set(out, tips.len());
    tips.iter().for_each(|tip| encode::bulk(out, tip.as_bytes()));
    protocol.set(out, 0);
}

fn simples(out: &mut Vec<u8>, protocol: Protocol, names: impl Iterator<Item = &'static str>) {
    let names: Vec<_> = names.collect();
    protocol.set(out, names.len());
    names.iter().for_each(|name| encode::simple(out, name));
}
