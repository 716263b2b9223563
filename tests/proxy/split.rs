//! Commands with many keys that are cut into one part for each server, and whose replies become one.

use crate::support::{Random, Resp, Shards, Value, encode};

/// `command` with `args` behind it.
fn call<A: AsRef<str>>(client: &mut Resp, command: &str, args: &[A]) -> Value {
    client.call([command].into_iter().chain(args.iter().map(AsRef::as_ref)))
}

/// Thousands of keys with doubles among them, in no order: each value comes where its key stood.
#[test]
fn values_come_in_the_order_of_the_keys() {
    let shards = Shards::<4>::start("");
    let mut client = shards.client();
    let mut random = Random::seeded(1);
    let pairs: Vec<String> = (0..10_000).flat_map(|i| [format!("key:{i}"), format!("value {i}")]).collect();
    assert_eq!(call(&mut client, "MSET", &pairs), Value::ok());
    let sizes = shards.servers.each_ref().map(|server| server.client().call(["DBSIZE"]).int());
    assert_eq!(sizes.iter().sum::<i64>(), 10_000);
    assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");

    let asked: Vec<usize> = (0..20_000).map(|_| random.below(12_000)).collect();
    let keys: Vec<String> = asked.iter().map(|i| format!("key:{i}")).collect();
    let values = call(&mut client, "MGET", &keys);
    assert_eq!(values.items().len(), asked.len());
    for (i, value) in asked.iter().zip(values.items()) {
        let expected = if *i < 10_000 { Value::bulk(format!("value {i}")) } else { Value::Nil };
        assert_eq!(*value, expected, "key:{i}");
    }
    let existing = asked.iter().filter(|i| **i < 10_000).count() as i64;
    assert_eq!(
        call(&mut client, "EXISTS", &keys),
        Value::Int(existing),
        "each time that a key is named counts"
    );
    assert_eq!(call(&mut client, "TOUCH", &keys), Value::Int(existing));
    let mut distinct: Vec<usize> = asked.iter().copied().filter(|i| *i < 10_000).collect();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(call(&mut client, "DEL", &keys), Value::Int(distinct.len() as i64), "a key is deleted once");
    let rest: Vec<String> = (0..10_000).map(|i| format!("key:{i}")).collect();
    assert_eq!(call(&mut client, "UNLINK", &rest), Value::Int(10_000 - distinct.len() as i64));
    let sizes = shards.servers.each_ref().map(|server| server.client().call(["DBSIZE"]).int());
    assert_eq!(sizes, [0; 4]);
}

#[test]
fn of_values_for_the_same_key_the_last_one_stays() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    assert_eq!(client.call(["MSET", &a, "1", &b, "2", &a, "3", &b, "4", &a, "5"]), Value::ok());
    assert_eq!(client.call(["MGET", &b, &a]), Value::array([Value::bulk("4"), Value::bulk("5")]));
}

/// MGET answers nil for a key that is no string, as Redis does; it is the others that say WRONGTYPE.
#[test]
fn values_of_other_types_are_nil_for_mget() {
    let shards = Shards::<2>::start("");
    let [[a, list], [b, hash]] = shards.keys();
    let mut client = shards.client();
    client.call(["RPUSH", &list, "x"]);
    client.call(["HSET", &hash, "f", "v"]);
    client.call(["MSET", &a, "1", &b, ""]);
    let expected = [Value::Nil, Value::bulk("1"), Value::Nil, Value::bulk(""), Value::Nil];
    assert_eq!(client.call(["MGET", &list, &a, &hash, &b, "none"]), Value::array(expected));
    assert_eq!(client.call(["EXISTS", &list, &a, &hash, &b, "none"]), Value::Int(4));
    assert_eq!(client.call(["MSET", &list, "now", &hash, "strings"]), Value::ok());
    let expected = [Value::bulk("now"), Value::bulk("strings")];
    assert_eq!(client.call(["MGET", &list, &hash]), Value::array(expected));
    assert_eq!(client.call(["DEL", &list, &a, &hash, &b, "none"]), Value::Int(4));
}

/// twemproxy closed the connection of a client that sent MSET without the last value.
#[test]
fn mset_without_its_last_value_is_redis_error_and_sets_nothing() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    let wrong = Value::Error("ERR wrong number of arguments for 'mset' command".into());
    for args in
        [vec!["MSET"], vec!["MSET", &a], vec!["MSET", &a, "1", &b], vec!["mset", &a, "1", &b, "2", "c"]]
    {
        assert_eq!(client.call(&args), wrong, "{args:?}");
    }
    assert_eq!(client.call(["EXISTS", &a, &b]), Value::Int(0));
}

/// The parts have the name as the client wrote it, and values are not touched: binary ones, empty ones, large ones.
#[test]
fn parts_carry_any_bytes() {
    let shards = Shards::<4>::start("");
    let mut client = shards.client();
    let mut random = Random::seeded(2);
    let pairs: Vec<Vec<u8>> = (0..400)
        .flat_map(|i| {
            let length = *random.pick(&[0, 1, 5, 100, 5_000, 70_000]);
            [[&random.bytes(5)[..], b"\r\n", &[i as u8, (i >> 8) as u8]].concat(), random.bytes(length)]
        })
        .collect();
    let command: Vec<&[u8]> = [&b"mSeT"[..]].into_iter().chain(pairs.iter().map(Vec::as_slice)).collect();
    assert_eq!(client.call(&command), Value::ok());
    let keys = pairs.chunks(2).map(|pair| pair[0].as_slice());
    let values = client.call([&b"mGeT"[..]].into_iter().chain(keys));
    for (pair, value) in pairs.chunks(2).zip(values.items()) {
        assert!(value.bytes() == pair[1], "{}", pair[0].escape_ascii());
    }
}

/// Splits in the middle of a pipeline keep its order: each of them waits for the slowest of its parts, and what follows
/// waits for it.
#[test]
fn splits_keep_their_place_in_a_pipeline() {
    let shards = Shards::<4>::start("");
    let mut client = shards.client();
    let keys: Vec<String> = (0..16).map(|i| format!("key:{i}")).collect();
    let mut requests = Vec::new();
    for round in 0..200 {
        let round = round.to_string();
        let pairs = keys.iter().flat_map(|key| [key.as_str(), &round]);
        requests.extend(encode(["MSET"].into_iter().chain(pairs)));
        requests.extend(encode(["GET", &keys[round.len()]]));
        requests.extend(encode(["MGET"].into_iter().chain(keys.iter().map(String::as_str))));
        requests.extend(encode(["ECHO", &round]));
    }
    client.send_raw(requests);
    for round in 0..200 {
        let value = Value::bulk(round.to_string());
        assert_eq!(client.read(), Value::ok());
        assert_eq!(client.read(), value);
        assert_eq!(client.read(), Value::array(vec![value.clone(); 16]));
        assert_eq!(client.read(), value);
    }
}

/// B13: with one shard down, MGET answered nil for its keys, and EXISTS and DEL left them out of the sum. The command is
/// an error as a whole, which names the server; and it says nothing of keys elsewhere.
#[test]
fn a_dead_shard_fails_the_whole_command_and_only_those_that_need_it() {
    let mut shards = Shards::<3>::start("");
    let [[a, a2], [b, _], [c, _]] = shards.keys();
    let mut client = shards.client();
    assert_eq!(client.call(["MSET", &a, "1", &b, "2", &c, "3"]), Value::ok());
    shards.servers[1].kill();
    let dead = shards.servers[1].address();
    for command in [
        vec!["MGET", &a, &b, &c],
        vec!["MGET", &b, &a],
        vec!["EXISTS", &a, &b],
        vec!["TOUCH", &a, &b, &c],
        vec!["DEL", &c, &b],
        vec!["MSET", &a, "4", &b, "5"],
        vec!["UNLINK", &c, &b],
        vec!["MGET", &b],
        vec!["DEL", &b],
    ] {
        let reply = client.call(&command);
        assert!(reply.is_error("ERR Connection re"), "{command:?}: {reply:?}");
        assert!(format!("{reply:?}").contains(&dead), "{command:?}: {reply:?}");
    }
    assert_eq!(client.call(["MGET", &a, &c, &a2]), Value::array([Value::bulk("4"), Value::Nil, Value::Nil]));
    assert_eq!(client.call(["EXISTS", &a, &c]), Value::Int(1), "what went to live servers was done");
}

/// An error of one server is the error of the whole, in its own words.
#[test]
fn an_error_of_one_server_is_the_answer() {
    let shards = Shards::<2>::start("");
    let [[a], [b]] = shards.keys();
    let mut client = shards.client();
    assert_eq!(client.call(["MSET", &a, "1", &b, "2"]), Value::ok());
    shards.servers[1].client().call(["CONFIG", "SET", "maxmemory", "1"]);
    let reply = client.call(["MSET", &a, "3", &b, "4"]);
    assert!(reply.is_error("OOM command not allowed"), "{reply:?}");
    assert_eq!(client.call(["MGET", &a, &b]), Value::array([Value::bulk("3"), Value::bulk("2")]));
    shards.servers[1].client().call(["CONFIG", "SET", "maxmemory", "0"]);
    assert_eq!(client.call(["MSET", &a, "5", &b, "6"]), Value::ok());
}

/// One server has all keys: nothing is cut, and the server's own reply comes through.
#[test]
fn keys_of_one_server_are_sent_whole() {
    let shards = Shards::<2>::start("");
    let [[a, b, c], _] = shards.keys();
    let mut client = shards.client();
    let commands = || shards.servers.each_ref().map(|server| server.info("total_commands_processed"));
    let before = commands();
    assert_eq!(client.call(["MSET", &a, "1", &b, "2", &c, "3"]), Value::ok());
    let expected = ["2", "1", "2"].map(Value::bulk);
    assert_eq!(client.call(["MGET", &b, &a, &b]), Value::array(expected));
    assert_eq!(client.call(["DEL", &a, &b, &c]), Value::Int(3));
    let after = commands();
    assert_eq!(after[0] - before[0], 4, "three, and the INFO that counted");
    assert_eq!(after[1] - before[1], 1, "the INFO that counted");
}
