//! What the proxy answers itself, and what it refuses.

use std::collections::BTreeSet;

use shardwise::command::{CommandTable, Handling, Origin, Row};

use crate::support::{Redis, Resp, Shards, Value, encode};

fn error(text: &str) -> Value {
    Value::Error(text.to_owned())
}

/// Both answers to a request, as bytes.
fn both(theirs: &mut Resp, ours: &mut Resp, request: &[&str]) -> [String; 2] {
    [theirs, ours].map(|client| {
        client.send(request);
        client.read_bytes().escape_ascii().to_string()
    })
}

#[test]
fn ping_is_refused_with_advice_unless_it_is_to_be_answered() {
    let rejecting = Shards::<1>::start("");
    let mut client = rejecting.client();
    let refusal = "ERR unknown command 'PING', shardwise does not support it here: to have it answered, \
                   set 'ping: reply' in pool alpha";
    assert_eq!(client.call(["PING"]), error(refusal));
    assert_eq!(client.call(["ping", "hello"]), error(refusal));
    client.send_raw("PING\r\nECHO x\r\n");
    assert_eq!([client.read(), client.read()], [error(refusal), Value::bulk("x")]);

    let replying = Shards::<1>::start("ping: reply");
    let redis = Redis::start();
    let (mut theirs, mut ours) = (redis.client(), replying.client());
    for request in [&["PING"][..], &["ping", "hello"], &["PING", ""], &["PING", "a", "b"]] {
        let [expected, found] = both(&mut theirs, &mut ours, request);
        assert_eq!(found, expected, "{request:?}");
    }
}

/// twemproxy closed without a word.
#[test]
fn quit_is_acknowledged_and_nothing_behind_it_is_done() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    client.send_raw(
        [encode(["SET", &a, "1"]), encode(["GET", &b]), encode(["QUIT"]), encode(["SET", &b, "late"])]
            .concat(),
    );
    assert_eq!([client.read(), client.read(), client.read()], [Value::ok(), Value::Nil, Value::ok()]);
    assert!(client.closed());
    assert_eq!(shards.client().call(["MGET", &a, &b]), Value::array([Value::bulk("1"), Value::Nil]));
}

/// B8: SELECT on a shared connection made the writes of others land in another database.
#[test]
fn a_client_begins_in_the_database_of_the_pool() {
    let redis = Redis::start();
    for (settings, own) in [("", "0"), ("redis_db: 3", "3")] {
        let shards = Shards::<1>::start(settings);
        let mut client = shards.client();
        assert_eq!(client.call(["SELECT", own]), Value::ok());
        for request in [
            &["SELECT"][..],
            &["SELECT", "x"],
            &["SELECT", ""],
            &["SELECT", "01"],
            &["select", "0", "0"],
            &["SELECT", "16"],
            &["SELECT", "-1"],
            &["SELECT", "2147483647"],
        ] {
            let [expected, found] = both(&mut redis.client(), &mut client, request);
            assert_eq!(found, expected, "{request:?}");
        }
        client.call(["SET", "k", "v"]);
        let mut server = shards.servers[0].client();
        assert_eq!(server.call(["SELECT", own]), Value::ok());
        assert_eq!(server.call(["GET", "k"]), Value::bulk("v"));
    }
}

/// B16: HELLO was answered with a text by which clients could not tell that they had to go on with RESP2.
#[test]
fn hello_greets_in_resp2_and_refuses_what_redis_does() {
    let shards = Shards::<1>::start("");
    let redis = Redis::start();
    let mut client = shards.client();
    for request in [&["HELLO"][..], &["HELLO", "2"], &["hello", "2", "SETNAME", "me"]] {
        let reply = client.call(request);
        let facts: Vec<&[u8]> = reply.items().chunks(2).map(|pair| pair[0].bytes()).collect();
        for fact in ["server", "version", "proto", "id", "mode", "role", "modules"] {
            assert!(facts.contains(&fact.as_bytes()), "{request:?} doesn't say {fact}: {reply:?}");
        }
        let proto = reply.items().chunks(2).find(|pair| pair[0] == Value::bulk("proto"));
        assert_eq!(proto.map(|pair| &pair[1]), Some(&Value::Int(2)));
    }
    assert_eq!(client.call(["CLIENT", "GETNAME"]), Value::bulk("me"));
    for request in [
        &["HELLO", "1"][..],
        &["HELLO", "4"],
        &["HELLO", "-2"],
        &["HELLO", "x"],
        &["HELLO", ""],
        &["HELLO", "02"],
        &["HELLO", "2", "FOO"],
        &["HELLO", "2", "SETNAME"],
        &["HELLO", "2", "SETNAME", "a b"],
        &["HELLO", "2", "SETNAME", "a\n"],
        &["HELLO", "2", "AUTH", "default"],
        &["HELLO", "2", "AUTH", "nobody", "x"],
        &["HELLO", "2", "SETNAME", "other", "AUTH", "nobody", "x"],
    ] {
        let [expected, found] = both(&mut redis.client(), &mut client, request);
        assert_eq!(found, expected, "{request:?}");
    }
    assert_eq!(client.call(["CLIENT", "GETNAME"]), Value::bulk("me"), "a refused HELLO changes nothing");
    assert_eq!(client.call(["RESET"]), Value::simple("RESET"));
    assert_eq!(client.call(["CLIENT", "GETNAME"]), Value::Nil);
    assert_eq!(client.call(["HELLO", "2", "AUTH", "default", "any"]).items()[0], Value::bulk("server"));
}

#[test]
fn clients_have_names_and_numbers_of_their_own() {
    let shards = Shards::<1>::start("");
    let redis = Redis::start();
    let mut clients: Vec<Resp> = (0..20).map(|_| shards.client()).collect();
    let ids: BTreeSet<i64> = clients.iter_mut().map(|client| client.call(["CLIENT", "ID"]).int()).collect();
    assert_eq!(ids.len(), 20, "of two workers");
    assert!(ids.iter().all(|id| *id > 0));
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.call(["CLIENT", "GETNAME"]), Value::Nil);
        assert_eq!(client.call(["CLIENT", "SETNAME", &format!("client-{i}")]), Value::ok());
    }
    for (i, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.call(["CLIENT", "GETNAME"]), Value::bulk(format!("client-{i}")));
    }
    let ours = &mut clients[0];
    assert_eq!(ours.call(["CLIENT", "SETINFO", "LIB-NAME", "test"]), Value::ok());
    assert_eq!(ours.call(["client", "setinfo", "lib-ver", "1.0"]), Value::ok());
    assert_eq!(ours.call(["CLIENT", "SETINFO", "colour", "red"]), error("ERR Unrecognized option 'colour'"));
    assert!(
        ours.call(["CLIENT", "SETINFO", "LIB-NAME", "a b"]).is_error("ERR lib-name cannot contain spaces")
    );
    let mut theirs = redis.client();
    for request in [
        &["CLIENT", "SETNAME", "a b"][..],
        &["CLIENT", "SETNAME", "a\tb"],
        &["CLIENT", "SETNAME", "\u{e4}"],
        &["CLIENT", "SETNAME", "x"],
        &["CLIENT", "SETNAME", ""],
        &["CLIENT", "GETNAME"],
        &["CLIENT", "SETNAME"],
        &["CLIENT", "FOO"],
        &["CLIENT"],
    ] {
        let [expected, found] = both(&mut theirs, ours, request);
        assert_eq!(found, expected, "{request:?}");
    }
}

#[test]
fn redis_benchmark_gets_the_parameters_that_it_asks_for() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    let pair = |name, value| [Value::bulk(name), Value::bulk(value)];
    assert_eq!(client.call(["CONFIG", "GET", "save"]), Value::array(pair("save", "")));
    assert_eq!(client.call(["config", "get", "APPENDONLY"]), Value::array(pair("appendonly", "no")));
    let all = [pair("save", ""), pair("appendonly", "no")].concat();
    assert_eq!(client.call(["CONFIG", "GET", "*"]), Value::array(all.clone()));
    assert_eq!(client.call(["CONFIG", "GET", "save", "append*"]), Value::array(all));
    assert_eq!(client.call(["CONFIG", "GET", "maxmemory"]), Value::array([]));
}

/// What COMMAND says of a command is what Redis says, as far as the commands are supported; those that aren't, aren't
/// there.
#[test]
fn command_tells_of_what_is_supported() {
    let shards = Shards::<1>::start("");
    let redis = Redis::start();
    let (mut theirs, mut ours) = (redis.client(), shards.client());
    for name in ["get", "MSET", "zunionstore", "xread", "eval", "sort", "object", "config|get", "client|id"] {
        let [expected, found] =
            [&mut theirs, &mut ours].map(|client| client.call(["COMMAND", "INFO", name]).items()[0].clone());
        let (expected, found) = (expected.items(), found.items());
        assert_eq!(found.len(), expected.len());
        // Name, arity, flags, keys, categories, tips. Key specs aren't told, and sub-commands only as far as supported.
        for field in [0, 1, 3, 4, 5] {
            assert_eq!(found[field], expected[field], "{name}, field {field}");
        }
        for field in [2, 6, 7] {
            let words =
                |value: &Value| value.items().iter().map(|w| w.bytes().to_vec()).collect::<BTreeSet<_>>();
            assert_eq!(words(&found[field]), words(&expected[field]), "{name}, field {field}");
        }
    }
    let count = ours.call(["COMMAND", "COUNT"]).int();
    assert!(count > 150, "{count}");
    assert_eq!(ours.call(["COMMAND"]).items().len() as i64, count);
    assert_eq!(ours.call(["COMMAND", "INFO"]).items().len() as i64, count);
    let info = ours.call(["COMMAND", "INFO", "monitor", "get", "nosuch"]);
    assert_eq!((&info.items()[0], &info.items()[2]), (&Value::Nil, &Value::Nil));
    // A server knows the prose; redis-cli makes its hints of it.
    assert_eq!(ours.call(["COMMAND", "DOCS", "get"]).items()[0], Value::bulk("get"));
    let list = ours.call(["COMMAND", "LIST", "FILTERBY", "PATTERN", "m*et*"]);
    let names: BTreeSet<&[u8]> = list.items().iter().map(Value::bytes).collect();
    assert!(names.contains(&b"mget"[..]) && names.contains(&b"msetnx"[..]), "{list:?}");
    for request in [
        &["COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"][..],
        &["COMMAND", "GETKEYS", "EVAL", "return 1", "2", "x", "y", "z"],
        &["COMMAND", "GETKEYS", "SORT", "a", "STORE", "b"],
        &["COMMAND", "GETKEYS", "XREAD", "COUNT", "1", "STREAMS", "a", "b", "0", "0"],
        &["COMMAND", "GETKEYS", "ECHO", "a"],
        &["COMMAND", "GETKEYS", "GET", "a", "b"],
        &["COMMAND", "GETKEYS", "NOSUCH", "a"],
        &["COMMAND", "LIST", "FOO"],
        &["COMMAND", "FOO"],
        &["COMMAND", "COUNT", "x"],
    ] {
        let [expected, found] = both(&mut theirs, &mut ours, request);
        assert_eq!(found, expected, "{request:?}");
    }
}

#[test]
fn help_names_what_is_supported() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    for (container, there, not_there) in
        [("CLIENT", "SETNAME", "KILL"), ("CONFIG", "GET", "REWRITE"), ("COMMAND", "INFO", "GETKEYSANDFLAGS")]
    {
        let lines = client.call([container, "HELP"]);
        let lines: Vec<&[u8]> = lines.items().iter().map(Value::bytes).collect();
        assert!(lines.contains(&there.as_bytes()), "{container} HELP");
        assert!(!lines.contains(&not_there.as_bytes()), "{container} HELP");
    }
    assert!(client.call(["OBJECT", "HELP"]).items().len() > 3, "a server's own answer");
}

/// B17: an unsupported command closed the connection, and with it everything that was pipelined behind it. Every row of
/// the table that isn't supported gets an error in its place, of which the first words are Redis's for an unknown command;
/// no server sees it, and the neighbours in the pipeline are answered.
#[test]
fn what_is_not_supported_is_refused_in_its_place() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    client.call(["SET", &a, "0"]);
    client.call(["SET", &b, "value"]);
    let seen = || shards.servers.iter().map(|server| server.info("total_commands_processed")).sum::<i64>();
    let before = seen();
    let table = CommandTable::builtin();
    let unsupported: Vec<&Row> = table
        .rows()
        .map(|(_, row)| row)
        .filter(|row| matches!(row.usual_handling(), Handling::Unsupported(_)))
        .collect();
    assert!(unsupported.len() > 110, "{}", unsupported.len());
    let mut requests: Vec<(Vec<String>, String)> = unsupported.iter().map(|row| call_of(row)).collect();
    for (words, name) in [
        // Supported otherwise; the arguments tell.
        ("COPY a b DB 1", "COPY"),
        ("COPY a b REPLACE DB 0", "COPY"),
    ] {
        requests.push((words.split(' ').map(str::to_owned).collect(), name.to_owned()));
    }
    let mut bytes = Vec::new();
    for (request, _) in &requests {
        bytes.extend(encode(["INCR", &a]));
        bytes.extend(encode(request));
        bytes.extend(encode(["GET", &b]));
    }
    client.send_raw(bytes);
    for (i, (request, name)) in (1..).zip(&requests) {
        assert_eq!(client.read(), Value::Int(i), "before {request:?}");
        let reply = client.read();
        let beginning = format!("ERR unknown command '{name}', shardwise does not support ");
        assert!(reply.is_error(&beginning), "{request:?}: {reply:?}");
        assert_eq!(client.read(), Value::bulk("value"), "behind {request:?}");
    }
    let between = 2 * requests.len() as i64 + 2;
    assert_eq!(seen() - before, between, "servers saw the neighbours, and the two INFO that count");
}

/// A request of a command with as few arguments as it takes, and the name that its refusal repeats.
fn call_of(row: &Row) -> (Vec<String>, String) {
    let mut words: Vec<String> = row.name.split('|').map(str::to_uppercase).collect();
    let name = words.join(" ");
    // A container needs a word behind it, which is then another row; alone, its number of arguments is wrong.
    while words.len() < usize::from(row.arity.unsigned_abs()) && row.subs.is_empty() {
        words.push(words.len().to_string());
    }
    if let Some(sub) = row.subs.first() {
        return call_of(sub);
    }
    (words, name)
}

/// A key or a consumer that happens to be called like an option is no option.
#[test]
fn block_as_a_name_is_no_option() {
    let shards = Shards::<2>::start("");
    let mut client = shards.client();
    assert_eq!(client.call(["XADD", "BLOCK", "1-1", "f", "v"]), Value::bulk("1-1"));
    assert_eq!(client.call(["XREAD", "STREAMS", "BLOCK", "0"]).items().len(), 1);
    assert_eq!(client.call(["XGROUP", "CREATE", "BLOCK", "BLOCK", "0"]), Value::ok());
    let read = ["XREADGROUP", "GROUP", "BLOCK", "BLOCK", "STREAMS", "BLOCK", ">"];
    assert_eq!(client.call(read).items().len(), 1);
    assert_eq!(client.call(["XREAD", "COUNT", "1", "STREAMS", "BLOCK", "1-1"]), Value::Nil);
}

/// B8: MULTI on a shared connection: other clients got QUEUED. SUBSCRIBE, CLIENT REPLY OFF and MONITOR are as bad.
#[test]
fn what_one_client_asks_for_changes_nothing_for_another() {
    let shards = Shards::<1>::on_one_thread("");
    let (mut one, mut other) = (shards.client(), shards.client());
    for request in [
        &["SUBSCRIBE", "c"][..],
        &["RESET"],
        &["MONITOR"],
        &["CLIENT", "TRACKING", "ON"],
        &["SELECT", "1"],
        &["HELLO", "3"],
        &["CLIENT", "SETNAME", "one"],
        &["READONLY"],
        &["SCRIPT", "DEBUG", "YES"],
        &["WATCH", "k"],
        &["MULTI"],
        &["GET", "k"],
    ] {
        one.call(request);
        assert_eq!(other.call(["SET", "k", "v"]), Value::ok(), "behind {request:?}");
        assert_eq!(other.call(["GET", "k"]), Value::bulk("v"), "behind {request:?}");
    }
    let mut blocked = shards.client();
    blocked.send(["BLPOP", "list", "0"]);
    assert_eq!(other.call(["SET", "k", "v"]), Value::ok());
    assert_eq!(other.call(["GET", "k"]), Value::bulk("v"));
    assert_eq!(other.call(["CLIENT", "GETNAME"]), Value::Nil);
    let clients = shards.servers[0].client().call(["CLIENT", "LIST"]);
    let clients = String::from_utf8_lossy(clients.bytes()).into_owned();
    assert!(!clients.contains("name=one"), "{clients}");
}

/// The number of arguments is checked before anything else, in Redis's words: for every command, supported or not.
#[test]
fn a_wrong_number_of_arguments_is_told_as_by_redis() {
    let shards = Shards::<1>::start("");
    let redis = Redis::start();
    let requests: Vec<Vec<String>> = CommandTable::builtin()
        .rows()
        .map(|(_, row)| row)
        // Of EXEC Redis says that the transaction is discarded, even if there is none.
        .filter(|row| row.origin == Origin::Redis70 && row.name != "exec")
        .flat_map(wrong_calls)
        .collect();
    assert!(requests.len() > 400, "{}", requests.len());
    let expected = redis.client().pipeline(&requests);
    let found = shards.client().pipeline(&requests);
    for ((request, expected), found) in requests.iter().zip(expected).zip(found) {
        assert!(expected.is_error("ERR wrong number of arguments for '"), "{request:?}: {expected:?}");
        assert_eq!(found, expected, "{request:?}");
    }
}

/// Requests with one argument too few, and with one too many.
fn wrong_calls(row: &Row) -> Vec<Vec<String>> {
    let name: Vec<String> = row.name.split('|').map(str::to_owned).collect();
    let arity = usize::from(row.arity.unsigned_abs());
    let of_length = |length: usize| {
        let missing = length.saturating_sub(name.len());
        name.iter().cloned().chain((0..missing).map(|i| i.to_string())).collect::<Vec<_>>()
    };
    let mut calls = Vec::new();
    if arity > name.len() {
        calls.push(of_length(arity - 1));
    }
    if row.arity > 0 {
        calls.push(of_length(arity + 1));
    }
    calls
}
