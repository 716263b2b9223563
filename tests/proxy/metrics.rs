//! The metrics port: what Prometheus, an orchestrator's probes and people get, and what nobody gets.

use std::io::{Read, Write};
use std::net::TcpStream;

use rustix::process::Signal;

use super::fleet::{Fleet, entries};
use crate::support::{PATIENCE, Port, Redis, Shardwise, encode, pool_of, wait_until};

/// A proxy with one worker and a metrics port.
fn watched(servers: &[Redis], section: &str) -> (Fleet, Port) {
    let (port, metrics) = (Port::claim(), Port::claim());
    let pool = pool_of("alpha", &port.address(), &entries(servers), "");
    let yaml = format!("shardwise:\n  metrics: {}\n{section}\n{pool}", metrics.number());
    let fleet = Fleet::configured(port, &yaml, &["--threads", "1"]);
    (fleet, metrics)
}

/// Sends `request`; status, head and body of the answer.
fn http(port: &Port, request: &str) -> (u16, String, String) {
    let mut stream = TcpStream::connect(port.socket_addr()).expect("the metrics port accepts");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout that is not zero");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    // A peer that refuses what it hasn't read whole may reset the connection behind its answer.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("text");
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    (status.unwrap_or_else(|| panic!("no status: {answer:?}")), head.to_owned(), body.to_owned())
}

fn get(port: &Port, path: &str) -> (u16, String, String) {
    http(port, &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
}

/// The value of one sample.
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in\n{text}"))
}

#[test]
fn prometheus_reads_what_has_been_counted() {
    let servers = Redis::start_many::<2>();
    let (fleet, metrics) = watched(&servers, "");
    let mut client = fleet.client();
    (0..3).for_each(|_| drop(client.call(["GET", &fleet.key(1)])));
    let (status, head, text) = get(&metrics, "/metrics");
    assert_eq!(status, 200);
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    assert_eq!(sample(&text, r#"shardwise_server_requests_total{pool="alpha",server="s1"}"#), 3.0);
    assert_eq!(sample(&text, r#"shardwise_server_requests_total{pool="alpha",server="s0"}"#), 0.0);
    assert_eq!(sample(&text, r#"shardwise_pool_client_connections{pool="alpha"}"#), 1.0);
    assert!(text.contains("# TYPE shardwise_server_requests_total counter\n"), "{text}");
    assert!(sample(&text, "process_cpu_seconds_total") > 0.0);
    assert!(sample(&text, "process_resident_memory_bytes") > 1e6);
    let shares = ["s0", "s1"].map(|s| {
        sample(&text, &format!("shardwise_server_ring_share_ratio{{pool=\"alpha\",server=\"{s}\"}}"))
    });
    assert!((shares[0] + shares[1] - 1.0).abs() < 1e-4 && shares[0] > 0.3, "{shares:?}");

    let wants =
        "GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
    let (_, head, text) = http(&metrics, wants);
    assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(
        text.contains("# TYPE shardwise_server_requests counter\n") && text.ends_with("# EOF\n"),
        "{text}"
    );
}

#[test]
fn probes_tell_a_proxy_that_goes_down_from_one_that_stands_still() {
    let servers = Redis::start_many::<1>();
    let (mut fleet, metrics) = watched(&servers, "  drain_timeout: 10s");
    assert_eq!(get(&metrics, "/livez").0, 200);
    assert_eq!(get(&metrics, "/readyz").0, 200);
    let (status, _, stats) = get(&metrics, "/stats");
    let stats: serde_json::Value = serde_json::from_str(&stats).expect("JSON");
    assert_eq!((status, &stats["alpha"]["s0"]["live"]), (200, &serde_json::json!(1)));

    // A client that awaits its reply keeps the drain going.
    let mut client = fleet.client();
    client.call(["SET", "k", "v"]);
    let mut servers = servers;
    servers[0].pause();
    client.send_raw(encode(["GET", "k"]));
    wait_until("the request to be on its way", PATIENCE, || fleet.server_stat(0, "out_queue") == 1);
    fleet.proxy.signal(Signal::TERM);
    wait_until("the drain to begin", PATIENCE, || get(&metrics, "/readyz").0 == 503);
    assert_eq!(get(&metrics, "/livez").0, 200, "it is to finish, not to be killed");
    servers[0].resume();
    client.read();
}

#[test]
fn what_is_too_much_or_too_slow_is_refused() {
    let servers = Redis::start_many::<1>();
    let (_fleet, metrics) = watched(&servers, "");
    assert_eq!(get(&metrics, "/etc/passwd").0, 404);
    let (status, head, _) = http(&metrics, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(status, 405);
    assert!(head.to_lowercase().contains("allow: get, head"), "{head}");
    let long = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "a".repeat(40_000));
    assert_eq!(http(&metrics, &long).0, 431);
    assert_eq!(http(&metrics, "*1\r\n$4\r\nPING\r\n\r\n").0, 400);
    // Many who say nothing: the one who does waits for a place, and gets it.
    let idle: Vec<_> = (0..70).map(|_| TcpStream::connect(metrics.socket_addr()).expect("queued")).collect();
    drop(idle);
    assert_eq!(get(&metrics, "/livez").0, 200);
}

#[test]
fn a_taken_metrics_port_stops_the_start() {
    let (port, taken) = (Port::claim(), Port::claim());
    let _listener = std::net::TcpListener::bind(taken.socket_addr()).expect("it is ours");
    let pool = pool_of("alpha", &port.address(), &["127.0.0.1:1:1".to_owned()], "");
    let yaml = format!("shardwise:\n  metrics: {}\n{pool}", taken.address());
    let output = Shardwise::run(&yaml, &["-c", "conf.yml", "-s", &Port::claim().number().to_string()]);
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && log.contains("metrics port"), "{log}");
}
