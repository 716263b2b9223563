//! Servers that answer by half, too early, too much, or nonsense. Real ones do it when they crash, refuse a request by
//! its length, or are something else than a Redis server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use super::fleet::Fleet;
use crate::support::{FakeServer, Gate, PATIENCE, Peer, Redis, Resp, Value, encode, poll, wait_until};

fn before_one(server: &FakeServer, settings: &str) -> Fleet {
    Fleet::over(&[server.entry("s0")], settings, &["--threads", "1"])
}

/// Answers each GET with its key.
fn echo_keys(peer: &mut Peer) {
    peer.answer_all(|request| [b"+", &request[1][..], b"\r\n"].concat());
}

/// Asks until the server is used again after a failure. Every reply must be right, or an error.
#[track_caller]
fn wait_echo(client: &mut Resp) {
    wait_until("the server to be used again", PATIENCE, || match client.call(["GET", "again"]) {
        Value::Error(_) => false,
        reply => {
            assert_eq!(reply, Value::simple("again"));
            true
        }
    });
}

/// The connection dies at each byte of four replies: what was complete is delivered, the rest are errors, and no reply
/// is another request's.
#[test]
fn a_connection_that_ends_at_each_byte_of_its_replies() {
    const REPLIES: [&[u8]; 4] =
        [b"+OK\r\n", b"$5\r\nhello\r\n", b"*2\r\n$1\r\na\r\n*1\r\n:7\r\n", b"$-1\r\n"];
    let values = [
        Value::ok(),
        Value::bulk("hello"),
        Value::array([Value::bulk("a"), Value::array([Value::Int(7)])]),
        Value::Nil,
    ];
    let all = REPLIES.concat();
    let cut = Arc::new(AtomicUsize::new(0));
    let (asked, server_asked) = channel();
    let server = FakeServer::start({
        let (cut, all) = (Arc::clone(&cut), all.clone());
        move |_, peer| {
            if let Some(request) = peer.request() {
                assert_eq!(request, [&b"GET"[..], b"0"]);
                peer.requests(REPLIES.len() - 1);
                asked.send(()).unwrap();
                peer.send(&all[..cut.load(Ordering::SeqCst)]);
            }
        }
    });
    let fleet = before_one(&server, "");
    let mut client = fleet.client();
    for end in 0..all.len() {
        cut.store(end, Ordering::SeqCst);
        let mut replies = Vec::new();
        wait_until("the server to be asked", PATIENCE, || {
            let requests = (0..REPLIES.len()).flat_map(|i| encode(["GET", &i.to_string()]));
            client.send_raw(requests.collect::<Vec<u8>>());
            replies = REPLIES.map(|_| client.read()).into();
            // Right after a failed attempt the server rests, and requests fail at once.
            server_asked.try_recv().is_ok()
        });
        let mut complete = 0;
        for (i, (reply, value)) in replies.iter().zip(&values).enumerate() {
            complete += REPLIES[i].len();
            if complete <= end {
                assert_eq!(reply, value, "cut at {end}");
            } else {
                let reset = format!("ERR Connection reset by peer: {}", server.label("s0"));
                assert!(reply.is_error(&reset), "cut at {end}: {reply:?}");
            }
        }
    }
    drop(client);
    fleet.wait_idle();
}

/// Replies that come byte by byte are the same replies.
#[test]
fn replies_that_come_byte_by_byte() {
    let server = FakeServer::start(|_, peer| {
        while let Some(request) = peer.request() {
            for byte in [b"*3\r\n$3\r\na\r\n\r\n$-1\r\n+", &request[1][..], b"\r\n"].concat() {
                peer.send([byte]);
            }
        }
    });
    let fleet = before_one(&server, "");
    let mut client = fleet.client();
    let keys = ["x", "y", "z"];
    client.send_raw(keys.map(|key| encode(["GET", key])).concat());
    for key in keys {
        assert_eq!(client.read(), Value::array([Value::bulk("a\r\n"), Value::Nil, Value::simple(key)]));
    }
}

/// B3: bytes that are no RESP fail what is awaited, and nothing that follows them on that connection is believed.
#[test]
fn nonsense_poisons_the_connection() {
    const NONSENSE: [&str; 9] = [
        "HTTP/1.1 400 Bad Request\r\n",
        "\r\n",
        "$abc\r\n",
        "$-2\r\n",
        "*-3\r\n",
        "$99999999999999999999\r\n",
        "+no carriage return\n",
        "$3\r\nabcdef\r\n",
        "*1\r\n?\r\n",
    ];
    for nonsense in NONSENSE {
        let closed = Gate::default();
        let server = FakeServer::start({
            let closed = closed.clone();
            move |number, peer| {
                if number == 0 {
                    peer.requests(2);
                    peer.send(format!("{nonsense}+wrong\r\n"));
                    peer.wait_closed();
                    closed.open();
                } else {
                    echo_keys(peer);
                }
            }
        });
        let fleet = before_one(&server, "");
        let mut client = fleet.client();
        client.send_raw([encode(["GET", "a"]), encode(["GET", "b"])].concat());
        let expected = format!("ERR Invalid argument: {}, not a RESP reply", server.label("s0"));
        for _ in 0..2 {
            let reply = client.read();
            assert!(reply.is_error(&expected), "{nonsense:?} was answered by {reply:?}");
        }
        closed.pass();
        wait_echo(&mut client);
        assert_eq!(fleet.server_stat(0, "server_err"), 1);
    }
}

/// What nobody asked for is nobody's reply, whenever it comes: before the first request, between two, or in part.
#[test]
fn a_reply_that_nobody_awaits_is_nobodys() {
    for stray in ["+STRAY\r\n", "$5\r\nSTR", "$100000\r\nSTRAY", "*2\r\n+STRAY\r\n"] {
        let server = FakeServer::start(move |number, peer| match number {
            0 => {
                peer.send(stray);
                echo_keys(peer);
            }
            1 => {
                let request = peer.requests(1).remove(0);
                peer.send([b"+", &request[1][..], b"\r\n", stray.as_bytes()].concat());
                echo_keys(peer);
            }
            _ => echo_keys(peer),
        });
        let fleet = before_one(&server, "preconnect: true");
        wait_until("the next connection", PATIENCE, || server.connections() >= 2);
        let mut client = fleet.client();
        wait_echo(&mut client);
        wait_until("the one after that", PATIENCE, || server.connections() >= 3);
        wait_echo(&mut client);
    }
}

/// B21: a port that greets whoever connects (SMTP, say) is no Redis server. It must not be connected to in a loop.
#[test]
fn a_server_that_greets_is_not_stormed() {
    let server = FakeServer::start(|_, peer| {
        peer.send("220 mail.example.org ESMTP\r\n");
        peer.wait_closed();
    });
    let fleet = before_one(&server, "");
    let mut client = fleet.client();
    let start = std::time::Instant::now();
    while start.elapsed() < std::time::Duration::from_millis(1000) {
        let reply = client.call(["GET", "k"]);
        assert!(
            reply.is_error("ERR Invalid argument: s0") || reply.is_error("ERR Connection re"),
            "{reply:?}"
        );
    }
    // 50, 100, 200, 400 ms, 20% less, and two at once at the beginning.
    assert!(server.connections() <= 8, "{} connections in a second", server.connections());
}

/// B2: a server refuses a large value by its length, before all of it has come. That is its reply; but the connection
/// is over, and the rest of the value must not begin the next one: the server would take it for commands.
#[test]
fn a_reply_that_comes_before_its_request_has_left() {
    let (seen, first) = channel();
    let (release, over) = (Gate::default(), Gate::default());
    let server = FakeServer::start({
        let (release, over) = (release.clone(), over.clone());
        move |number, peer| {
            if number == 0 {
                peer.skip(100_000);
                release.pass();
                peer.send("-ERR too large for me\r\n");
                // Not a byte more is read: the rest, and what stands behind it, could leave before the answer is seen.
                over.pass();
            } else {
                // The next request here panics when it is no request.
                peer.answer_all(|request| {
                    let _nobody_asks = seen.send(request.to_vec());
                    [b"+", &request[1][..], b"\r\n"].concat()
                });
            }
        }
    });
    let fleet = before_one(&server, "");
    let (mut large, mut behind) = (fleet.client(), fleet.client());
    let value = b"*2\r\n$3\r\nGET\r\n$6\r\nforged\r\n".repeat(2_000_000); // more than sockets hold
    large.send([&b"SET"[..], b"k", &value]);
    wait_until("it to be on its way", PATIENCE, || fleet.server_stat(0, "in_queue") == 1);
    behind.send(["GET", "b"]);
    wait_until("a request behind it", PATIENCE, || fleet.server_stat(0, "in_queue") == 2);
    release.open();
    assert_eq!(large.read(), Value::Error("ERR too large for me".into()));
    assert_eq!(
        behind.read(),
        Value::simple("b"),
        "not a byte of it had left: it moves to the next connection"
    );
    assert_eq!(first.recv_timeout(PATIENCE).unwrap(), [&b"GET"[..], b"b"]);
    wait_echo(&mut large);
    over.open();
}

/// "Unsent" is not "unknown": when a connection dies, requests of which nothing had left go to the next one, in order
/// and once. The one that had left in part fails.
#[test]
fn what_never_left_moves_to_the_next_connection() {
    let (seen, requests) = channel();
    let die = Gate::default();
    let server = FakeServer::start({
        let die = die.clone();
        move |number, peer| {
            if number == 0 {
                peer.reset_at_end();
                die.pass();
            } else {
                peer.answer_all(|request| {
                    seen.send(String::from_utf8_lossy(&request[1]).into_owned()).unwrap();
                    [b"+", &request[1][..], b"\r\n"].concat()
                });
            }
        }
    });
    let fleet = before_one(&server, "");
    let (mut large, mut one, mut two) = (fleet.client(), fleet.client(), fleet.client());
    large.send([&b"SET"[..], b"large", &vec![b'v'; 32 << 20]]);
    wait_until("it to be on its way", PATIENCE, || fleet.server_stat(0, "in_queue") == 1);
    one.send_raw((0..50).flat_map(|i| encode(["GET".to_owned(), format!("one:{i}")])).collect::<Vec<u8>>());
    two.send_raw((0..50).flat_map(|i| encode(["GET".to_owned(), format!("two:{i}")])).collect::<Vec<u8>>());
    wait_until("the others behind it", PATIENCE, || fleet.server_stat(0, "in_queue") == 101);
    die.open();
    let reply = large.read();
    assert!(reply.is_error(&format!("ERR Connection reset by peer: {}", server.label("s0"))), "{reply:?}");
    for i in 0..50 {
        assert_eq!(one.read(), Value::simple(&format!("one:{i}")));
        assert_eq!(two.read(), Value::simple(&format!("two:{i}")));
    }
    let requests: Vec<String> = requests.try_iter().collect();
    for client in ["one", "two"] {
        let own: Vec<&String> = requests.iter().filter(|key| key.starts_with(client)).collect();
        let expected: Vec<String> = (0..50).map(|i| format!("{client}:{i}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>());
    }
    assert_eq!(requests.len(), 100, "each once, and no large one");
    drop((large, one, two));
    fleet.wait_idle();
}

/// A large reply is passed on as it comes. When its server dies in the midst, the client is closed: whatever followed
/// would be taken for the rest of the value.
#[test]
fn a_large_reply_that_breaks_off_ends_its_client_and_no_other() {
    for (announced, sent) in [(70_000, 69_000), (1 << 20, 500_000), (64 << 20, 10 << 20)] {
        let broken = Gate::default();
        let server = FakeServer::start({
            let broken = broken.clone();
            move |number, peer| {
                if number == 0 {
                    peer.requests(3);
                    peer.send(format!("${announced}\r\n"));
                    peer.send(vec![b'x'; sent]);
                    broken.pass();
                } else {
                    echo_keys(peer);
                }
            }
        });
        let fleet = before_one(&server, "");
        let (mut client, mut other) = (fleet.client(), fleet.client());
        client.send_raw([encode(["GET", "large"]), encode(["GET", "behind"])].concat());
        wait_until("its requests to be first", PATIENCE, || fleet.server_stat(0, "requests") == 2);
        other.send(["GET", "b"]);
        let head = format!("${announced}\r\n");
        assert_eq!(client.read_raw(head.len()), head.as_bytes(), "it does not wait for the whole");
        assert!(client.read_raw(sent).iter().all(|byte| *byte == b'x'));
        broken.open();
        assert!(client.closed(), "something follows a broken reply");
        let reply = other.read();
        assert!(reply.is_error("ERR Connection reset by peer: s0"), "{reply:?}");
        wait_echo(&mut other);
        drop(other);
        fleet.wait_idle();
    }
}

/// The same with a real server that is killed, whenever that hits the reply.
#[test]
fn a_real_server_is_killed_in_the_midst_of_a_large_reply() {
    let mut servers = [Redis::start()];
    let fleet = Fleet::over(&super::fleet::entries(&servers), "", &["--threads", "1"]);
    let value = vec![b'x'; 64 << 20];
    assert_eq!(fleet.client().call([&b"SET"[..], b"large", &value]), Value::ok());
    let mut client = fleet.client();
    client.send(["GET", "large"]);
    assert_eq!(client.read_raw(11), b"$67108864\r\n");
    servers[0].kill();
    let mut received = 0;
    let broken = poll(PATIENCE, || {
        let Some(bytes) = client.read_some() else { return true };
        received += bytes.len();
        assert!(bytes.iter().all(|byte| *byte == b'x') || bytes.ends_with(b"\r\n"));
        received == value.len() + 2
    });
    assert!(broken, "after {received} bytes nothing comes and nobody closes");
    assert!(received <= value.len() + 2);
}

/// A slow reader of a large value keeps nobody else waiting, and gets every byte of it.
#[test]
fn a_slow_reader_of_a_large_reply_delays_nobody() {
    let servers = [Redis::start()];
    let fleet = Fleet::over(&super::fleet::entries(&servers), "", &["--threads", "1"]);
    let value: Vec<u8> = (0..16u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (mut slow, mut other) = (fleet.client(), fleet.client());
    assert_eq!(slow.call([&b"SET"[..], b"large", &value]), Value::ok());
    slow.send(["GET", "large"]);
    assert_eq!(slow.read_raw(11), b"$16777216\r\n");
    for i in 0..200 {
        let i = i.to_string();
        assert_eq!(other.call(["SET", "small", &i]), Value::ok());
        assert_eq!(other.call(["GET", "small"]), Value::bulk(&i));
    }
    assert!(slow.read_raw(value.len()) == value, "bytes differ");
    assert_eq!(slow.read_raw(2), b"\r\n");
    assert_eq!(slow.call(["GET", "small"]), Value::bulk("199"));
    drop((slow, other));
    fleet.wait_idle();
}
