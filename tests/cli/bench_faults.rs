//! `shardwise bench` against targets that fail: it goes on, and says what happened.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::bench::bench;
use crate::support::{FakeServer, Port, Redis, wait_until};

#[test]
fn error_replies_are_counted_by_kind() {
    let redis = Redis::start();
    redis.client().call(["SET", "mylist", "no list"]);
    let target = redis.address();
    let report = bench(&["--target", &target, "-n", "100", "-c", "3", "-t", "lpush,set"]);
    let [pushes, sets] = [&report["results"][0], &report["results"][1]];
    assert_eq!((&pushes["replies"], &pushes["errors_by_kind"]["-WRONGTYPE"]), (&0.into(), &100.into()));
    assert_eq!(
        (&sets["replies"], &sets["errors"]),
        (&100.into(), &0.into()),
        "the next test has nothing to do with it"
    );
}

#[test]
fn a_target_that_is_down_does_not_keep_others_from_being_measured() {
    let (redis, nobody) = (Redis::start(), Port::claim());
    let (up, down) = (format!("up={}", redis.address()), format!("down={}", nobody.address()));
    let report =
        bench(&["--target", &up, "--target", &down, "-n", "100", "-c", "3", "-t", "set", "--give-up", "0.3"]);
    let [up, down] = [&report["results"][0], &report["results"][1]];
    assert_eq!((&up["replies"], &up["errors"]), (&100.into(), &0.into()));
    assert_eq!((&down["replies"], &down["given_up"], &down["ratio"]), (&0.into(), &1.into(), &0.0.into()));
    assert!(down["errors_by_kind"]["connection refused"].as_u64().unwrap() >= 3, "{down}");
}

#[test]
fn a_wrong_password_is_said() {
    let redis = Redis::with(&["--requirepass", "s3cret"]);
    let target = redis.address();
    let report = bench(&["--target", &target, "-a", "wrong", "-n", "10", "-c", "1", "--give-up", "0.3"]);
    assert!(report["results"][0]["errors_by_kind"]["handshake refused"].as_u64().unwrap() > 0, "{report}");
}

/// Connections that die with requests outstanding cost these requests and nothing more.
#[test]
fn a_connection_that_dies_is_made_anew() {
    let server = FakeServer::start(|_, peer| {
        for _ in 0..30 {
            let Some(_request) = peer.request() else { return };
            peer.send("+OK\r\n");
        }
        peer.request();
    });
    let target = server.address();
    let report = bench(&["--target", &target, "-n", "100", "-c", "1", "-t", "set"]);
    let result = &report["results"][0];
    let closed =
        result["errors_by_kind"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>();
    assert_eq!(closed, 3, "{result}");
    assert_eq!(result["replies"], 97);
    assert_eq!(server.connections(), 4);
}

#[test]
fn a_server_that_restarts_is_used_again() {
    let mut redis = Redis::start();
    let target = redis.address();
    let run =
        std::thread::spawn(move || bench(&["--target", &target, "-c", "4", "--seconds", "2", "-t", "set"]));
    wait_until("some load", Duration::from_secs(20), || redis.info("total_commands_processed") > 50);
    redis.restart();
    wait_until("load after the restart", Duration::from_secs(20), || {
        redis.info("total_commands_processed") > 50
    });
    let report = run.join().unwrap();
    let result = &report["results"][0];
    assert!(result["errors"].as_u64().unwrap() > 0 && result["replies"].as_u64().unwrap() > 100, "{result}");
}

#[test]
fn a_wrong_value_is_caught() {
    let server = FakeServer::start(|_, peer| {
        let mut number = 0;
        peer.answer_all(|request| {
            number += 1;
            let key = String::from_utf8_lossy(&request[1]).into_owned();
            let digits = key.trim_start_matches("key:");
            match number {
                5 => "$12\r\n999999999999\r\n".into(), // another key's
                6 => "$-1\r\n".into(),
                7 => "$3\r\n000\r\n".into(),
                _ => format!("$12\r\n{digits}\r\n").into_bytes(),
            }
        });
    });
    let target = server.address();
    let args =
        ["--target", &target, "-n", "20", "-c", "1", "-d", "12", "--keys", "1000", "-t", "get", "--verify"];
    let result = &bench(&args)["results"][0];
    assert_eq!(
        (&result["replies"], &result["errors_by_kind"]["wrong value"]),
        (&18.into(), &2.into()),
        "{result}"
    );
}

#[test]
fn bytes_that_are_no_resp_end_the_connection_and_not_the_run() {
    let server = FakeServer::start(|number, peer| {
        let Some(_request) = peer.request() else { return };
        peer.send(if number == 0 { "HTTP/1.1 400\r\n" } else { "+OK\r\n+UNASKED\r\n" });
        peer.wait_closed();
    });
    let target = server.address();
    let result = &bench(&["--target", &target, "-n", "2", "-c", "1", "-t", "set"])["results"][0];
    assert_eq!(result["errors_by_kind"]["no RESP"], 1, "{result}");
    assert_eq!(result["replies"], 1, "{result}");
}

/// Coordinated omission: one stall of 300 ms is one late reply for a client that waits, and hundreds for those who would have come.
#[test]
fn with_a_rate_a_stall_is_charged_to_all_who_would_have_come() {
    let requests = Arc::new(AtomicUsize::new(0));
    let server = FakeServer::start({
        let requests = Arc::clone(&requests);
        move |_, peer| {
            peer.answer_all(|_| {
                if requests.fetch_add(1, Ordering::SeqCst) == 100 {
                    let end = Instant::now() + Duration::from_millis(300);
                    while Instant::now() < end {
                        std::thread::yield_now();
                    }
                }
                b"+OK\r\n".to_vec()
            });
        }
    });
    let target = server.address();
    let result =
        &bench(&["--target", &target, "-n", "500", "-c", "1", "--rate", "500", "-t", "set"])["results"][0];
    assert_eq!(result["replies"], 500);
    let curve = result["latency_ms"].as_array().unwrap();
    let at = |quantile: f64| curve.iter().find(|point| point[0] == quantile).unwrap()[1].as_f64().unwrap();
    // 150 of 500 came while it stood still: those of its first third waited 200 ms or more.
    assert!(at(0.9) > 150.0, "{result}");
    assert_eq!(requests.load(Ordering::SeqCst), 500);
}
