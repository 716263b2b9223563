//! Bounds on clients: times, rates and addresses, enforced or only counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fleet::Fleet;
use crate::support::{FakeServer, Gate, PATIENCE, Redis, Resp, Value, encode, wait_until};

/// What the sweep may be off by: it looks once a second, and seconds are cut off.
const SLACK: Duration = Duration::from_secs(3);

fn echo(client: &mut Resp) {
    assert_eq!(client.call(["ECHO", "here"]), Value::bulk("here"));
}

#[test]
fn a_silent_client_is_closed_when_its_time_is_over_and_no_other() {
    let mut servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "idle_timeout: 2s");
    let (mut silent, mut busy, mut waiting) = (fleet.client(), fleet.client(), fleet.client());
    [&mut silent, &mut busy, &mut waiting].into_iter().for_each(echo);
    let start = Instant::now();
    servers[0].pause();
    // One that awaits a reply is not idle.
    waiting.send(["GET", "k"]);
    let mut closed = false;
    while !closed && start.elapsed() < PATIENCE {
        echo(&mut busy);
        closed = !silent.silent_for(Duration::from_millis(100));
    }
    assert!(silent.closed() && start.elapsed() > Duration::from_secs(1), "{:?}", start.elapsed());
    assert!(start.elapsed() < Duration::from_secs(2) + SLACK, "{:?}", start.elapsed());
    echo(&mut busy);
    assert_eq!(fleet.stat("over_idle_timeout"), 1);
    servers[0].resume();
    assert_eq!(waiting.read(), Value::Nil);
}

/// A client that never completes a request (a "slow loris") holds a descriptor for ever.
#[test]
fn a_new_client_must_get_a_request_out_in_time() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "first_request_timeout: 1s");
    let (mut slow, mut quick) = (fleet.client(), fleet.client());
    echo(&mut quick);
    let request = encode(["ECHO", "it takes its time over every byte of this"]);
    let mut gone = false;
    for byte in request.iter().cycle().take(request.len() - 1) {
        slow.try_send_raw([*byte]).ok();
        gone = !slow.silent_for(Duration::from_millis(150));
        if gone {
            break;
        }
    }
    assert!(gone && slow.closed(), "it may go on for ever");
    echo(&mut quick);
    assert_eq!(fleet.stat("over_first_request_timeout"), 1);
}

#[test]
fn a_client_that_goes_too_fast_waits_and_loses_nothing() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "client_rate: 50");
    let (mut fast, mut other) = (fleet.client(), fleet.client());
    let start = Instant::now();
    let replies = fast.pipeline((0..75).map(|i| ["ECHO".to_owned(), i.to_string()]));
    let took = start.elapsed();
    assert_eq!(replies, (0..75).map(|i| Value::bulk(i.to_string())).collect::<Vec<_>>());
    assert!(took >= Duration::from_millis(450), "25 beyond the first 50 take half a second, not {took:?}");
    echo(&mut other);
    assert!(fleet.stat("over_client_rate") > 0);
}

#[test]
fn a_limit_that_observes_counts_and_lets_pass() {
    let servers = [Redis::start()];
    let settings = "client_rate: 5 observe\nclient_connections: 1 observe\nclients_per_address: 1 observe\n\
                    max_pending: 2 observe\nidle_timeout: 1s observe\nout_soft: 1kb observe\nout_hard: 1kb observe";
    let fleet = Fleet::of(&servers, settings);
    let (mut first, mut second) = (fleet.client(), fleet.client());
    [&mut first, &mut second].into_iter().for_each(echo);
    assert_eq!([fleet.stat("over_client_connections"), fleet.stat("over_clients_per_address")], [1, 1]);
    assert_eq!(fleet.stat("client_refused"), 0);
    let start = Instant::now();
    first.call(["SET", "k", &"x".repeat(700)]);
    let replies = first.pipeline((0..100).map(|_| ["GET", "k"]));
    assert!(replies.iter().all(|reply| reply.bytes().len() == 700));
    assert!(start.elapsed() < Duration::from_secs(5), "nothing waits for a rate of five");
    assert!(fleet.stat("over_client_rate") > 0 && fleet.stat("over_max_pending") > 0);
    wait_until("the idle to be counted", PATIENCE, || fleet.stat("over_idle_timeout") >= 2);
    [&mut first, &mut second].into_iter().for_each(echo);
    assert_eq!(fleet.stat("client_err"), 0);
}

#[test]
fn an_address_has_so_many_clients_and_others_have_theirs() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "clients_per_address: 2");
    let mut clients = [fleet.client(), fleet.client()];
    clients.iter_mut().for_each(echo);
    let mut third = fleet.client();
    assert_eq!(third.read(), Value::Error("ERR max number of clients reached".into()));
    assert!(third.closed());
    assert_eq!([fleet.stat("client_refused"), fleet.stat("over_clients_per_address")], [1, 1]);
    // Another address of loopback.
    let elsewhere =
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    let bind = |socket: &socket2::Socket, address: std::net::SocketAddr| socket.bind(&address.into());
    bind(&elsewhere, ([127, 0, 0, 2], 0).into()).expect("all of 127/8 is loopback");
    elsewhere.connect(&fleet.port.socket_addr().into()).expect("the pool listens");
    let mut stream = std::net::TcpStream::from(elsewhere);
    use std::io::{Read, Write};
    stream.write_all(b"ECHO x\r\n").expect("it is open");
    let mut reply = [0; 7];
    stream.read_exact(&mut reply).expect("it is served");
    assert_eq!(&reply, b"$1\r\nx\r\n");
    let [gone, _stays] = clients;
    drop(gone);
    wait_until("room for one more", PATIENCE, || {
        let mut next = fleet.client();
        next.send(["ECHO", "in"]);
        next.try_read().is_ok_and(|reply| reply == Value::bulk("in"))
    });
}

#[test]
fn commands_that_the_pool_denies_are_refused_and_nothing_else() {
    let servers = [Redis::start()];
    let deny = Fleet::of(&servers, "commands: {deny: [EVAL, del, 'object|encoding']}");
    let mut client = deny.client();
    let text = "NOPERM this user has no permissions to run the 'del' command: see commands of pool alpha";
    assert_eq!(client.call(["DEL", "k"]), Value::Error(text.into()));
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    for denied in [&["eval", "return 1", "1", "k"][..], &["DEL", "k", "l"], &["OBJECT", "ENCODING", "k"]] {
        assert!(client.call(denied).is_error("NOPERM "), "{denied:?}");
    }
    assert_eq!(client.call(["OBJECT", "REFCOUNT", "k"]), Value::Int(1));
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"), "nothing was deleted");

    let allow = Fleet::of(&servers, "commands: {allow: [get]}");
    let mut client = allow.client();
    assert!(client.call(["SET", "k", "w"]).is_error("NOPERM "));
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"));
    assert_eq!(client.call(["QUIT"]), Value::ok());
}

/// Guessing passwords on one connection: the first mistakes cost nothing, then each takes twice the time of the last.
#[test]
fn wrong_passwords_in_a_row_take_time() {
    let servers = [Redis::with(&["--requirepass", "right"])];
    let fleet = Fleet::of(&servers, "redis_auth: right");
    let (mut guesser, mut other) = (fleet.client(), fleet.client());
    let start = Instant::now();
    let guesses: Vec<[String; 2]> = (0..6).map(|i| ["AUTH".into(), format!("guess {i}")]).collect();
    assert!(guesser.pipeline(guesses).iter().all(|reply| reply.is_error("ERR invalid password")));
    assert_eq!(guesser.call(["AUTH", "right"]), Value::ok());
    assert!(start.elapsed() >= Duration::from_millis(100 + 200 + 400 + 800), "{:?}", start.elapsed());
    assert_eq!(fleet.stat("auth_failures"), 6);
    let start = Instant::now();
    assert!(other.call(["AUTH", "wrong"]).is_error("ERR invalid password"));
    assert_eq!(other.call(["AUTH", "right"]), Value::ok());
    assert!(start.elapsed() < Duration::from_secs(5));
}

/// The rest of a large reply will never come: its client is closed, and counted as such.
#[test]
fn a_reply_that_breaks_off_has_a_counter_of_its_own() {
    let go = Arc::new(Gate::default());
    let server = FakeServer::start({
        let go = Arc::clone(&go);
        move |_, peer| {
            if peer.request().is_some() {
                peer.send(format!("${}\r\n{}", 1 << 20, "x".repeat(200_000)));
                go.pass();
            }
        }
    });
    let fleet = Fleet::over(&[server.entry("s0")], "", &["--threads", "1"]);
    let mut client = fleet.client();
    client.send(["GET", "k"]);
    assert_eq!(client.read_raw(100_000).len(), 100_000);
    go.open();
    wait_until("the client to be closed", PATIENCE, || fleet.stat("reply_cut") == 1);
    assert_eq!(fleet.stat("client_err"), 1);
}

/// A client that was slow to read had whole replies still to come when a later one broke off: it was closed at once, and they were
/// lost with it.
#[test]
fn whole_replies_before_one_that_breaks_off_are_still_delivered() {
    const WHOLE: usize = 12;
    let (server_gone, go) = (Arc::new(Gate::default()), Arc::new(Gate::default()));
    let server = FakeServer::start({
        let (server_gone, go) = (Arc::clone(&server_gone), Arc::clone(&go));
        move |connection, peer| {
            if connection > 0 {
                return;
            }
            peer.requests(WHOLE + 1);
            let value = "x".repeat(1 << 20);
            (0..WHOLE).for_each(|_| peer.send(format!("${}\r\n{value}\r\n", value.len())));
            peer.send(format!("${}\r\n{}", value.len(), "y".repeat(200_000)));
            server_gone.open();
            go.pass();
        }
    });
    let fleet = Fleet::over(&[server.entry("s0")], "", &["--threads", "1"]);
    let mut client = fleet.client();
    (0..=WHOLE).for_each(|_| client.send(["GET", "k"]));
    server_gone.pass();
    go.open();
    wait_until("the server's end to be seen", PATIENCE, || fleet.server_stat(0, "server_eof") >= 1);
    // What it sends now is never read: that must not cost it the replies either.
    client.send(["GET", "k"]);
    for _ in 0..WHOLE {
        assert_eq!(client.read().bytes().len(), 1 << 20);
    }
    let mut rest = Vec::new();
    while let Some(bytes) = client.read_some() {
        rest.extend(bytes);
    }
    assert!(rest.starts_with(b"$1048576\r\ny") && rest.len() <= 200_010, "{}", rest.len());
    wait_until("the client to be closed", PATIENCE, || fleet.stat("reply_cut") == 1);
}
