//! Workers, their clients, and the end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::fleet::{Fleet, entries};
use crate::support::{
    FakeServer, Gate, PATIENCE, Port, Random, Redis, Resp, Value, encode, pool_of, wait_until,
};

/// What a client of a drained proxy has seen.
struct Seen {
    key: String,
    /// Replies until the end.
    replies: i64,
}

/// Counts a key up, so many requests at a time, until the proxy closes.
fn count_to_the_end(mut client: Resp, key: String, pipeline: usize) -> Seen {
    let (request, mut replies) = (encode(["INCR", &key]), 0);
    loop {
        if client.try_send_raw(request.repeat(pipeline)).is_err() {
            // Replies that were sent before the end are still there.
            while client.try_read().is_ok_and(|reply| reply == Value::Int(replies + 1)) {
                replies += 1;
            }
            return Seen { key, replies };
        }
        for _ in 0..pipeline {
            match client.try_read() {
                Ok(Value::Int(n)) => {
                    assert_eq!(n, replies + 1);
                    replies = n;
                }
                Ok(other) => panic!("INCR was answered by {other:?}"),
                Err(_) => return Seen { key, replies },
            }
        }
    }
}

/// B36: SIGTERM alone drains. Under load, from clients that ask and wait as pools do, and from clients that always have
/// something on the way: whatever was executed was answered, and the end comes at once.
#[test]
fn term_under_load_loses_no_reply() {
    for settings in ["", "reuseport: true"] {
        let servers = Redis::start_many::<2>();
        let mut fleet = Fleet::of(&servers, settings);
        let clients: Vec<_> = (0..16)
            .map(|i| {
                let key = fleet.keys(i % 2, &format!("counter {i}"), 1).remove(0);
                let (client, pipeline) = (fleet.client(), if i < 8 { 1 } else { 20 });
                std::thread::spawn(move || count_to_the_end(client, key, pipeline))
            })
            .collect();
        let _idle: Vec<Resp> = (0..20).map(|_| fleet.client()).collect();
        wait_until("load", PATIENCE, || (0..2).all(|server| fleet.server_stat(server, "responses") > 500));
        let start = Instant::now();
        assert_eq!(fleet.proxy.terminate(PATIENCE), Some(0));
        assert!(start.elapsed() < Duration::from_secs(5), "the end took {:?}", start.elapsed());
        assert!(fleet.proxy.log().contains("everything in flight was finished"), "{}", fleet.proxy.log());
        for (i, client) in clients.into_iter().enumerate() {
            let Seen { key, replies } = client.join().expect("its replies counted up");
            let executed = servers[i % 2].client().call(["INCRBY", &key, "0"]);
            assert_eq!(executed, Value::Int(replies), "executed and answered differ");
        }
    }
}

/// Clients whose connections wait in the kernel's queue when the end comes are served, not reset.
#[test]
fn connections_that_nobody_has_accepted_yet_are_served_before_the_end() {
    for settings in ["", "reuseport: true"] {
        let servers = [Redis::start()];
        let mut fleet = Fleet::of(&servers, settings);
        fleet.client().call(["SET", "k", "v"]);
        fleet.proxy.signal(Signal::STOP);
        let mut clients: Vec<Resp> = (0..50).map(|_| fleet.client()).collect();
        clients.iter_mut().for_each(|client| client.send(["GET", "k"]));
        fleet.proxy.signal(Signal::TERM);
        fleet.proxy.signal(Signal::CONT);
        for (i, client) in clients.iter_mut().enumerate() {
            let reply = client.try_read();
            assert!(matches!(&reply, Ok(value) if *value == Value::bulk("v")), "client {i}: {reply:?}");
            assert!(client.closed());
        }
        assert_eq!(fleet.proxy.wait_exit(PATIENCE), Some(0));
    }
}

/// A client that sends without an end must not hold up the end, nor lose a reply to what was executed.
#[test]
fn a_client_that_never_pauses_does_not_hold_up_the_end() {
    let servers = [Redis::start()];
    let mut fleet = Fleet::over(&entries(&servers), "", &["--threads", "1"]);
    let client = TcpStream::connect(fleet.port.address()).unwrap();
    let (mut reader, mut writer) = (client.try_clone().unwrap(), client);
    let writing = std::thread::spawn(move || {
        let requests = encode(["INCR", "n"]).repeat(1000);
        while writer.write_all(&requests).is_ok() {}
    });
    let reading = std::thread::spawn(move || {
        let (mut lines, mut buffer) = (0, vec![0; 64 << 10]);
        while let Ok(n @ 1..) = reader.read(&mut buffer) {
            lines += buffer[..n].iter().filter(|byte| **byte == b'\n').count();
        }
        lines
    });
    wait_until("load", PATIENCE, || fleet.server_stat(0, "responses") > 10_000);
    let start = Instant::now();
    assert_eq!(fleet.proxy.terminate(PATIENCE), Some(0));
    assert!(start.elapsed() < Duration::from_secs(8), "the end took {:?}", start.elapsed());
    let replies = reading.join().unwrap();
    writing.join().unwrap();
    let executed = servers[0].client().call(["GET", "n"]);
    assert_eq!(executed, Value::bulk(replies.to_string()), "executed and answered differ");
}

/// A request in flight at the end is waited for, even if its client has closed its side.
#[test]
fn what_is_in_flight_is_finished_before_the_end() {
    let (asked, was_asked) = channel();
    let answer = Gate::default();
    let server = FakeServer::start({
        let answer = answer.clone();
        move |_, peer| {
            peer.requests(2);
            asked.send(()).unwrap();
            answer.pass();
            peer.send("+a\r\n+b\r\n");
            peer.wait_closed();
        }
    });
    let mut fleet = Fleet::over(&[server.entry("s0")], "", &["--threads", "1"]);
    let (mut one, mut two) = (fleet.client(), fleet.client());
    one.send(["GET", "a"]);
    wait_until("its request to be first", PATIENCE, || fleet.server_stat(0, "requests") == 1);
    two.send(["GET", "b"]);
    two.finish();
    was_asked.recv_timeout(PATIENCE).unwrap();
    fleet.proxy.signal(Signal::TERM);
    wait_until("the drain", PATIENCE, || fleet.proxy.log().contains("draining"));
    answer.open();
    assert_eq!(one.read(), Value::simple("a"));
    assert_eq!(two.read(), Value::simple("b"));
    assert!(one.closed() && two.closed());
    assert_eq!(fleet.proxy.wait_exit(PATIENCE), Some(0));
}

/// B4: with several connections to a server, the requests of one client still arrive in its order. And all of the
/// connections are used, by the clients of each worker.
#[test]
fn several_connections_keep_the_order_of_each_client() {
    let servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, "server_connections: 3");
    let clients: Vec<_> = (0..24)
        .map(|i| {
            let keys = [0, 1].map(|server| fleet.keys(server, &format!("list {i}"), 1).remove(0));
            let mut client = fleet.client();
            std::thread::spawn(move || {
                let numbers: Vec<String> = (0..250).map(|n| n.to_string()).collect();
                let pushes =
                    numbers.iter().flat_map(|number| keys.each_ref().map(|key| ["RPUSH", key, number]));
                client.pipeline(pushes);
                for key in &keys {
                    let list = client.call(["LRANGE", key, "0", "-1"]);
                    assert_eq!(list, Value::array(numbers.iter().map(Value::bulk)));
                }
                client // keeps its place, so that all have different ones
            })
        })
        .collect();
    let clients: Vec<Resp> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    for server in 0..2 {
        assert_eq!(fleet.server_stat(server, "server_connections"), 6, "three for each of two workers");
    }
    drop(clients);
    fleet.wait_idle();
}

/// B31: clients are spread over the workers, however they come.
#[test]
fn clients_are_spread_over_the_workers() {
    let server = [Redis::start()];
    let spread =
        |fleet: &Fleet| (fleet.stat("client_connections_least"), fleet.stat("client_connections_most"));
    let fleet = Fleet::of(&server, "");
    let clients: Vec<Resp> = (0..11).map(|_| fleet.client()).collect();
    wait_until("all to be counted", PATIENCE, || fleet.stat("client_connections") == 11);
    assert_eq!(spread(&fleet), (5, 6));
    drop(clients);
    fleet.wait_idle();

    // The kernel throws dice: 40 clients all on one of two workers is as good as impossible.
    let fleet = Fleet::of(&server, "reuseport: true");
    let mut clients: Vec<Resp> = (0..40).map(|_| fleet.client()).collect();
    wait_until("all to be counted", PATIENCE, || fleet.stat("client_connections") == 40);
    assert!(spread(&fleet).0 > 0, "{:?}", spread(&fleet));
    assert!(clients.iter_mut().all(|client| client.call(["SET", "k", "v"]) == Value::ok()));
}

/// `threads: auto` is one worker for each core.
#[test]
fn auto_is_a_worker_for_each_core() {
    let (server, port) = (Redis::start(), Port::claim());
    let yaml =
        format!("shardwise:\n  threads: auto\n{}", pool_of("alpha", &port.address(), &[server.entry(1)], ""));
    let fleet = Fleet::configured(port, &yaml, &[]);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", fleet.proxy.pid())).unwrap();
    let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap());
    let workers = names.filter(|name| name.starts_with("worker-")).count();
    assert_eq!(workers, std::thread::available_parallelism().unwrap().get());
    assert_eq!(fleet.client().call(["SET", "k", "v"]), Value::ok());
}

/// A client that leaves in the midst of a request leaves nothing behind, and the server never sees the half of it.
#[test]
fn a_client_that_leaves_in_the_midst_of_a_request() {
    let servers = [Redis::start()];
    let fleet = Fleet::over(&entries(&servers), "", &["--threads", "1"]);
    let request = encode(["SET", "k", "some value"]);
    for cut in 1..request.len() {
        let mut client = fleet.client();
        client.send_raw([&encode(["INCR", "whole"])[..], &request[..cut]].concat());
        client.finish();
        assert_eq!(client.read(), Value::Int(cut as i64));
        assert!(client.closed());
    }
    assert_eq!(fleet.client().call(["GET", "k"]), Value::Nil);
    fleet.wait_idle();
    assert_eq!(fleet.stat("client_eof"), request.len() as u64);
    assert_eq!(fleet.server_stat(0, "server_total"), 1, "no server connection was harmed");
}

/// A client that leaves without its replies: they are taken from the server and dropped, whatever their size.
#[test]
fn a_client_that_leaves_in_the_midst_of_its_replies() {
    let servers = [Redis::start()];
    let fleet = Fleet::over(&entries(&servers), "", &["--threads", "1"]);
    let mut other = fleet.client();
    let sizes = [10, 10_000, 1 << 20];
    for size in sizes {
        other.call(["SET".to_owned(), format!("k{size}"), "x".repeat(size)]);
    }
    for size in sizes {
        for read in [0, 1, 300] {
            let mut client = fleet.client();
            client.send_raw(encode(["GET".to_owned(), format!("k{size}")]).repeat(20));
            client.read_raw(read);
            drop(client);
            assert_eq!(other.call(["GET", "k10"]), Value::bulk("x".repeat(10)));
        }
    }
    drop(other);
    fleet.wait_idle();
    assert_eq!(fleet.server_stat(0, "server_total"), 1, "no server connection was harmed");
}

/// B29: clients that leave abruptly, in whatever state, leave no memory, no descriptor and no count behind.
#[test]
fn ten_thousand_abrupt_closes() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "");
    fleet.client().call(["SET", "k", &"x".repeat(30_000)]);
    let mut random = Random::seeded(7);
    let get = encode(["GET", "k"]);
    let mut abrupt = |times: usize| {
        for _ in 0..times {
            let mut client = TcpStream::connect(fleet.port.address()).unwrap();
            let sent = match random.below(4) {
                0 => client.write(b""),
                1 => client.write(&get[..1 + random.below(get.len() - 1)]),
                2 => client.write(&get.repeat(3)),
                _ => client.write(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nhalf a value"),
            };
            sent.unwrap();
            if random.below(10) == 0 {
                client.shutdown(Shutdown::Both).unwrap();
            }
            // Without a FIN_WAIT or a TIME_WAIT left behind.
            socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        }
        fleet.wait_idle();
    };
    abrupt(2_000);
    let (memory, descriptors) = (fleet.memory(), fleet.descriptors());
    abrupt(8_000);
    let grown = fleet.memory().saturating_sub(memory);
    assert!(grown < 4_096, "{grown} KiB more after 8,000 clients, from {memory} KiB");
    wait_until("all sockets to be closed", PATIENCE, || fleet.descriptors() <= descriptors);
    // The last ones may still be on their way to a worker.
    let ended = || fleet.stat("client_eof") + fleet.stat("client_err") >= 10_000;
    wait_until("all to be counted", PATIENCE, ended);
}

/// The socket of a client that has gone was kept open for as long as a server owed it a reply: for ever, when that
/// server hangs.
#[test]
fn a_client_that_is_gone_keeps_no_socket_while_its_server_hangs() {
    let mut servers = [Redis::start()];
    let fleet = Fleet::over(&entries(&servers), "", &["--threads", "1"]);
    fleet.client().call(["GET", "k"]);
    fleet.wait_idle();
    let before = fleet.descriptors();
    servers[0].pause();
    for _ in 0..100 {
        let mut client = TcpStream::connect(fleet.port.address()).unwrap();
        client.write_all(&encode(["GET", "k"])).unwrap();
        socket2::SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
    }
    let closed = || fleet.stat("client_connections") == 0 && fleet.descriptors() <= before + 1;
    wait_until("all sockets to be closed", PATIENCE, closed);
    servers[0].resume();
    fleet.wait_idle();
}

/// Refused for `client_connections`: the error's text never arrived, because the runtime did not know yet that the new
/// socket could be written to.
#[test]
fn a_client_too_many_is_told_so() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "client_connections: 2");
    let mut clients = [fleet.client(), fleet.client()];
    clients.iter_mut().for_each(|client| drop(client.call(["GET", "k"])));
    for _ in 0..3 {
        let mut third = fleet.client();
        assert_eq!(third.read(), Value::Error("ERR max number of clients reached".into()));
        assert!(third.closed());
    }
    drop(clients);
    fleet.wait_idle();
    assert_eq!(fleet.client().call(["GET", "k"]), Value::Nil);
    assert_eq!(fleet.stat("client_refused"), 3);
}

/// B28: a pipeline far deeper than `max_pending` is held back, not killed, and answered in order.
#[test]
fn a_deep_pipeline_is_held_back_and_answered() {
    let servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, "max_pending: 16");
    let keys = [fleet.key(0), fleet.key(1)];
    let replies = fleet.client().pipeline((0..20_000).map(|i| ["INCR", &keys[i % 2]]));
    for (i, reply) in replies.iter().enumerate() {
        assert_eq!(*reply, Value::Int(i as i64 / 2 + 1));
    }
    fleet.wait_idle();
}
