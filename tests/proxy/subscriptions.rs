//! Subscriptions where something changes under them: the owner of a channel, the password, the server's life.

use std::time::Duration;

use crate::support::{PATIENCE, Port, Redis, Resp, Shards, Shardwise, Value, pool_of, wait_until};

fn told(word: &str, name: &str, count: i64) -> [Value; 3] {
    [Value::bulk(word), Value::bulk(name), Value::Int(count)]
}

fn message(channel: &str, text: &str) -> [Value; 3] {
    ["message", channel, text].map(Value::bulk)
}

/// Subscribers that a server knows for a channel.
fn numsub(client: &mut Resp, channel: &str) -> i64 {
    client.call(["PUBSUB", "NUMSUB", channel]).items()[1].int()
}

/// After a reload the channel is another server's: it is heard from there, once, and no more from the old one.
#[test]
fn a_reload_moves_subscriptions_to_the_new_owner() {
    let servers = Redis::start_many::<2>();
    let port = Port::claim();
    let yaml = |server: usize| {
        pool_of("alpha", &port.address(), &[format!("{} s{server}", servers[server].entry(1))], "")
    };
    let mut proxy = Shardwise::start(&yaml(0));
    let (mut two, mut three) = (Resp::port(port.number()), Resp::port(port.number()));
    three.call(["HELLO", "3"]);
    assert_eq!(two.call(["SUBSCRIBE", "news"]), Value::array(told("subscribe", "news", 1)));
    assert_eq!(three.call(["SUBSCRIBE", "news"]), Value::Push(told("subscribe", "news", 1).into()));
    assert!(numsub(&mut servers[0].client(), "news") >= 1);
    for to in [1, 0] {
        let (mut from, mut there) = (servers[1 - to].client(), servers[to].client());
        proxy.reload(&yaml(to));
        wait_until("it is heard at the new owner", PATIENCE, || numsub(&mut there, "news") >= 1);
        wait_until("and no more at the old one", PATIENCE, || numsub(&mut from, "news") == 0);
        from.call(["PUBLISH", "news", "from the old one"]);
        let text = format!("from {to}");
        assert!(there.call(["PUBLISH", "news", &text]).int() >= 1);
        assert_eq!(two.read(), Value::array(message("news", &text)));
        assert_eq!(three.read(), Value::Push(message("news", &text).into()));
        assert!(two.silent_for(Duration::from_millis(20)), "once");
    }
    drop(proxy);
}

#[test]
fn servers_with_a_password_are_subscribed_to_and_again_after_a_restart() {
    let server = Redis::with(&["--requirepass", "secret"]);
    let mut shards = Shards::<1>::with_servers([server], "redis_auth: secret", &["--threads", "1"]);
    let mut client = shards.client();
    assert!(client.call(["SUBSCRIBE", "a"]).is_error("NOAUTH"));
    assert_eq!(client.call(["AUTH", "secret"]), Value::ok());
    assert_eq!(client.call(["SUBSCRIBE", "a"]), Value::array(told("subscribe", "a", 1)));
    let mut other = shards.client();
    other.call(["AUTH", "secret"]);
    assert_eq!(other.call(["PUBLISH", "a", "one"]), Value::Int(1));
    assert_eq!(client.read(), Value::array(message("a", "one")));
    shards.servers[0].restart();
    wait_until("it stands again", PATIENCE, || other.call(["PUBLISH", "a", "two"]) == Value::Int(1));
    assert_eq!(client.read(), Value::array(message("a", "two")));
}

/// Redis queues it for a client of RESP3; the servers' subscriptions are shared here, so it is refused, and nothing is subscribed.
#[test]
fn subscribing_inside_multi_is_refused_in_resp3_too() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    client.call(["HELLO", "3"]);
    assert_eq!(client.call(["SUBSCRIBE", "before"]), Value::Push(told("subscribe", "before", 1).into()));
    assert_eq!(client.call(["MULTI"]), Value::ok());
    assert_eq!(client.call(["SET", "k", "v"]), Value::simple("QUEUED"));
    for word in ["SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "UNSUBSCRIBE"] {
        let reply = client.call([word, "a"]);
        assert!(reply.is_error("ERR Command not allowed inside a transaction"), "{reply:?}");
    }
    assert!(client.call(["EXEC"]).is_error("EXECABORT"));
    let mut server = shards.servers[0].client();
    assert_eq!((numsub(&mut server, "a"), numsub(&mut server, "before")), (0, 1));
    assert_eq!(client.call(["GET", "k"]), Value::Null);
    server.call(["PUBLISH", "before", "x"]);
    assert_eq!(client.read(), Value::Push(message("before", "x").into()));
}

/// The second `a` was confirmed, behind the error for the first, of a subscription that there never was.
#[test]
fn a_channel_named_twice_fails_twice_when_its_server_is_down() {
    let mut shards = Shards::<1>::start("");
    shards.servers[0].kill();
    let mut client = shards.client();
    client.send(["SUBSCRIBE", "a", "a"]);
    for _ in 0..2 {
        let reply = client.read();
        assert!(reply.is_error("ERR Connection re"), "{reply:?}");
    }
    assert!(client.silent_for(Duration::from_millis(20)));
    shards.servers[0].restart();
    wait_until("the server is back", PATIENCE, || client.call(["GET", "k"]) == Value::Nil);
    client.send(["SUBSCRIBE", "a", "a"]);
    for _ in 0..2 {
        assert_eq!(client.read(), Value::array(told("subscribe", "a", 1)));
    }
    assert_eq!(client.call(["UNSUBSCRIBE", "a"]), Value::array(told("unsubscribe", "a", 0)));
    assert_eq!(shards.proxy.stats()["alpha"]["subscriptions"], 0);
}

#[test]
fn client_list_tells_subscribers_from_others() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    client.call(["HELLO", "3"]);
    let listed = |client: &mut Resp| {
        ["normal", "pubsub"]
            .map(|kind| format!("{:?}", client.call(["CLIENT", "LIST", "TYPE", kind])).contains("id="))
    };
    assert_eq!(listed(&mut client), [true, false]);
    client.call(["SUBSCRIBE", "a"]);
    assert_eq!(listed(&mut client), [false, true]);
    client.call(["UNSUBSCRIBE"]);
    assert_eq!(listed(&mut client), [true, false]);
}
