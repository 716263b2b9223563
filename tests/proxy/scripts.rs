//! Scripts called by their SHA-1 on servers that lack them.

use super::fleet::Fleet;
use crate::support::{PATIENCE, Redis, Resp, Shards, Value};

const SCRIPT: &str = "redis.call('SET', KEYS[1], ARGV[1]) return ARGV[1]";

fn load(client: &mut Resp) -> String {
    let sha = client.call(["SCRIPT", "LOAD", SCRIPT]);
    String::from_utf8_lossy(sha.bytes()).into_owned()
}

/// A client runs EVAL for one key and takes the script for known from then on, as libraries do; the next key lives elsewhere.
#[test]
fn a_script_that_was_run_on_one_server_is_known_on_all() {
    let shards = Shards::<3>::start("hash: murmur");
    let keys = shards.keys::<2>();
    let mut client = shards.client();
    let sha = load(&mut Redis::start().client());
    for [key, _] in &keys {
        assert!(
            client.call(["EVALSHA", &sha, "1", key, "x"]).is_error("NOSCRIPT"),
            "nobody has shown it yet"
        );
    }
    assert_eq!(client.call(["EVAL", SCRIPT, "1", &keys[0][0], "x"]), Value::bulk("x"));
    // On both workers, with the digits in any case, and pipelined: what is behind it comes behind it.
    for _ in 0..4 {
        let mut client = shards.client();
        for [one, other] in &keys {
            let replies = client.pipeline([
                &["EVALSHA", &sha.to_uppercase(), "1", one, "a"][..],
                &["GET", one],
                &["EVALSHA", &sha, "1", other, "b"],
                &["GET", other],
            ]);
            assert_eq!(replies, ["a", "a", "b", "b"].map(Value::bulk));
        }
        assert!(!client.call(["EVALSHA_RO", &sha, "0", "x"]).is_error("NOSCRIPT"));
    }
}

#[test]
fn a_server_that_was_restarted_is_given_the_script_again() {
    let mut servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, "hash: murmur");
    let mut client = fleet.client();
    let sha = load(&mut client);
    let key = fleet.key(1);
    assert_eq!(client.call(["EVALSHA", &sha, "1", &key, "1"]), Value::bulk("1"));
    servers[1].restart();
    fleet.wait_served(1, PATIENCE);
    for value in ["2", "3"] {
        assert_eq!(client.call(["EVALSHA", &sha, "1", &key, value]), Value::bulk(value));
    }
    assert!(fleet.stat("scripts_loaded") >= 1);
}

/// Somebody flushed the scripts of one server behind the proxy's back: only the answer tells.
#[test]
fn noscript_is_answered_by_loading_it_but_never_past_a_later_request() {
    let shards = Shards::<1>::on_one_thread("");
    let mut client = shards.client();
    let sha = load(&mut client);
    assert_eq!(client.call(["EVALSHA", &sha, "1", "k", "1"]), Value::bulk("1"));
    shards.servers[0].client().call(["SCRIPT", "FLUSH"]);
    assert_eq!(client.call(["EVALSHA", &sha, "1", "k", "2"]), Value::bulk("2"));
    shards.servers[0].client().call(["SCRIPT", "FLUSH"]);
    let replies = client.pipeline([
        &["EVALSHA", &sha, "1", "k", "3"][..],
        &["GET", "k"],
        &["EVALSHA", &sha, "1", "k", "4"],
    ]);
    assert!(replies[0].is_error("NOSCRIPT"), "{replies:?}");
    assert_eq!(replies[1], Value::bulk("2"), "the later request saw no late write");
    assert_eq!(replies[2], Value::bulk("4"), "nothing is behind the last one");
    assert_eq!(client.call(["GET", "k"]), Value::bulk("4"));
}

#[test]
fn flushed_scripts_are_forgotten() {
    let shards = Shards::<2>::start("");
    let mut client = shards.client();
    let sha = load(&mut client);
    assert_eq!(client.call(["EVALSHA", &sha, "1", "k", "1"]), Value::bulk("1"));
    assert_eq!(client.call(["SCRIPT", "FLUSH"]), Value::ok());
    assert!(client.call(["EVALSHA", &sha, "1", "k", "2"]).is_error("NOSCRIPT"));
    assert_eq!(client.call(["GET", "k"]), Value::bulk("1"));
}

/// Errors of the script itself, and of its loading, are the server's.
#[test]
fn what_the_server_says_of_a_script_comes_through() {
    let shards = Shards::<2>::start("");
    let mut client = shards.client();
    assert!(client.call(["EVAL", "return nonsense(", "0"]).is_error("ERR Error compiling script"));
    let sha = load(&mut client);
    assert!(client.call(["EVALSHA", &sha, "x", "k"]).is_error("ERR value is not an integer"));
    assert!(client.call(["EVALSHA", &sha, "2", "k"]).is_error("ERR Number of keys"));
    assert!(client.call(["EVALSHA", "short", "0"]).is_error("NOSCRIPT"));
    client.call(["RPUSH", "list", "a"]);
    let failing = client.call(["SCRIPT", "LOAD", "return redis.call('GET', KEYS[1])"]);
    let failing = String::from_utf8_lossy(failing.bytes()).into_owned();
    assert!(client.call(["EVALSHA", &failing, "1", "list"]).is_error("WRONGTYPE"));
}
