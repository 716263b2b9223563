//! Hot and big keys: the admin port and the live page name them, over all workers and of each pool apart.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::fleet::{Fleet, entries};
use crate::support::{PATIENCE, Port, Redis, Resp, Value, pool_of, wait_until};

fn sampling(servers: &[Redis], hot_keys: &str) -> (Fleet, Resp, Port) {
    let [port, admin, metrics] = [Port::claim(), Port::claim(), Port::claim()];
    let pool = pool_of("alpha", &port.address(), &entries(servers), "");
    let (admin_port, metrics_port) = (admin.number(), metrics.number());
    let yaml = format!("shardwise:\n  admin: {admin_port}\n  metrics: {metrics_port}\n{hot_keys}{pool}");
    (Fleet::configured(port, &yaml, &["--threads", "2"]), Resp::port(admin_port), metrics)
}

fn lines(admin: &mut Resp, command: &[&str]) -> Vec<String> {
    let Value::Array(lines) = admin.call(command.iter()) else { panic!("no lines") };
    let text = |line| match line {
        Value::Bulk(bytes) => String::from_utf8(bytes.to_vec()).expect("text"),
        other => panic!("no bulk: {other:?}"),
    };
    lines.into_iter().map(text).collect()
}

fn number(line: &str, name: &str) -> f64 {
    let found = line.split(' ').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    found.and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no {name} in {line}"))
}

fn live(metrics: &Port) -> serde_json::Value {
    let mut stream = TcpStream::connect(metrics.socket_addr()).unwrap();
    stream.write_all(b"GET /live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
}

#[test]
fn keys_with_most_requests_and_with_most_bytes_are_named() {
    let servers = Redis::start_many::<2>();
    let (fleet, mut admin, metrics) = sampling(&servers, "  hot_keys: 1\n");
    // Clients of both workers.
    let mut clients: Vec<Resp> = (0..8).map(|_| fleet.client()).collect();
    let big = "x".repeat(200_000);
    clients[0].call(["SET", "big one", &big]);
    for client in &mut clients {
        (0..50).for_each(|_| drop(client.call(["GET", "hot"])));
        assert_eq!(client.call(["GET", "big one"]), Value::bulk(&big), "longer than what streams");
        assert_eq!(client.call(["MGET", "hot", "big one"]).items().len(), 2);
        client.call(["PING"]);
    }
    let hot = lines(&mut admin, &["PROXY", "HOTKEYS"]);
    assert_eq!(hot.len(), 2, "{hot:?}");
    assert!(hot[0].starts_with("pool=alpha key=\"hot\" requests_per_second="), "{hot:?}");
    // 8 × 51 of 8 × 53 + 1 keys.
    assert!((number(&hot[0], "share") - 408.0 / 425.0).abs() < 0.001, "{hot:?}");
    assert_eq!(number(&hot[0], "error"), 0.0, "{hot:?}");

    let bytes = lines(&mut admin, &["PROXY", "BIGKEYS", "1"]);
    assert_eq!(bytes.len(), 1);
    assert!(bytes[0].starts_with("pool=alpha key=\"big one\" bytes_per_second="), "{bytes:?}");
    let largest = number(&bytes[0], "largest_bytes");
    assert!((200_000.0..200_100.0).contains(&largest), "{bytes:?}");

    let live = live(&metrics);
    assert_eq!(live["keys"]["one_in"], 1);
    assert_eq!(live["keys"]["requests"][0]["key"], "hot", "{live}");
    assert_eq!(live["keys"]["bytes"][0]["key"], "big one", "{live}");
}

#[test]
fn it_is_off_until_a_reload_turns_it_on() {
    let servers = Redis::start_many::<1>();
    let (mut fleet, mut admin, metrics) = sampling(&servers, "");
    let mut client = fleet.client();
    client.call(["SET", "k", "v"]);
    assert!(admin.call(["PROXY", "HOTKEYS"]).is_error("ERR no keys are looked at"));
    assert!(admin.call(["PROXY", "BIGKEYS", "3"]).is_error("ERR no keys are looked at"));
    assert!(live(&metrics)["keys"].is_null());

    let yaml = std::fs::read_to_string(fleet.proxy.config_path()).unwrap();
    let report = fleet.proxy.reload(&yaml.replace("shardwise:\n", "shardwise:\n  hot_keys: 1\n"));
    assert!(report.contains("hot_keys"), "{report}");
    client.call(["GET", "k"]);
    wait_until("the key to be known", PATIENCE, || lines(&mut admin, &["PROXY", "HOTKEYS"]).len() == 1);
    // What is refused or answered here goes to no key.
    client.call(["GET"]);
    client.call(["KEYS", "*"]);
    assert_eq!(lines(&mut admin, &["PROXY", "HOTKEYS"]).len(), 1);
}
