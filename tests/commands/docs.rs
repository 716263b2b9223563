//! `docs/commands.md` is what the table says. `UPDATE_DOCS=1 cargo test --test commands` writes it anew.

use std::fmt::Write;
use std::path::Path;

use shardwise::command::{
    AllKind, BeginSearch, CommandIx, CommandTable, FindKeys, Group, Handling, KeyFlags, KeySpec, Origin, Row,
    SplitKind, Unless,
};

const GROUPS: &[(Group, &str)] = &[
    (Group::String, "Strings"),
    (Group::Bitmap, "Bitmaps"),
    (Group::Hash, "Hashes"),
    (Group::List, "Lists"),
    (Group::Set, "Sets"),
    (Group::SortedSet, "Sorted sets"),
    (Group::Stream, "Streams"),
    (Group::Geo, "Geo sets"),
    (Group::HyperLogLog, "HyperLogLogs"),
    (Group::Generic, "Keys of any type"),
    (Group::Scripting, "Scripts and functions"),
    (Group::Connection, "The connection"),
    (Group::Server, "Servers"),
    (Group::Transactions, "Transactions"),
    (Group::PubSub, "Publish/subscribe"),
    (Group::Cluster, "Redis Cluster"),
];

const INTRODUCTION: &str = "\
<!-- Generated from the command table by `UPDATE_DOCS=1 cargo test --test commands`. Don't edit. -->
# Commands

What shardwise does with each command of Redis 7.0 and Valkey. The rows below are the table that the program itself works
with; a test compares it with live servers.

## How a command is handled

- **One key**: goes to the server that owns the key. Its reply comes back unchanged.
- **Keys together**: goes to a server as a whole, so all its keys must belong to the same server; else the answer is
  `-CROSSSLOT …`, and nothing was done. A pool's `hash_tag` is the way to keep keys together. Without a key (`EVAL` with 0
  keys), any server will do.
- **Split**: cut into one part for each server concerned, and the replies made into one. For the client it is one
  command; for the servers it isn't, see below.
- **Keys together, own connection**: like that, on a connection to the server that the client has for itself meanwhile.
- **Transaction**: see below.
- **Any server**: has no key, and every server gives the same answer or an equally good one. It goes to the first live
  server in the order of the names, always the same one while that lives.
- **Every server**: has no key and concerns the keys, scripts or functions of all; it goes to every server of the pool, and the
  replies are made into one. See below.
- **Subscription**, **owner of the channel**: see publish/subscribe below.
- **shardwise**: answered by the proxy itself.
- **Not supported**: answered with an error as below.

A call with contradictory arguments (a number of keys that is no number, a stream without an id) goes to any server, which
answers it with the error that a client of Redis expects. A wrong number of arguments is answered by shardwise in Redis's words.

## Commands that only servers know

Commands of modules, and of servers newer than the tables below, work as soon as a server of the pool has them. At the start, and when
a server comes back, shardwise asks it with `COMMAND` on a connection of its own, and learns what the tables lack: how many
arguments a command takes, whether it writes, where its keys are. It then goes to the owner of its keys, on a connection of its client's own if it may
block; all its keys must belong to one server. `COMMAND`, `COMMAND COUNT`, `LIST`, `INFO` and `GETKEYS` show it. `read_only` and
`commands` hold for it by what the server says of it and by its name. Servers of a pool may differ: who lacks it answers
so itself.

Refused, with an error that says why, is what cannot be routed by that: a command whose keys the server doesn't publish in
full (`movablekeys` without key specs for it, as with a module's own function for `COMMAND GETKEYS`; an unknown or incomplete spec;
more than two specs), one without a key unless its tips say that it goes to all shards and how their replies are added up, and one that
servers of the pool publish differently. A pool of one server takes these, too. Commands for administration and those
that change the state of a connection are refused everywhere.

Not more than 1024 commands of a pool are learned, nor more than 1 MB in the life of the process. `MODULE LOAD` into a running server is noticed
when a connection to it is next lost or, half a minute later, opened. `learn_commands: false` turns it off. A command that no server knows
gets Redis's own error.

## Order

Replies come in the order of the requests, always. Requests of one client for *the same* server are also executed in
their order. Between *different* servers only the order of replies is promised: when a client sends `SET a 1` and `SET b 2`
without waiting in between, and their keys live on different servers, `b` may be set first. A client that needs one
before the other waits for the reply.

## Split commands

`MGET` gives its values in the order of the keys. `DEL`, `UNLINK`, `EXISTS` and `TOUCH` give the sum of what the servers
counted. `MSET` is OK if all servers say so. Keys named twice count twice where Redis counts them twice.

A split command isn't atomic across servers: another client can see, or change, what one server has done before the next
one has. If any part fails, the answer is an error as a whole, never a value or a count that leaves keys out; the other
parts may have been executed by then, so after a failed `MSET` or `DEL` some keys may have changed.

`MSETNX` is never split: it would have to undo what other servers did.

## Every server

`DBSIZE`, `KEYS`, `RANDOMKEY`, `FLUSHALL`, `FLUSHDB`, and what loads or removes scripts and functions go to every server of the
pool, ejected ones too. If one is dead, or answers with an error, that is the answer: never a count or a list that leaves
keys out. Like a split command they aren't atomic: what other servers did stays done, and `FUNCTION LOAD` of a library that
some servers have already is an error while the others load it (`REPLACE` isn't).

`KEYS` collects all names in the proxy's memory before it answers, as a server does; use `SCAN`. `FLUSHALL` empties every
database of every server, whatever the pool's `redis_db`.

`INFO` is shardwise's own, with Redis's names for sections and fields and nothing that isn't true of a proxy. Its section
Keyspace adds up what the servers say. While one of them doesn't answer there is no sum, but a line
`keyspace_incomplete:` with the reason; the rest is answered all the same, because clients ask `INFO` to see whether they are
connected.

## SCAN

`SCAN` goes through the servers one after the other, in the order of their names. Its cursor is that of the server, times 1024,
plus the server's position among the pool's servers. So a cursor means the same to every shardwise with the same file,
nothing is remembered between two calls, and cursors stay below 2^53, exact in JavaScript. `MATCH`, `COUNT` and `TYPE` go
through. Like a server's own, a scan finds every key that is there from its beginning to its end, and may find a key twice.

When the server that it has come to is dead, the answer is its error: the scan goes on with the same cursor when it is
back. A cursor that leads to no server (the file has lost one since) is an error too. Neither is ever the end, which would
hide keys. Nor is a cursor with a sign, which Redis takes for a large number. After a change of the list of servers begin anew: positions may mean other servers, and keys have moved.
A pool of more than 1024 servers, and a server that answers with a cursor of 2^43 or more, cannot be scanned, and the error says
so.

## Scripts

Scripts and functions run on the server that has their keys; all keys must live together, and a script may use no others.
Without a key they run on the first live server.

A client loads a script once and then calls it by its SHA-1, wherever its keys live. So shardwise remembers the scripts that
it sees in `EVAL` and `SCRIPT LOAD`, for each pool, and puts a `SCRIPT LOAD` in front of an `EVALSHA` for a server of which it doesn't
know that it has the script. When the server says `NOSCRIPT` all the same (somebody flushed its scripts), the script is loaded and
called once more, unless the client has sent more to that server meanwhile: its order comes first, and the client gets
`NOSCRIPT`. 16 MB of scripts are remembered in the process, the least recently used go first; one of more than 4 MB isn't. `SCRIPT
FLUSH` forgets those of the pool. A script that nobody has shown to this process is `NOSCRIPT`, as in Redis.
## Transactions

`MULTI`, `EXEC`, `DISCARD`, `WATCH` and `UNWATCH` do what they do on one Redis, for keys of one server: the first command with a
key, or the first `WATCH`, says which. A key of another server is answered by `-CROSSSLOT …`, and `EXEC` then by `-EXECABORT …`, as after
any other command that could not be queued. Keys that share a hash tag are on one server. A transaction without any key works, too.

From its first key to the reply of `EXEC` or `DISCARD` a client has a connection to that server for itself, out of a pool of
kept ones; `max_leases` says how many clients may have one at once for each server. When that connection is lost, so is the
transaction, or the watch: the next `EXEC` says `-EXECABORT Transaction discarded because of: the connection to … was lost`.

What concerns the client's connection and not the data (`SELECT`, `AUTH`, `HELLO`, `CLIENT …`, `CONFIG …`) can't be queued: it is
answered by Redis's `-ERR Command not allowed inside a transaction`. So is what spans all servers (`SCAN`, `KEYS`, `DBSIZE`, `RANDOMKEY`,
`FLUSHALL`, `SCRIPT LOAD`, `INFO` and so on): a transaction has one. Redis queues both kinds.

## Databases and protocols

`SELECT` and `HELLO` change the client that sends them and nobody else: its requests then go over server connections for that database
and protocol, which are opened when they are first needed. `HELLO 3` needs servers that speak RESP3 (Redis 6).

## Blocking commands

`BLPOP` and its like, and `XREAD` and `XREADGROUP` with `BLOCK`, wait on a connection that the client has for itself, so nobody
else waits with it. What the client sends behind is looked at when it has been answered, as in Redis. The pool's `timeout` begins when the
time is over that the client asked for. When the client closes its connection, that to the server is closed at once, so no element is
taken for a client that is known to have gone. When the proxy shuts down, clients that wait get an error.

## Publish/subscribe

A channel belongs to a server like a key of the same name: `SUBSCRIBE` and `PUBLISH` meet there. Patterns, and the channels of the
servers' own events (`__keyspace@…`, `__keyevent@…`), are subscribed to at every live server, and so is every channel where
`distribution: random` draws the owner. Whoever publishes or subscribes past the proxy must do it at the owner.

A worker subscribes once at a server, over one connection, for all of its clients that want the same channel or pattern. So
the number that `PUBLISH` answers, and those of `PUBSUB NUMSUB`, count one for each worker that has a subscriber, not one
for each client; `PUBSUB` shows what all proxies have subscribed to. A channel and a pattern that both fit a message give it twice, as in Redis.

The confirmation comes when the subscription stands at the servers, and what the client has sent behind `SUBSCRIBE` is looked at
then: it hears what it publishes itself. If a server cannot be reached, the answer for that channel is an error that names the server, in
the place of the confirmation. When a server is lost later, its clients stay connected and are told nothing: the proxy tries
again as for other connections and subscribes anew. What is published meanwhile is missing, as with any subscriber that reconnects;
a line in the log and `shardwise_server_subscription_gaps_total` say so. When a channel gets another owner, by a reload or an ejection, the subscription moves.

A RESP2 client that is subscribed may say what Redis allows it, and `PING` is answered then whatever the pool's `ping` says. A RESP3
client goes on with any command; messages are pushes, and stand behind the replies that are still awaited when they come. `SUBSCRIBE`
and its like cannot be queued in a transaction. A subscribed client is exempt from `idle_timeout`. One that doesn't read is bounded like any other, by
`out_hard` and `out_stall`; set `out_hard` as you would set Redis's `client-output-buffer-limit pubsub`. A client may have 100,000
subscriptions. At a shutdown subscribed clients are closed; when another process takes over, they stay with the old one until `drain_timeout`.

## SORT with BY and GET

Only the key that is sorted and the destination behind `STORE` decide where `SORT` goes, and they must live together. The
names of other keys that `BY` and `GET` patterns build from the elements are known to the server alone; it looks for them in its
own data, and takes those that live elsewhere for absent. Use patterns only with keys that a hash tag keeps on one server.

## Commands of which some calls are supported

`COPY` is supported without `DB`.

## What is not supported

The answer is an error in its place among the replies; the connection lives, and what was sent behind it is answered. It
begins like that of a Redis that doesn't know the command, so that clients do without it, and then says what is missing:

```
-ERR unknown command 'MONITOR', shardwise does not support the administration of servers
```

`COMMAND`, `COMMAND INFO` and the like tell only what is supported.

## The tables

Keys are counted as arguments: 1 is the one behind the command's name. What follows the name of a sub-command is argument 2.
";

/// What tests/proxy/compare.rs leaves out: the one list of both.
const DIFFERENCES: &str = include_str!("../proxy/calls/differences.txt");

const DIFFERENCES_INTRODUCTION: &str = "
## Where answers differ

A test asks one Redis and a pool of three shards the same, more than 700 calls by clients of RESP2 and of RESP3 in turn on one
port. All answers are equal to the byte (those without an order in their elements, those of chance in their type), but for
what is not supported, what would span servers, and these:

| Command | Difference |
|---|---|
";

#[test]
fn commands_md_is_what_the_table_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
    let expected = document(CommandTable::builtin());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("it has a folder")).expect("the folder is writable");
        std::fs::write(&path, &expected).expect("the file is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == expected, "docs/commands.md is out of date: UPDATE_DOCS=1 cargo test --test commands");
}

fn document(table: &CommandTable) -> String {
    let mut text = INTRODUCTION.to_owned();
    for (group, title) in GROUPS {
        write!(text, "\n### {title}\n\n| Command | Handling | Keys | Note |\n|---|---|---|---|\n").unwrap();
        for (ix, row) in table.rows().filter(|(ix, _)| table.group(*ix) == *group) {
            if let Some(name) = listed_as(table, ix, row) {
                let (handling, keys, note) = (handling(row), keys(row.keys), note(row));
                writeln!(text, "| {name} | {handling} | {keys} | {note} |").unwrap();
            }
        }
    }
    text.push_str(DIFFERENCES_INTRODUCTION);
    for (name, reason) in DIFFERENCES.lines().filter_map(|line| line.split_once(": ")) {
        writeln!(text, "| {} | {reason} |", name.replace('|', " ").to_uppercase()).unwrap();
    }
    text
}

/// The name under which a row is listed. A container is listed only if nothing of it is supported, and its sub-commands
/// only if something is.
fn listed_as(table: &CommandTable, ix: CommandIx, row: &Row) -> Option<String> {
    let name = row.name.replace('|', " ").to_uppercase();
    let container = row.name.split('|').next().expect("a name has a first part");
    let container = table.command_named(container.as_bytes());
    match (row.name.contains('|'), !row.subs.is_empty()) {
        (true, _) => container.map(|_| name),
        (false, false) => Some(name),
        (false, true) if row.name == "command" => Some(name),
        (false, true) => (table.command_named(row.name.as_bytes()) != Some(ix)).then(|| format!("{name} …")),
    }
}

fn handling(row: &Row) -> String {
    match row.usual_handling() {
        Handling::Keyed if has_one_key(row.keys) => "one key".to_owned(),
        Handling::Keyed => "keys together".to_owned(),
        Handling::Split(SplitKind::Concat) => "split: values in order".to_owned(),
        Handling::Split(SplitKind::AllOk) => "split: OK if all are".to_owned(),
        Handling::Split(SplitKind::Sum) => "split: sum".to_owned(),
        Handling::Pinned(_) => "keys together, own connection".to_owned(),
        Handling::Wait => "every server that the client wrote to: the least".to_owned(),
        Handling::Transaction(_) => "transaction".to_owned(),
        Handling::AnyServer => "any server".to_owned(),
        Handling::OnlyServer(why) => {
            format!("the server of a pool with just one; else not supported: {}", why.phrase())
        }
        Handling::Everywhere(AllKind::Sum) => "every server: sum".to_owned(),
        Handling::Everywhere(AllKind::Same) => "every server: what all say".to_owned(),
        Handling::Everywhere(AllKind::Join) => "every server: all elements".to_owned(),
        Handling::Everywhere(AllKind::And) => "every server: 1 where all say 1".to_owned(),
        Handling::Everywhere(AllKind::Draw) => "every server: one is drawn".to_owned(),
        Handling::Scan => "one server after the other".to_owned(),
        Handling::Everywhere(AllKind::Max) => "every server: the greatest number".to_owned(),
        Handling::Everywhere(AllKind::Counts) => "every server: the sum for each channel".to_owned(),
        Handling::Subscribe(_) => "subscription".to_owned(),
        Handling::Unsubscribe(_) => "subscription".to_owned(),
        Handling::Publish => "owner of the channel".to_owned(),
        Handling::Local(_) => "shardwise".to_owned(),
        Handling::Unsupported(why) => format!("not supported: {}", why.phrase()),
    }
}

fn has_one_key(specs: &[KeySpec]) -> bool {
    matches!(specs, [KeySpec { begin: BeginSearch::Index(_), find: FindKeys::Range { last: 0, .. }, .. }])
}

fn keys(specs: &[KeySpec]) -> String {
    let mut text = String::new();
    for spec in specs.iter().filter(|spec| !spec.flags.contains(KeyFlags::NOT_KEY)) {
        let Some(place) = place(spec) else { continue };
        let goes_on = matches!((spec.begin, spec.find), (BeginSearch::Index(_), FindKeys::Range { .. }));
        let between = if text.is_empty() {
            ""
        } else if goes_on {
            ", "
        } else {
            "; "
        };
        text = text + between + &place;
    }
    text
}

fn place(spec: &KeySpec) -> Option<String> {
    let find = match spec.find {
        FindKeys::Range { last, step, limit } => (last, step, limit),
        FindKeys::KeyNum { number, first, step } => {
            let BeginSearch::Index(at) = spec.begin else { return None };
            let series = series((at + first).into(), -1, step.into());
            return Some(format!("{series} (as many as argument {} says)", at + number));
        }
        FindKeys::Unknown => return None,
    };
    Some(match (spec.begin, find) {
        (BeginSearch::Index(at), (last, step, _)) => series(at.into(), last.into(), step.into()),
        (BeginSearch::Keyword { word, .. }, (0, ..)) => format!("behind `{word}`"),
        (BeginSearch::Keyword { word, .. }, (_, _, 2)) => format!("first half behind `{word}`"),
        (BeginSearch::Keyword { word, .. }, _) => format!("all behind `{word}`"),
        (BeginSearch::Unknown, _) => return None,
    })
}

/// `1`, or `1, 2`, or `1, 3, …`.
fn series(first: usize, last: isize, step: usize) -> String {
    match usize::try_from(last) {
        Ok(last) => {
            (first..=first + last).step_by(step).map(|at| at.to_string()).collect::<Vec<_>>().join(", ")
        }
        Err(_) => format!("{first}, {}, …", first + step),
    }
}

fn note(row: &Row) -> String {
    let own = match row.name {
        "sort" => "the destination behind `STORE`, too; `BY` and `GET`: see above",
        "sort_ro" => "`BY` and `GET`: see above",
        "georadius" | "georadiusbymember" => {
            "if there are several destinations, the last one counts, as in Redis"
        }
        "pfmerge" => "without sources: the destination alone",
        "ping" => "if the pool says `ping: reply`; else refused as an unknown command",
        "client|list" => "the client itself",
        "client|reply" => "what is sent while replies are off is carried out all the same",
        "client|no-evict" | "client|no-touch" | "readonly" | "readwrite" => "accepted; changes nothing",
        "select" => "the databases below the pool's `databases`",
        "config|get" => "the parameters that tools ask for",
        "evalsha" | "evalsha_ro" => "loads the script where it is missing, see above",
        "info" => "see above",
        "scan" => "see above",
        "flushall" => "all databases",
        "publish" | "spublish" | "pubsub|numsub" | "pubsub|shardnumsub" => {
            "counts each proxy's worker as one subscriber, see above"
        }
        "psubscribe" => "at every live server",
        "subscribe" => "`__keyspace@…` and `__keyevent@…`: at every live server",
        "pubsub|channels" | "pubsub|shardchannels" => {
            "a channel of keyspace events is there once for each server"
        }
        "ssubscribe" | "sunsubscribe" => "the owner is found by the pool's hash, not by slots",
        "time" => "the clock of that server",
        _ => "",
    };
    let unless = match row.unless {
        Unless::Never => "",
        Unless::Block => "with `BLOCK`: own connection",
        Unless::Database => "not supported with `DB`",
    };
    let origin = if row.origin == Origin::Valkey { "not in Redis 7.0" } else { "" };
    [own, unless, origin].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
}
