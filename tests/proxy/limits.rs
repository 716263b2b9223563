//! How many clients, how much of each: what happens at the bounds, and to whom.

use crate::support::{PATIENCE, Port, Redis, Resp, Shards, Shardwise, Value, encode, pool, wait_until};

const MAX_CLIENTS: &[u8] = b"-ERR max number of clients reached\r\n";

/// Resident memory of the proxy in KB.
fn resident(proxy: &Shardwise) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("the kernel says so");
    line.split_whitespace().next().and_then(|kb| kb.parse().ok()).expect("a number of KB")
}

/// What a client is told that is one too many.
fn told(client: &mut Resp) -> Vec<u8> {
    let mut told = Vec::new();
    while let Some(bytes) = client.read_some() {
        told.extend(bytes);
    }
    told
}

/// nutcracker read `client_connections` and did nothing with it. Here it holds over all workers together, with Redis's own
/// words to whoever is one too many.
#[test]
fn clients_past_the_limit_are_told_as_by_redis() {
    let redis = Redis::with(&["--maxclients", "1"]);
    let _only = redis.client();
    assert_eq!(told(&mut redis.client()), MAX_CLIENTS);
    for settings in ["client_connections: 5", "client_connections: 5\nreuseport: true"] {
        let shards = Shards::with_servers([Redis::start()], settings, &["--threads", "3"]);
        let mut clients: Vec<Resp> = (0..5).map(|_| shards.client()).collect();
        for client in &mut clients {
            assert_eq!(client.call(["ECHO", "in"]), Value::bulk("in"));
        }
        for _ in 0..20 {
            assert_eq!(told(&mut shards.client()), MAX_CLIENTS);
        }
        for client in &mut clients {
            assert_eq!(client.call(["SET", "k", "v"]), Value::ok(), "those who are in don't notice");
        }
        assert_eq!(shards.proxy.stats()["alpha"]["client_connections"], 5);
        // Each one that leaves, however it leaves, makes room for one more.
        drop(clients.pop());
        clients[0].call(["QUIT"]);
        drop(clients.remove(0));
        for _ in 0..2 {
            let mut client = None;
            wait_until("room for one more", PATIENCE, || {
                let mut next = shards.client();
                next.send(["ECHO", "in"]);
                let admitted = next.try_read().is_ok_and(|reply| reply == Value::bulk("in"));
                client = Some(next).filter(|_| admitted);
                admitted
            });
            clients.extend(client);
        }
        assert_eq!(told(&mut shards.client()), MAX_CLIENTS);
    }
}

#[test]
fn the_process_has_a_limit_over_all_pools() {
    let server = Redis::start();
    let ports = [Port::claim(), Port::claim()];
    let pools = [pool("alpha", &ports[0], &[&server], ""), pool("beta", &ports[1], &[&server], "")].concat();
    let _proxy = Shardwise::start(&format!("{pools}shardwise:\n  max_clients: 4\n"));
    let mut clients: Vec<Resp> = (0..4).map(|i| Resp::port(ports[i % 2].number())).collect();
    for client in &mut clients {
        assert_eq!(client.call(["ECHO", "in"]), Value::bulk("in"));
    }
    for port in &ports {
        assert_eq!(told(&mut Resp::port(port.number())), MAX_CLIENTS);
    }
    assert_eq!(clients[3].call(["GET", "k"]), Value::Nil);
}

#[test]
fn requests_are_bounded_as_the_pool_says() {
    let shards = Shards::<1>::start("max_bulk: 2kb\nmax_args: 20\nmax_inline: 300");
    let value = "v".repeat(2_048);
    let mut client = shards.client();
    assert_eq!(client.call(["SET", "k", &value]), Value::ok());
    assert_eq!(client.call(["MGET"; 20]).items().len(), 19);
    client.send_raw(format!("GET {}\r\n", "k".repeat(296)));
    assert_eq!(client.read(), Value::Nil);
    client.send_raw("SET s ".to_owned() + &"v".repeat(294) + "\r\n");
    assert_eq!(client.read(), Value::ok());
    for (input, what) in [
        ("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2049\r\n".to_owned(), "invalid bulk length"),
        ("*21\r\n".to_owned(), "invalid multibulk length"),
        (format!("GET {}\r\n", "k".repeat(297)), "too big inline request"),
        ("k".repeat(301), "too big inline request"),
    ] {
        let mut client = shards.client();
        client.send_raw(input);
        assert_eq!(told(&mut client), format!("-ERR Protocol error: {what}\r\n").into_bytes());
    }
    // A reply may be longer: that is the server's business.
    let replies = client.pipeline([["APPEND", "k", &value]; 3]);
    assert_eq!(replies[2], Value::Int(4 * 2_048));
    assert_eq!(client.call(["GET", "k"]).bytes().len(), 4 * 2_048);
}

/// B27: a few bytes that announced a huge array or bulk made the proxy allocate it.
#[test]
fn announced_lengths_take_no_memory() {
    let shards = Shards::<1>::start("");
    assert_eq!(shards.client().call(["SET", "k", "v"]), Value::ok());
    let before = resident(&shards.proxy);
    let mut clients: Vec<Resp> = (0..200).map(|_| shards.client()).collect();
    for (i, client) in clients.iter_mut().enumerate() {
        client.send_raw(
            [
                "*1048576\r\n$3\r\nGET\r\n$536870912\r\nabc",
                "*1048576\r\n",
                "*1\r\n$536870912\r\n",
                "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nabc",
            ][i % 4],
        );
    }
    // Both workers have read all of it when they answer clients that came later.
    for _ in 0..4 {
        assert_eq!(shards.client().call(["GET", "k"]), Value::bulk("v"));
    }
    let grown = resident(&shards.proxy).saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KB for 200 announcements of 512 MB");
}

/// B28: a deep pipeline got its client killed. Here its requests wait where they are, and all are answered.
#[test]
fn a_pipeline_deeper_than_max_pending_waits() {
    for settings in ["max_pending: 1", "max_pending: 7", "out_soft: 1kb"] {
        let shards = Shards::<2>::start(settings);
        let [[a], [b]] = shards.keys();
        let mut client = shards.client();
        let commands = (0..5_000).map(|i| match i % 4 {
            0 => vec!["INCR", &a],
            1 => vec!["INCR", &b],
            2 => vec!["MGET", &a, &b],
            _ => vec!["ECHO", "x"],
        });
        let commands: Vec<Vec<&str>> = commands.collect();
        for (i, reply) in client.pipeline(&commands).into_iter().enumerate() {
            let round = i as i64 / 4 + 1;
            match i % 4 {
                0 | 1 => assert_eq!(reply, Value::Int(round), "{settings}"),
                2 => {
                    let n = Value::bulk(round.to_string());
                    // Order is promised for replies; one server may run ahead of another.
                    assert!(reply.items().iter().all(|item| *item == n), "{settings}: {reply:?} for {n:?}");
                }
                _ => assert_eq!(reply, Value::bulk("x"), "{settings}"),
            }
        }
        // What had to wait was not lost when nothing came behind it.
        assert_eq!(client.call(["GET", &a]), Value::bulk("1250"));
    }
}

/// A client that doesn't read for a while makes the proxy hold no more than it may leave unread, and gets all when it does.
#[test]
fn a_client_that_reads_late_gets_everything_and_takes_little_memory() {
    let shards = Shards::<1>::start("max_pending: 10\nout_soft: 256kb");
    let value = "v".repeat(100_000);
    assert_eq!(shards.client().call(["SET", "k", &value]), Value::ok());
    let before = resident(&shards.proxy);
    let mut late: Vec<Resp> = (0..10).map(|_| shards.client()).collect();
    for client in &mut late {
        client.send_raw(encode(["GET", "k"]).repeat(1_000));
    }
    let mut other = shards.client();
    for _ in 0..200 {
        assert_eq!(other.call(["GET", "k"]).bytes().len(), value.len());
    }
    let grown = resident(&shards.proxy).saturating_sub(before);
    assert!(grown < 64 << 10, "{grown} KB, where 1 GB was asked for");
    for client in &mut late[..2] {
        for _ in 0..1_000 {
            assert_eq!(client.read().bytes().len(), value.len());
        }
        assert_eq!(client.call(["ECHO", "done"]), Value::bulk("done"));
    }
}

/// Past `out_hard` a client is closed. Nobody else notices, although they share the server connection on which the rest of
/// its replies still comes.
#[test]
fn past_the_hard_limit_only_the_client_that_does_not_read_is_closed() {
    let shards = Shards::<1>::on_one_thread("max_pending: 1000\nout_soft: 1mb\nout_hard: 4mb");
    let value = "v".repeat(1 << 20);
    let mut good = shards.client();
    assert_eq!(good.call(["SET", "large", &value]), Value::ok());
    let mut greedy = shards.client();
    greedy.send_raw(encode(["GET", "large"]).repeat(200));
    for i in 1..=200 {
        assert_eq!(good.call(["INCR", "n"]), Value::Int(i));
    }
    wait_until("the end of the greedy one", PATIENCE, || {
        good.call(["INCR", "m"]);
        shards.proxy.stats()["alpha"]["client_connections"] == 1
    });
    // What had left by then is whole replies and a part of one.
    let taken = told(&mut greedy);
    let reply = [format!("${}\r\n", value.len()).as_bytes(), value.as_bytes(), b"\r\n"].concat();
    assert!(taken.len() < 100 * reply.len(), "{} bytes were taken", taken.len());
    assert!(taken.chunks(reply.len()).all(|piece| *piece == reply[..piece.len()]));
    assert_eq!(good.call(["GET", "n"]), Value::bulk("200"));
    assert_eq!(shards.proxy.stats()["alpha"]["client_err"], 1);
}
