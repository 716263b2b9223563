//! SELECT: a client's database is the client's, whatever connections to servers are shared.

use crate::support::{PATIENCE, Redis, Shards, Value, wait_until};

#[test]
fn each_client_is_in_its_own_database() {
    let shards = Shards::<2>::start("");
    let mut clients: Vec<_> = (0..4).map(|_| shards.client()).collect();
    for (db, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.call(["SELECT", &db.to_string()]), Value::ok());
    }
    let keys: Vec<String> = (0..50).map(|i| format!("key:{i}")).collect();
    for (db, client) in clients.iter_mut().enumerate() {
        let replies =
            client.pipeline(keys.iter().map(|key| ["SET".to_owned(), key.clone(), format!("{key} in {db}")]));
        assert!(replies.iter().all(|reply| *reply == Value::ok()));
    }
    for (db, client) in clients.iter_mut().enumerate() {
        let values = client.call(["MGET".to_owned()].into_iter().chain(keys.iter().cloned()));
        let expected = keys.iter().map(|key| Value::bulk(format!("{key} in {db}")));
        assert_eq!(values, Value::array(expected), "database {db}");
    }
    assert_eq!(
        shards.client().call(["GET", "key:1"]),
        Value::bulk("key:1 in 0"),
        "a new client is in the pool's"
    );
    // By RESET a client returns to where it began.
    assert_eq!(clients[3].call(["RESET"]), Value::simple("RESET"));
    assert_eq!(clients[3].call(["GET", "key:1"]), Value::bulk("key:1 in 0"));
}

/// Before a client's requests take other connections, those sent before have ended: pipelined, the order is that of one Redis.
#[test]
fn pipelined_requests_around_select_keep_their_order() {
    let shards = Shards::<2>::start("ping: reply");
    let alone = Redis::start();
    let mut requests: Vec<Vec<String>> = Vec::new();
    for i in 0..40 {
        let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        requests.push(words(format!("SELECT {}", i % 3)));
        requests.push(words("INCR k".to_owned()));
        requests.push(words(format!("APPEND log {i},")));
        requests.push(words("MULTI".to_owned()));
        requests.push(words("INCRBY k 10".to_owned()));
        requests.push(words("EXEC".to_owned()));
        requests.push(words("GET k".to_owned()));
        requests.push(words("GET log".to_owned()));
    }
    let expected = alone.client().pipeline(&requests);
    assert_eq!(shards.client().pipeline(&requests), expected);
    wait_until("all transactions are over", PATIENCE, || {
        shards.proxy.stats()["alpha"].as_object().is_some_and(|pool| {
            pool.values().filter_map(|server| server.get("leases")?.as_i64()).sum::<i64>() == 0
        })
    });
}

#[test]
fn what_may_be_selected_is_bounded() {
    let shards = Shards::<1>::start("databases: 3\nredis_db: 7");
    let mut client = shards.client();
    assert_eq!(client.call(["SET", "k", "in 7"]), Value::ok());
    assert_eq!(client.call(["SELECT", "2"]), Value::ok());
    assert_eq!(client.call(["GET", "k"]), Value::Nil);
    for (wrong, error) in [
        ("3", "ERR DB index is out of range"),
        ("-1", "ERR DB index is out of range"),
        ("99999999999", "ERR DB index is out of range"),
        ("x", "ERR value is not an integer or out of range"),
    ] {
        assert_eq!(client.call(["SELECT", wrong]), Value::Error(error.into()));
    }
    assert_eq!(client.call(["GET", "k"]), Value::Nil, "it is still in database 2");
    assert_eq!(client.call(["SELECT", "7"]), Value::ok());
    assert_eq!(client.call(["GET", "k"]), Value::bulk("in 7"));
}

/// A database that the servers don't have is an error for those that select it, and no failure of the servers.
#[test]
fn a_database_that_a_server_lacks_fails_alone() {
    let server = Redis::with(&["--databases", "2"]);
    let shards = Shards::with_servers(
        [server],
        "auto_eject_hosts: true\nserver_failure_limit: 1",
        &["--threads", "1"],
    );
    let (mut one, mut other) = (shards.client(), shards.client());
    assert_eq!(one.call(["SELECT", "5"]), Value::ok());
    for _ in 0..5 {
        assert!(one.call(["SET", "k", "1"]).is_error("ERR Connection refused: "), "SELECT failed");
        assert!(one.call(["BLPOP", "k", "0"]).is_error("ERR Connection refused: "), "SELECT failed");
        assert_eq!(other.call(["SET", "k", "1"]), Value::ok());
    }
    assert_eq!(one.call(["SELECT", "1"]), Value::ok());
    assert_eq!(one.call(["SET", "k", "1"]), Value::ok());
}

/// Keys are watched in one database, and a transaction is executed in it.
#[test]
fn select_and_transactions_do_not_mix() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    assert_eq!(client.call(["WATCH", "k"]), Value::ok());
    assert!(client.call(["SELECT", "1"]).is_error("ERR Command not allowed while keys are watched"));
    assert_eq!(client.call(["SELECT", "0"]), Value::ok(), "nothing changes");
    assert_eq!(client.call(["MULTI"]), Value::ok());
    assert!(client.call(["SELECT", "1"]).is_error("ERR Command not allowed inside a transaction"));
    assert!(client.call(["EXEC"]).is_error("EXECABORT "));
    assert_eq!(client.call(["SELECT", "1"]), Value::ok());
    client.pipeline([&["MULTI"][..], &["SET", "k", "in 1"], &["EXEC"]]);
    let mut direct = shards.servers[0].client();
    assert_eq!(direct.call(["GET", "k"]), Value::Nil);
    direct.call(["SELECT", "1"]);
    assert_eq!(direct.call(["GET", "k"]), Value::bulk("in 1"));
    client.send(["BLPOP", "list", "0"]);
    direct.call(["RPUSH", "list", "x"]);
    assert_eq!(client.read().items()[1], Value::bulk("x"));
}
