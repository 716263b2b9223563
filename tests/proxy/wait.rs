//! WAIT: how many replicas have what this client wrote, wherever it wrote.

use crate::support::{PATIENCE, Redis, Shards, Value, wait_until};

/// A replica of `master` that is in step with it.
fn replica(master: &Redis) -> Redis {
    let replica = Redis::with(&["--repl-diskless-sync-delay", "0"]);
    let port = master.port().to_string();
    assert_eq!(replica.client().call(["REPLICAOF", "127.0.0.1", &port]), Value::ok());
    wait_until("the replica is in step", PATIENCE, || {
        let info = replica.client().call(["INFO", "replication"]);
        String::from_utf8_lossy(info.bytes()).contains("master_link_status:up")
    });
    replica
}

/// Two masters with a replica each, one of which stops: only who wrote to its master is told so.
#[test]
fn the_least_of_the_servers_that_a_client_wrote_to_is_the_answer() {
    let masters = Redis::start_many::<3>();
    let mut replicas = [replica(&masters[0]), replica(&masters[1])];
    let shards = Shards::with_servers(masters, "timeout: 300", &["--threads", "1"]);
    let [[a], [b], [c]] = shards.keys();
    let mut client = shards.client();
    assert_eq!(
        client.call(["WAIT", "1", "5000"]),
        Value::Int(1),
        "nothing written: the replicas of the first"
    );
    let replies = client.pipeline([
        &["SET", &a, "1"][..],
        &["WAIT", "1", "5000"],
        &["SET", &b, "1"],
        &["WAIT", "1", "5000"],
    ]);
    assert_eq!([&replies[1], &replies[3]], [&Value::Int(1), &Value::Int(1)]);
    replicas[1].pause();
    let mut other = shards.client();
    other.call(["SET", &a, "2"]);
    assert_eq!(other.call(["WAIT", "1", "5000"]), Value::Int(1), "it wrote to the other one only");
    other.call(["GET", &c]);
    assert_eq!(other.call(["WAIT", "1", "5000"]), Value::Int(1), "reading is not writing");
    client.call(["SET", &b, "2"]);
    assert_eq!(client.call(["WAIT", "1", "500"]), Value::Int(0), "longer than the pool's timeout, too");
    // What the stopped replica has not taken, it takes when it goes on.
    client.send(["WAIT", "1", "0"]);
    assert!(client.silent_for(std::time::Duration::from_millis(500)));
    replicas[1].resume();
    assert_eq!(client.read(), Value::Int(1));
    // A write in a transaction, or of a split command, is one.
    let mut third = shards.client();
    third.pipeline([&["MULTI"][..], &["SET", &c, "3"], &["EXEC"]]);
    assert_eq!(third.call(["WAIT", "1", "50"]), Value::Int(0), "the third one has no replica");
    let mut fourth = shards.client();
    fourth.call(["DEL", &a, &c]);
    assert_eq!(fourth.call(["WAIT", "1", "50"]), Value::Int(0));
    assert!(fourth.call(["WAIT", "x", "50"]).is_error("ERR value is not an integer"));
    assert!(fourth.call(["WAIT", "1", "-1"]).is_error("ERR timeout is negative"));
    // In a transaction it answers at once what it knows, as in Redis: a replica says once a second how far it is.
    let told = fourth.pipeline([&["MULTI"][..], &["WAIT", "1", "0"], &["EXEC"]]);
    assert!(matches!(told[2].items(), [Value::Int(0 | 1)]), "{told:?}");
}
