//! CLIENT, for the client's own connection.

use crate::support::{Redis, Resp, Shards, Value, encode};

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.bytes()).into_owned()
}

fn field(line: &str, name: &str) -> Option<String> {
    let fields = line.trim_end().split(' ').filter_map(|field| field.split_once('='));
    fields.into_iter().find_map(|(key, value)| (key == name).then(|| value.to_owned()))
}

/// What is left of the answers is left in the same places, whoever gives them: the servers, all of them, or the proxy.
#[test]
fn replies_that_a_client_does_not_want_are_left_out_as_by_redis() {
    let redis = Redis::start();
    let shards = Shards::<3>::start("hash: murmur");
    let large = "x".repeat(200_000);
    let set = ["SET", "large", &large];
    let requests: Vec<&[&str]> = vec![
        &set,
        &["CLIENT", "REPLY", "SKIP"],
        &["GET", "large"],
        &["SET", "a", "1"],
        &["CLIENT", "REPLY", "SKIP"],
        &["MSET", "b", "1", "c", "2", "d", "3"],
        &["MGET", "a", "b", "c", "d"],
        &["CLIENT", "REPLY", "OFF"],
        &["GET", "large"],
        &["INCR", "n"],
        &["ECHO", "x"],
        &["NOSUCH"],
        &["DBSIZE"],
        &["CLIENT", "REPLY", "SKIP"],
        &["CLIENT", "REPLY", "maybe"],
        &["INCR", "n"],
        &["CLIENT", "REPLY", "ON"],
        &["GET", "n"],
        &["CLIENT", "REPLY", "OFF"],
        &["RESET"],
        &["GET", "n"],
    ];
    let bytes: Vec<u8> = requests.iter().flat_map(|request| encode(*request)).collect();
    // RESET is answered: it takes the other mode away before.
    let expected = [
        Value::ok(),
        Value::ok(),
        Value::array(["1", "1", "2", "3"].map(Value::bulk)),
        Value::ok(),
        Value::bulk("2"),
        Value::simple("RESET"),
        Value::bulk("2"),
    ];
    for mut client in [redis.client(), shards.client()] {
        client.send_raw(&bytes);
        let found: Vec<Value> = expected.iter().map(|_| client.read()).collect();
        assert_eq!(found, expected);
        assert_eq!(client.call(["ECHO", "last"]), Value::bulk("last"));
    }
}

#[test]
fn a_client_is_told_of_itself() {
    let shards = Shards::<1>::start("");
    let (mut client, mut other) = (shards.client(), shards.client());
    other.call(["CLIENT", "SETNAME", "other"]);
    client.call(["CLIENT", "SETNAME", "me"]);
    client.call(["CLIENT", "SETINFO", "LIB-NAME", "mylib"]);
    client.call(["CLIENT", "SETINFO", "lib-ver", "1.2"]);
    let id = client.call(["CLIENT", "ID"]).int().to_string();
    let info = text(&client.call(["CLIENT", "INFO"]));
    for (name, value) in [
        ("id", &*id),
        ("name", "me"),
        ("db", "0"),
        ("cmd", "client|info"),
        ("resp", "2"),
        ("lib-name", "mylib"),
        ("lib-ver", "1.2"),
    ] {
        assert_eq!(field(&info, name).as_deref(), Some(value), "{name} in {info}");
    }
    assert!(field(&info, "addr").is_some_and(|address| address.starts_with("127.0.0.1:")), "{info}");
    assert_eq!(field(&info, "laddr"), Some(format!("127.0.0.1:{}", shards.port())));
    let list = text(&client.call(["CLIENT", "LIST"]));
    assert_eq!(list.lines().count(), 1, "of itself alone: {list}");
    assert_eq!(field(&list, "id"), Some(id.clone()));
    let listed = |client: &mut Resp, options: &[&str]| {
        text(&client.call([&["CLIENT", "LIST"], options].concat())).lines().count()
    };
    assert_eq!(listed(&mut client, &["ID", "7777", &id]), 1);
    assert_eq!(listed(&mut client, &["TYPE", "normal"]), 1);
    assert_eq!(listed(&mut client, &["TYPE", "pubsub"]), 0);
}

#[test]
fn what_would_concern_others_or_the_servers_is_refused_clearly() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    let caching = client.call(["CLIENT", "TRACKING", "ON"]);
    assert!(
        caching.is_error(
            "ERR unknown command 'CLIENT TRACKING', shardwise does not support client-side caching"
        ),
        "{caching:?}"
    );
    for request in
        [&["CLIENT", "KILL", "ID", "1"][..], &["CLIENT", "UNBLOCK", "1"], &["CLIENT", "PAUSE", "1"]]
    {
        assert!(client.call(request).is_error("ERR unknown command 'CLIENT "), "{request:?}");
    }
    for request in
        [&["READONLY"][..], &["READWRITE"], &["CLIENT", "NO-TOUCH", "ON"], &["CLIENT", "NO-EVICT", "ON"]]
    {
        assert_eq!(client.call(request), Value::ok(), "{request:?}");
    }
    assert!(client.call(["CLIENT", "NO-TOUCH", "maybe"]).is_error("ERR syntax error"));
}
