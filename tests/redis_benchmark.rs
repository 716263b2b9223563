//! redis-benchmark, as users point it at the proxy to compare: every one of its tests on strings, lists and sets ends
//! without an error, for few and for thousands of clients, with large values, random keys, and pipelines.

mod support;

use std::process::Command;

use support::{Port, Redis, Shardwise, locate, pool};

/// Its tests, and what it calls them. LRANGE needs a list first.
const TESTS: [(&str, &str); 12] = [
    ("set", "SET"),
    ("get", "GET"),
    ("incr", "INCR"),
    ("lpush", "LPUSH"),
    ("lpop", "LPOP"),
    ("sadd", "SADD"),
    ("spop", "SPOP"),
    ("lrange_100", "LRANGE_100 (first 100 elements)"),
    ("lrange_300", "LRANGE_300 (first 300 elements)"),
    ("lrange_500", "LRANGE_500 (first 500 elements)"),
    ("lrange_600", "LRANGE_600 (first 600 elements)"),
    ("mset", "MSET (10 keys)"),
];
const BEFORE_LRANGE: &str = "LPUSH (needed to benchmark LRANGE)";

/// How clients behave, and how many requests each test makes: small, since this is about errors, not speed.
const SETTINGS: [(&str, usize); 6] = [
    ("-c 1", 500),
    ("-c 1000", 3_000),
    ("-c 5000", 6_000),
    ("-c 50 -d 1000", 2_000),
    ("-c 50 -r 100000", 2_000),
    ("-c 50 -P 16", 10_000),
];

/// It takes redis-benchmark four seconds to make 5000 clients, for each test anew.
const WITH_5000_CLIENTS: [&str; 3] = ["set", "lrange_600", "mset"];

#[test]
fn every_setting_of_redis_benchmark_ends_without_an_error() {
    // The children inherit it: 5000 clients are 5000 sockets in the benchmark, and as many in the proxy.
    let limit = rlimit::increase_nofile_limit(20_000).expect("the limit can be read");
    assert!(limit > 6_000, "only {limit} open files are allowed; `ulimit -Hn` says how far it can be raised");
    for (clients, requests) in SETTINGS {
        let shards = Redis::start_many::<4>();
        let port = Port::claim();
        let shardwise = Shardwise::start(&pool("alpha", &port, &shards.each_ref(), ""));
        run(port.number(), clients, requests);
        let keys = shards.each_ref().map(|shard| shard.client().call(["DBSIZE"]).int());
        if clients.contains("-r") {
            assert!(keys.iter().all(|count| *count > 0), "random keys are on every shard: {keys:?}");
        }
        let stats = &shardwise.stats()["alpha"];
        assert_eq!(stats["forward_error"], 0, "{clients}: {stats}");
    }
}

fn run(port: u16, clients: &str, requests: usize) {
    let chosen =
        TESTS.into_iter().filter(|(test, _)| clients != "-c 5000" || WITH_5000_CLIENTS.contains(test));
    let (tests, mut expected): (Vec<&str>, Vec<&str>) = chosen.unzip();
    let first_lrange = tests.iter().position(|test| test.starts_with("lrange")).expect("there is one");
    expected.insert(first_lrange, BEFORE_LRANGE);
    let run = Command::new(locate("redis-benchmark"))
        .args(["-p", &port.to_string(), "-t", &tests.join(","), "-n", &requests.to_string(), "--csv"])
        .args(clients.split(' '))
        .output()
        .expect("redis-benchmark starts");
    let text = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    println!("redis-benchmark {clients} -n {requests}\n{text}");
    assert!(run.status.success(), "{clients}: {}", run.status);
    let wrong =
        text.lines().find(|line| ["error", "warning", "could not"].iter().any(|word| contains(line, word)));
    assert_eq!(wrong, None, "{clients}");
    let lines = text.lines().filter_map(|line| line.strip_prefix('"')?.split('"').next());
    let lines: Vec<&str> = lines.filter(|name| *name != "test").collect();
    assert_eq!(lines, expected, "{clients}");
}

fn contains(line: &str, word: &str) -> bool {
    line.to_lowercase().contains(word)
}
