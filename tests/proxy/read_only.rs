//! Pools with `read_only: true`.

use shardwise::command::{CommandTable, Flags, Handling, Origin, Pin};

use crate::support::{Shards, Value};

const REFUSED: &str = "READONLY You can't write against a read only pool: alpha";

#[test]
fn writes_are_refused_and_reads_are_not() {
    let shards = Shards::<2>::start("read_only: true");
    // Past the proxy, which wouldn't have it.
    for server in &shards.servers {
        server.client().call(["MSET", "a", "1", "b", "2"]);
        server.client().call(["RPUSH", "l", "2", "1"]);
    }
    let mut client = shards.client();
    let refused = Value::Error(REFUSED.into());
    for request in [
        &["SET", "a", "x"][..],
        &["DEL", "a", "b"],
        &["mset", "a", "x", "b", "x"],
        &["GETDEL", "a"],
        &["EXPIRE", "a", "1"],
        &["SORT", "l", "STORE", "m"],
        &["XREADGROUP", "GROUP", "g", "c", "STREAMS", "s", ">"],
        &["EVAL", "return redis.call('SET', KEYS[1], 'x')", "1", "a"],
        &["EVAL", "return redis.call('SET', 'a', 'x')", "0"],
        &["EVALSHA", "ffffffffffffffffffffffffffffffffffffffff", "0"],
        &["FCALL", "f", "0"],
    ] {
        assert_eq!(client.call(request), refused, "{request:?}");
    }
    for (request, reply) in [
        (&["GET", "a"][..], Value::bulk("1")),
        (&["MGET", "a", "b", "none"], Value::array([Value::bulk("1"), Value::bulk("2"), Value::Nil])),
        (&["EXISTS", "a", "b", "none"], Value::Int(2)),
        (&["TOUCH", "a"], Value::Int(1)),
        (&["SORT_RO", "l"], Value::array([Value::bulk("1"), Value::bulk("2")])),
        (&["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", "a"], Value::bulk("1")),
        (&["ECHO", "x"], Value::bulk("x")),
        (&["SELECT", "0"], Value::ok()),
    ] {
        assert_eq!(client.call(request), reply, "{request:?}");
    }
    assert!(client.call(["MONITOR"]).is_error("ERR unknown command"));
    // The keys of a transaction are no exception.
    let replies = client.pipeline([&["MULTI"][..], &["GET", "a"], &["EXEC"]]);
    assert_eq!(replies[2], Value::array([Value::bulk("1")]));
    let replies = client.pipeline([&["MULTI"][..], &["GET", "a"], &["SET", "a", "2"], &["EXEC"]]);
    assert_eq!(replies[2], refused);
    assert!(replies[3].is_error("EXECABORT "), "{replies:?}");
    assert!(client.call(["SET", "a"]).is_error("ERR wrong number of arguments"));
    assert_eq!(client.call(["MGET", "a", "b"]), Value::array([Value::bulk("1"), Value::bulk("2")]));
}

/// Every command of the table, with as few arguments as it takes.
#[test]
fn what_may_write_is_refused_by_the_table() {
    let shards = Shards::<1>::start("read_only: true");
    let mut client = shards.client();
    let refused = Value::Error(REFUSED.into());
    for (_, row) in CommandTable::builtin().rows().filter(|(_, row)| row.origin == Origin::Redis70) {
        if !matches!(
            row.usual_handling(),
            Handling::Keyed | Handling::Split(_) | Handling::Pinned(Pin::Block(_))
        ) {
            continue;
        }
        let mut words: Vec<String> = row.name.split('|').map(str::to_owned).collect();
        while words.len() < usize::from(row.arity.unsigned_abs()) {
            words.push("1".to_owned());
        }
        let reply = client.call(&words);
        assert_eq!(reply == refused, !row.flags.contains(Flags::READONLY), "{words:?}: {reply:?}");
    }
    assert_eq!(shards.servers[0].client().call(["DBSIZE"]), Value::Int(0));
}
