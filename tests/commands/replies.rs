//! What the COMMAND family answers from the table.

use std::collections::BTreeSet;

use shardwise::command::{CommandTable, Handling, Learned};

use super::live::{Server, Value};
use super::request::Request;

fn table() -> &'static CommandTable {
    CommandTable::builtin()
}

fn list(request: &str) -> Result<BTreeSet<&'static str>, String> {
    let names = table()
        .list(&Learned::default(), Request::words(request).args())
        .map_err(|error| error.as_str().to_owned())?;
    Ok(names.into_iter().collect())
}

fn getkeys(args: &[&str]) -> Value {
    match table().getkeys(&Learned::default(), Request::new(args).args()) {
        Ok(keys) => Value::Array(keys.into_iter().map(|key| Value::Bulk(key.to_vec())).collect()),
        Err(error) => Value::Error(error.reply().as_str().as_bytes().to_vec()),
    }
}

#[test]
fn what_is_listed_is_what_is_supported() {
    let listed: BTreeSet<_> = table()
        .commands()
        .flat_map(|ix| std::iter::once(ix).chain(table().subcommands(ix)))
        .map(|ix| table().row(ix).name)
        .collect();
    let supported = table()
        .rows()
        .filter(|(_, row)| !matches!(row.usual_handling(), Handling::Unsupported(_)))
        .map(|(_, row)| row.name);
    assert_eq!(listed, supported.collect());
    assert_eq!(listed, list("COMMAND LIST").unwrap());
    for (name, known) in [
        ("GET", true),
        ("Config|Get", true),
        ("config|set", false),
        ("multi", true),
        ("monitor", false),
        ("", false),
    ] {
        assert_eq!(table().command_named(name.as_bytes()).is_some(), known, "{name}");
    }
}

/// Filters find what a live server's find, as far as it is supported.
#[test]
fn filters_are_those_of_redis() {
    let server = &mut Server::redis();
    for filter in [
        "aclcat geo",
        "ACLCAT Dangerous",
        "aclcat nope",
        "module x",
        "PATTERN *",
        "pattern client|*",
        "pattern Z[^r]*",
        "pattern [x-z]*s?",
        "pattern \\get",
    ] {
        let request = format!("COMMAND LIST FILTERBY {filter}");
        let theirs = server.ask(&request.split(' ').collect::<Vec<_>>());
        let theirs: BTreeSet<_> = theirs
            .texts()
            .into_iter()
            .filter_map(|name| {
                let ix = table().command_named(name.as_bytes())?;
                Some(table().row(ix).name)
            })
            .collect();
        let ours = list(&request)
            .unwrap()
            .into_iter()
            .filter(|name| server.ask(&["COMMAND", "INFO", name]) != Value::Array(vec![Value::Nil]));
        assert_eq!(ours.collect::<BTreeSet<_>>(), theirs, "{filter}");
    }
}

#[test]
fn filters_that_redis_does_not_know_are_syntax_errors() {
    let server = &mut Server::redis();
    for request in [
        "COMMAND LIST x",
        "COMMAND LIST FILTERBY x",
        "COMMAND LIST FILTERBY x y",
        "COMMAND LIST x ACLCAT geo",
        "COMMAND LIST FILTERBY ACLCAT geo x",
    ] {
        let theirs = server.ask(&request.split(' ').collect::<Vec<_>>());
        let ours = list(request).map(|_| ()).expect_err(request);
        assert_eq!(Value::Error(ours.into_bytes()), theirs, "{request}");
    }
}

#[test]
fn getkeys_answers_as_redis_does() {
    // Valkey's errors are those of Redis; its arity lets it answer for a command without arguments.
    let server = &mut Server::valkey();
    for args in [
        &["COMMAND", "GETKEYS", "GET", "a"][..],
        &["COMMAND", "GETKEYS", "get"],
        &["COMMAND", "GETKEYS", "nope"],
        &["COMMAND", "GETKEYS", "PING"],
        &["COMMAND", "GETKEYS", "object", "encoding", "a"],
        &["COMMAND", "GETKEYS", "object", "encoding"],
        &["COMMAND", "GETKEYS", "object", "help"],
        &["COMMAND", "GETKEYS", "object", "nope"],
        &["COMMAND", "GETKEYS", "ZUNION", "0", "a"],
        &["COMMAND", "GETKEYS", "ZUNIONSTORE", "d", "2", "a", "b"],
        &["COMMAND", "GETKEYS", "EVAL", "x", "0"],
        &["COMMAND", "GETKEYS", "EVAL", "x", "nope"],
        &["COMMAND", "GETKEYS", "MSET", "a", "1", "", "2"],
    ] {
        assert_eq!(getkeys(args), server.ask(args), "{args:?}");
    }
}

#[test]
fn help_tells_the_subcommands_that_are_supported() {
    let lines = |name: &str| table().help(table().command_named(name.as_bytes()).expect("a command"));
    assert_eq!(lines("config|help"), ["CONFIG <subcommand>; shardwise supports:", "GET", "HELP"]);
    assert_eq!(lines("config|help"), lines("CONFIG"));
    assert!(lines("client|help").contains(&"SETINFO".to_owned()));
    assert!(!lines("client|help").contains(&"KILL".to_owned()));
}
