//! What the log says again and again is counted, and who is meant has the name that it has elsewhere.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::stats::ask;
use crate::support::{PATIENCE, Port, Shardwise, wait_until};
use crate::yaml;

/// A browser that some web page misuses; until it is thrown out.
fn browser(address: &str) {
    let mut client = TcpStream::connect(address).expect("it listens");
    client.write_all(b"POST / HTTP/1.1\r\n").expect("nothing is in the way");
    let _ = client.read_to_end(&mut Vec::new()); // reset, if it was fast
}

#[test]
fn repeated_lines_are_counted_in_the_log_and_in_the_metrics() {
    let (port, metrics) = (Port::claim(), Port::claim());
    let shared = format!("shardwise:\n  metrics: {}\n  log_format: json\n", metrics.address());
    let mut proxy = Shardwise::start(&(shared + &yaml(&port.address())));
    (0..10).for_each(|_| browser(&port.address()));

    let text = ask(&metrics.address(), b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(text.contains("\nshardwise_log_lines_suppressed_total 7"), "{text}");
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    let log = proxy.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let message = |line: &Value| line["message"].as_str().unwrap_or_default().to_owned();
    let shown: Vec<&Value> =
        lines.iter().filter(|line| message(line).starts_with("a client speaks HTTP")).collect();
    assert_eq!(shown.len(), 3, "{log}");
    assert!(shown.iter().all(|line| line["client"].is_u64() && line["pool"] == "alpha"), "{log}");
    let sums: Vec<&Value> = lines.iter().filter(|line| message(line).starts_with("repeated: ")).collect();
    assert_eq!(sums.len(), 1, "{log}");
    let sum = sums[0];
    assert_eq!((&sum["level"], &sum["pool"]), (&"WARN".into(), &"alpha".into()), "{log}");
    assert_eq!((&sum["suppressed"], &sum["server"]), (&7.into(), &Value::Null), "{log}");
    assert!(message(sum).starts_with("repeated: a client speaks HTTP"), "{log}");
}

#[test]
fn servers_and_reasons_are_named_as_in_the_metrics() {
    let port = Port::claim();
    let proxy = Shardwise::start(&yaml(&port.address()));
    let mut client = TcpStream::connect(port.socket_addr()).unwrap();
    client.write_all(b"GET key\r\n").unwrap();
    let wanted = |server: &str| {
        format!(
            "pool=\"alpha\" server=\"{server}\" address=127.0.0.1:{}",
            if server == "one" { 1 } else { 2 }
        )
    };
    wait_until("the log names the server", PATIENCE, || {
        let log = proxy.log();
        let line = log.lines().find(|line| line.contains("cannot connect; trying on"));
        line.is_some_and(|line| {
            line.contains("reason=nobody listens there")
                && ["one", "two"].iter().any(|server| line.contains(&wanted(server)))
        })
    });
}

#[test]
fn what_answers_an_operator_is_never_left_out() {
    let port = Port::claim();
    let text = yaml(&port.address());
    let mut proxy = Shardwise::start(&text);
    (0..8).for_each(|_| drop(proxy.reload(&text)));
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    let log = proxy.log();
    assert_eq!(log.matches("received: reloading the configuration").count(), 8, "{log}");
    assert!(!log.contains("repeated: "), "{log}");
}
