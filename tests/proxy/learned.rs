//! Commands that only the servers know: of a module, compiled for these tests, and what a server may say to COMMAND otherwise.

use std::path::PathBuf;
use std::process::Command;

use super::fleet::Fleet;
use crate::support::{
    FakeServer, PATIENCE, Port, Redis, Resp, Shards, Shardwise, Value, pool_of, wait_until,
};

/// The module, compiled once for each test process.
fn module() -> String {
    static MODULE: std::sync::LazyLock<(tempfile::TempDir, PathBuf)> = std::sync::LazyLock::new(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let module = folder.path().join("toy.so");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/proxy/learned/toy.c");
        let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&module).arg(source).status();
        assert!(status.expect("cc is installed").success(), "toy.c compiles");
        (folder, module)
    });
    MODULE.1.display().to_string()
}

fn with_module() -> Redis {
    Redis::with(&["--loadmodule", &module()])
}

fn wait_learned(client: &mut Resp) {
    wait_until("the proxy to learn toy.get", PATIENCE, || client.call(["TOY.GET", "none"]) == Value::Nil);
}

fn strings(value: Value) -> Vec<String> {
    let Value::Array(items) = value else { panic!("no array: {value:?}") };
    items.iter().map(|item| String::from_utf8_lossy(item.bytes()).into_owned()).collect()
}

#[test]
fn commands_of_a_module_go_to_the_owners_of_their_keys() {
    let shards = Shards::<3>::with_servers(std::array::from_fn(|_| with_module()), "", &["--threads", "2"]);
    let mut client = shards.client();
    wait_learned(&mut client);
    for key in shards.keys::<3>().concat() {
        assert_eq!(client.call(["toy.SET", &key, &format!("value of {key}")]), Value::ok());
        assert_eq!(client.call(["GET", &key]), Value::bulk(format!("value of {key}")));
        assert_eq!(client.call(["TOY.GET", &key]), Value::bulk(format!("value of {key}")));
    }
    let [[a, b], [c, _], _] = shards.keys::<2>();
    assert_eq!(strings(client.call(["TOY.ECHO", &a, &b])), [a.as_str(), &b]);
    assert!(client.call(["TOY.ECHO", &a, &c]).is_error("CROSSSLOT"));
    assert!(
        client.call(["TOY.COUNT"]).is_error("ERR unknown command 'TOY.COUNT', shardwise does not support")
    );
    let odd = client.call(["TOY.ODD", "1", &a]);
    assert!(odd.is_error("ERR unknown command 'TOY.ODD', shardwise does not support"), "{odd:?}");
    assert!(
        client
            .call(["TOY.NONE", "x"])
            .is_error("ERR unknown command 'TOY.NONE', with args beginning with: 'x'")
    );

    // In a transaction like any other. (`keys` has removed what it found.)
    assert_eq!(client.call(["TOY.SET", &b, &format!("value of {b}")]), Value::ok());
    assert_eq!(client.call(["MULTI"]), Value::ok());
    assert_eq!(client.call(["TOY.SET", &a, "1"]), Value::simple("QUEUED"));
    assert_eq!(client.call(["TOY.GET", &b]), Value::simple("QUEUED"));
    assert_eq!(client.call(["EXEC"]), Value::array([Value::ok(), client_value(&b)]));
}

fn client_value(key: &str) -> Value {
    Value::bulk(format!("value of {key}"))
}

#[test]
fn command_shows_what_was_learned() {
    let shards = Shards::<1>::with_servers([with_module()], "", &["--threads", "1"]);
    let bare = Shards::<1>::start("");
    let (mut client, mut plain) = (shards.client(), bare.client());
    let count = |client: &mut Resp| client.call(["COMMAND", "COUNT"]).int();
    let before = count(&mut plain);
    wait_learned(&mut client);
    // A pool of one server takes those, too, whose keys can't be told.
    assert_eq!(count(&mut client), before + 5);
    assert_eq!(client.call(["TOY.COUNT"]), Value::Int(1));
    assert_eq!(client.call(["TOY.ODD", "1", "k"]), Value::Int(3));
    let mut names = strings(client.call(["COMMAND", "LIST", "FILTERBY", "PATTERN", "toy.*"]));
    names.sort();
    assert_eq!(names, ["toy.count", "toy.echo", "toy.get", "toy.odd", "toy.set"]);
    let mut server = shards.servers[0].client();
    let (Value::Array(ours), Value::Array(theirs)) = (
        client.call(["COMMAND", "INFO", "toy.echo", "nosuch"]),
        server.call(["COMMAND", "INFO", "toy.echo", "nosuch"]),
    ) else {
        panic!("COMMAND INFO answers with arrays");
    };
    assert_eq!(ours[1], theirs[1]);
    let (Value::Array(ours), Value::Array(theirs)) = (&ours[0], &theirs[0]) else { panic!("{ours:?}") };
    // Name, arity, and the keys in the old form.
    assert_eq!([&ours[..2], &ours[3..6]], [&theirs[..2], &theirs[3..6]]);
    assert_eq!(strings(client.call(["COMMAND", "GETKEYS", "toy.echo", "a", "b"])), ["a", "b"]);
    let Value::Array(all) = client.call(["COMMAND"]) else { panic!("COMMAND answers with an array") };
    assert_eq!(all.len() as i64, before + 5);
}

#[test]
fn what_a_pool_denies_or_forbids_holds_for_them() {
    let servers = [with_module()];
    let pool = |name: &str, port: &Port, settings: &str| {
        pool_of(name, &port.address(), &[servers[0].entry(1)], settings)
    };
    let [open, deny, allow, read_only, none, password] = std::array::from_fn(|_| Port::claim());
    let yaml = [
        pool("open", &open, ""),
        pool("deny", &deny, "commands: {deny: [TOY.SET]}"),
        pool("allow", &allow, "commands: {allow: [toy.get, get]}"),
        pool("read_only", &read_only, "read_only: true"),
        pool("none", &none, "learn_commands: false"),
        pool("password", &password, "redis_auth: secret"),
    ];
    let proxy = Shardwise::start(&yaml.concat());
    let client = |port: &Port| Resp::port(port.number());
    for port in [&open, &deny, &allow, &read_only] {
        wait_learned(&mut client(port));
    }
    assert_eq!(client(&open).call(["TOY.SET", "k", "v"]), Value::ok());
    assert!(client(&deny).call(["TOY.SET", "k", "v"]).is_error("NOPERM"));
    assert_eq!(client(&deny).call(["TOY.GET", "k"]), Value::bulk("v"));
    assert!(client(&allow).call(["TOY.SET", "k", "v"]).is_error("NOPERM"));
    assert_eq!(client(&allow).call(["TOY.GET", "k"]), Value::bulk("v"));
    assert!(client(&read_only).call(["TOY.SET", "k", "v"]).is_error("READONLY"));
    assert!(client(&none).call(["TOY.GET", "k"]).is_error("ERR unknown command 'TOY.GET'"));
    assert!(client(&password).call(["TOY.GET", "k"]).is_error("NOAUTH"));
    drop(proxy);
}

/// The day a server ships a command, it works: when the server is back, without a restart of the proxy.
#[test]
fn a_server_that_comes_back_with_more_commands_is_asked_again() {
    let mut server = Redis::start();
    let port = Port::claim();
    let yaml = pool_of("alpha", &port.address(), &[server.entry(1)], "");
    let proxy = Shardwise::start(&yaml);
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    assert!(client.call(["TOY.GET", "k"]).is_error("ERR unknown command"));
    server.restart_with(&["--loadmodule", &module()]);
    wait_until("the proxy to learn toy.get", PATIENCE, || {
        client.call(["PTTL", "k"]); // somebody uses the server
        client.call(["TOY.GET", "none"]) == Value::Nil
    });
    // What it knew it knows while the server is down: then the error is the server's, not the command's.
    server.kill();
    wait_until("the server to be missed", PATIENCE, || {
        let reply = client.call(["TOY.GET", "k"]);
        reply.is_error("ERR Connection")
    });
    drop(proxy);
}

#[test]
fn servers_of_one_pool_may_differ() {
    let servers = [Redis::start(), with_module()];
    let port = Port::claim();
    let entries = [0, 1].map(|i: usize| format!("{} s{i}", servers[i].entry(1)));
    let yaml = pool_of("alpha", &port.address(), &entries, "");
    let fleet = Fleet::configured(port, &yaml, &["--threads", "1"]);
    let mut client = fleet.client();
    let [lacks, has] = [0, 1].map(|server| fleet.key(server));
    wait_until("the proxy to learn toy.get", PATIENCE, || client.call(["TOY.GET", &has]) == Value::Nil);
    let reply = client.call(["TOY.GET", &lacks]);
    assert!(reply.is_error("ERR unknown command 'TOY.GET', with args"), "the server's own word: {reply:?}");
    assert_eq!(client.call(["TOY.SET", &has, "v"]), Value::ok());
}

/// A server that answers COMMAND with nonsense, too much, too slowly or never is a server like any other.
#[test]
fn odd_answers_do_no_harm() {
    let endless = || b"*1000000\r\n".iter().copied().chain(b"+x\r\n".repeat(2 << 20)).collect::<Vec<u8>>();
    let answers: [fn() -> Vec<u8>; 5] = [
        || b"+OK\r\n".to_vec(),
        || b"-NOPERM no permissions to run 'command'\r\n".to_vec(),
        || b"*1\r\n".repeat(100_000),
        || b"?what\r\n".to_vec(),
        || b"*2\r\n*6\r\n$5\r\ntoy.x\r\n:-2\r\n*0\r\n:1\r\n:1\r\n:1\r\n".to_vec(), // and never the second
    ];
    for (i, answer) in answers.into_iter().chain([endless as fn() -> Vec<u8>]).enumerate() {
        let server = FakeServer::start(move |_, peer| {
            peer.answer_all(
                |request| if request[0] == b"COMMAND" { answer() } else { b"+fine\r\n".to_vec() },
            );
        });
        let port = Port::claim();
        let yaml = pool_of("alpha", &port.address(), &[server.entry("s0")], "");
        let proxy = Shardwise::with_args(&yaml, &["--threads", "1"]);
        let mut client = Resp::port(port.number());
        assert_eq!(client.call(["GET", "k"]), Value::simple("fine"), "answer {i}");
        wait_until("COMMAND to be asked", PATIENCE, || server.connections() >= 2);
        assert!(client.call(["TOY.X", "k"]).is_error("ERR unknown command 'TOY.X'"), "answer {i}");
        assert_eq!(client.call(["GET", "k"]), Value::simple("fine"), "answer {i}");
        drop(proxy);
    }
}
