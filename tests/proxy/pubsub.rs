//! Publish/subscribe: one subscription at the server for all clients of a worker, and each client told once.

use std::time::Duration;

use crate::support::{PATIENCE, Redis, Resp, Shards, Value, wait_until};

fn told(word: &str, name: &str, count: i64) -> Value {
    Value::array([Value::bulk(word), Value::bulk(name), Value::Int(count)])
}

fn message(channel: &str, text: &str) -> Value {
    Value::array(["message", channel, text].map(Value::bulk))
}

/// Subscribers that a server knows for a channel.
fn numsub(server: &Redis, channel: &str) -> i64 {
    server.client().call(["PUBSUB", "NUMSUB", channel]).items()[1].int()
}

fn gauge<const N: usize>(shards: &Shards<N>, name: &str) -> i64 {
    let stats = shards.proxy.stats();
    let pool = stats["alpha"].as_object().unwrap().clone();
    let servers: i64 = pool.values().filter_map(|server| server.get(name)?.as_i64()).sum();
    servers + pool.get(name).and_then(|value| value.as_i64()).unwrap_or(0)
}

#[test]
fn a_message_reaches_every_subscriber_once_over_one_subscription_per_worker() {
    for threads in ["1", "2"] {
        let shards = Shards::<3>::with_servers(Redis::start_many(), "", &["--threads", threads]);
        let channels = shards.keys::<2>();
        let mut clients: Vec<Resp> = (0..20).map(|_| shards.client()).collect();
        for client in &mut clients {
            for (i, channel) in channels.iter().flatten().enumerate() {
                assert_eq!(client.call(["SUBSCRIBE", channel]), told("subscribe", channel, i as i64 + 1));
            }
        }
        let workers: i64 = threads.parse().unwrap();
        let mut publisher = shards.client();
        for (server, own) in shards.servers.iter().zip(&channels) {
            for channel in own {
                assert_eq!(numsub(server, channel), workers, "upstream");
                assert_eq!(publisher.call(["PUBLISH", channel, "hi"]), Value::Int(workers));
                for client in &mut clients {
                    assert_eq!(client.read(), message(channel, "hi"));
                }
            }
        }
        assert!(clients.iter_mut().all(|client| client.silent_for(Duration::from_millis(5))), "once");
        assert_eq!(gauge(&shards, "messages"), 120);
        drop(clients);
        wait_until("nothing is left", PATIENCE, || {
            gauge(&shards, "subscriptions") == 0
                && shards.servers.iter().zip(&channels).all(|(server, own)| numsub(server, &own[0]) == 0)
        });
    }
}

/// What the client of one Redis is told, in both protocols.
#[test]
fn answers_are_those_of_one_redis() {
    let shards = Shards::<1>::start("ping: reply");
    let alone = Redis::start();
    let conversation: &[&[&str]] = &[
        &["UNSUBSCRIBE"],
        &["PUNSUBSCRIBE", "x"],
        &["SUBSCRIBE", "a", "b", "a"],
        &["PSUBSCRIBE", "a*"],
        &["SSUBSCRIBE", "s"],
        &["GET", "k"],
        &["HELLO"],
        &["PING"],
        &["PING", "x"],
        &["PING", "x", "y"],
        &["UNSUBSCRIBE", "b", "c"],
        &["UNSUBSCRIBE"],
        &["SUNSUBSCRIBE"],
        &["SUBSCRIBE"],
        &["MULTI"],
        &["PUNSUBSCRIBE"],
        &["PUNSUBSCRIBE"],
        &["GET", "k"],
        &["SUBSCRIBE", "z"],
        &["RESET"],
        &["GET", "k"],
        &["SUBSCRIBE", "z"],
        &["QUIT"],
    ];
    for hello in [None, Some(["HELLO", "3"])] {
        let talk = |mut client: Resp| {
            if let Some(hello) = hello {
                client.call(hello);
            }
            let mut requests: Vec<&[&str]> = conversation.to_vec();
            // HELLO tells facts of its own; in MULTI nothing can be subscribed to here.
            requests.retain(|request| hello.is_none() || !matches!(request[0], "HELLO" | "MULTI"));
            for request in requests {
                client.send(request);
            }
            client.read_bytes()
        };
        let (ours, theirs) = (talk(shards.client()), talk(alone.client()));
        assert_eq!(String::from_utf8_lossy(&ours), String::from_utf8_lossy(&theirs), "{hello:?}");
    }
}

/// What stands behind SUBSCRIBE in the same packet is heard by the subscriber itself.
#[test]
fn a_pipeline_keeps_its_order() {
    let shards = Shards::<3>::start("");
    for round in 0..20 {
        let mut client = shards.client();
        client.call(["HELLO", "3"]);
        client.send_raw(format!(
            "SET k {round}\r\nSUBSCRIBE a{round} b{round}\r\nPUBLISH b{round} x\r\nGET k\r\nUNSUBSCRIBE a{round}\r\n"
        ));
        let bytes: Vec<u8> = (0..7).flat_map(|_| format!("{:?}\n", client.read()).into_bytes()).collect();
        let text = String::from_utf8(bytes).unwrap();
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("{word} in {text}"));
        assert!(at("OK") < at("subscribe"), "{text}");
        assert!(at("subscribe") < at("message") && at("subscribe") < at("unsubscribe"), "{text}");
    }
}

#[test]
fn patterns_and_keyspace_channels_are_heard_from_every_server() {
    let servers = [(); 3].map(|()| Redis::with(&["--notify-keyspace-events", "KEA"]));
    let shards = Shards::<3>::with_servers(servers, "", &["--threads", "2"]);
    let keys = shards.keys::<1>();
    let mut client = shards.client();
    assert_eq!(client.call(["PSUBSCRIBE", "key:*"]), told("psubscribe", "key:*", 1));
    let event = "__keyevent@0__:set";
    assert_eq!(client.call(["SUBSCRIBE", event]), told("subscribe", event, 2));
    let mut other = shards.client();
    for [key] in &keys {
        assert_eq!(other.call(["PUBLISH", key, "hi"]), Value::Int(1));
        assert_eq!(client.read(), Value::array(["pmessage", "key:*", key, "hi"].map(Value::bulk)));
        other.call(["SET", key, "x"]);
        assert_eq!(client.read(), message(event, key));
    }
    assert_eq!(other.call(["PUBSUB", "NUMPAT"]), Value::Int(1));
    assert!(client.silent_for(Duration::from_millis(20)));
}

#[test]
fn the_servers_are_asked_for_channels_and_their_subscribers() {
    let shards = Shards::<3>::start("");
    let [[a], [b], _] = shards.keys();
    let mut client = shards.client();
    client.call(["SUBSCRIBE", &a]);
    client.call(["SUBSCRIBE", &b]);
    client.call(["SSUBSCRIBE", &a]);
    let mut other = shards.client();
    let counts = other.call(["PUBSUB", "NUMSUB", &a, &b, "none"]);
    let expected =
        [Value::bulk(&a), Value::Int(1), Value::bulk(&b), Value::Int(1), Value::bulk("none"), Value::Int(0)];
    assert_eq!(counts, Value::array(expected));
    assert_eq!(other.call(["PUBSUB", "CHANNELS"]).items().len(), 2);
    assert_eq!(other.call(["PUBSUB", "SHARDCHANNELS"]), Value::array([Value::bulk(&a)]));
    assert_eq!(other.call(["PUBSUB", "SHARDNUMSUB", &a]), Value::array([Value::bulk(&a), Value::Int(1)]));
    assert_eq!(other.call(["SPUBLISH", &a, "hi"]), Value::Int(1));
    assert_eq!(client.read(), Value::array(["smessage", &a, "hi"].map(Value::bulk)));
    other.pipeline([["MULTI", "", ""]].map(|_| ["MULTI"]));
    assert_eq!(other.call(["PUBLISH", &a, "in multi"]), Value::simple("QUEUED"));
    assert!(other.call(["SUBSCRIBE", "x"]).is_error("ERR Command not allowed inside a transaction"));
    assert!(other.call(["EXEC"]).is_error("EXECABORT"));
    other.call(["MULTI"]);
    other.call(["PUBLISH", &a, "in multi"]);
    assert_eq!(other.call(["EXEC"]), Value::array([Value::Int(1)]));
    assert_eq!(client.read(), message(&a, "in multi"));
}

/// The clients stay; what is published after the restart is heard again; the gap is logged and counted.
#[test]
fn a_restarted_server_is_subscribed_to_anew() {
    let mut shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    client.call(["SUBSCRIBE", &a]);
    client.call(["SUBSCRIBE", &b]);
    shards.servers[0].kill();
    wait_until("the gap is counted", PATIENCE, || gauge(&shards, "subscription_gaps") == 1);
    let mut other = shards.client();
    let refused = other.call(["SUBSCRIBE", &a]);
    assert!(refused.is_error("ERR Connection re"), "{refused:?}");
    assert!(shards.proxy.log().contains("subscriptions are interrupted"));
    assert_eq!(other.call(["PUBLISH", &b, "other"]), Value::Int(1));
    assert_eq!(client.read(), message(&b, "other"));
    shards.servers[0].restart();
    wait_until("it stands again", PATIENCE, || numsub(&shards.servers[0], &a) == 1);
    wait_until("it can be published", PATIENCE, || other.call(["PUBLISH", &a, "back"]) == Value::Int(1));
    assert_eq!(client.read(), message(&a, "back"));
}

#[test]
fn a_server_that_is_down_is_named() {
    let mut shards = Shards::<1>::start("");
    shards.servers[0].kill();
    let mut client = shards.client();
    let refused = client.call(["SUBSCRIBE", "a"]);
    assert!(refused.is_error("ERR Connection re"), "{refused:?}");
    assert!(format!("{refused:?}").contains(&shards.servers[0].address()), "{refused:?}");
    assert!(client.call(["GET", "k"]).is_error("ERR Connection re"), "it is in no other mode");
}

/// 1,000 subscribers, some of which don't read: those are closed at out_hard, the others miss nothing.
#[test]
fn subscribers_that_stall_hold_up_nobody() {
    let shards = Shards::<1>::start("out_hard: 1mb");
    let mut clients: Vec<Resp> = (0..1_000).map(|_| shards.client()).collect();
    for client in &mut clients {
        client.send(["SUBSCRIBE", "news"]);
    }
    for client in &mut clients {
        assert_eq!(client.read(), told("subscribe", "news", 1));
    }
    assert_eq!(numsub(&shards.servers[0], "news"), 2);
    let (stalled, reading) = clients.split_at_mut(10);
    let mut publisher = shards.client();
    let text = "x".repeat(64 << 10);
    // What the kernel holds for a client that doesn't read is some megabytes.
    for _ in 0..200 {
        assert_eq!(publisher.call(["PUBLISH", "news", &text]), Value::Int(2));
        for client in &mut reading[..20] {
            assert_eq!(client.read(), message("news", &text));
        }
    }
    wait_until("those that stall are closed", PATIENCE, || {
        gauge(&shards, "over_out_hard") >= stalled.len() as i64
    });
    assert!(publisher.call(["PING"]).is_error("ERR"), "ping: reject");
    assert!(reading[..20].iter_mut().all(|client| client.silent_for(Duration::from_millis(1))));
}

#[test]
fn a_channel_that_moves_is_heard_from_its_new_owner() {
    let mut shards =
        Shards::<2>::start("auto_eject_hosts: true\nserver_failure_limit: 2\nserver_retry_timeout: 60000");
    let [[a], _] = shards.keys();
    let mut client = shards.client();
    client.call(["SUBSCRIBE", &a]);
    shards.servers[0].kill();
    let mut other = shards.client();
    wait_until("it is published elsewhere", PATIENCE, || {
        other.call(["GET", &a]);
        numsub(&shards.servers[1], &a) == 1
    });
    assert_eq!(other.call(["PUBLISH", &a, "moved"]), Value::Int(1));
    assert_eq!(client.read(), message(&a, "moved"));
}

#[test]
fn subscribers_may_be_silent_and_are_closed_when_the_proxy_goes_down() {
    let mut shards = Shards::<1>::start("idle_timeout: 1s");
    let (mut client, mut idle) = (shards.client(), shards.client());
    client.call(["SUBSCRIBE", "a"]);
    idle.call(["GET", "k"]);
    assert!(idle.closed());
    assert_eq!(client.call(["PING"]), Value::array([Value::bulk("pong"), Value::bulk("")]), "ping: reject");
    assert_eq!(shards.proxy.terminate(PATIENCE), Some(0));
    assert!(client.closed());
}

#[test]
fn what_is_denied_or_before_the_password_stays_so() {
    let shards = Shards::<1>::start("commands: {deny: [subscribe]}");
    let mut client = shards.client();
    assert!(client.call(["SUBSCRIBE", "a"]).is_error("NOPERM"));
    assert_eq!(client.call(["PSUBSCRIBE", "a"]), told("psubscribe", "a", 1));
}
