//! Every keyed command, called a few hundred times on one redis-server and through the proxy over four: the answers are
//! the same to the byte, successes and errors alike.
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

/// Answers that depend on the pool's settings, end the connection, or say what the proxy is: their own tests compare them.
const DIFFERENT: &[&str] = &["auth", "hello", "ping", "quit", "readonly", "readwrite"];

/// Functions for FCALL.
const LIBRARY: &str = "#!lua name=lib\n\
    redis.register_function('put', function(keys, args) return redis.call('SET', keys[1], args[1]) end)\n\
    redis.register_function{function_name='read', flags={'no-writes'}, \
        callback=function(keys) return redis.call('GET', keys[1]) end}";

#[test]
fn four_shards_answer_as_one_server() {
    let redis = Redis::start();
    let shards = Shards::<4>::start("hash_tag: \"{}\"");
    for server in shards.servers.iter().chain([&redis]) {
        assert_eq!(server.client().call(["FUNCTION", "LOAD", LIBRARY]), Value::bulk("lib"));
    }
    let (mut theirs, mut ours) = (redis.client(), shards.client());
    let mut differences = Vec::new();
    for (group, text) in GROUPS {
        theirs.call(["FLUSHALL"]);
        shards.servers.iter().for_each(|server| assert_eq!(server.client().call(["FLUSHALL"]), Value::ok()));
        let mut last = Vec::new();
        for (line, call) in calls(text) {
            let request = request(&call.words, &last);
            let (expected, found) = (ask(&mut theirs, &request), ask(&mut ours, &request));
            if comparable(&expected, call.compares) != comparable(&found, call.compares) {
                let (expected, found) = (expected.escape_ascii(), found.escape_ascii());
                differences.push(format!("{group}, line {line}: {:?}\n  {expected}\n  {found}", call.words));
            }
            if let Value::Bulk(bytes) = Value::parse(&expected) {
                last = bytes;
            }
        }
    }
    assert!(differences.is_empty(), "{} answers differ:\n{}", differences.len(), differences.join("\n"));
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
        .filter(|name| !called.contains(name) && !DIFFERENT.contains(name))
        .collect();
    assert!(missing.is_empty(), "no call of {missing:?}");
    let count: usize = GROUPS.iter().map(|(_, text)| calls(text).count()).sum();
    assert!(count > 700, "{count} calls");
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
                Value::parse(reply).items().iter().map(|item| format!("{item:?}").into_bytes()).collect();
            elements.sort();
            elements.concat()
        }
    }
}
