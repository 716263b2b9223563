//! `auto_eject_hosts`: which failures count, and where keys go.

use std::time::{Duration, Instant};

use shardwise::topology::{Draw, Topology};

use super::fleet::{Fleet, entries};
use crate::support::{FakeServer, PATIENCE, Redis, Resp, Value, encode, wait_until};

const EJECT: &str = "auto_eject_hosts: true\nserver_retry_timeout: 300";

fn kill_connections(server: &Redis) {
    server.client().call(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
}

/// Sends requests for keys of server `server` until it is ejected.
#[track_caller]
fn wait_ejected(fleet: &Fleet, server: usize) {
    let key = fleet.key(server);
    let mut client = fleet.client();
    wait_until("the ejection", PATIENCE, || {
        client.call(["GET", &key]);
        fleet.server_stat(server, "server_ejected_at") > 0
    });
}

/// While a server is out, each key is where nutcracker's rebuilt ring has it: with unequal weights, survivors exchange
/// keys among themselves, too. When it is back, all are where they were.
#[test]
fn keys_move_as_in_nutcrackers_rebuilt_ring() {
    let mut servers = Redis::start_many::<4>();
    let list: Vec<String> = servers
        .iter()
        .zip([1, 2, 3, 7])
        .enumerate()
        .map(|(i, (s, weight))| format!("{} s{i}", s.entry(weight)))
        .collect();
    let settings = format!("{EJECT}\nhash: murmur");
    let fleet = Fleet::over(&list, &settings, &["--threads", "2"]);
    let keys: Vec<String> = (0..400).map(|i| format!("{i}:key")).collect();
    servers[0].kill();
    wait_ejected(&fleet, 0);
    // Both workers have heard of it when no key of it fails any more.
    let mut clients: Vec<Resp> = (0..4).map(|_| fleet.client()).collect();
    let gone = fleet.keys(0, "gone", 20);
    wait_until("both workers to know", PATIENCE, || {
        clients.iter_mut().all(|client| gone.iter().all(|key| !client.call(["GET", key]).is_error("")))
    });
    servers.iter().skip(1).for_each(|server| drop(server.client().call(["FLUSHALL"])));
    for (client, part) in clients.iter_mut().zip(keys.chunks(100)) {
        let replies = client.pipeline(part.iter().map(|key| ["SET", key, "v"]));
        assert!(replies.iter().all(|reply| *reply == Value::ok()), "{replies:?}");
    }
    let places = |topology: &Topology| {
        let draw = Draw::seeded(1);
        keys.iter().map(|key| topology.server(key.as_bytes(), &draw).unwrap().index()).collect::<Vec<_>>()
    };
    let found = |servers: &[Redis; 4], alive: &[usize]| {
        let mut found = vec![usize::MAX; keys.len()];
        for &server in alive {
            let exist = servers[server].client().pipeline(keys.iter().map(|key| ["EXISTS", key]));
            for (place, exists) in found.iter_mut().zip(exist) {
                if exists == Value::Int(1) {
                    assert_eq!(*place, usize::MAX, "a key is on two servers");
                    *place = server;
                }
            }
        }
        found
    };
    let rebuilt = places(&Topology::new(fleet.pool(), &[false, true, true, true]));
    let whole = places(&Topology::all_live(fleet.pool()));
    assert_eq!(found(&servers, &[1, 2, 3]), rebuilt);
    let moved = rebuilt.iter().zip(&whole).filter(|(new, old)| new != old && **old != 0).count();
    assert!(moved > 0, "no survivor gave a key away: the test has shown nothing");

    servers[0].restart();
    wait_until("its return", PATIENCE, || fleet.proxy.log().contains("server readmitted"));
    servers.iter().for_each(|server| drop(server.client().call(["FLUSHALL"])));
    wait_until("both workers to know", PATIENCE, || {
        // An error: that worker has not connected again yet.
        clients.iter_mut().all(|client| client.call(["SET", &gone[0], "v"]) == Value::ok())
            && servers[0].client().call(["EXISTS", &gone[0]]) == Value::Int(1)
            && servers.iter().skip(1).all(|server| server.client().call(["DEL", &gone[0]]) == Value::Int(0))
    });
    servers.iter().for_each(|server| drop(server.client().call(["FLUSHALL"])));
    for (client, part) in clients.iter_mut().zip(keys.chunks(100)) {
        client.pipeline(part.iter().map(|key| ["SET", key, "v"]));
    }
    assert_eq!(found(&servers, &[0, 1, 2, 3]), whole);
}

/// B19: a host that is dead without a word never refuses and never resets. Deadlines count.
#[test]
fn a_silent_server_is_ejected_by_its_timeouts_and_comes_back() {
    let mut servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, &format!("{EJECT}\ntimeout: 150"));
    fleet.client().call(["SET", &fleet.key(0), "v"]);
    servers[0].pause();
    wait_ejected(&fleet, 0);
    assert!(fleet.server_stat(0, "server_timedout") >= 2);
    let mut client = fleet.client();
    wait_until("its keys to be served by the other", PATIENCE, || {
        client.call(["GET", &fleet.key(0)]) == Value::Nil
    });
    servers[0].resume();
    wait_until("its return", PATIENCE, || client.call(["GET", &fleet.key(0)]) == Value::bulk("v"));
    assert_eq!(fleet.stat("server_ejects"), 1);
}

/// B22: one lost connection is one failure, however many requests were on it; and with nothing in flight it is none.
/// A run of failures ends with the first good reply.
#[test]
fn lost_connections_of_a_healthy_server_never_eject_it() {
    let servers = Redis::start_many::<2>();
    let fleet = Fleet::over(&entries(&servers), EJECT, &["--threads", "1"]);
    let mut client = fleet.client();
    let key = fleet.key(0);
    for _ in 0..10 {
        client.call(["SET", &key, "v"]);
        let lost = fleet.server_stat(0, "server_total");
        // Asleep, it has many requests on its connection when that is killed.
        let mut direct = servers[0].client();
        direct.send_raw(
            [
                encode(["DEBUG", "SLEEP", "0.05"]),
                encode(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]),
            ]
            .concat(),
        );
        client.send_raw(encode(["GET", &key]).repeat(50));
        (0..50).for_each(|_| drop(client.read()));
        wait_until("the next connection", PATIENCE, || fleet.server_stat(0, "server_total") > lost);
        kill_connections(&servers[0]);
        wait_until("one more", PATIENCE, || fleet.server_stat(0, "server_total") > lost + 1);
        assert!(fleet.server_stat(0, "failed_attempts") <= 1);
    }
    assert_eq!(fleet.stat("server_ejects"), 0, "{}", fleet.proxy.log());
}

/// B22: many requests that are late together are one failure too: a pause of the server ejects nobody.
#[test]
fn one_pause_of_a_server_is_one_failure() {
    let servers = Redis::start_many::<2>();
    let fleet = Fleet::over(&entries(&servers), &format!("{EJECT}\ntimeout: 200"), &["--threads", "1"]);
    let key = fleet.key(0);
    let mut clients: Vec<Resp> = (0..10).map(|_| fleet.client()).collect();
    clients.iter_mut().for_each(|client| drop(client.call(["SET", &key, "v"])));
    let mut direct = servers[0].client();
    direct.send(["DEBUG", "SLEEP", "0.35"]);
    let start = Instant::now();
    for (i, client) in clients.iter_mut().enumerate() {
        // At different times, so that their deadlines differ.
        wait_until("a moment to pass", PATIENCE, || start.elapsed() >= Duration::from_millis(5 * i as u64));
        client.send(["GET", &key]);
    }
    let late = clients
        .iter_mut()
        .map(|client| client.read())
        .filter(|reply| reply.is_error("ERR Connection timed out"));
    assert!(late.count() > 1, "the test has shown nothing");
    direct.read();
    clients.iter_mut().for_each(|client| assert_eq!(client.call(["GET", &key]), Value::bulk("v")));
    assert_eq!(fleet.stat("server_ejects"), 0, "{}", fleet.proxy.log());
}

/// A server that loads its data answers, but can't serve: the answer passes through, and counts against it.
#[test]
fn a_server_that_is_loading_is_ejected() {
    let loading = FakeServer::start(|_, peer| {
        peer.answer_all(|_| b"-LOADING Redis is loading the dataset in memory\r\n".to_vec());
    });
    let other = FakeServer::start(|_, peer| peer.answer_all(|_| b"+fine\r\n".to_vec()));
    let fleet = Fleet::over(&[loading.entry("s0"), other.entry("s1")], EJECT, &["--threads", "1"]);
    let mut client = fleet.client();
    let key = fleet.key(0);
    assert!(client.call(["GET", &key]).is_error("LOADING"), "it passes through");
    wait_until("the other to have its keys", PATIENCE, || {
        client.call(["GET", &key]) == Value::simple("fine")
    });
    assert_eq!(fleet.stat("server_ejects"), 1);
    wait_until("a probe", PATIENCE, || fleet.proxy.log().contains("server stays ejected"));
    assert_eq!(client.call(["GET", &key]), Value::simple("fine"));
}

/// A server whose answers are no Redis server's fails, although it answers.
#[test]
fn a_server_that_talks_nonsense_is_ejected() {
    let nonsense = FakeServer::start(|_, peer| {
        if peer.request().is_some() {
            peer.send("HTTP/1.1 400 Bad Request\r\n");
        }
    });
    let other = FakeServer::start(|_, peer| peer.answer_all(|_| b"+fine\r\n".to_vec()));
    let fleet = Fleet::over(&[nonsense.entry("s0"), other.entry("s1")], EJECT, &["--threads", "1"]);
    let mut client = fleet.client();
    let key = fleet.key(0);
    wait_until("the other to have its keys", PATIENCE, || {
        client.call(["GET", &key]) == Value::simple("fine")
    });
}

/// A server that crashes takes all connections with it, and that is one failure. Each of them counted for itself: with
/// `server_connections: 4` and the default limit of 2 the first crash ejected the server.
#[test]
fn one_crash_is_one_failure_however_many_connections_it_ends() {
    let crash = std::sync::Barrier::new(4);
    let server = FakeServer::start(move |number, peer| {
        if number < 4 {
            peer.request().expect("every connection gets requests");
            crash.wait();
            return;
        }
        peer.answer_all(|_| b"+back\r\n".to_vec());
    });
    let other = FakeServer::start(|_, peer| peer.answer_all(|_| b"+fine\r\n".to_vec()));
    let settings = format!("{EJECT}\nserver_connections: 4");
    let fleet = Fleet::over(&[server.entry("s0"), other.entry("s1")], &settings, &["--threads", "1"]);
    let key = fleet.key(0);
    let mut clients: Vec<Resp> = (0..32).map(|_| fleet.client()).collect();
    clients.iter_mut().for_each(|client| client.send(["GET", &key]));
    let failed = clients.iter_mut().map(Resp::read).filter(|reply| reply.is_error("")).count();
    assert!(failed >= 4, "requests were in flight on each connection: {failed}");
    let after: Vec<Value> = clients.iter_mut().map(|client| client.call(["GET", &key])).collect();
    assert!(after.iter().all(|reply| *reply == Value::simple("back")), "{after:?}");
    assert_eq!(fleet.stat("server_ejects"), 0);
}
