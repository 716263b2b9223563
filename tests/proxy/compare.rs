//! Every keyed command, called a few hundred times on one redis-server and through the proxy over three, by clients of
//! protocol 2 and protocol 3 in turn on one port: the answers are the same to the byte, successes and errors alike.
//!
//! The client of protocol 3 works in a database of its own, so that the two don't see each other's keys. What differs from a
//! single Redis by intent is in `calls/differences.txt`, which is a table of docs/commands.md, too.
//!
//! The calls are in `calls/`, one a line: words, in double quotes where they have spaces or are empty; `@` stands for the
//! last string that the server answered. Commands with several keys that cannot be split use `{tags}`. In front of a call,
//! `~` says that the elements of its answer have no order, and `?` that only the answer's type can be compared, since the
//! answer is chance or time.

use std::collections::BTreeSet;

use shardwise::command::{CommandTable, Handling, Origin};
use shardwise::resp::{ArgSpan, Args};

use crate::support::{Redis, Resp, Shards, Value, encode};

const GROUPS: &[(&str, &str)] = &[
    ("strings", include_str!("calls/strings.txt")),
    ("bitmaps", include_str!("calls/bitmaps.txt")),
    ("hashes", include_str!("calls/hashes.txt")),
    ("lists", include_str!("calls/lists.txt")),
    ("sets", include_str!("calls/sets.txt")),
    ("sorted sets", include_str!("calls/sorted_sets.txt")),
    ("streams", include_str!("calls/streams.txt")),
    ("geo", include_str!("calls/geo.txt")),
    ("hyperloglogs", include_str!("calls/hyperloglogs.txt")),
    ("scripting", include_str!("calls/scripting.txt")),
    ("generic", include_str!("calls/generic.txt")),
    ("everywhere", include_str!("calls/everywhere.txt")),
    ("connection", include_str!("calls/connection.txt")),
    ("publish/subscribe", include_str!("calls/pubsub.txt")),
    ("own connection", include_str!("calls/own_connection.txt")),
];

/// A line of a file of calls.
struct Call<'a> {
    words: Vec<&'a str>,
    compares: Compares,
}

/// What of two answers must be the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compares {
    Bytes,
    Elements,
    Type,
}

/// Commands whose answers differ, or that end the connection: `command: reason`. Their own tests say what they answer.
const DIFFERENCES: &str = include_str!("calls/differences.txt");

/// Functions for FCALL.
const LIBRARY: &str = "#!lua name=lib\n\
    redis.register_function('put', function(keys, args) return redis.call('SET', keys[1], args[1]) end)\n\
    redis.register_function{function_name='read', flags={'no-writes'}, \
        callback=function(keys) return redis.call('GET', keys[1]) end}";

#[test]
fn three_shards_answer_as_one_server_in_both_protocols() {
    let redis = Redis::start();
    let shards = Shards::<3>::start("hash_tag: \"{}\"");
    let mut differences = Vec::new();
    for (group, text) in GROUPS {
        for server in shards.servers.iter().chain([&redis]) {
            assert_eq!(server.client().call(["FLUSHALL"]), Value::ok());
            assert_eq!(server.client().call(["FUNCTION", "LOAD", "REPLACE", LIBRARY]), Value::bulk("lib"));
        }
        let mut sides = [
            Side { protocol: "RESP2", theirs: redis.client(), ours: shards.client(), last: Vec::new() },
            Side {
                protocol: "RESP3",
                theirs: three(redis.client()),
                ours: three(shards.client()),
                last: Vec::new(),
            },
        ];
        for (line, call) in calls(text) {
            for side in &mut sides {
                if let Err((expected, found)) = side.compare(&call) {
                    let at = format!("{group}, line {line}, {}: {:?}", side.protocol, call.words);
                    differences.push(format!("{at}\n  {expected}\n  {found}"));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{} answers differ:\n{}", differences.len(), differences.join("\n"));
}

/// A client of one Redis and one of the proxy, that say the same.
struct Side {
    protocol: &'static str,
    theirs: Resp,
    ours: Resp,
    /// The last string that Redis answered.
    last: Vec<u8>,
}

impl Side {
    /// Both answers when they differ.
    fn compare(&mut self, call: &Call<'_>) -> Result<(), (String, String)> {
        let request = request(&call.words, &self.last);
        let (expected, found) = (ask(&mut self.theirs, &request), ask(&mut self.ours, &request));
        if let Value::Bulk(bytes) = Value::parse(&expected) {
            self.last = bytes;
        }
        if comparable(&expected, call.compares) == comparable(&found, call.compares) {
            return Ok(());
        }
        Err((expected.escape_ascii().to_string(), found.escape_ascii().to_string()))
    }
}

/// A client that has said HELLO 3, in a database of its own.
fn three(mut client: Resp) -> Resp {
    assert!(matches!(client.call(["HELLO", "3"]), Value::Map(_)));
    assert_eq!(client.call(["SELECT", "1"]), Value::ok());
    client
}

/// A command that is in the table, but in no file of calls, is one that nobody has compared.
#[test]
fn every_command_that_servers_answer_is_compared() {
    let table = CommandTable::builtin();
    let called: BTreeSet<&str> = GROUPS
        .iter()
        .flat_map(|(_, text)| calls(text))
        .filter_map(|(_, call)| {
            let (raw, spans) = request_and_spans(&call.words);
            table.lookup(Args::new(&raw, &spans)).ok().map(|call| call.row.name)
        })
        .collect();
    let answered = |handling| !matches!(handling, Handling::Unsupported(_));
    let missing: Vec<&str> = table
        .rows()
        .map(|(_, row)| row)
        .filter(|row| row.origin == Origin::Redis70 && row.subs.is_empty() && answered(row.usual_handling()))
        .map(|row| row.name)
        .filter(|name| !called.contains(name) && !differs(name))
        .collect();
    assert!(missing.is_empty(), "no call of {missing:?}");
    let count: usize = GROUPS.iter().map(|(_, text)| calls(text).count()).sum();
    assert!(count > 700, "{count} calls");
}

fn differs(name: &str) -> bool {
    DIFFERENCES.lines().filter_map(|line| line.split_once(": ")).any(|(command, _)| command == name)
}

/// The calls of a file with the numbers of their lines.
fn calls(text: &str) -> impl Iterator<Item = (usize, Call<'_>)> {
    let lines = (1..).zip(text.lines().map(str::trim));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(number, line)| {
        let (compares, rest) = match line.split_at(1) {
            ("~", rest) => (Compares::Elements, rest),
            ("?", rest) => (Compares::Type, rest),
            _ => (Compares::Bytes, line),
        };
        (number, Call { words: words(rest), compares })
    })
}

fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("quotes in calls match"),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        words.push(word);
        rest = after.trim_start();
    }
    words
}

fn request(words: &[&str], last: &[u8]) -> Vec<u8> {
    encode(words.iter().map(|word| if *word == "@" { last } else { word.as_bytes() }))
}

fn request_and_spans(words: &[&str]) -> (Vec<u8>, Vec<ArgSpan>) {
    let mut raw = Vec::new();
    let mut spans = Vec::new();
    for word in words {
        spans.push(ArgSpan { start: raw.len() as u32, len: word.len() as u32 });
        raw.extend_from_slice(word.as_bytes());
    }
    (raw, spans)
}

fn ask(client: &mut Resp, request: &[u8]) -> Vec<u8> {
    client.send_raw(request);
    client.read_bytes()
}

/// What is left of an answer when chance is taken away.
fn comparable(reply: &[u8], compares: Compares) -> Vec<u8> {
    match compares {
        Compares::Bytes => reply.to_vec(),
        Compares::Type => reply[..1].to_vec(),
        Compares::Elements => {
            let mut elements: Vec<_> =
                elements(Value::parse(reply)).iter().map(|item| format!("{item:?}").into_bytes()).collect();
            elements.sort();
            elements.concat()
        }
    }
}

fn elements(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        Value::Map(pairs) => pairs.into_iter().map(|(key, value)| Value::array([key, value])).collect(),
        other => vec![other],
    }
}
