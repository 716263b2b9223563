//! Commands that concern the keys of every server.

use std::collections::BTreeSet;

use super::fleet::{Fleet, entries};
use crate::support::{Port, Random, Redis, Resp, Shards, Value, pool_of};

/// Names that spread over all servers.
fn names(prefix: &str, count: usize) -> Vec<String> {
    let mut random = Random::seeded(11);
    (0..count).map(|_| format!("{prefix}:{:x}", random.bits())).collect()
}

fn set(client: &mut Resp, keys: &[String]) {
    let replies = client.pipeline(keys.iter().map(|key| ["SET", key, "v"]));
    assert!(replies.iter().all(|reply| *reply == Value::ok()));
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(value.bytes()).into_owned()
}

/// One SCAN from 0 to 0: the keys, and the cursors on the way.
fn scan(client: &mut Resp, options: &[&str], mut between: impl FnMut(usize)) -> (Vec<String>, Vec<u64>) {
    let (mut keys, mut cursors) = (Vec::new(), Vec::new());
    let mut cursor = "0".to_owned();
    for step in 0..10_000 {
        let reply = client.call([&["SCAN", &cursor], options].concat());
        let [next, page] = reply.items() else { panic!("{reply:?}") };
        keys.extend(page.items().iter().map(text));
        cursor = text(next);
        if cursor == "0" {
            return (keys, cursors);
        }
        cursors.push(cursor.parse().expect("a number"));
        between(step);
    }
    panic!("SCAN does not end");
}

/// Every key that is there all along is found, whatever comes and goes meanwhile, and cursors stay exact in JavaScript.
#[test]
fn scan_ends_and_misses_nothing_that_was_there_all_along() {
    let shards = Shards::<3>::start("hash: murmur");
    let mut client = shards.client();
    let stay = names("stay", 600);
    set(&mut client, &stay);
    let mut other = shards.client();
    let (found, cursors) = scan(&mut client, &["COUNT", "25"], |step| {
        // Tables grow and shrink under the scan.
        let coming = names(&format!("come:{step}"), 60);
        set(&mut other, &coming);
        if step % 2 == 1 {
            other.pipeline(coming.iter().map(|key| ["DEL", key]));
        }
    });
    let found: BTreeSet<&String> = found.iter().collect();
    let missing: Vec<&String> = stay.iter().filter(|key| !found.contains(key)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(cursors.iter().all(|cursor| *cursor < 1 << 53 && *cursor != 0), "{cursors:?}");
    let positions: BTreeSet<u64> = cursors.iter().map(|cursor| cursor % 1024).collect();
    assert_eq!(positions, BTreeSet::from([0, 1, 2]), "each server in its turn");
}

#[test]
fn scan_passes_its_options_on() {
    let shards = Shards::<3>::start("hash: murmur");
    let mut client = shards.client();
    let (strings, lists) = (names("s", 50), names("l", 50));
    set(&mut client, &strings);
    client.pipeline(lists.iter().map(|key| ["RPUSH", key, "e"]));
    let all = |client: &mut Resp, options: &[&str]| {
        scan(client, options, |_| ()).0.into_iter().collect::<BTreeSet<_>>()
    };
    assert_eq!(all(&mut client, &["MATCH", "l:*"]), lists.iter().cloned().collect());
    assert_eq!(all(&mut client, &["TYPE", "string", "COUNT", "7"]), strings.iter().cloned().collect());
    assert_eq!(all(&mut client, &["MATCH", "l:*", "TYPE", "string"]), BTreeSet::new());
    assert_eq!(all(&mut client, &[]).len(), 100);
}

/// A scan begun at one proxy goes on at another with the same servers, in whatever order its file has them.
#[test]
fn a_cursor_means_the_same_to_every_proxy() {
    let servers = Redis::start_many::<3>();
    let one = Fleet::of(&servers, "hash: murmur");
    let mut turned = entries(&servers);
    turned.reverse();
    let other = Fleet::over(&turned, "hash: murmur", &["--threads", "1"]);
    let keys = names("k", 300);
    set(&mut one.client(), &keys);
    let mut clients = [one.client(), other.client()];
    let (mut cursor, mut found) = ("0".to_owned(), BTreeSet::new());
    for step in 0.. {
        assert!(step < 1_000, "SCAN does not end");
        let reply = clients[step % 2].call(["SCAN", &cursor, "COUNT", "20"]);
        found.extend(reply.items()[1].items().iter().map(text));
        cursor = text(&reply.items()[0]);
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(found, keys.into_iter().collect());
}

/// B13: a server that is missing never makes a smaller answer: neither a count, nor the end of a scan.
#[test]
fn a_dead_server_makes_the_whole_an_error_that_names_it() {
    let mut servers = Redis::start_many::<3>();
    let fleet = Fleet::of(&servers, "hash: murmur");
    let mut client = fleet.client();
    set(&mut client, &names("k", 100));
    servers[1].kill();
    for request in [
        &["DBSIZE"][..],
        &["KEYS", "*"],
        &["RANDOMKEY"],
        &["FLUSHDB"],
        &["FLUSHALL"],
        &["SCRIPT", "LOAD", "return 1"],
        &["SCRIPT", "EXISTS", "ffffffffffffffffffffffffffffffffffffffff"],
        &["SCRIPT", "FLUSH"],
        &["FUNCTION", "FLUSH"],
        &["SCAN", "1"],
        &["SCAN", "17409"],
    ] {
        let reply = client.call(request);
        let Value::Error(text) = &reply else { panic!("{request:?}: {reply:?}") };
        assert!(text.contains(&fleet.label(1)), "{request:?}: {text}");
    }
    assert!(client.call(["SCAN", "0"]).items().len() == 2, "the first server lives");
    let info = text(&client.call(["INFO"]));
    assert!(info.contains("redis_version:"), "{info}");
    let incomplete = info.lines().find(|line| line.starts_with("keyspace_incomplete:"));
    assert!(incomplete.is_some_and(|line| line.contains(&fleet.label(1))), "{info}");
    assert!(!info.contains("db0:"), "no sum without a server: {info}");
    servers[1].restart();
    fleet.wait_served(1, crate::support::PATIENCE);
    assert!(matches!(client.call(["DBSIZE"]), Value::Int(_)));
}

/// The file lost a server while a client scanned: what it asks for next is an error, not the end.
#[test]
fn a_position_that_the_pool_does_not_have_is_an_error() {
    let shards = Shards::<2>::start("");
    let mut client = shards.client();
    for cursor in ["2", "1023", "17410"] {
        let reply = client.call(["SCAN", cursor]);
        assert!(reply.is_error("ERR invalid cursor: it continues at server "), "{cursor}: {reply:?}");
    }
    assert!(client.call(["SCAN", "18446744073709551616"]).is_error("ERR invalid cursor"));
}

#[test]
fn a_random_key_comes_from_any_server_that_has_one() {
    let servers = Redis::start_many::<3>();
    let fleet = Fleet::of(&servers, "hash: murmur");
    let mut client = fleet.client();
    assert_eq!(client.call(["RANDOMKEY"]), Value::Nil);
    let keys = [fleet.key(0), fleet.key(2)];
    set(&mut client, &keys);
    let drawn = client.pipeline((0..100).map(|_| ["RANDOMKEY"]));
    let drawn: BTreeSet<String> = drawn.iter().map(text).collect();
    assert_eq!(drawn, BTreeSet::from(keys), "the empty server is passed over");
}

/// Scripts and functions go to every server, so that they work wherever a key leads.
#[test]
fn scripts_and_functions_are_loaded_on_every_server() {
    let shards = Shards::<3>::start("hash: murmur");
    let mut client = shards.client();
    let sha = text(&client.call(["SCRIPT", "LOAD", "return redis.call('SET', KEYS[1], 'by script')"]));
    let library = "#!lua name=mine\nredis.register_function('hello', function(keys) return keys[1] end)";
    assert_eq!(client.call(["FUNCTION", "LOAD", library]), Value::bulk("mine"));
    assert!(client.call(["FUNCTION", "LOAD", library]).is_error("ERR Library 'mine' already exists"));
    assert_eq!(client.call(["FUNCTION", "LOAD", "REPLACE", library]), Value::bulk("mine"));
    for key in names("k", 30) {
        assert_eq!(client.call(["EVALSHA", &sha, "1", &key]), Value::ok());
        assert_eq!(client.call(["FCALL", "hello", "1", &key]), Value::bulk(&key));
    }
    assert_eq!(client.call(["SCRIPT", "EXISTS", &sha]), Value::array([Value::Int(1)]));
    shards.servers[1].client().call(["SCRIPT", "FLUSH"]);
    assert_eq!(client.call(["SCRIPT", "EXISTS", &sha]), Value::array([Value::Int(0)]), "not on all");
    assert_eq!(client.call(["FUNCTION", "DELETE", "mine"]), Value::ok());
    for server in &shards.servers {
        assert_eq!(server.client().call(["FUNCTION", "LIST"]), Value::array([]));
    }
}

#[test]
fn info_tells_of_the_proxy_and_adds_up_the_keys() {
    let port = Port::claim();
    let servers = Redis::start_many::<3>();
    let yaml = pool_of("alpha", &port.address(), &entries(&servers), "hash: murmur\nredis_db: 2");
    let fleet = Fleet::configured(port, &yaml, &["--threads", "1"]);
    let mut client = fleet.client();
    set(&mut client, &names("k", 40));
    client.pipeline(names("k", 10).iter().map(|key| ["EXPIRE", key, "1000"]));
    let info = text(&client.call(["INFO"]));
    for field in ["redis_version:", "redis_mode:standalone", "loading:0", "role:master", "cluster_enabled:0"]
    {
        assert!(info.contains(&format!("\r\n{field}")), "{field} is missing: {info}");
    }
    let sum = info.lines().find_map(|line| line.strip_prefix("db2:")).unwrap_or_else(|| panic!("{info}"));
    assert!(sum.starts_with("keys=40,expires=10,avg_ttl="), "{sum}");
    assert_eq!(
        text(&client.call(["INFO", "persistence"])),
        "# Persistence\r\nloading:0\r\nasync_loading:0\r\n"
    );
    assert!(text(&client.call(["info", "KEYSPACE"])).starts_with("# Keyspace\r\ndb2:keys=40"));
    assert_eq!(text(&client.call(["INFO", "nosuch"])), "");
    let order: Vec<Value> = client.pipeline([&["SET", "n", "1"][..], &["INFO"], &["INCR", "n"]]);
    assert_eq!((&order[0], &order[2]), (&Value::ok(), &Value::Int(2)), "in its place");
}

#[test]
fn what_empties_the_servers_is_refused_in_a_pool_that_is_read_only() {
    let shards = Shards::<2>::start("read_only: true");
    let mut client = shards.client();
    for request in [&["FLUSHALL"][..], &["FLUSHDB"], &["FUNCTION", "FLUSH"], &["FUNCTION", "LOAD", "x"]] {
        assert!(client.call(request).is_error("READONLY "), "{request:?}");
    }
    for request in
        [&["DBSIZE"][..], &["KEYS", "*"], &["SCAN", "0"], &["RANDOMKEY"], &["SCRIPT", "LOAD", "return 1"]]
    {
        assert!(!client.call(request).is_error(""), "{request:?}");
    }
}
