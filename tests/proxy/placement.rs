//! Not one key moves: what nutcracker wrote, shardwise finds, with the same configuration file.

use crate::support::{Nutcracker, Port, Random, Redis, Resp, Shardwise, Value, pool, pool_of};

const HASHES: [&str; 12] = [
    "one_at_a_time",
    "md5",
    "crc16",
    "crc32",
    "crc32a",
    "fnv1_64",
    "fnv1a_64",
    "fnv1_32",
    "fnv1a_32",
    "hsieh",
    "murmur",
    "jenkins",
];
const KEYS: usize = 10_000;

#[test]
fn a_data_set_written_through_nutcracker_is_read_back_whole_ketama() {
    data_set_survives("distribution: ketama\nhash: fnv1a_64");
}

#[test]
fn a_data_set_written_through_nutcracker_is_read_back_whole_modula() {
    data_set_survives("distribution: modula\nhash: murmur\nhash_tag: \"{}\"");
}

/// Every server holds every key, and its value there is the server's own name: so one MGET through a proxy says
/// where that proxy looks for each of the keys.
#[test]
fn every_hash_and_distribution_places_10_000_random_keys_as_nutcracker_does() {
    let servers = Redis::start_many::<4>();
    let keys = random_keys(0x5eed);
    for (number, server) in servers.iter().enumerate() {
        let value = format!("server {number}");
        let command = keys.iter().fold(vec![b"MSET".to_vec()], |mut command, key| {
            command.extend([key.clone(), value.clone().into_bytes()]);
            command
        });
        assert_eq!(server.client().call(command), Value::ok());
    }
    let mget: Vec<&[u8]> = [b"MGET".as_slice()].into_iter().chain(keys.iter().map(Vec::as_slice)).collect();
    for hash in HASHES {
        let shapes = Shape::all(hash);
        let theirs = Pools::claim(&shapes, &servers);
        let ours = Pools::claim(&shapes, &servers);
        let _nutcracker = Nutcracker::start(&theirs.yaml);
        let _shardwise = Shardwise::start(&ours.yaml);
        for ((shape, theirs), ours) in shapes.iter().zip(&theirs.ports).zip(&ours.ports) {
            let expected = Resp::port(theirs.number()).call(&mget);
            let found = Resp::port(ours.number()).call(&mget);
            assert_eq!(expected.items().len(), keys.len(), "{shape:?}");
            let differs = expected.items().iter().zip(found.items()).zip(&keys).find(|((a, b), _)| a != b);
            if let Some(((expected, found), key)) = differs {
                panic!("{shape:?}: \"{}\" is at {expected:?}, looked for at {found:?}", key.escape_ascii());
            }
            assert_eq!(found.items().len(), keys.len(), "{shape:?}");
            assert!(shape.uses_all_servers(expected.items()), "{shape:?}: one server has all keys");
        }
    }
}

/// What of a pool's configuration decides where a key goes.
#[derive(Debug)]
struct Shape {
    hash: &'static str,
    distribution: &'static str,
    named: bool,
    weights: [u32; 4],
    hash_tag: bool,
}

impl Shape {
    fn all(hash: &'static str) -> Vec<Self> {
        let mut shapes = Vec::new();
        for distribution in ["ketama", "modula"] {
            for named in [true, false] {
                for weights in [[1, 1, 1, 1], [1, 2, 3, 7]] {
                    for hash_tag in [true, false] {
                        shapes.push(Self { hash, distribution, named, weights, hash_tag });
                    }
                }
            }
        }
        shapes
    }

    fn yaml(&self, name: &str, listen: &Port, servers: &[Redis; 4]) -> String {
        // Names of several lengths, in an order that is not the sorted one.
        let names = ["shard-10", "b", "shard-9", "a"];
        let entries: Vec<String> = (0..4)
            .map(|i| {
                let entry = servers[i].entry(self.weights[i]);
                if self.named { format!("{entry} {}", names[i]) } else { entry }
            })
            .collect();
        let tag = if self.hash_tag { "hash_tag: \"{}\"" } else { "" };
        let settings = format!("hash: {}\ndistribution: {}\n{tag}", self.hash, self.distribution);
        pool_of(name, &listen.address(), &entries, &settings)
    }

    /// crc32 gives 15 bits only, which ketama maps to very few points.
    fn uses_all_servers(&self, owners: &[Value]) -> bool {
        let all = (0..4).all(|number| owners.contains(&Value::bulk(format!("server {number}"))));
        all || (self.hash == "crc32" && self.distribution == "ketama")
    }
}

/// One pool for each shape, on ports of their own.
struct Pools {
    ports: Vec<Port>,
    yaml: String,
}

impl Pools {
    fn claim(shapes: &[Shape], servers: &[Redis; 4]) -> Self {
        let ports: Vec<Port> = shapes.iter().map(|_| Port::claim()).collect();
        let pools = shapes.iter().zip(&ports).enumerate();
        let yaml = pools.map(|(i, (shape, port))| shape.yaml(&format!("pool{i}"), port, servers)).collect();
        Self { ports, yaml }
    }
}

/// Short and long keys of any bytes, a third of them with something that may be a hash tag; and the empty key.
fn random_keys(seed: u64) -> Vec<Vec<u8>> {
    let mut random = Random::seeded(seed);
    let mut keys: std::collections::BTreeSet<Vec<u8>> = [Vec::new()].into();
    while keys.len() < KEYS {
        let length = *random.pick(&[1, 2, 3, 5, 8, 11, 12, 13, 16, 24, 40, 100, 300]);
        let mut key = random.bytes(length);
        if random.below(3) == 0 {
            key.splice(length / 2..length / 2, *b"{ab}");
            let tag = random.below(1000).to_string();
            key.splice(length / 2 + 1..length / 2 + 3, tag.into_bytes());
        }
        if random.below(4) == 0 {
            key = format!("user:{}:profile", random.below(1_000_000)).into_bytes();
        }
        keys.insert(key);
    }
    keys.into_iter().collect()
}

/// Writes 10,000 keys of every type that nutcracker knows through it, and compares what both proxies read.
fn data_set_survives(settings: &str) {
    let servers = Redis::start_many::<4>();
    let ports = [Port::claim(), Port::claim()];
    let yaml = |port: &Port| pool("alpha", port, &servers.each_ref(), settings);
    let _nutcracker = Nutcracker::start(&yaml(&ports[0]));
    let _shardwise = Shardwise::start(&yaml(&ports[1]));
    let mut theirs = Resp::port(ports[0].number());
    let mut ours = Resp::port(ports[1].number());

    let keys = random_keys(0xda7a);
    for (command, reply) in keys.chunks(500).enumerate().flat_map(|(chunk, keys)| {
        let commands: Vec<_> = keys.iter().enumerate().map(|(i, key)| write(chunk * 500 + i, key)).collect();
        let replies = theirs.pipeline(&commands);
        commands.into_iter().zip(replies)
    }) {
        assert!(!reply.is_error(""), "{reply:?} to {}", command[0].escape_ascii());
    }
    let sizes = servers.each_ref().map(|server| server.client().call(["DBSIZE"]).int());
    assert_eq!(sizes.iter().sum::<i64>(), KEYS as i64, "{sizes:?}");
    assert!(sizes.iter().all(|size| *size > 0), "{sizes:?}");

    for (chunk, keys) in keys.chunks(500).enumerate() {
        let commands: Vec<_> = keys.iter().enumerate().map(|(i, key)| read(chunk * 500 + i, key)).collect();
        let expected = theirs.pipeline(&commands);
        let found = ours.pipeline(&commands);
        for ((key, expected), found) in keys.iter().zip(expected).zip(found) {
            assert!(!is_empty(&expected), "nutcracker itself lost \"{}\"", key.escape_ascii());
            assert_eq!(found, expected, "\"{}\"", key.escape_ascii());
        }
    }
    let sizes_after = servers.each_ref().map(|server| server.client().call(["DBSIZE"]).int());
    assert_eq!(sizes_after, sizes, "reading creates nothing");
}

/// The command that writes key number `i`; the value names the key.
fn write(i: usize, key: &[u8]) -> Vec<Vec<u8>> {
    let value = [b"value of ", key].concat();
    let (name, rest): (&str, Vec<&[u8]>) = match i % TYPES {
        0 => ("SET", vec![&value]),
        1 => ("HSET", vec![b"field", &value, b"\xff\x00", b"binary"]),
        2 => ("RPUSH", vec![&value, b"", b"\r\n"]),
        3 => ("SADD", vec![&value, b"b", b"c"]),
        4 => ("ZADD", vec![b"1.5", &value, b"-3", b"low"]),
        5 => ("PFADD", vec![&value, b"b"]),
        6 => ("SETBIT", vec![b"77", b"1"]),
        _ => ("GEOADD", vec![b"13.361389", b"38.115556", &value]),
    };
    [name.as_bytes(), key].into_iter().chain(rest).map(<[u8]>::to_vec).collect()
}

/// The command that reads key number `i` whole.
fn read(i: usize, key: &[u8]) -> Vec<Vec<u8>> {
    let (name, rest): (&str, &[&[u8]]) = match i % TYPES {
        0 => ("GET", &[]),
        1 => ("HGETALL", &[]),
        2 => ("LRANGE", &[b"0", b"-1"]),
        3 => ("SMEMBERS", &[]),
        4 => ("ZRANGE", &[b"0", b"-1", b"WITHSCORES"]),
        5 => ("PFCOUNT", &[]),
        6 => ("GET", &[]),
        _ => ("ZRANGE", &[b"0", b"-1", b"WITHSCORES"]),
    };
    [name.as_bytes(), key].into_iter().chain(rest.iter().copied()).map(<[u8]>::to_vec).collect()
}

const TYPES: usize = 8;

fn is_empty(reply: &Value) -> bool {
    matches!(reply, Value::Nil | Value::Int(0) | Value::Error(_)) || *reply == Value::array([])
}
