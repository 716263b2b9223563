//! What `explain` tells people, word for word.

use shardwise::config::{Distribution, Pool};
use shardwise::hash::{Algorithm, KeyHash};
use shardwise::topology::{Draw, Hashed, ServerIx, SlotMap, Topology, explain};
use shardwise::units::Endpoint;

mod pools;

use pools::{pool, server, servers};

/// The pool `k_named` of the golden rings, with a tag.
fn named() -> Pool {
    let hash = KeyHash { tag: Some(*b"{}"), ..KeyHash::default() };
    let servers = (1..=4).map(|number| server(&format!("server{number}"), 6_379 + number, 1)).collect();
    pool(hash, Distribution::Ketama, servers)
}

fn told(pool: &Pool, topology: &Topology, key: &[u8]) -> String {
    explain(pool, topology, key).to_string()
}

#[test]
fn a_tagged_key_on_a_ring() {
    let pool = named();
    let told = told(&pool, &Topology::all_live(&pool), b"user:{1000}:a");
    let expected = r#"
key     "user:{1000}:a" in pool alpha
hashed  "1000", the tag between { and }
hash    4170074660 (0xf88e4a24) by fnv1a_64
ketama  point 631 of 640, at 4214771775: the first at or after the hash
server  server2 at 127.0.0.1:6381"#;
    assert_eq!(told, expected.trim_start());
}

#[test]
fn a_key_without_a_tag_behind_the_last_point() {
    let pool = named();
    let topology = Topology::all_live(&pool);
    let expected = r#"
key     "k151700" in pool alpha
hashed  the whole key: there is no text between { and }
hash    4291941408 (0xffd1d420) by fnv1a_64
ketama  point 1 of 640, at 9796559: the hash is behind the last point, so the first has it
server  server3 at 127.0.0.1:6382"#;
    assert_eq!(told(&pool, &topology, b"k151700"), expected.trim_start());
}

#[test]
fn an_empty_key() {
    let pool = named();
    let expected = r#"
key     "" in pool alpha
hashed  nothing: the key is empty, which counts as hash 0
ketama  point 1 of 640, at 9796559: the first at or after the hash
server  server3 at 127.0.0.1:6382"#;
    assert_eq!(told(&pool, &Topology::all_live(&pool), b""), expected.trim_start());
}

#[test]
fn a_binary_key_on_modula_while_a_server_is_out() {
    let hash = KeyHash { algorithm: Algorithm::Crc32, ..KeyHash::default() };
    let mut pool = pool(hash, Distribution::Modula, servers(&[1, 2, 3]));
    pool.servers[2].endpoint = Endpoint::Unix("/run/redis/b.sock".into());
    let told = told(&pool, &Topology::new(&pool, &[false, true, true]), b"caf\xc3\xa9's\n\xff\"");
    let expected = r#"
key     "café's\n\xff\"" in pool alpha
hashed  the whole key
hash    1688 (0x00000698) by crc32
modula  slot 3: the hash modulo 5
server  s2 at /run/redis/b.sock
note    out at present: s0"#;
    assert_eq!(told, expected.trim_start());
}

#[test]
fn a_pool_of_one() {
    let pool = pool(named().hash, Distribution::Ketama, vec![server("127.0.0.1:6379", 6_379, 1)]);
    let expected = r#"
key     "user:{1000}:a" in pool alpha
hashed  nothing: every key is treated alike
ring    none: the pool has one server
server  127.0.0.1:6379"#;
    assert_eq!(told(&pool, &Topology::all_live(&pool), b"user:{1000}:a"), expected.trim_start());

    let expected = r#"
key     "user:{1000}:a" in pool alpha
hashed  nothing: every key is treated alike
ring    none: no server of the pool is live
server  none: the key can't be served now
note    out at present: 127.0.0.1:6379"#;
    assert_eq!(told(&pool, &Topology::new(&pool, &[false]), b"user:{1000}:a"), expected.trim_start());
}

#[test]
fn random_and_cluster() {
    let random = pool(KeyHash::default(), Distribution::Random, servers(&[1, 1, 1]));
    let expected = r#"
key     "x" in pool alpha
hashed  nothing: every key is treated alike
random  one of 3 servers, drawn anew for each key of each request
server  any of them"#;
    assert_eq!(told(&random, &Topology::all_live(&random), b"x"), expected.trim_start());

    let mut slots = SlotMap::unassigned();
    slots.assign(0, 8_191, ServerIx(0)).expect("a range");
    let cluster = Topology::with_slots(slots, vec![true; 3]);
    let expected = r#"
key     "{user1000}.following" in pool alpha
hashed  "user1000", the tag between { and }
slot    3443: CRC-16 modulo 16384
server  s0 at 127.0.0.1:6380"#;
    assert_eq!(told(&random, &cluster, b"{user1000}.following"), expected.trim_start());

    let expected = r#"
key     "foo" in pool alpha
hashed  the whole key: there is no text between { and }
slot    12182: CRC-16 modulo 16384
server  none: the key can't be served now"#;
    assert_eq!(told(&random, &cluster, b"foo"), expected.trim_start());
}

#[test]
fn crc32_on_ketama_comes_with_a_warning() {
    let hash = KeyHash { algorithm: Algorithm::Crc32, ..KeyHash::default() };
    let pool = pool(hash, Distribution::Ketama, servers(&[1, 1]));
    let told = told(&pool, &Topology::all_live(&pool), b"x");
    let expected = "\nnote    crc32 gives 15 bits only: with ketama nearly all keys go to one server";
    assert!(told.ends_with(expected), "{told}");
}

/// The words are no second opinion: they come from the functions that route.
#[test]
fn explained_is_what_is_routed() {
    let tagged = KeyHash { tag: Some(*b"{}"), ..KeyHash::default() };
    for distribution in [Distribution::Ketama, Distribution::Modula] {
        let pool = pool(tagged, distribution, servers(&[1, 2, 3, 7]));
        let topology = Topology::new(&pool, &[true, false, true, true]);
        let draw = Draw::seeded(1);
        for number in 0..1_000 {
            for key in [format!("key:{number}"), format!("a{{{number}}}b"), format!("{{}}{number}")] {
                let explanation = explain(&pool, &topology, key.as_bytes());
                let server = explanation.server.map(|to| to.server);
                assert_eq!(server, topology.server(key.as_bytes(), &draw), "{key}");
                assert_eq!(explanation.hash.map(|hash| hash.1), Some(tagged.of(key.as_bytes())));
                assert_eq!(matches!(explanation.hashed, Hashed::Tag { .. }), key.starts_with('a'), "{key}");
            }
        }
    }
}
