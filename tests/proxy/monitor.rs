//! MONITOR on the admin port: what clients ask for, as Redis would show it.

use super::admin::{field, ruled_pool, text};
use crate::support::{PATIENCE, Redis, Resp, Value, wait_until};

fn line(admin: &mut Resp) -> String {
    match admin.read() {
        Value::Simple(line) => line,
        other => panic!("no line: {other:?}"),
    }
}

/// What stands behind the time and the place.
fn call(line: &str) -> &str {
    line.split_once("] ").unwrap_or_else(|| panic!("no place in {line}")).1
}

#[test]
fn requests_are_shown_as_redis_shows_them() {
    let servers = Redis::start_many::<2>();
    let (fleet, mut admin) = ruled_pool(&servers, "", "redis_auth: sesame");
    // The servers have no password: the proxy goes on without.
    let mut client = fleet.client();
    assert_eq!(admin.call(["MONITOR"]), Value::ok());
    // Orders are carried out in turn: with this answer every worker shows its requests.
    admin.call(["CLIENT", "LIST"]);
    client.call(["GET", "refused"]);
    client.call(["AUTH", "sesame"]);
    client.call(["SELECT", "3"]);
    client.call(["SET", "k", "a \"b\"\r\n\u{7f}"]);
    client.call(["CONFIG", "GET", "*"]);
    client.call(["MGET", "k", "l"]);
    assert_eq!(call(&line(&mut admin)), r#""AUTH" "(redacted)""#, "what was refused isn't shown");
    assert_eq!(call(&line(&mut admin)), r#""SELECT" "3""#);
    let set = line(&mut admin);
    assert_eq!(call(&set), r#""SET" "k" "a \"b\"\r\n\x7f""#);
    let (time, place) = set.split_once(' ').unwrap();
    assert!(
        time.split_once('.').is_some_and(|(secs, micros)| secs.len() == 10 && micros.len() == 6),
        "{set}"
    );
    assert!(place.starts_with("[3 127.0.0.1:"), "{set}");
    assert_eq!(call(&line(&mut admin)), r#""MGET" "k" "l""#, "and what rules a server isn't either");

    assert_eq!(admin.call(["RESET"]), Value::simple("RESET"));
    client.call(["GET", "k"]);
    assert_eq!(admin.call(["PING"]), Value::simple("PONG"), "it is an ordinary connection again");
}

#[test]
fn one_in_so_many_is_shown() {
    let servers = Redis::start_many::<1>();
    let (fleet, mut admin) = ruled_pool(&servers, "", "");
    assert!(admin.call(["MONITOR", "0"]).is_error("ERR"));
    assert_eq!(admin.call(["MONITOR", "10"]), Value::ok());
    admin.call(["CLIENT", "LIST"]);
    let mut client = fleet.client();
    client.pipeline((0..100).map(|number| ["GET".to_owned(), number.to_string()]));
    for number in 0..10 {
        assert_eq!(call(&line(&mut admin)), format!(r#""GET" "{}""#, number * 10));
    }
    assert_eq!(admin.call(["PING"]), Value::simple("PONG"));
}

/// An operator that doesn't read costs a bounded queue; what it has missed is said.
#[test]
fn what_a_slow_monitor_misses_is_counted() {
    const REQUESTS: usize = 5000;
    let servers = Redis::start_many::<1>();
    let (fleet, mut admin) = ruled_pool(&servers, "", "");
    assert_eq!(admin.call(["MONITOR"]), Value::ok());
    admin.call(["CLIENT", "LIST"]);
    // Lines of 4 KB: more than sockets hold.
    let keys: Vec<String> = (0..31).map(|number| format!("{number:0>128}")).collect();
    let request: Vec<&str> = std::iter::once("DEL").chain(keys.iter().map(String::as_str)).collect();
    let mut client = fleet.client();
    for _ in 0..REQUESTS / 100 {
        client.pipeline((0..100).map(|_| &request));
    }
    let (mut shown, mut dropped) = (0, 0);
    while shown + dropped < REQUESTS {
        let line = line(&mut admin);
        match call(&line).strip_prefix("\"DROPPED\" \"") {
            Some(number) => dropped += number.trim_end_matches('"').parse::<usize>().unwrap(),
            None => shown += 1,
        }
    }
    assert_eq!(shown + dropped, REQUESTS);
    assert!(dropped > 0, "nothing was dropped: the test has shown nothing");
    drop(admin);
    assert_eq!(client.call(["GET", "k"]), Value::Nil);
}

/// CLIENT LIST knows what each client has chosen.
#[test]
fn database_and_protocol_of_clients_are_listed() {
    let servers = Redis::start_many::<1>();
    let (fleet, mut admin) = ruled_pool(&servers, "", "");
    let mut client = fleet.client();
    client.call(["SELECT", "5"]);
    client.call(["HELLO", "3"]);
    let _other = fleet.client();
    wait_until("both to be there", PATIENCE, || fleet.stat("client_connections") == 2);
    let list = text(admin.call(["CLIENT", "LIST"]));
    let seen: Vec<_> = list.lines().map(|line| (field(line, "db"), field(line, "resp"))).collect();
    assert_eq!(seen, [("5", "3"), ("0", "2")], "{list}");
}

/// What is slow is what the file says, from the reload on.
#[test]
fn a_reload_changes_what_is_slow() {
    let servers = Redis::start_many::<1>();
    let (mut fleet, mut admin) = ruled_pool(&servers, "  slowlog_slower_than: 1h", "");
    let mut client = fleet.client();
    client.call(["GET", "k"]);
    let set = |admin: &mut Resp| admin.call(["CONFIG", "GET", "slowlog-log-slower-than"]);
    let is = |micros: &str| Value::array(["slowlog-log-slower-than", micros].map(Value::bulk));
    assert_eq!(set(&mut admin), is("3600000000"));
    let yaml = std::fs::read_to_string(fleet.proxy.config_path()).unwrap();
    let told = fleet.proxy.reload(&yaml.replace("1h", "1ms"));
    assert!(told.contains("shardwise.slowlog_slower_than changed"), "{told}");
    assert_eq!(set(&mut admin), is("1000"));
    servers[0].client().call(["CLIENT", "PAUSE", "30"]);
    client.call(["SET", "k", "v"]);
    assert_eq!(admin.call(["SLOWLOG", "LEN"]), Value::Int(1));
    assert_eq!(admin.call(["CONFIG", "SET", "slowlog-log-slower-than", "-1"]), Value::ok());
    assert_eq!(set(&mut admin), is("-1"));
    fleet.proxy.reload(&yaml);
    assert_eq!(set(&mut admin), is("3600000000"), "the file's word again");
}
