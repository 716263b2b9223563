//! Commands that may wait: on a connection of their client's own, for as long as it asked, and for nobody but it.

use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Redis, Resp, Shards, Value, wait_until};

/// Clients that wait on a server now.
fn blocked(server: &Redis) -> i64 {
    server.info("blocked_clients")
}

#[track_caller]
fn wait_blocked(server: &Redis, count: i64) {
    wait_until("clients block", PATIENCE, || blocked(server) == count);
}

/// Requests and what wakes them, for keys `a` and `b` of one server.
fn calls<'a>(a: &'a str, b: &'a str) -> Vec<(Vec<&'a str>, Vec<&'a str>)> {
    let list = vec!["RPUSH", a, "x"];
    let sorted = vec!["ZADD", a, "1", "x"];
    let stream = vec!["XADD", a, "1-1", "f", "v"];
    vec![
        (vec!["BLPOP", a, "0"], list.clone()),
        (vec!["BLPOP", b, a, "0"], list.clone()),
        (vec!["BRPOP", a, "0"], list.clone()),
        (vec!["BLMOVE", a, b, "LEFT", "RIGHT", "0"], list.clone()),
        (vec!["BRPOPLPUSH", a, b, "0"], list.clone()),
        (vec!["BLMPOP", "0", "2", b, a, "LEFT"], list),
        (vec!["BZPOPMIN", a, "0"], sorted.clone()),
        (vec!["BZPOPMAX", a, "0"], sorted.clone()),
        (vec!["BZMPOP", "0", "1", a, "MIN"], sorted),
        (vec!["XREAD", "BLOCK", "0", "STREAMS", a, "$"], stream.clone()),
        (vec!["XREADGROUP", "GROUP", "g", "c", "BLOCK", "0", "STREAMS", a, ">"], stream),
    ]
}

/// Waited for, found at once, and waited for in vain: a single Redis gives the same answers.
#[test]
fn every_blocking_command_is_answered_as_by_one_redis() {
    // A pool's timeout is for servers that don't answer, not for those that were asked to wait.
    let shards = Shards::<2>::start("timeout: 150");
    let [[a, b], _] = shards.keys();
    let alone = Redis::start();
    for (call, push) in calls(&a, &b) {
        let prepare = |client: &mut Resp| {
            client.call(["DEL", &a]);
            client.call(["DEL", &b]);
            if call[0] == "XREADGROUP" {
                client.call(["XGROUP", "CREATE", &a, "g", "$", "MKSTREAM"]);
            }
        };
        let wait = |server: &Redis, mut waiting: Resp, mut other: Resp| {
            prepare(&mut other);
            waiting.send(&call);
            wait_blocked(server, 1);
            assert!(waiting.silent_for(Duration::from_millis(400)), "{call:?}");
            other.call(&push);
            let woken = waiting.read();
            prepare(&mut other);
            other.call(&push);
            let at_once = if call[0] == "XREAD" { Value::Nil } else { waiting.call(&call) };
            prepare(&mut other);
            let call: Vec<&str> = call.iter().map(|word| if *word == "0" { "0.01" } else { word }).collect();
            let call: Vec<&str> = match call[0] {
                "XREAD" | "XREADGROUP" => {
                    call.into_iter().map(|w| if w == "0.01" { "10" } else { w }).collect()
                }
                _ => call,
            };
            (woken, at_once, waiting.call(&call), waiting.call(["GET", "nosuch"]))
        };
        let expected = wait(&alone, alone.client(), alone.client());
        assert_eq!(wait(&shards.servers[0], shards.client(), shards.client()), expected, "{call:?}");
    }
}

/// B10: a client vanished during BLPOP, the server stayed blocked, and the next push was popped for nobody.
#[test]
fn no_element_is_popped_for_a_client_that_has_gone() {
    let shards = Shards::<1>::start("");
    let server = &shards.servers[0];
    let mut pusher = shards.client();
    for round in 0..20 {
        let mut waiting = shards.client();
        if round % 2 == 0 {
            waiting.send(["BLPOP", "list", "0"]);
        } else {
            // What it sent behind is not read as the end of the connection, nor does it hide that.
            waiting.pipeline([["SET", "before", "1"]]);
            waiting.send_raw("BLPOP list 0\r\nSET behind 1\r\nGET behind\r\n");
        }
        wait_blocked(server, 1);
        match round % 3 {
            0 => waiting.finish(),
            _ => drop(waiting),
        }
        wait_blocked(server, 0);
        assert_eq!(pusher.call(["RPUSH", "list", "x"]), Value::Int(1), "round {round}");
        assert_eq!(pusher.call(["LRANGE", "list", "0", "-1"]), Value::array([Value::bulk("x")]));
        assert_eq!(pusher.call(["DEL", "list"]), Value::Int(1));
    }
    assert_eq!(pusher.call(["EXISTS", "behind"]), Value::Int(0));
}

/// What follows a blocking command is executed when that has been answered, not before; what goes before it, before it.
#[test]
fn a_client_that_waits_does_nothing_else() {
    let shards = Shards::<2>::start("");
    let [[a, b], [c, _]] = shards.keys();
    let mut waiting = shards.client();
    let mut other = shards.client();
    for _ in 0..10 {
        let request = format!(
            "SET {b} 1\r\nSET {c} 1\r\nBLPOP {a} 0\r\nINCR {b}\r\nINCR {c}\r\nBLPOP {a} 0\r\nGET {b}\r\n"
        );
        waiting.send_raw(request);
        wait_blocked(&shards.servers[0], 1);
        assert_eq!(other.call(["MGET", &b, &c]), Value::array([Value::bulk("1"), Value::bulk("1")]));
        other.call(["RPUSH", &a, "x"]);
        wait_until("the second one waits", PATIENCE, || other.call(["GET", &c]) == Value::bulk("2"));
        wait_blocked(&shards.servers[0], 1);
        other.call(["RPUSH", &a, "y"]);
        let popped = |value| Value::array([Value::bulk(&a), Value::bulk(value)]);
        let expected = [
            Value::ok(),
            Value::ok(),
            popped("x"),
            Value::Int(2),
            Value::Int(2),
            popped("y"),
            Value::bulk("2"),
        ];
        for value in expected {
            assert_eq!(waiting.read(), value);
        }
    }
}

/// B11: a blocking XREAD on a shared connection starved others.
#[test]
fn nobody_waits_with_those_that_wait() {
    let shards = Shards::<1>::on_one_thread("timeout: 5000");
    let mut waiting: Vec<Resp> = (0..50).map(|_| shards.client()).collect();
    waiting.iter_mut().for_each(|client| client.send(["XREAD", "BLOCK", "0", "STREAMS", "s", "$"]));
    wait_blocked(&shards.servers[0], 50);
    let mut other = shards.client();
    let start = Instant::now();
    (0..200).for_each(|i| assert_eq!(other.call(["INCR", "n"]), Value::Int(i + 1)));
    assert!(start.elapsed() < Duration::from_secs(5));
    other.call(["XADD", "s", "1-1", "f", "v"]);
    let first = waiting[0].read();
    assert!(waiting[1..].iter_mut().all(|client| client.read() == first));
    // The connections are kept, and taken again.
    let opened = shards.servers[0].info("total_connections_received");
    for _ in 0..5 {
        waiting.iter_mut().for_each(|client| client.send(["BLPOP", "none", "0.001"]));
        waiting.iter_mut().for_each(|client| assert_eq!(client.read(), Value::Nil));
    }
    assert!(shards.servers[0].info("total_connections_received") <= opened + 1);
}

#[test]
fn one_more_than_max_leases_is_refused_and_the_others_wait_on() {
    let shards = Shards::<1>::start("max_leases: 2");
    let mut waiting = [shards.client(), shards.client()];
    waiting.iter_mut().for_each(|client| client.send(["BLPOP", "list", "0"]));
    wait_blocked(&shards.servers[0], 2);
    let mut third = shards.client();
    assert!(third.call(["BLPOP", "list", "0"]).is_error("ERR max leased connections to "));
    assert_eq!(third.call(["RPUSH", "list", "x", "y"]), Value::Int(2));
    for client in &mut waiting {
        assert_eq!(client.read().items()[0], Value::bulk("list"));
    }
    assert_eq!(third.call(["BLPOP", "list", "0.01"]), Value::Nil, "there is room again");
}

#[test]
fn a_server_that_dies_is_an_error_for_those_that_wait() {
    let mut shards = Shards::<1>::start("");
    let mut waiting = shards.client();
    waiting.send(["BLPOP", "list", "0"]);
    wait_blocked(&shards.servers[0], 1);
    shards.servers[0].kill();
    assert!(waiting.read().is_error("ERR Connection reset by peer: "));
    shards.servers[0].restart();
    wait_until("it is back", PATIENCE, || waiting.call(["RPUSH", "list", "x"]) == Value::Int(1));
    assert_eq!(waiting.call(["BLPOP", "list", "0"]).items()[1], Value::bulk("x"));
}

/// A server that has stopped is noticed when the time is over that the client asked for, and the pool's on top of it.
#[test]
fn the_timeout_comes_on_top_of_the_clients_own() {
    let mut shards = Shards::<1>::start("timeout: 300");
    let mut waiting = shards.client();
    let start = Instant::now();
    waiting.send(["BLPOP", "list", "1"]);
    wait_blocked(&shards.servers[0], 1);
    shards.servers[0].pause();
    assert!(waiting.read().is_error("ERR Connection timed out: "));
    assert!(start.elapsed() >= Duration::from_millis(1250), "after {:?}", start.elapsed());
    shards.servers[0].resume();
}

/// Keys that are watched are still watched behind a wait on the same server.
#[test]
fn a_watch_outlives_a_wait() {
    let shards = Shards::<1>::start("");
    let (mut client, mut other) = (shards.client(), shards.client());
    for changed in [false, true] {
        assert_eq!(client.call(["WATCH", "k"]), Value::ok());
        assert_eq!(client.call(["BLPOP", "list", "0.01"]), Value::Nil);
        if changed {
            other.call(["SET", "k", "1"]);
        }
        let replies = client.pipeline([&["MULTI"][..], &["GET", "k"], &["EXEC"]]);
        assert_eq!(replies[2], if changed { Value::Nil } else { Value::array([Value::Nil]) });
    }
}

#[test]
fn a_shutdown_does_not_wait_for_those_that_wait() {
    let mut shards = Shards::<1>::start("");
    let mut waiting = shards.client();
    waiting.send(["BLPOP", "list", "0"]);
    wait_blocked(&shards.servers[0], 1);
    let start = Instant::now();
    assert_eq!(shards.proxy.terminate(PATIENCE), Some(0));
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert!(waiting.read().is_error("ERR Connection refused: "), "an error, and then the end");
    assert!(waiting.closed());
}
