//! Hashes and rings against what twemproxy itself computes (see `tests/golden/README.md`), and what must hold of any.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use shardwise::config::{Config, Distribution, LogFormat, Pool, Process, Threads};
use shardwise::hash::{Algorithm, CharSign, KeyHash};
use shardwise::topology::{Draw, Generation, Owner, PoolIx, Ring, ServerIx, Topology, crc32_on_ketama};
use shardwise::units::Limit;

mod pools;

use pools::{pool, server, servers};

#[test]
fn every_hash_of_every_golden_key() {
    let mut lines = include_str!("golden/hashes.tsv").lines();
    let header = lines.next().expect("the file has a header").split('\t').skip(1);
    let columns: Vec<Algorithm> =
        header.map(|name| Algorithm::from_name(name).expect("a column per algorithm")).collect();
    assert_eq!(columns.len(), 12, "all of twemproxy's");
    let mut keys = 0;
    for line in lines {
        let mut fields = line.split('\t');
        let key = unhex(fields.next().expect("a key"));
        for &algorithm in &columns {
            let expected: u32 = fields.next().expect("a value").parse().expect("a number");
            let hash = algorithm.hash(CharSign::Signed, &key);
            assert_eq!(hash, expected, "{algorithm} of {}", key.escape_ascii());
        }
        keys += 1;
    }
    assert_eq!(keys, 26);
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex")).collect()
}

#[test]
fn every_golden_pool() {
    let text = include_str!("golden/rings.txt");
    let golden: Vec<Golden> = text.split("\npool ").skip(1).map(Golden::read).collect();
    assert_eq!(golden.len(), 20);
    for golden in golden {
        golden.check();
    }
}

/// One pool of `rings.txt`.
struct Golden {
    name: String,
    pool: Pool,
    /// By server.
    points: Vec<usize>,
    total: usize,
    first: Vec<(u32, ServerIx)>,
    fingerprint: u64,
    /// By server, of the keys `key:0` to `key:9999`.
    counts: Vec<usize>,
    samples: Vec<(String, ServerIx)>,
}

impl Golden {
    fn read(text: &str) -> Self {
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next().expect("a first line").split(' ').collect();
        let ["nserver", _, "ncontinuum", total] = head[1..] else { panic!("{head:?}") };
        let mut golden = Self {
            name: head[0].to_owned(),
            pool: settings(head[0]),
            points: Vec::new(),
            total: total.parse().expect("a number"),
            first: Vec::new(),
            fingerprint: 0,
            counts: Vec::new(),
            samples: Vec::new(),
        };
        for line in lines {
            golden.line(line.trim_start());
        }
        golden
    }

    fn line(&mut self, line: &str) {
        let number = |text: &str| text.parse::<usize>().expect("a number");
        let (kind, rest) = line.split_once(' ').expect("a word and more");
        let words: Vec<&str> = rest.split(' ').collect();
        match kind {
            "server" => {
                let field = |name| words[words.iter().position(|word| *word == name).expect("a field") + 1];
                let name = field("name").trim_matches('\'');
                let (port, weight) = (number(field("port")) as u16, number(field("weight")) as u32);
                self.pool.servers.push(server(name, port, weight));
                self.points.push(number(field("points")));
            }
            "ring" => self.first.push((number(words[2]) as u32, ServerIx(number(words[4]) as u16))),
            "ring_fnv1a64" => self.fingerprint = u64::from_str_radix(rest, 16).expect("hex"),
            "counts" => self.counts = words.into_iter().map(number).collect(),
            "map" => {
                self.samples = words
                    .into_iter()
                    .map(|word| {
                        let (key, server) = word.rsplit_once('=').expect("key=server");
                        (key.to_owned(), ServerIx(number(server) as u16))
                    })
                    .collect();
            }
            _ => panic!("unknown line: {line}"),
        }
    }

    fn check(&self) {
        let name = &self.name;
        // The order of the file is twemproxy's; ours must be the same.
        let sorted = pool(self.pool.hash, self.pool.distribution, self.pool.servers.clone());
        assert_eq!(sorted.servers, self.pool.servers, "{name}");

        let topology = Topology::all_live(&sorted);
        let points: Vec<(u32, ServerIx)> = match topology.owner() {
            Owner::Ring(Ring::Ketama(continuum)) => continuum.points().collect(),
            Owner::Ring(Ring::Modula(wheel)) => {
                (0..wheel.slots()).map(|slot| (0, wheel.server(slot as u32))).collect()
            }
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(points.len(), self.total, "{name}");
        for (index, &expected) in (0..).zip(&self.points) {
            let owned = points.iter().filter(|point| point.1 == ServerIx(index)).count();
            assert_eq!(owned, expected, "{name}: points of server {index}");
        }
        assert_eq!(points[..self.first.len()], self.first, "{name}");
        assert!(self.first.len() >= 8.min(points.len()));
        assert_eq!(topology.fingerprint(), self.fingerprint, "{name}");

        let mut counts = vec![0; self.counts.len()];
        for number in 0..10_000 {
            counts[owner(&topology, format!("key:{number}").as_bytes()).index()] += 1;
        }
        assert_eq!(counts, self.counts, "{name}");
        assert_eq!(self.samples.len(), 14, "{name}");
        for (key, server) in &self.samples {
            assert_eq!(owner(&topology, key.as_bytes()), *server, "{name}: {key:?}");
        }
    }
}

/// Hash, distribution and tag of a pool of `rings.txt`, as its header says; servers are to be added.
fn settings(name: &str) -> Pool {
    use Distribution::{Ketama, Modula};
    let (hash, distribution, tag) = match name {
        "k_named" | "k_hostport" | "p" => ("fnv1a_64", Ketama, None),
        "k_weight" => ("murmur", Ketama, None),
        "k_bigw" => ("hsieh", Ketama, None),
        "k_tag_same" => ("fnv1a_64", Ketama, Some(*b"$$")),
        "m_named" => ("fnv1a_64", Modula, None),
        "m_md5" => ("md5", Modula, Some(*b"{}")),
        "h_oaat" => ("one_at_a_time", Ketama, None),
        _ => (name.strip_prefix("h_").expect("h_HASH"), Ketama, None),
    };
    let algorithm = Algorithm::from_name(hash).expect("a hash");
    pool(KeyHash { algorithm, tag, ..KeyHash::default() }, distribution, Vec::new())
}

fn owner(topology: &Topology, key: &[u8]) -> ServerIx {
    topology.server(key, &Draw::seeded(1)).expect("some server is live")
}

#[test]
fn one_server_is_not_hashed_but_can_be_out() {
    for distribution in [Distribution::Ketama, Distribution::Modula, Distribution::Random] {
        let alone = pool(KeyHash::default(), distribution, servers(&[7]));
        let topology = Topology::all_live(&alone);
        assert!(matches!(topology.owner(), Owner::Single(ServerIx(0))));
        assert_eq!(owner(&topology, b"anything"), ServerIx(0));
        assert_eq!(topology.share(), [100.0]);

        let out = Topology::new(&alone, &[false]);
        assert!(matches!(out.owner(), Owner::Nobody));
        assert_eq!(out.server(b"anything", &Draw::seeded(1)), None);
        assert_eq!(out.first_live(), None);
        assert_eq!(out.share(), [0.0]);
    }
}

#[test]
fn one_live_server_of_several_has_all_keys() {
    for distribution in [Distribution::Ketama, Distribution::Modula, Distribution::Random] {
        let pool = pool(KeyHash::default(), distribution, servers(&[1, 2, 3]));
        let topology = Topology::new(&pool, &[false, true, false]);
        assert!(matches!(topology.owner(), Owner::Ring(_)));
        assert!((0..100).all(|number: u32| owner(&topology, &number.to_le_bytes()) == ServerIx(1)));
        assert_eq!(topology.first_live(), Some(ServerIx(1)));
        assert_eq!(topology.share(), [0.0, 100.0, 0.0]);
    }
}

/// The points of survivors change with the weights that are left, so keys also move between them, as in twemproxy.
#[test]
fn ejection_recomputes_the_ring() {
    let pool = pool(KeyHash::default(), Distribution::Ketama, servers(&[1, 2, 3, 7]));
    let topology = Topology::new(&pool, &[false, true, true, true]);
    let Owner::Ring(Ring::Ketama(continuum)) = topology.owner() else { panic!("{topology:?}") };
    let mut points = BTreeMap::new();
    for (_, server) in continuum.points() {
        *points.entry(server.0).or_insert(0) += 1;
    }
    assert_eq!(points, BTreeMap::from([(1, 80), (2, 120), (3, 280)]));
}

#[test]
fn random_ignores_weights_and_draws_anew() {
    let pool = pool(KeyHash::default(), Distribution::Random, servers(&[1, 100, 1, 1]));
    let topology = Topology::new(&pool, &[true, true, false, true]);
    let draw = Draw::seeded(7);
    let mut counts = [0; 4];
    for _ in 0..9_000 {
        counts[topology.server(b"the same key", &draw).expect("a live server").index()] += 1;
    }
    assert_eq!(counts[2], 0);
    assert!([0, 1, 3].iter().all(|&server: &usize| (2_700..3_300).contains(&counts[server])), "{counts:?}");
}

#[test]
fn crc32_on_ketama_is_told() {
    let crc32 = KeyHash { algorithm: Algorithm::Crc32, ..KeyHash::default() };
    assert!(crc32_on_ketama(&pool(crc32, Distribution::Ketama, servers(&[1, 1]))));
    assert!(!crc32_on_ketama(&pool(crc32, Distribution::Ketama, servers(&[1]))));
    assert!(!crc32_on_ketama(&pool(crc32, Distribution::Modula, servers(&[1, 1]))));
    assert!(!crc32_on_ketama(&pool(KeyHash::default(), Distribution::Ketama, servers(&[1, 1]))));
}

#[test]
fn shares_say_what_keys_do() {
    let weights = [1, 2, 3, 7];
    let hash = KeyHash { algorithm: Algorithm::Xxh3_64, ..KeyHash::default() };
    for distribution in [Distribution::Ketama, Distribution::Modula] {
        let topology = Topology::all_live(&pool(hash, distribution, servers(&weights)));
        let share = topology.share();
        assert!((share.iter().sum::<f64>() - 100.0).abs() < 1e-6);
        let mut counts = [0_u32; 4];
        for number in 0..100_000_u32 {
            counts[owner(&topology, &number.to_le_bytes()).index()] += 1;
        }
        for (share, count) in share.iter().zip(counts) {
            assert!((share - f64::from(count) / 1_000.0).abs() < 1.0, "{distribution:?}: {share} {count}");
        }
    }
}

/// Why xxh3-64 is recommended for new deployments, besides its speed: the last bytes of a key barely move an FNV value,
/// so ten consecutive numbers land on one server, and shares are further from equal than the ring's arcs are.
#[test]
fn xxh3_spreads_numbered_keys_where_the_default_lumps_them() {
    let uneven = |algorithm| {
        let hash = KeyHash { algorithm, ..KeyHash::default() };
        let topology = Topology::all_live(&pool(hash, Distribution::Ketama, servers(&[1; 25])));
        let mut counts = [0_u32; 25];
        (0..10_000)
            .for_each(|number| counts[owner(&topology, format!("key:{number}").as_bytes()).index()] += 1);
        let fullest = f64::from(*counts.iter().max().expect("25 of them")) / 400.0;
        (fullest, counts.iter().all(|count| count % 10 == 0))
    };
    let (fnv, lumped) = uneven(Algorithm::Fnv1a_64);
    assert!(lumped && fnv > 1.5, "{fnv}");
    let (xxh3, lumped) = uneven(Algorithm::Xxh3_64);
    assert!(!lumped && xxh3 < 1.3, "{xxh3}");
}

#[test]
fn generations_share_what_stays() {
    let pools = vec![
        pool(KeyHash::default(), Distribution::Ketama, servers(&[1, 1])),
        pool(KeyHash::default(), Distribution::Modula, servers(&[1, 1, 1])),
    ];
    let process = Process {
        threads: Threads::Auto,
        max_clients: Limit::off(),
        max_buffers: Limit::off(),
        drain_timeout: Duration::from_secs(10),
        log_format: LogFormat::Text,
        metrics: None,
        admin: None,
        admin_password: None,
        slowlog_slower_than: None,
        hot_keys: 0,
        reload_on_hup: false,
        reload_on_change: false,
        handover: None,
    };
    let config = Config {
        path: "nutcracker.yml".into(),
        process,
        pools,
        warnings: Vec::new(),
        source: Default::default(),
    };

    let first = Generation::first(Arc::new(config));
    assert_eq!((first.number, first.pools.len()), (1, 2));
    assert_eq!(first.pools[1].live(), [true; 3]);

    let second = first.with_live(PoolIx(1), &[true, false, true]);
    assert_eq!(second.number, 2);
    assert!(Arc::ptr_eq(&first.config, &second.config));
    assert!(Arc::ptr_eq(&first.pools[0], &second.pools[0]));
    assert_eq!(second.pools[1].live(), [true, false, true]);
    assert_eq!(first.pools[1].live(), [true; 3], "who still uses the old one sees no change");

    let third = second.with_live(PoolIx(1), &[true; 3]);
    assert_eq!(third.pools[1].fingerprint(), first.pools[1].fingerprint());
    assert_ne!(third.pools[1].fingerprint(), second.pools[1].fingerprint());
}

fn distributions() -> impl Strategy<Value = Distribution> {
    prop_oneof![Just(Distribution::Ketama), Just(Distribution::Modula), Just(Distribution::Random)]
}

fn algorithms() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(Algorithm::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn keys_stay_on_live_servers(
        marked in prop::collection::vec((1_u32..1_000, any::<bool>()), 1..20),
        distribution in distributions(),
        algorithm in algorithms(),
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 100),
    ) {
        let (weights, live): (Vec<u32>, Vec<bool>) = marked.into_iter().unzip();
        let hash = KeyHash { algorithm, tag: Some(*b"{}"), ..KeyHash::default() };
        let topology = Topology::new(&pool(hash, distribution, servers(&weights)), &live);
        let draw = Draw::seeded(3);
        let first = live.iter().position(|&live| live);
        prop_assert_eq!(topology.first_live().map(ServerIx::index), first);
        for key in keys {
            match topology.server(&key, &draw) {
                Some(server) => prop_assert!(live[server.index()]),
                None => prop_assert_eq!(first, None),
            }
        }
    }

    /// A ring depends on names and weights: neither the file's order nor addresses move a key.
    #[test]
    fn order_and_addresses_move_no_key_on_ketama(
        (weights, order) in prop::collection::vec(1_u32..50, 2..15).prop_flat_map(|weights| {
            let order: Vec<usize> = (0..weights.len()).collect();
            (Just(weights), Just(order).prop_shuffle())
        }),
        keys in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 100),
    ) {
        let plain = pool(KeyHash::default(), Distribution::Ketama, servers(&weights));
        let mut shuffled = plain.clone();
        shuffled.servers = order
            .iter()
            .map(|&at| server(&plain.servers[at].name, 1 + at as u16, plain.servers[at].weight.get()))
            .collect();
        let (one, other) = (Topology::all_live(&plain), Topology::all_live(&shuffled));
        for key in keys {
            let name = |pool: &Pool, topology| pool.servers[owner(topology, &key).index()].name.clone();
            prop_assert_eq!(name(&plain, &one), name(&shuffled, &other));
        }
    }
}
