//! MULTI, EXEC, DISCARD, WATCH and UNWATCH: as a single Redis answers them, as long as all keys live on one server.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, Random, Redis, Resp, Shards, Value, wait_until};

/// Conversations of which a Redis of its own and the proxy must have the same opinion. `A` and `B` are keys of one server.
const CONVERSATIONS: &[&str] = &[
    "SET A 1|MULTI|GET A|INCR A|EXEC|GET A",
    "MULTI|EXEC|MULTI|DISCARD",
    "EXEC|DISCARD|UNWATCH",
    "MULTI|MULTI|SET A 1|EXEC",
    "MULTI|SET A 1|MULTI|EXEC|GET A",
    "MULTI|WATCH A|SET A 1|EXEC",
    "MULTI|SET A 1|WATCH A|EXEC",
    "SET A 1|MULTI|NOSUCH|SET A 2|EXEC|GET A",
    "SET A 1|MULTI|SET A 2|GET|EXEC|GET A",
    "SET A 1|MULTI|SET A 2|DISCARD|GET A|EXEC",
    "MULTI|GET|DISCARD|SET A 3|GET A",
    "SET A x|MULTI|INCR A|SET A 4|EXEC|GET A",
    "MULTI|EXEC 1|EXEC|GET A",
    "MULTI|SET A 1|EXEC 1|EXEC|SET A 5|GET A",
    "MULTI|MGET A B|MSET A 1 B 2|DEL A B|EXEC",
    "WATCH A|GET A|MULTI|SET A 1|EXEC|GET A",
    "WATCH A|SET A 6|MULTI|SET A 7|EXEC|GET A",
    "WATCH A|SET A 6|UNWATCH|MULTI|SET A 7|EXEC|GET A",
    "WATCH A|WATCH B|MULTI|DISCARD|SET A 8|MULTI|GET A|EXEC",
    "WATCH A B|SET B 1|MULTI|EXEC|MULTI|EXEC",
    "WATCH A|MULTI|UNWATCH|SET A 1|EXEC",
    "WATCH A|EXEC|DISCARD|GET A|MULTI|GET A|EXEC",
    "WATCH A|MULTI|MULTI|NOSUCH|EXEC|GET A",
    "WATCH",
    "MULTI|ECHO hello|EXEC",
    "MULTI|ECHO hello|SET A 1|ECHO bye|EXEC",
    "MULTI|ECHO|SET A 1|EXEC",
    "MULTI|ECHO hello|DISCARD|EXEC",
    "MULTI|EVAL return{1,2} 0|EXEC",
    "MULTI|BLPOP A 0|EXEC",
    "RPUSH A x y|MULTI|BLPOP A 0|LRANGE A 0 -1|EXEC|DEL A",
    "MULTI|SET A 1|RESET|EXEC|GET A",
    "WATCH A|RESET|SET A 2|MULTI|EXEC",
    "MULTI|SET A 1|QUIT",
    "MULTI|SET A 1|EXEC|MULTI|SET B 2|EXEC|MULTI|GET A|GET B|EXEC|SET A 3|MULTI|GET A|EXEC",
];

#[test]
fn every_conversation_is_answered_as_by_one_redis() {
    let shards = Shards::<2>::start("ping: reply");
    let [[a, b], _] = shards.keys();
    let alone = Redis::start();
    for conversation in CONVERSATIONS {
        let requests = requests(conversation, &a, &b);
        let one_by_one = |mut client: Resp| {
            client.call(["DEL", &a, &b]);
            requests.iter().map(|request| client.call(request)).collect::<Vec<_>>()
        };
        let expected = one_by_one(alone.client());
        assert_eq!(one_by_one(shards.client()), expected, "{conversation}, one by one");
        shards.client().call(["DEL", &a, &b]);
        assert_eq!(shards.client().pipeline(&requests), expected, "{conversation}, in one packet");
    }
    wait_until("every lease has ended", PATIENCE, || leases(&shards) == 0);
}

/// Pipelined, all keys on one server: what went before the transaction is done before it, what follows it after it.
#[test]
fn a_clients_own_traffic_before_and_after_a_transaction_keeps_its_order() {
    let shards = Shards::<2>::start("");
    let [[a, b], _] = shards.keys();
    let requests = requests(
        "SET A 1|GET B|MULTI|GET A|INCR A|EXEC|GET A|SET A 5|WATCH A|GET A|MULTI|INCR A|EXEC|GET A",
        &a,
        &b,
    );
    let mut client = shards.client();
    let expected = {
        let alone = Redis::start();
        alone.client().pipeline(&requests)
    };
    for round in 0..200 {
        assert_eq!(client.pipeline(&requests), expected, "round {round}");
    }
}

#[test]
fn keys_of_two_servers_are_refused_and_nothing_is_executed() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    let script: [&[&str]; 6] =
        [&["MULTI"], &["SET", &a, "1"], &["SET", &b, "1"], &["SET", &a, "2"], &["EXEC"], &["MGET", &a, &b]];
    for round in 0..2 {
        let replies = match round {
            0 => script.iter().map(|request| client.call(*request)).collect(),
            _ => client.pipeline(script),
        };
        assert_eq!(replies[..2], [Value::ok(), Value::simple("QUEUED")]);
        assert!(replies[2].is_error("CROSSSLOT "), "{replies:?}");
        assert_eq!(replies[3], Value::simple("QUEUED"));
        let abort = "EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(replies[4], Value::Error(abort.into()));
        assert_eq!(replies[5], Value::array([Value::Nil, Value::Nil]));
    }
    for split in [["MGET", &a, &b], ["DEL", &a, &b]] {
        assert_eq!(client.call(["MULTI"]), Value::ok());
        assert!(client.call(split).is_error("CROSSSLOT "));
        assert!(client.call(["EXEC"]).is_error("EXECABORT "));
    }
    assert!(client.call(["WATCH", &a, &b]).is_error("CROSSSLOT "));
    assert_eq!(client.call(["WATCH", &a]), Value::ok());
    assert!(client.call(["WATCH", &b]).is_error("CROSSSLOT "));
    assert_eq!(client.call(["SET", &b, "of another server"]), Value::ok());
    assert_eq!(
        client.pipeline([&["MULTI"][..], &["SET", &a, "1"], &["EXEC"]])[2],
        Value::array([Value::ok()])
    );
}

#[test]
fn exec_is_null_when_somebody_else_changed_a_watched_key() {
    let shards = Shards::<2>::start("");
    let [[a], _] = shards.keys();
    let (mut client, mut other) = (shards.client(), shards.client());
    for changed in [true, false] {
        assert_eq!(client.call(["WATCH", &a]), Value::ok());
        client.call(["GET", &a]);
        if changed {
            other.call(["INCR", &a]);
        }
        client.call(["MULTI"]);
        client.call(["INCRBY", &a, "10"]);
        let expected = if changed { Value::Nil } else { Value::array([Value::Int(11)]) };
        assert_eq!(client.call(["EXEC"]), expected);
    }
}

/// What of a client's transaction must never be seen by others, nor by itself once it is over.
#[test]
fn a_client_that_goes_in_the_middle_leaves_nothing_behind() {
    let shards = Shards::<1>::on_one_thread("");
    for step in 0..20 {
        let mut client = shards.client();
        client.pipeline(
            [&["WATCH", "k"][..], &["MULTI"], &["SET", "k", "lost"]][..1 + step % 3].iter().copied(),
        );
        drop(client);
        let mut next = shards.client();
        assert_eq!(next.call(["MULTI"]), Value::ok());
        assert_eq!(next.call(["SET", "n", "1"]), Value::simple("QUEUED"));
        assert_eq!(next.call(["EXEC"]), Value::array([Value::ok()]));
        assert_eq!(next.call(["GET", "k"]), Value::Nil);
    }
    wait_until("the leases of those that went are over", PATIENCE, || leases(&shards) == 0);
}

/// B12: a TCP connection was opened per transaction, and the server's CPU went to connecting.
#[test]
fn connections_are_kept_for_the_next_transaction() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut clients: Vec<Resp> = (0..4).map(|_| shards.client()).collect();
    let round = |clients: &mut Vec<Resp>| {
        for client in clients {
            for key in [&a, &b] {
                let replies = client.pipeline([&["MULTI"][..], &["INCR", key], &["EXEC"]]);
                assert!(matches!(replies[2], Value::Array(_)), "{replies:?}");
            }
        }
    };
    round(&mut clients);
    let opened = || shards.servers.each_ref().map(|server| server.info("total_connections_received"));
    let before = opened();
    (0..100).for_each(|_| round(&mut clients));
    let after = opened();
    for (before, after) in before.iter().zip(after) {
        // The look itself is one connection.
        assert!(after - before <= 2, "{} connections for 800 transactions", after - before);
    }
}

/// 300 transactions per second for a minute opened two connections after the first second, whenever two clients first happened to
/// be in a transaction on one server at the same moment. `TRANSACTIONS_SECONDS=60` is the whole minute.
#[test]
fn three_hundred_transactions_per_second_open_no_connection_after_the_first_second() {
    const PER_SECOND: u32 = 300;
    const CLIENTS: usize = 30;
    let seconds = std::env::var("TRANSACTIONS_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let shards = Shards::<3>::start("hash: murmur");
    let (start, settled) = (Instant::now(), Barrier::new(CLIENTS + 1));
    let opened =
        || -> i64 { shards.servers.iter().map(|server| server.info("total_connections_received")).sum() };
    let mut before = 0;
    std::thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (mut client, settled) = (shards.client(), &settled);
            scope.spawn(move || {
                let mut random = Random::seeded(number as u64);
                for round in 0..seconds * PER_SECOND / CLIENTS as u32 {
                    if round == PER_SECOND / CLIENTS as u32 {
                        // The count is taken, then all go on.
                        settled.wait();
                        settled.wait();
                    }
                    // Each at a moment of its own within its share of a second, so that some overlap by chance.
                    let share = Duration::from_millis(1000) * CLIENTS as u32 / PER_SECOND;
                    let due = share * round + share.mul_f64((random.bits() % 1000) as f64 / 1000.0);
                    #[allow(clippy::disallowed_methods)] // a steady rate is what is tested
                    std::thread::sleep(due.saturating_sub(start.elapsed()));
                    let key = format!("counter:{}", random.bits() % 1000);
                    let replies = client.pipeline([&["MULTI"][..], &["INCR", &key], &["EXEC"]]);
                    assert!(matches!(replies[2], Value::Array(_)), "{replies:?}");
                }
            });
        }
        settled.wait();
        before = opened();
        settled.wait();
    });
    // Each look is a connection, and counts itself.
    let new = opened() - before - shards.servers.len() as i64;
    println!("{} transactions in {:?}: {new} new connections", seconds * PER_SECOND, start.elapsed());
    assert_eq!(new, 0, "connections opened after the first second");
}

#[test]
fn max_leases_is_an_error_that_names_the_server() {
    let shards = Shards::<1>::start("max_leases: 2");
    let mut holders = [shards.client(), shards.client()];
    for holder in &mut holders {
        assert_eq!(holder.call(["WATCH", "k"]), Value::ok());
    }
    let expected = format!("ERR max leased connections to {} reached", shards.servers[0].address());
    let mut third = shards.client();
    assert_eq!(third.call(["WATCH", "k"]), Value::Error(expected.clone()));
    assert_eq!(third.call(["MULTI"]), Value::ok());
    assert_eq!(third.call(["SET", "k", "1"]), Value::Error(expected));
    assert!(third.call(["EXEC"]).is_error("EXECABORT "));
    assert_eq!(third.call(["SET", "k", "1"]), Value::ok(), "what needs none goes on");
    assert_eq!(sum(&shards, "leases_refused"), 2);
    assert_eq!(holders[0].call(["UNWATCH"]), Value::ok());
    assert_eq!(third.call(["WATCH", "k"]), Value::ok());
}

#[test]
fn a_server_that_dies_in_the_middle_aborts_the_transaction_and_nothing_else() {
    // With one worker, whatever a new connection does comes after what happened to the old one.
    let mut shards = Shards::<1>::on_one_thread("");
    let mut client = shards.client();
    let label = shards.servers[0].address();
    for watching in [false, true] {
        if watching {
            assert_eq!(client.call(["WATCH", "k"]), Value::ok());
        } else {
            assert_eq!(client.call(["MULTI"]), Value::ok());
            assert_eq!(client.call(["SET", "k", "1"]), Value::simple("QUEUED"));
        }
        shards.servers[0].restart();
        wait_until("the server is back", PATIENCE, || {
            !matches!(shards.client().call(["GET", "k"]), Value::Error(_))
        });
        if watching {
            assert_eq!(client.call(["MULTI"]), Value::ok());
        }
        let queued = client.call(["SET", "k", "2"]);
        assert!(queued == Value::simple("QUEUED") || queued.is_error("ERR Connection reset"), "{queued:?}");
        let abort = format!("EXECABORT Transaction discarded because of: the connection to {label} was lost");
        assert_eq!(client.call(["EXEC"]), Value::Error(abort));
        assert_eq!(client.call(["GET", "k"]), Value::Nil);
        let replies = client.pipeline([&["MULTI"][..], &["SET", "k", "3"], &["EXEC"], &["DEL", "k"]]);
        assert_eq!(replies[2..], [Value::array([Value::ok()]), Value::Int(1)]);
    }
    shards.servers[0].kill();
    wait_until("the proxy has seen it", PATIENCE, || {
        shards.client().call(["GET", "k"]).is_error("ERR Connection refused")
    });
    assert_eq!(client.call(["MULTI"]), Value::ok());
    assert!(client.call(["SET", "k", "1"]).is_error("ERR Connection refused"));
    assert!(client.call(["EXEC"]).is_error("EXECABORT "));
}

/// Commands without a key that come first are held until a key says where they go.
#[test]
fn what_is_held_until_a_key_comes_is_bounded() {
    let shards = Shards::<2>::start("");
    let mut client = shards.client();
    let long = "x".repeat(10_000);
    assert_eq!(client.call(["MULTI"]), Value::ok());
    let replies: Vec<Value> = (0..8).map(|_| client.call(["ECHO", &long])).collect();
    assert_eq!(replies[5], Value::simple("QUEUED"));
    assert!(replies[6].is_error("ERR too many commands without a key"), "{replies:?}");
    assert!(client.call(["EXEC"]).is_error("EXECABORT "));
}

/// The requests of a conversation, `A` and `B` being these keys.
fn requests(conversation: &str, a: &str, b: &str) -> Vec<Vec<String>> {
    let key = |word| match word {
        "A" => a.to_owned(),
        "B" => b.to_owned(),
        word => str::to_owned(word),
    };
    conversation.split('|').map(|request| request.split(' ').map(key).collect()).collect()
}

fn leases<const N: usize>(shards: &Shards<N>) -> i64 {
    sum(shards, "leases")
}

/// The sum of one number over all servers of the pool.
fn sum<const N: usize>(shards: &Shards<N>, name: &str) -> i64 {
    let stats = shards.proxy.stats();
    let servers = stats["alpha"].as_object().expect("a pool").values();
    servers.filter_map(|server| server.get(name)?.as_i64()).sum()
}
