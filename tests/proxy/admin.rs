//! The admin port, with redis-cli's eyes: what it tells, what it changes, and who may ask.

use std::time::{Duration, Instant};

use super::fleet::{Fleet, entries};
use crate::support::{PATIENCE, Port, Redis, Resp, Shardwise, Value, encode, pool_of, wait_until};

/// A proxy with two workers and an admin port.
fn ruled(servers: &[Redis], section: &str) -> (Fleet, Resp) {
    ruled_pool(servers, section, "")
}

/// The same with these further lines of the pool.
pub fn ruled_pool(servers: &[Redis], section: &str, settings: &str) -> (Fleet, Resp) {
    let (fleet, admin) = with_port(servers, section, settings);
    (fleet, Resp::port(admin.number()))
}

fn with_port(servers: &[Redis], section: &str, settings: &str) -> (Fleet, Port) {
    let (port, admin) = (Port::claim(), Port::claim());
    let pool = pool_of("alpha", &port.address(), &entries(servers), settings);
    let yaml = format!("shardwise:\n  admin: {}\n{section}\n{pool}", admin.number());
    (Fleet::configured(port, &yaml, &["--threads", "2"]), admin)
}

pub fn text(value: Value) -> String {
    match value {
        Value::Bulk(bytes) => String::from_utf8(bytes.to_vec()).expect("text"),
        other => panic!("no bulk: {other:?}"),
    }
}

/// The lines of an answer.
pub fn lines(value: Value) -> Vec<String> {
    match value {
        Value::Array(lines) => lines.into_iter().map(text).collect(),
        other => panic!("no lines: {other:?}"),
    }
}

/// A field of INFO, or of a line.
pub fn field<'a>(text: &'a str, name: &str) -> &'a str {
    let found =
        text.split(['\r', '\n', ' ', ',']).find_map(|pair| pair.strip_prefix(name)?.strip_prefix([':', '=']));
    found.unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

#[test]
fn info_has_redis_names_for_what_redis_has() {
    let servers = Redis::start_many::<2>();
    let (fleet, mut admin) = ruled(&servers, "");
    let mut client = fleet.client();
    (0..5).for_each(|_| drop(client.call(["GET", &fleet.key(0)])));
    client.call(["NOSUCH"]);
    let info = text(admin.call(["INFO"]));
    assert_eq!(field(&info, "connected_clients"), "1");
    assert_eq!(field(&info, "total_connections_received"), "1");
    assert_eq!(field(&info, "total_error_replies"), "1");
    assert!(field(&info, "used_memory_rss").parse::<u64>().unwrap() > 1_000_000);
    assert!(info.contains("# Servers\r\nserver0:pool=alpha,name=s0,"), "{info}");
    let all = text(admin.call(["INFO", "all"]));
    assert!(all.contains("cmdstat_get:calls=5,usec="), "{all}");
    assert!(all.contains("latency_percentiles_usec_get:p50="), "{all}");
    let one = text(admin.call(["INFO", "clients"]));
    assert!(one.starts_with("# Clients\r\n") && !one.contains("# Server"), "{one}");
    assert!(admin.call(["GET", "k"]).is_error("ERR unknown command"));
}

#[test]
fn clients_are_listed_by_their_own_numbers_and_killed() {
    let servers = Redis::start_many::<1>();
    let (fleet, mut admin) = ruled(&servers, "");
    let (mut one, mut two) = (fleet.client(), fleet.client());
    one.call(["CLIENT", "SETNAME", "batch"]);
    one.call(["GET", "k"]);
    let Value::Int(id) = one.call(["CLIENT", "ID"]) else { panic!("no id") };
    two.call(["GET", "k"]);
    let list = text(admin.call(["CLIENT", "LIST"]));
    assert_eq!(list.lines().count(), 2, "{list}");
    let line = list.lines().find(|line| field(line, "name") == "batch").expect("it has a name");
    assert_eq!(field(line, "id"), id.to_string());
    assert_eq!((field(line, "pool"), field(line, "cmd")), ("alpha", "client|id"));

    assert!(admin.call(["CLIENT", "KILL", "1.2.3.4:5"]).is_error("ERR No such client"));
    assert_eq!(admin.call(["CLIENT", "KILL", "ID", &id.to_string()]), Value::Int(1));
    wait_until("the client to be gone", PATIENCE, || fleet.stat("client_connections") == 1);
    assert_eq!(two.call(["GET", "k"]), Value::Nil);
    assert_eq!(admin.call(["CLIENT", "KILL", "POOL", "alpha"]), Value::Int(1));
    wait_until("the other to be gone", PATIENCE, || fleet.stat("client_connections") == 0);
}

#[test]
fn a_pause_holds_requests_until_it_ends() {
    let servers = Redis::start_many::<1>();
    let (fleet, mut admin) = ruled(&servers, "");
    let mut client = fleet.client();
    client.call(["SET", "k", "v"]);
    assert_eq!(admin.call(["CLIENT", "PAUSE", "60000"]), Value::ok());
    // Orders are carried out in turn: with this answer the pause holds.
    admin.call(["CLIENT", "LIST"]);
    client.send_raw(encode(["GET", "k"]));
    wait_until("the request to wait", PATIENCE, || {
        field(&text(admin.call(["CLIENT", "LIST"])), "qbuf") != "0"
    });
    assert_eq!(admin.call(["CLIENT", "UNPAUSE"]), Value::ok());
    assert_eq!(client.read(), Value::bulk("v"));

    let start = Instant::now();
    assert_eq!(admin.call(["CLIENT", "PAUSE", "200"]), Value::ok());
    admin.call(["CLIENT", "LIST"]);
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"), "it ends by itself");
    assert!(start.elapsed() >= Duration::from_millis(190));
}

/// From "p99 is up" to the guilty server, client and command.
#[test]
fn a_slow_request_names_server_client_and_command() {
    let servers = Redis::start_many::<2>();
    let (fleet, mut admin) = ruled(&servers, "  slowlog_slower_than: 20ms");
    let mut client = fleet.client();
    client.call(["CLIENT", "SETNAME", "reporting"]);
    let Value::Int(id) = client.call(["CLIENT", "ID"]) else { panic!("no id") };
    let key = fleet.key(1);
    client.call(["GET", &key]);
    servers[1].client().call(["CLIENT", "PAUSE", "60"]);
    client.call(["SET", &key, "v"]);
    assert_eq!(admin.call(["SLOWLOG", "LEN"]), Value::Int(1));
    let Value::Array(entries) = admin.call(["SLOWLOG", "GET"]) else { panic!("no array") };
    let Value::Array(entry) = &entries[0] else { panic!("no entry") };
    let Value::Int(took) = entry[2] else { panic!("no time") };
    assert!((20_000..2_000_000).contains(&took), "{took}");
    assert_eq!(entry[3], Value::Array(vec![Value::bulk("set")]));
    assert_eq!(entry[5], Value::bulk("reporting"));
    assert_eq!(entry[6], Value::bulk(format!("client={id}")));
    assert_eq!(entry[8], Value::bulk(format!("server={}", fleet.label(1))));
    assert_eq!(fleet.stat("slow_requests"), 1);

    let Value::Array(lines) = admin.call(["PROXY", "SERVERS", "alpha"]) else { panic!("no lines") };
    let p99 = |at: usize| field(&text(lines[at].clone()), "server_p99_usec").parse::<u64>().unwrap();
    assert!(p99(1) >= 20_000 && p99(0) < 20_000, "{} and {}", p99(0), p99(1));

    assert_eq!(admin.call(["SLOWLOG", "RESET"]), Value::ok());
    assert_eq!(admin.call(["CONFIG", "SET", "slowlog-log-slower-than", "-1"]), Value::ok());
    assert_eq!(
        admin.call(["CONFIG", "GET", "slowlog-log*"]),
        Value::array(["slowlog-log-slower-than", "-1"].map(Value::bulk))
    );
    servers[1].client().call(["CLIENT", "PAUSE", "60"]);
    client.call(["SET", &key, "v"]);
    assert_eq!(admin.call(["SLOWLOG", "LEN"]), Value::Int(0));
    let Value::Array(histogram) = admin.call(["LATENCY", "HISTOGRAM", "set"]) else { panic!("no array") };
    assert_eq!((histogram.len(), &histogram[0]), (2, &Value::bulk("set")));
}

#[test]
fn explain_says_where_a_request_would_go() {
    let servers = Redis::start_many::<2>();
    let (fleet, mut admin) = ruled(&servers, "");
    let key = fleet.key(1);
    let Value::Array(lines) = admin.call(["PROXY", "EXPLAIN", "alpha", "GET", &key]) else {
        panic!("no lines")
    };
    let all: String = lines.into_iter().map(|line| text(line) + "\n").collect();
    assert!(all.contains("s1") && all.contains(&key), "{all}");
    assert!(admin.call(["PROXY", "EXPLAIN", "beta", "GET", "k"]).is_error("ERR no such pool"));
    let Value::Array(help) = admin.call(["PROXY", "HELP"]) else { panic!("no help") };
    assert!(help.len() > 30);
}

#[test]
fn the_password_is_asked_for_and_needed_beyond_this_machine() {
    let servers = Redis::start_many::<1>();
    let (_fleet, port) = with_port(&servers, "  admin_password: sesame", "");
    let mut admin = Resp::port(port.number());
    assert!(admin.call(["INFO"]).is_error("NOAUTH"));
    assert!(admin.call(["PROXY", "NONSENSE"]).is_error("NOAUTH"), "strangers learn nothing");
    assert!(admin.call(["AUTH", "wrong"]).is_error("WRONGPASS"));
    assert_eq!(admin.call(["AUTH", "default", "sesame"]), Value::ok());
    assert_eq!(admin.call(["PING"]), Value::Simple("PONG".into()));

    let pool = pool_of("alpha", &Port::claim().address(), &entries(&servers), "");
    let output =
        Shardwise::run(&format!("shardwise:\n  admin: 0.0.0.0:22223\n{pool}"), &["-t", "-c", "conf.yml"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("admin_password"), "{said}");
}
