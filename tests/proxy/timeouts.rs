//! Servers that are slow, or silent without being dead.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::fleet::Fleet;
use super::load::Load;
use crate::support::{FakeServer, Gate, PATIENCE, Port, Redis, Resp, Value, wait_until};

/// What two busy cores may add to a time that is promised.
const SLACK: Duration = Duration::from_secs(2);

fn late(label: &str) -> String {
    format!("ERR Connection timed out: {label}, no reply in time")
}

fn before_one(server: &FakeServer, settings: &str) -> Fleet {
    Fleet::over(&[server.entry("s0")], settings, &["--threads", "1"])
}

/// Waits until `period` of `since` is over: the tests below order events by the clock of a timeout.
fn wait_for(since: Instant, period: Duration) {
    wait_until("time to pass", PATIENCE, || since.elapsed() >= period);
}

/// B19, B20: a server that is stopped (its host hangs, say) fails its own requests within the timeout and nobody else's.
/// What it answers when it goes on is dropped, and never given to somebody else.
#[test]
fn a_stopped_server_under_load() {
    let mut servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, "timeout: 300");
    // Each client waits for all replies of a batch: those of the living server alone have clients of their own.
    let load = Load::start(&fleet, 6);
    (0..2).for_each(|server| load.wait_replies(server, 100));
    let mut client = fleet.client();
    let (stopped, fine) = (fleet.key(0), fleet.key(1));
    client.call(["SET", &fine, "v"]);

    servers[0].pause();
    let start = Instant::now();
    let reply = client.call(["GET", &stopped]);
    assert!(reply.is_error(&late(&fleet.label(0))), "{reply:?}");
    assert!((300..300 + SLACK.as_millis()).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    for _ in 0..20 {
        assert_eq!(client.call(["GET", &fine]), Value::bulk("v"));
    }
    load.wait_errors(0, 100);
    load.wait_replies(1, 100);

    servers[0].resume();
    fleet.wait_served(0, SLACK);
    load.wait_replies(0, 200);
    assert_eq!(load.errors(1), 0, "errors for keys of a server that is fine");
    load.stop();
    drop(client);
    fleet.wait_idle();
    assert!(fleet.server_stat(0, "server_timedout") > 0);
}

/// The very first request to a server had no timer, because it had waited for its connection.
#[test]
fn the_first_request_of_all_has_a_timeout_too() {
    let server = FakeServer::start(|_, peer| peer.wait_closed());
    let fleet = before_one(&server, "timeout: 200");
    for _ in 0..3 {
        let start = Instant::now();
        let reply = fleet.client().call(["GET", "k"]);
        assert!(reply.is_error(&late(&server.label("s0"))), "{reply:?}");
        assert!(start.elapsed() < SLACK, "after {:?}", start.elapsed());
    }
}

/// Three clocks: the time that a request waits for its connection is not taken from the server's time to answer it.
#[test]
fn the_response_clock_starts_when_the_request_is_written() {
    let server = FakeServer::start(|_, peer| {
        peer.requests(1); // SELECT
        std::thread::park_timeout(Duration::from_millis(700));
        peer.send("+OK\r\n");
        peer.requests(1);
        std::thread::park_timeout(Duration::from_millis(600));
        peer.send("+in time\r\n");
        peer.wait_closed();
    });
    let fleet = before_one(&server, "timeout: 1000\nredis_db: 1");
    let start = Instant::now();
    assert_eq!(fleet.client().call(["GET", "k"]), Value::simple("in time"), "after {:?}", start.elapsed());
    assert!(start.elapsed() > Duration::from_millis(1000), "the test has shown nothing");
}

/// Only the late request fails. What is answered in time gets its own reply, on the connection that takes no new
/// requests any more; and a client with a request outstanding there does not overtake itself on the next connection.
#[test]
fn a_late_reply_fails_one_request_and_overtakes_none() {
    const TIMEOUT: Duration = Duration::from_millis(1000);
    let (seen, requests) = channel();
    let answer = Gate::default();
    let server = FakeServer::start({
        let answer = answer.clone();
        move |number, peer| {
            while let Some(request) = peer.request() {
                let key = String::from_utf8_lossy(&request[1]).into_owned();
                seen.send((number, key.clone())).unwrap();
                if number == 0 && key == "b" {
                    answer.pass();
                    peer.send("+reply to late\r\n+reply to b\r\n");
                } else if number > 0 {
                    peer.send(format!("+reply to {key}\r\n"));
                }
            }
        }
    });
    let fleet = before_one(&server, "timeout: 1000");
    let next = || requests.recv_timeout(PATIENCE).expect("a request arrives");
    let (mut one, mut two, mut other) = (fleet.client(), fleet.client(), fleet.client());

    let start = Instant::now();
    one.send(["GET", "late"]);
    assert_eq!(next(), (0, "late".into()));
    wait_for(start, TIMEOUT / 2);
    two.send(["GET", "b"]);
    assert_eq!(next(), (0, "b".into()));
    let reply = one.read();
    assert!(reply.is_error(&late(&server.label("s0"))), "{reply:?}");

    // The late client has nothing outstanding: it goes on, on the next connection. So does anybody else.
    assert_eq!(one.call(["GET", "c"]), Value::simple("reply to c"));
    assert_eq!(next(), (1, "c".into()));
    // This one has: its next request waits behind the one before it.
    two.send(["GET", "d"]);
    assert_eq!(other.call(["GET", "e"]), Value::simple("reply to e"));
    assert_eq!(next(), (1, "e".into()), "d has overtaken b");
    answer.open();
    assert_eq!(two.read(), Value::simple("reply to b"), "within its own time: {:?}", start.elapsed());
    assert_eq!(next(), (1, "d".into()));
    assert_eq!(two.read(), Value::simple("reply to d"));
    // Nothing is due on the first connection any more: it is closed, long before another timeout.
    wait_until("the first connection to be closed", PATIENCE, || {
        fleet.server_stat(0, "server_connections") == 1
    });
}

/// A fence is lifted by the timeout, too: the client waits no longer than its own request.
#[test]
fn a_fence_is_lifted_by_the_timeout() {
    let server = FakeServer::start(|number, peer| {
        if number == 0 {
            peer.wait_closed();
        } else {
            peer.answer_all(|_| b"+OK\r\n".to_vec());
        }
    });
    let fleet = before_one(&server, "timeout: 400");
    let (mut one, mut two) = (fleet.client(), fleet.client());
    let start = Instant::now();
    one.send(["SET", "a", "1"]);
    wait_for(start, Duration::from_millis(200));
    two.send(["SET", "b", "1"]);
    assert!(one.read().is_error("ERR Connection timed out"));
    two.send(["SET", "b", "2"]);
    assert!(two.read().is_error("ERR Connection timed out"));
    assert_eq!(two.read(), Value::ok());
    assert!(start.elapsed() < SLACK);
}

/// A server that takes no bytes: the request fails by the queue's clock, and its rest goes nowhere else.
#[test]
fn a_server_that_does_not_read_fails_what_waits_for_it() {
    let over = Gate::default();
    let server = FakeServer::start({
        let over = over.clone();
        move |number, peer| {
            if number == 0 {
                over.pass();
            } else {
                // Any rest of the large request here would be no request.
                peer.answer_all(|request| [b"+", &request[1][..], b"\r\n"].concat());
            }
        }
    });
    let fleet = before_one(&server, "timeout: 300");
    let (mut one, mut two) = (fleet.client(), fleet.client());
    let large = vec![b'v'; 32 << 20];
    let start = Instant::now();
    one.send([&b"SET"[..], b"k", &large]);
    let queued = || fleet.server_stat(0, "in_queue") == 1;
    wait_until("it to be on its way", PATIENCE, || queued() || start.elapsed() > SLACK);
    two.send(["GET", "behind"]);
    let reply = one.read();
    assert!(reply.is_error("ERR Connection timed out: s0"), "{reply:?}");
    // No byte of this one had left: it is not lost with the connection, unless its own time was over.
    let reply = two.read();
    assert!(reply == Value::simple("behind") || reply.is_error("ERR Connection timed out"), "{reply:?}");
    wait_until("the next connection to serve", PATIENCE, || {
        one.call(["GET", "next"]) == Value::simple("next")
    });
    over.open();
    drop((one, two));
    fleet.wait_idle();
}

/// A large reply is passed on as it comes. When it stands still, its client must not wait for ever.
#[test]
fn a_large_reply_that_stands_still_ends_its_client() {
    let server = FakeServer::start(|number, peer| {
        peer.requests(1);
        if number == 0 {
            peer.send("$1000000\r\n");
            peer.send(vec![b'x'; 500_000]);
            peer.wait_closed();
        } else {
            peer.send("+OK\r\n");
            peer.wait_closed();
        }
    });
    let fleet = before_one(&server, "timeout: 300");
    let mut client = fleet.client();
    let start = Instant::now();
    client.send(["GET", "k"]);
    client.read_raw("$1000000\r\n".len() + 500_000);
    assert!(client.closed());
    assert!(start.elapsed() < SLACK, "after {:?}", start.elapsed());
    assert_eq!(fleet.client().call(["SET", "k", "v"]), Value::ok());
}

/// A large reply that takes longer than the timeout, but goes on, is none of the timeout's business.
#[test]
fn a_large_reply_that_goes_on_may_take_its_time() {
    let server = FakeServer::start(|_, peer| {
        peer.requests(1);
        peer.send("$1000000\r\n");
        for _ in 0..10 {
            peer.send(vec![b'x'; 100_000]);
            std::thread::park_timeout(Duration::from_millis(100));
        }
        peer.send("\r\n");
        peer.wait_closed();
    });
    let fleet = before_one(&server, "timeout: 600");
    let reply = fleet.client().call(["GET", "k"]);
    assert_eq!(reply.bytes().len(), 1_000_000);
}

/// An address that does not even refuse: the listener's queue is full, so that connecting hangs.
#[test]
fn connecting_has_a_clock_of_its_own() {
    let port = Port::claim();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&port.socket_addr().into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let _fill = TcpStream::connect(port.socket_addr()).unwrap();
    let fleet =
        Fleet::over(&[format!("{}:1 s0", port.address())], "connect_timeout: 200", &["--threads", "1"]);
    let mut client = fleet.client();
    let start = Instant::now();
    let reply = client.call(["GET", "k"]);
    assert!(
        reply.is_error(&format!("ERR Connection timed out: {}, connecting", fleet.label(0))),
        "{reply:?}"
    );
    assert!((200..200 + SLACK.as_millis()).contains(&start.elapsed().as_millis()), "{:?}", start.elapsed());
    // It is known to be down now: no request waits for the next attempts.
    let start = Instant::now();
    (0..20).for_each(|_| assert!(client.call(["GET", "k"]).is_error("ERR Connection timed out")));
    assert!(start.elapsed() < Duration::from_millis(500), "20 requests took {:?}", start.elapsed());
    drop(listener);
}

/// With several parts, the one that is late fails the whole, at its time.
#[test]
fn a_late_part_fails_the_whole_call() {
    let mut servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, "timeout: 300");
    let mut client: Resp = fleet.client();
    let keys = [fleet.key(0), fleet.key(1)];
    assert_eq!(client.call(["MSET", &keys[0], "a", &keys[1], "b"]), Value::ok());
    servers[1].pause();
    let start = Instant::now();
    client.send_raw(
        [crate::support::encode(["GET", &keys[0]]), crate::support::encode(["MGET", &keys[0], &keys[1]])]
            .concat(),
    );
    assert_eq!(client.read(), Value::bulk("a"), "B6: what is ready does not wait");
    assert!(start.elapsed() < Duration::from_millis(290) + SLACK);
    assert!(client.read().is_error(&late(&fleet.label(1))));
    servers[1].resume();
    fleet.wait_served(1, SLACK);
    assert_eq!(client.call(["MGET", &keys[1], &keys[0]]), Value::array([Value::bulk("b"), Value::bulk("a")]));
}
