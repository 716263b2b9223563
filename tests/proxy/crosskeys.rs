//! Commands with several keys that cannot be split: they work when all keys live on one server, and are refused with
//! CROSSSLOT before anything is done when they don't.

use std::collections::BTreeSet;

use shardwise::command::{BeginSearch, CommandTable, FindKeys, Handling, Origin};

use crate::support::{Redis, Resp, Shards, Value};

/// One call for each way to name two keys. `$type` is a key of the first server that holds a value of that type; `%type`
/// is another key of that type, on the first server or on the second.
const CALLS: &[&str] = &[
    "COPY $string %none",
    "COPY %string $none REPLACE",
    "RENAME $string %none",
    "RENAME %string $string",
    "RENAMENX $string %none",
    "SORT $list STORE %none",
    "SORT %list LIMIT 0 1 DESC store $none",
    "SORT $list BY nosort GET # STORE $none STORE %none",
    "MSETNX $none 1 %none 2",
    "LCS $string %string",
    "BITOP AND $none $string %string",
    "BITOP NOT %none $string",
    "PFCOUNT $hyperloglog %hyperloglog",
    "PFMERGE $hyperloglog %hyperloglog",
    "PFMERGE %none $hyperloglog",
    "RPOPLPUSH $list %list",
    "LMOVE $list %none LEFT RIGHT",
    "LMPOP 2 $none %list LEFT",
    "SMOVE $set %set 1",
    "SUNION $set %set",
    "SINTER $set %set",
    "SDIFF $set %set",
    "SUNIONSTORE $none $set %set",
    "SUNIONSTORE %none $set",
    "SINTERSTORE $none $set %set",
    "SDIFFSTORE $none $set %set",
    "SINTERCARD 2 $set %set",
    "ZUNION 2 $zset %zset WITHSCORES",
    "ZINTER 2 $zset %zset",
    "ZDIFF 2 $zset %zset",
    "ZINTERCARD 2 $zset %zset",
    "ZUNIONSTORE $none 2 $zset %zset WEIGHTS 1 2",
    "ZUNIONSTORE %none 1 $zset",
    "ZINTERSTORE $none 2 $zset %zset",
    "ZDIFFSTORE $none 2 $zset %zset",
    "ZRANGESTORE %none $zset 0 -1",
    "ZMPOP 2 $none %zset MIN",
    "GEORADIUS $geo 15 37 200 km STORE %none",
    "GEORADIUS $geo 15 37 200 km COUNT 1 STOREDIST %none",
    "GEORADIUSBYMEMBER $geo Palermo 200 km STORE %none",
    "GEORADIUSBYMEMBER $geo Palermo 200 km STOREDIST %none",
    "GEOSEARCHSTORE %none $geo FROMLONLAT 15 37 BYRADIUS 200 km",
    "XREAD STREAMS $stream %stream 0 0",
    "XREAD COUNT 1 STREAMS $stream $none %stream 0 0 0",
    "XREADGROUP GROUP g c STREAMS $stream %stream > >",
    "EVAL return(#KEYS) 2 $string %string",
    "EVAL_RO return(#KEYS) 2 $string %string",
    "EVALSHA 7cfec76a455ca959404ecddeea974929dc72f3fe 2 $string %string",
    "EVALSHA_RO 7cfec76a455ca959404ecddeea974929dc72f3fe 2 $string %string",
    "FCALL count 2 $string %string",
    "FCALL_RO count 2 $string %string",
];

const LIBRARY: &str = "#!lua name=lib\n\
    redis.register_function{function_name='count', flags={'no-writes'}, callback=function(keys) return #keys end}";

/// Values to work with; the type `none` stands for keys that don't exist.
const TYPES: [&str; 8] = ["string", "list", "set", "zset", "geo", "hyperloglog", "stream", "none"];

/// For each type, in the order of [`TYPES`]: two keys of the first server, and one of the second.
struct Named {
    here: Vec<String>,
    near: Vec<String>,
    far: Vec<String>,
}

impl Named {
    fn all(&self) -> impl Iterator<Item = (&str, &String)> {
        [&self.here, &self.near, &self.far].into_iter().flat_map(|keys| TYPES.into_iter().zip(keys))
    }

    /// The words of a call; `second` are the keys for `%`.
    fn words<'a>(&'a self, call: &'a str, second: &'a [String]) -> Vec<&'a str> {
        let of = |keys: &'a [String], name| {
            keys[TYPES.iter().position(|of_type| *of_type == name).expect("a type")].as_str()
        };
        call.split(' ')
            .map(|word| match word.split_at(1) {
                ("$", name) => of(&self.here, name),
                ("%", name) => of(second, name),
                _ => word,
            })
            .collect()
    }
}

#[test]
fn keys_of_two_servers_are_refused_and_of_one_server_they_work() {
    let redis = Redis::start();
    let shards = Shards::<2>::start("");
    for server in shards.servers.iter().chain([&redis]) {
        assert_eq!(server.client().call(["FUNCTION", "LOAD", LIBRARY]), Value::bulk("lib"));
    }
    let [here, far] = shards.keys::<16>().map(Vec::from);
    let named = Named { near: here[8..].to_vec(), here: here[..8].to_vec(), far: far[..8].to_vec() };
    let (mut theirs, mut ours) = (redis.client(), shards.client());
    let mut direct = shards.servers.each_ref().map(Redis::client);
    let refused =
        b"-CROSSSLOT Keys in request don't hash to the same slot: they live on different servers\r\n";
    for call in CALLS {
        for client in [&mut theirs].into_iter().chain(&mut direct) {
            assert_eq!(client.call(["FLUSHALL"]), Value::ok());
        }
        fill(&mut theirs, &named);
        fill(&mut ours, &named);

        let before = direct.each_mut().map(|server| contents(server, &named));
        ours.send(named.words(call, &named.far));
        let reply = ours.read_bytes();
        assert_eq!(reply.escape_ascii().to_string(), refused.escape_ascii().to_string(), "{call}");
        let after = direct.each_mut().map(|server| contents(server, &named));
        assert!(before == after, "{call} was refused, and yet something has changed");

        let near = named.words(call, &named.near);
        theirs.send(&near);
        ours.send(&near);
        let (expected, found) = (theirs.read_bytes(), ours.read_bytes());
        assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{call}");
        assert!(!found.starts_with(b"-"), "{call}: {}", found.escape_ascii());
    }
}

/// Writes a value of its type under each key.
fn fill(client: &mut Resp, named: &Named) {
    for (of_type, key) in named.all() {
        let command: &[&str] = match of_type {
            "string" => &["SET", key, "value"],
            "list" => &["RPUSH", key, "1", "2"],
            "set" => &["SADD", key, "1", "2"],
            "zset" => &["ZADD", key, "1", "a", "2", "b"],
            "geo" => &["GEOADD", key, "13.361389", "38.115556", "Palermo"],
            "hyperloglog" => &["PFADD", key, "x"],
            "stream" => &["XADD", key, "1-1", "f", "v"],
            _ => continue,
        };
        let reply = client.call(command);
        assert!(!reply.is_error(""), "{command:?}: {reply:?}");
        if of_type == "stream" {
            assert_eq!(client.call(["XGROUP", "CREATE", key, "g", "0"]), Value::ok());
        }
    }
}

/// All that a server holds under the keys.
fn contents(server: &mut Resp, named: &Named) -> Vec<Value> {
    server.pipeline(named.all().map(|(_, key)| ["DUMP", key]))
}

/// A command of the table that may have several keys, and is in no call above, is one that nobody has tried.
#[test]
fn every_command_with_several_keys_is_tried() {
    let several = |find: &FindKeys| match find {
        FindKeys::Range { last, .. } => *last != 0,
        FindKeys::KeyNum { .. } => true,
        FindKeys::Unknown => false,
    };
    let tried: BTreeSet<String> =
        CALLS.iter().filter_map(|call| call.split(' ').next()).map(str::to_lowercase).collect();
    let missing: Vec<&str> = CommandTable::builtin()
        .rows()
        .map(|(_, row)| row)
        .filter(|row| row.origin == Origin::Redis70 && row.usual_handling() == Handling::Keyed)
        .filter(|row| {
            let known = row.keys.iter().filter(|spec| spec.begin != BeginSearch::Unknown).count();
            known > 1 || row.keys.iter().any(|spec| several(&spec.find)) || row.name == "sort"
        })
        .map(|row| row.name)
        .filter(|name| !tried.contains(*name))
        .collect();
    assert!(missing.is_empty(), "no call of {missing:?}");
}

/// B14: MSETNX was split, wrote some of its keys and answered 0.
#[test]
fn msetnx_over_two_servers_sets_nothing() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    client.call(["SET", &b, "there"]);
    assert!(client.call(["MSETNX", &a, "1", &b, "2"]).is_error("CROSSSLOT "));
    assert_eq!(client.call(["MGET", &a, &b]), Value::array([Value::Nil, Value::bulk("there")]));
}

/// B15: EVAL was placed by the text of its script, ZUNION by its number of keys, XREAD by the word COUNT, OBJECT by its
/// sub-command.
#[test]
fn calls_go_where_their_keys_are_wherever_those_stand() {
    let shards = Shards::<4>::start("");
    let keys = shards.keys::<3>();
    let mut client = shards.client();
    for (server, [string, zset, stream]) in keys.iter().enumerate() {
        client.call(["SET", string, "value"]);
        client.call(["ZADD", zset, "1", "member"]);
        client.call(["XADD", stream, "1-1", "f", "v"]);
        let id = Value::array([Value::bulk("1-1"), Value::array([Value::bulk("f"), Value::bulk("v")])]);
        let streams = Value::array([Value::array([Value::bulk(stream), Value::array([id])])]);
        let member = || Value::array([Value::bulk("member")]);
        for (call, expected) in [
            (vec!["EVAL", "return redis.call('GET', KEYS[1])", "1", string], Value::bulk("value")),
            (vec!["EVAL_RO", "return redis.call('GET', KEYS[1])", "1", string, "GET"], Value::bulk("value")),
            (vec!["ZUNION", "1", zset], member()),
            (vec!["ZINTER", "1", zset, "WEIGHTS", "1"], member()),
            (vec!["ZINTERCARD", "1", zset], Value::Int(1)),
            (vec!["XREAD", "COUNT", "1", "STREAMS", stream, "0"], streams.clone()),
            (vec!["xread", "streams", stream, "0"], streams),
            (vec!["OBJECT", "ENCODING", string], Value::bulk("embstr")),
            (vec!["XGROUP", "CREATE", stream, "COUNT", "0"], Value::ok()),
            (vec!["BITOP", "NOT", string, string], Value::Int(5)),
            (vec!["ZMPOP", "1", zset, "MIN", "COUNT", "0"], {
                Value::Error("ERR count should be greater than 0".into())
            }),
            (vec!["GEORADIUS", zset, "0", "0", "1", "km", "COUNT", "1", "STORE", zset], Value::Int(0)),
        ] {
            assert_eq!(client.call(&call), expected, "{call:?} to server {server}");
        }
    }
}

/// With a hash tag, keys that have it in common live together.
#[test]
fn hash_tags_bring_keys_together() {
    let shards = Shards::<4>::start("hash_tag: \"{}\"");
    let mut client = shards.client();
    for user in 0..50 {
        let (a, b, c) = (format!("{{{user}}}:a"), format!("b:{{{user}}}"), format!("{{{user}}}"));
        assert_eq!(client.call(["MSETNX", &a, "1", &b, "2", &c, "3"]), Value::Int(1));
        assert_eq!(client.call(["RENAME", &a, &c]), Value::ok());
        assert_eq!(client.call(["EVAL", "return redis.call('MGET', unpack(KEYS))", "2", &b, &c]), {
            Value::array([Value::bulk("2"), Value::bulk("1")])
        });
    }
}

/// A pool of one server has all keys, whatever they are called.
#[test]
fn one_server_has_all_keys() {
    let shards = Shards::<1>::start("");
    let mut client = shards.client();
    assert_eq!(client.call(["MSETNX", "a", "1", "b", "2", "", "3"]), Value::Int(1));
    assert_eq!(client.call(["RENAME", "a", "z"]), Value::ok());
    assert_eq!(client.call(["EVAL", "return #KEYS", "3", "x", "y", "z"]), Value::Int(3));
    assert_eq!(client.call(["MGET", "z", "b", ""]), Value::array(["1", "2", "3"].map(Value::bulk)));
}
