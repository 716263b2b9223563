//! Bytes in, bytes out: what the proxy makes of good and bad input is what a redis-server makes of the same bytes.

use std::time::Duration;

use crate::support::{Random, Redis, Resp, Shards, Value, encode};

/// What follows each piece of input, to learn whether the connection still lives.
const SENTINEL: &str = "the conversation goes on";

/// A request in front of the bad ones, and its reply, which must not be lost.
const DUE: &[u8] = b"*2\r\n$4\r\nECHO\r\n$3\r\ndue\r\n";
const DUE_REPLY: &[u8] = b"$3\r\ndue\r\n";

/// What became of a piece of input.
#[derive(Debug, PartialEq, Eq)]
struct Heard {
    /// All replies, without the sentinel's.
    replies: Vec<u8>,
    /// The sentinel was never answered.
    closed: bool,
}

impl Heard {
    fn lives(replies: &[u8]) -> Self {
        Self { replies: replies.to_vec(), closed: false }
    }

    fn closed(replies: &[u8]) -> Self {
        Self { replies: replies.to_vec(), closed: true }
    }
}

/// Sends `input` and then the sentinel, and listens until that is answered or the peer has closed.
fn converse(client: &mut Resp, input: &[u8]) -> Heard {
    // The peer may have closed already, and what it said is still to be read.
    let _closed_early = client.try_send_raw(input).and_then(|()| client.try_send_raw(sentinel()));
    listen(client)
}

/// Sends `input`, which is to be the last, and listens until the peer has closed. (No sentinel: Redis would take it for
/// the end of a line that is too long, if both came in one packet.)
fn last_words(client: &mut Resp, input: &[u8]) -> Heard {
    let _closed_early = client.try_send_raw(input);
    listen(client)
}

fn sentinel() -> Vec<u8> {
    encode(["ECHO", SENTINEL])
}

fn listen(client: &mut Resp) -> Heard {
    let end = format!("${}\r\n{SENTINEL}\r\n", SENTINEL.len()).into_bytes();
    let mut replies = Vec::new();
    while let Some(bytes) = client.read_some() {
        replies.extend(bytes);
        if let Some(before) = replies.strip_suffix(&end[..]) {
            return Heard::lives(before);
        }
    }
    Heard::closed(&replies)
}

fn request(args: &[&[u8]]) -> Vec<u8> {
    encode(args)
}

/// Input that has nothing wrong in it, or that Redis forgives: answered to the byte as Redis does.
fn forgiven() -> Vec<Vec<u8>> {
    let long = [b'y'; 200];
    let mut inputs: Vec<Vec<u8>> = [
        // Nothing was asked.
        &b"*0\r\n"[..],
        b"*-1\r\n",
        b"*-2\r\n",
        b"\r\n",
        b"\n\n \r\n\t\x0b\x0c\r\n",
        b"*0\r\n\r\n*-1\r\n",
        // Garbage is an inline command.
        b"garbage\r\n",
        b"foo bar baz\n",
        b"GET\r\n",
        b"get a b c\n",
        b"\"\" a\r\n",
        b"$3\r\nfoo\r\n",
        b"+OK\r\n:1\r\n-ERR no\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        // Words and quotes.
        b"ECHO \"a b\"\r\n",
        b"ECHO \"\\x41\\xff\\n\\r\\t\\a\\b\\q\\\\ \\\"\"\r\n",
        b"ECHO \"\\xzz\\x4\"\r\n",
        b"ECHO 'a\\'b \\n'\r\n",
        b"ECHO \"\"\r\n",
        b"ECHO ''\n",
        b"ECHO a\"b\"\r\n",
        b"ECHO a'b'\t \r\nECHO \"a\" \r\n",
        b"  ECHO\t a\t\r\n",
        b"ECHO a\rb\r\n",
        b"ECHO a\r\r\n",
        b"ECHO\x0ba\r\n",
        b"ECHO a\x0bb\x0cc\r\n",
        b"ECHO \"a\"\x0b\r\n",
        b"ECHO \"a\"\x0bb\r\n",
        b"\x0b\x0cECHO a\r\n",
        // Empty and binary.
        b"*1\r\n$0\r\n\r\n",
        b"*2\r\n$0\r\n\r\n$0\r\n\r\n",
        b"*3\r\n$3\r\nSET\r\n$0\r\n\r\n$0\r\n\r\n*2\r\n$3\r\nGET\r\n$0\r\n\r\n*2\r\n$3\r\nDEL\r\n$0\r\n\r\n",
        b"*2\r\n$4\r\nECHO\r\n$7\r\n\r\n\x00\xff$1\r\r\n",
        b"*2\r\n$5\r\na\r\nb\x00\r\n$3\r\n\x00\r\n\r\n",
        b"*2\r\n$4\r\nECHO\r\n$3\r\na\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .into();
    inputs.push(request(&[b"FOO", &long, b"abc"]));
    inputs.push(request(&[b"FOO", &long[..120], b"abcdefghijk", b"l"]));
    inputs.push(request(&[&long, b"abc"]));
    inputs.push(request(&[b"CLIENT", &long]));
    inputs.push([&b"ECHO "[..], &[b'a'; 65_000], b"\r\n"].concat());
    inputs.push([&[b'a'; 65_536][..], b"\r\n"].concat());
    inputs
}

/// Input behind which Redis gives up, with the same last words.
fn unforgiven() -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> = [
        // Lengths that are none.
        &b"*x\r\n"[..],
        b"*\r\n",
        b"* 1\r\n",
        b"*+1\r\n",
        b"*01\r\n",
        b"*1.5\r\n",
        b"*-0\r\n",
        b"*-\r\n",
        b"*99999999999999999999\r\n",
        b"*2147483648\r\n",
        b"*1\r\n$x\r\n",
        b"*1\r\n$\r\n",
        b"*1\r\n$ 4\r\n",
        b"*1\r\n$4 \r\nPING\r\n",
        b"*1\r\n$04\r\nPING\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n$-5\r\n",
        b"*1\r\n$99999999999999999999\r\n",
        // A length without digits must never reach a server: there it would end a connection that clients share.
        b"*2\r\n$3\r\nGET\r\n$\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$-1\r\n",
        // Past the limits.
        b"*1\r\n$536870913\r\n",
        b"*2\r\n$3\r\nGET\r\n$9223372036854775807\r\n",
        // Arguments of a wrong type.
        b"*1\r\n:1\r\n",
        b"*1\r\n+PING\r\n",
        b"*1\r\nPING\r\n",
        b"*2\r\n$3\r\nGET\r\n*1\r\n$1\r\na\r\n",
        b"*1\r\n\r\n",
        b"*2\r\n$4\r\nECHO\r\n$1\r\nx\r\n*1\r\n*1\r\n$4\r\nQUIT\r\n",
        // Quotes that don't match.
        b"ECHO \"a\r\n",
        b"ECHO 'a\r\n",
        b"ECHO \"a\"b\r\n",
        b"ECHO 'a'b\r\n",
        b"ECHO \"a\\\r\n",
        // A browser that a web page makes talk to us: nothing behind these words is looked at.
        b"POST / HTTP/1.1\r\nHost: x\r\n\r\nSET a b\r\n",
        b"*1\r\n$5\r\nhost:\r\n",
        b"*2\r\n$4\r\npOsT\r\n$1\r\na\r\n",
        // The end that was asked for.
        b"*1\r\n$4\r\nQUIT\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n",
        b"quit\r\nGET a\r\n",
        b"*2\r\n$4\r\nQUIT\r\n$1\r\na\r\n*x\r\n",
    ]
    .map(<[u8]>::to_vec)
    .into();
    inputs.push(vec![b'a'; 65_537]);
    inputs.push([&b"ECHO "[..], &[b'a'; 100_000]].concat());
    inputs
}

/// Where the proxy differs from Redis 7.0.15, and why.
fn differences() -> Vec<(Vec<u8>, Heard, &'static str)> {
    let protocol_error = |what: &str| Heard::closed(format!("-ERR Protocol error: {what}\r\n").as_bytes());
    vec![
        (
            b"*1048577\r\n".to_vec(),
            protocol_error("invalid multibulk length"),
            "Redis 7.0 takes up to 2147483647 arguments; the limit is that of earlier versions",
        ),
        (
            b"*2\r\n$4\r\nECHO\r\n$1\r\nabc\r\n".to_vec(),
            protocol_error("expected CRLF after bulk"),
            "Redis skips two bytes whatever they are; what is forwarded must mean the same to every reader",
        ),
        (
            b"*1\rX$4\r\nQUIT\r\n".to_vec(),
            protocol_error("invalid multibulk length"),
            "Redis skips the byte behind a CR whatever it is",
        ),
        (
            b"*1\n$4\nPING\n".to_vec(),
            protocol_error("invalid multibulk length"),
            "Redis waits for a CR, as it may come at the end of the next request",
        ),
        (
            [&b"*"[..], &[b'1'; 70_000]].concat(),
            protocol_error("invalid multibulk length"),
            "Redis reads 64 KB of digits before it says that there are too many",
        ),
        ([&b"*1\r\n$"[..], &[b'1'; 70_000]].concat(), protocol_error("invalid bulk length"), "as above"),
        (
            b"*1\r\n:".to_vec(),
            protocol_error("expected '$', got ':'"),
            "Redis looks at the type when the line is complete",
        ),
        (
            b"GET / HTTP/1.1\r\nHost: x\r\n\r\nSET a b\r\n".to_vec(),
            Heard::closed(b"-ERR wrong number of arguments for 'get' command\r\n"),
            "Redis closes without the replies that were due",
        ),
        (
            b"\xff\xfe\r\n".to_vec(),
            Heard::lives(
                "-ERR unknown command '\u{fffd}\u{fffd}', with args beginning with: \r\n".as_bytes(),
            ),
            "errors of the proxy are valid UTF-8; Redis repeats the bytes",
        ),
        (
            b"ECHO a\x00b\r\n".to_vec(),
            Heard::lives(b"-ERR wrong number of arguments for 'echo' command\r\n"),
            "Redis doesn't find the end of a line that has a NUL in it, and waits for ever",
        ),
        (
            [&b"ECHO "[..], &[b'a'; 65_600], b"\r\n"].concat(),
            protocol_error("too big inline request"),
            "Redis takes a longer line if its end comes in the same packet",
        ),
    ]
}

#[test]
fn every_sort_of_input_is_answered_as_by_redis() {
    let shards = Shards::<2>::start("");
    let redis = Redis::start();
    let check = |input: &[u8], closes: bool| {
        let hear = if closes { last_words } else { converse };
        let theirs = hear(&mut redis.client(), input);
        let ours = hear(&mut shards.client(), input);
        let shown = input[..input.len().min(120)].escape_ascii();
        assert_eq!(
            ours.replies.escape_ascii().to_string(),
            theirs.replies.escape_ascii().to_string(),
            "{shown}"
        );
        assert_eq!((ours.closed, theirs.closed), (closes, closes), "{shown}");
    };
    for input in forgiven() {
        check(&input, false);
        check(&[DUE, &input, DUE].concat(), false);
    }
    for input in unforgiven() {
        check(&input, true);
    }
    for (input, expected, why) in differences() {
        let shown = input[..input.len().min(120)].escape_ascii();
        let hear = if expected.closed { last_words } else { converse };
        assert_eq!(hear(&mut shards.client(), &input), expected, "{shown}: {why}");
    }
}

/// twemproxy closed at once and dropped the replies that earlier requests of the pipeline had coming (B17's cousin).
#[test]
fn replies_that_were_due_come_before_the_protocol_error() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let due = [encode(["SET", &a, "1"]), encode(["INCR", &a]), encode(["GET", &b]), DUE.to_vec()].concat();
    let reply = [b"+OK\r\n:2\r\n$-1\r\n", DUE_REPLY].concat();
    let differing = differences().into_iter().filter(|(_, heard, _)| heard.closed).map(|(input, ..)| input);
    for input in unforgiven().into_iter().chain(differing) {
        let alone = last_words(&mut shards.client(), &input);
        let heard = last_words(&mut shards.client(), &[&due[..], &input].concat());
        let shown = input[..input.len().min(120)].escape_ascii();
        let expected = [reply.clone(), alone.replies].concat();
        assert_eq!(heard.replies.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{shown}");
    }
}

/// A client that is closed while it still sends is reset by the kernel, and what it hasn't read is lost with it. So the
/// rest of its input is read and dropped until it has taken its replies.
#[test]
fn replies_that_were_due_survive_a_flood_behind_the_last_request() {
    let shards = Shards::<1>::start("");
    let value = "v".repeat(1 << 20);
    assert_eq!(shards.client().call(["SET", "k", &value]), Value::ok());
    for (end, last) in [
        (&b"QUIT\r\n"[..], "+OK\r\n"),
        (b"*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (b"", "-ERR Protocol error: too big inline request\r\n"),
    ] {
        let mut client = shards.client();
        let requests = encode(["GET", "k"]).repeat(20);
        client.send_raw([&requests, end, &[b'x'; 2_000_000]].concat());
        for _ in 0..20 {
            assert_eq!(client.read().bytes().len(), value.len());
        }
        assert_eq!(client.read_raw(last.len()), last.as_bytes());
        assert!(client.closed());
    }
}

#[test]
fn half_a_request_and_then_the_end_is_no_error() {
    let shards = Shards::<2>::start("");
    let redis = Redis::start();
    let [[a], [b]] = shards.keys();
    let due = [encode(["SET", &a, "1"]), encode(["GET", &b]), DUE.to_vec()].concat();
    for half in [
        "*",
        "*2",
        "*2\r",
        "*2\r\n",
        "*2\r\n$3\r\nGET\r\n$1",
        "*2\r\n$3\r\nGET\r\n$1\r\na",
        "GET a",
        "\r",
        "",
    ] {
        for client in [&mut redis.client(), &mut shards.client()] {
            client.send_raw([&due, half.as_bytes()].concat());
            client.finish();
            assert_eq!(client.read(), Value::ok(), "{half:?}");
            assert_eq!(client.read(), Value::Nil, "{half:?}");
            assert_eq!(client.read_raw(DUE_REPLY.len()), DUE_REPLY, "{half:?}");
            assert!(client.closed(), "{half:?}");
        }
    }
}

/// Bad input of one client ends its own connection, and nothing else: the server connections that it shares with others
/// go on. twemproxy took `$\r\n` for an empty key, forwarded it, and the server ended the connection of all.
#[test]
fn bad_input_disturbs_nobody_else() {
    let shards = Shards::<1>::on_one_thread("");
    let mut good = shards.client();
    good.call(["SET", "counter", "0"]);
    let connections = || shards.servers[0].info("total_connections_received") - i64::from(looks());
    let before = connections();
    let mut count = 0;
    for input in unforgiven() {
        let mut bad = shards.client();
        let (head, tail) = input.split_at(input.len() / 2);
        good.send_raw(encode(["INCR", "counter"]).repeat(20));
        bad.send_raw(encode(["GET", "counter"]));
        bad.send_raw(head);
        good.send_raw(encode(["INCR", "counter"]).repeat(20));
        let _closed_early = bad.try_send_raw(tail);
        good.send_raw(encode(["INCR", "counter"]).repeat(20));
        for _ in 0..60 {
            count += 1;
            assert_eq!(good.read(), Value::Int(count), "{}", input[..input.len().min(120)].escape_ascii());
        }
        assert!(matches!(bad.read(), Value::Bulk(n) if n.iter().all(u8::is_ascii_digit)));
    }
    assert_eq!(connections(), before, "no server connection was lost");
}

/// How many connections the test itself has made to a server for its numbers, this one included.
fn looks() -> u32 {
    use std::sync::atomic::{AtomicU32, Ordering};
    static LOOKS: AtomicU32 = AtomicU32::new(0);
    LOOKS.fetch_add(1, Ordering::Relaxed) + 1
}

/// B7: what arrives in one packet was parsed otherwise than the same bytes in many. Here every conversation is cut in two
/// at every byte, and once into single bytes; and each piece is known to have been read before the next one is sent.
#[test]
fn every_split_of_a_conversation_gets_the_same_bytes() {
    let shards = Shards::<2>::on_one_thread("");
    let [[a], [b]] = shards.keys();
    let mut conversations = conversations(&a, &b);
    conversations.extend(forgiven().into_iter().chain(unforgiven()).filter(|input| input.len() < 80));
    conversations.extend(differences().into_iter().map(|(input, ..)| input).filter(|input| input.len() < 80));
    let mut witness = shards.client();
    for input in conversations {
        let whole = converse(&mut shards.client(), &input);
        let input = [&input[..], &sentinel()].concat();
        let end = input.len() - sentinel().len();
        for cut in 1..end {
            let heard = in_pieces(&shards, &mut witness, &[&input[..cut], &input[cut..]]);
            assert_eq!(heard, whole, "{} cut at {cut}", input[..end].escape_ascii());
        }
        let mut pieces: Vec<&[u8]> = input[..end].chunks(1).collect();
        pieces.push(&input[end..]);
        let heard = in_pieces(&shards, &mut witness, &pieces);
        assert_eq!(heard, whole, "{} byte for byte", input[..end].escape_ascii());
    }
}

/// Sends each piece when the one before has been read: the proxy has one thread, so when it answers the witness it has
/// read what came earlier from others.
fn in_pieces(shards: &Shards<2>, witness: &mut Resp, pieces: &[&[u8]]) -> Heard {
    let mut client = shards.client();
    for piece in pieces {
        if client.try_send_raw(piece).is_err() {
            break;
        }
        witness.call(["ECHO", "read"]);
    }
    listen(&mut client)
}

/// Conversations over two servers that leave everything as it was; `a` and `b` are keys of different servers.
fn conversations(a: &str, b: &str) -> Vec<Vec<u8>> {
    let all = |requests: &[&[&str]]| requests.iter().flat_map(|args| encode(*args)).collect::<Vec<u8>>();
    vec![
        all(&[&["SET", a, "1"], &["GET", b], &["INCR", a], &["GET", a], &["DEL", a]]),
        all(&[&["MSET", a, "", b, "\r\n"], &["MGET", a, b, a, "none"], &["DEL", a, b, a]]),
        all(&[&["RPUSH", b, "x", "", "y"], &["LRANGE", b, "0", "-1"], &["GET", b], &["UNLINK", b]]),
        all(&[&["RENAME", a, b], &["MONITOR"], &["NOSUCH", "x"], &["GET"], &["EXISTS", a, b]]),
        format!("SET {a} \"\\x00\\r\\n\"\r\nGET {a}\n\r\nDEL {a} {b}\r\n").into_bytes(),
        all(&[&["CLIENT", "SETNAME", "n"], &["CLIENT", "GETNAME"], &["SELECT", "0"], &["SELECT", "x"]]),
        all(&[&["EVAL", "return {1, {2, {}}, 'x', false, redis.error_reply('E x')}", "1", b], &["GET", a]]),
    ]
}

/// Pieces of requests, whole and damaged, in any order and in any packets: whatever comes of it, it is RESP, the proxy
/// lives, and so does the server connection that others use.
#[test]
fn random_garbage_harms_nobody() {
    let seed = 0x6a7b;
    let mut random = Random::seeded(seed);
    let shards = Shards::<2>::on_one_thread("");
    let [[a], [b]] = shards.keys();
    let mut good = shards.client();
    assert_eq!(good.call(["MSET", "good", "0", &a, "1", &b, "2"]), Value::ok());
    let connections =
        || -> i64 { shards.servers.iter().map(|server| server.info("total_connections_received")).sum() };
    let before = connections();
    let pieces = garbage(&a, &b);
    for round in 1..=2_000 {
        let mut client = shards.client();
        for _ in 0..=random.below(3) {
            let mut packet: Vec<u8> =
                (0..random.below(6)).flat_map(|_| random.pick(&pieces).clone()).collect();
            if random.below(3) == 0 && !packet.is_empty() {
                let at = random.below(packet.len());
                packet[at] = random.bytes(1)[0];
            }
            if random.below(3) == 0 {
                packet.truncate(random.below(packet.len() + 1));
            }
            if client.try_send_raw(packet).is_err() {
                break;
            }
        }
        good.send(["INCR", "good"]);
        // One that was closed is no socket any more that could be finished.
        let _closed_early = client.try_finish();
        let Heard { replies, .. } = listen(&mut client);
        Value::parse_all(&replies);
        assert_eq!(good.read(), Value::Int(round), "seed {seed}");
    }
    let looks = shards.servers.len() as i64;
    assert_eq!(connections() - before, looks, "no server connection was lost; those that count are counted");
    assert!(!shards.proxy.log().contains("panicked"), "{}", shards.proxy.log());
}

fn garbage(a: &str, b: &str) -> Vec<Vec<u8>> {
    let requests = [
        vec!["GET", a],
        vec!["MGET", a, b, a],
        vec!["MSET", a, "x", b, "y"],
        vec!["DEL", a, b],
        vec!["RENAME", a, b],
        vec!["EVAL", "return {1, {2, {}}, 'x', false}", "1", a],
        vec!["MONITOR"],
        vec!["HELLO", "2"],
        vec!["COMMAND", "COUNT"],
        vec!["EXISTS", "", "\r\n", "*1\r\n"],
    ];
    let mut pieces: Vec<Vec<u8>> = requests.iter().map(encode).collect();
    pieces.extend(requests.iter().map(|request| [request.join(" ").as_bytes(), b"\r\n"].concat()));
    let bits = [
        "*", "$", "\r\n", "\n", "-1", "0", "3", "*2\r\n", "$3\r\n", "GET", "\0", "\"", "'", " ", "$-1\r\n",
        "\u{ff}",
    ];
    pieces.extend(bits.map(|bit| bit.as_bytes().to_vec()));
    pieces
}

#[test]
fn a_pipeline_of_ten_thousand_is_answered_in_order() {
    let shards = Shards::<4>::start("");
    let keys: Vec<String> = (0..10_000).map(|i| format!("key:{i}")).collect();
    let mut client = shards.client();
    let replies = client.pipeline(keys.iter().map(|key| ["SET", key, key]));
    assert!(replies.iter().all(|reply| *reply == Value::ok()));
    // Reads, writes, local answers, refusals and errors of servers, mixed.
    let commands: Vec<Vec<&str>> = keys
        .iter()
        .enumerate()
        .map(|(i, key)| match i % 5 {
            0 => vec!["ECHO", key],
            1 => vec!["MONITOR"],
            2 => vec!["INCR", key],
            _ => vec!["GET", key],
        })
        .collect();
    let replies = client.pipeline(&commands);
    for ((i, key), reply) in keys.iter().enumerate().zip(replies) {
        match i % 5 {
            1 => assert!(reply.is_error("ERR unknown command 'MONITOR'"), "{reply:?}"),
            2 => assert!(reply.is_error("ERR value is not an integer"), "{reply:?}"),
            _ => assert_eq!(reply, Value::bulk(key)),
        }
    }
}

/// B18: zero-length keys and values were refused.
#[test]
fn empty_keys_and_values_are_as_good_as_any() {
    let shards = Shards::<4>::start("");
    let mut client = shards.client();
    assert_eq!(client.call(["GET", ""]), Value::Nil);
    assert_eq!(client.call(["SET", "", ""]), Value::ok());
    assert_eq!(client.call(["GET", ""]), Value::bulk(""));
    assert_eq!(client.call(["APPEND", "", ""]), Value::Int(0));
    assert_eq!(client.call(["MSET", "a", "", "b", "", "c", "", "d", ""]), Value::ok());
    let empty = Value::bulk("");
    let expected = Value::array([empty.clone(), empty.clone(), Value::Nil, empty]);
    assert_eq!(client.call(["MGET", "", "a", "none", "d"]), expected);
    assert_eq!(client.call(["EXISTS", "", "a", "", "b", "none"]), Value::Int(4));
    assert_eq!(client.call(["HSET", "{}", "", ""]), Value::Int(1));
    assert_eq!(client.call(["HGETALL", "{}"]), Value::array([Value::bulk(""), Value::bulk("")]));
    assert_eq!(client.call(["DEL", "", "a", "b", "c", "d", ""]), Value::Int(5));
}

#[test]
fn any_bytes_make_a_key() {
    let shards = Shards::<4>::start("hash_tag: \"{}\"");
    let mut client = shards.client();
    let mut keys: Vec<Vec<u8>> = (0..=255).map(|byte| vec![byte]).collect();
    keys.extend((0..=255).map(|byte| vec![b'{', byte, b'}', b'\r', b'\n', 0]));
    keys.push(vec![0xff; 70_000]);
    let replies = client.pipeline(keys.iter().map(|key| [&b"SET"[..], key, key]));
    assert!(replies.iter().all(|reply| *reply == Value::ok()));
    let replies = client.pipeline(keys.iter().map(|key| [&b"GET"[..], key]));
    assert!(replies.iter().zip(&keys).all(|(reply, key)| reply.bytes() == key));
    let command: Vec<&[u8]> = [&b"MGET"[..]].into_iter().chain(keys.iter().map(Vec::as_slice)).collect();
    let values = client.call(command);
    assert!(values.items().iter().zip(&keys).all(|(value, key)| value.bytes() == key));
}

#[test]
fn large_values_go_both_ways_whole() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    let mut other = shards.client();
    for length in [16 << 10, 64 << 10, 1 << 20, 100 << 20] {
        // A pattern in which a lost or doubled piece shows.
        let value: Vec<u8> =
            (0..length as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        assert_eq!(client.call([b"SET", a.as_bytes(), &value]), Value::ok());
        assert_eq!(other.call(["SET", &b, "small"]), Value::ok());
        client.send_raw([encode(["GET", &a]), encode(["GET", &b]), encode(["STRLEN", &a])].concat());
        let reply = client.read();
        assert!(reply.bytes() == value, "{length} bytes came back changed");
        assert_eq!(client.read(), Value::bulk("small"));
        assert_eq!(client.read(), Value::Int(length));
        let both = client.call(["MGET", &b, &a]);
        assert!(both.items()[1].bytes() == value, "{length} bytes came back changed by MGET");
    }
    client.call(["DEL", &a]);
}

/// Replies are delimited without recursion, so depth costs nothing: a decoder that recurses would overflow its stack.
#[test]
fn replies_nested_deeply_pass() {
    let shards = Shards::<2>::start("");
    let redis = Redis::start();
    for depth in [1, 127, 128, 129, 1000] {
        let script = format!("local t = 'x' for i = 1, {depth} do t = {{t, i}} end return t");
        let eval = ["EVAL", &script, "1", "k"];
        let (mut theirs, mut ours) = (redis.client(), shards.client());
        theirs.send(eval);
        ours.send(eval);
        let expected = theirs.read_bytes();
        assert!(expected.starts_with(b"*2\r\n"), "{}", expected.escape_ascii());
        assert_eq!(ours.read_bytes(), expected, "depth {depth}");
        assert_eq!(ours.call(["ECHO", "x"]), Value::bulk("x"));
    }
}

/// B2: a server that refuses a request before it has come whole answers early and closes. The early reply was taken for a
/// stray one, or for the reply of the next request; and the rest of the value began the next connection, where the server
/// took it for commands.
#[test]
fn a_server_that_answers_before_the_request_has_left_is_understood() {
    let servers = [Redis::with(&["--proto-max-bulk-len", "1mb"])];
    let shards = Shards::with_servers(servers, "", &["--threads", "1"]);
    let large = "SET smuggled v\r\n".repeat(2 << 20);
    let mut client = shards.client();
    let mut other = shards.client();
    for round in 0..10 {
        let n = round.to_string();
        client.send_raw(
            [encode(["SET", "k", &n]), encode(["SET", "large", &large]), encode(["GET", "k"])].concat(),
        );
        other.send_raw(encode(["GET", "k"]));
        assert_eq!(client.read(), Value::ok());
        let refused = client.read();
        assert!(refused.is_error("ERR Protocol error: invalid bulk length"), "{refused:?}");
        // What had not left yet moves to the next connection, and nobody notices.
        assert_eq!(client.read(), Value::bulk(&n));
        let beside = other.read();
        assert!(matches!(beside, Value::Bulk(_) | Value::Nil), "{beside:?}");
    }
    assert_eq!(shards.servers[0].client().call(["EXISTS", "large", "smuggled"]), Value::Int(0));
}

/// B6: all replies of a pipelined batch were held until the slowest was there.
#[test]
fn the_replies_that_are_ready_leave_at_once() {
    let mut shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    assert_eq!(client.call(["MSET", &a, "1", &b, "2"]), Value::ok());
    shards.servers[1].pause();
    let requests = [["GET", &a], ["ECHO", "x"], ["GET", &b], ["GET", &a]];
    client.send_raw(requests.iter().flat_map(encode).collect::<Vec<u8>>());
    assert_eq!(client.read(), Value::bulk("1"));
    assert_eq!(client.read(), Value::bulk("x"));
    assert!(client.silent_for(Duration::from_millis(100)), "the order is kept");
    shards.servers[1].resume();
    assert_eq!(client.read(), Value::bulk("2"));
    assert_eq!(client.read(), Value::bulk("1"));
}
