//! `shardwise bench` against real servers: what it sends, what it reports.

use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{PATIENCE, Port, Redis, Shardwise, pool, wait_until};
use crate::{run_in, stderr, stdout};

/// Runs a benchmark to its end and reads its JSON.
pub fn bench(args: &[&str]) -> Value {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let all: Vec<&str> = ["bench", "--rounds", "1", "--json", "-"].iter().chain(args).copied().collect();
    let output = run_in(dir.path(), &all);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON and nothing else")
}

/// How often a server has run a command since it started.
fn calls(redis: &Redis, command: &str) -> Option<u64> {
    let info = redis.client().call(["INFO", "commandstats"]).bytes().to_vec();
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:calls=")))?;
    line.split(['=', ',']).nth(1)?.parse().ok()
}

/// A run of hours that was ended by Ctrl-C used to end without a figure.
#[test]
fn an_interrupted_run_reports_what_was_done() {
    let redis = Redis::start();
    let target = format!("redis={}", redis.address());
    let running = Command::new(Shardwise::PROGRAM)
        .args(["bench", "--target", &target, "-n", "1000000000", "-t", "set,get", "--json", "-"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program");
    wait_until("requests come", PATIENCE, || calls(&redis, "set") > Some(1_000));
    kill_process(Pid::from_child(&running), Signal::INT).expect("it runs");
    let output = running.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let report: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(report["stopped"], true);
    let results = report["results"].as_array().expect("a list");
    assert_eq!(results.len(), 1, "GET had no turn: {report}");
    assert_eq!(results[0]["errors"], 0, "what was due has come: {report}");
    assert_eq!(results[0]["replies"].as_u64(), calls(&redis, "set"));
}

#[test]
fn every_request_is_sent_once_and_its_latency_is_sane() {
    let redis = Redis::start();
    let target = format!("redis={}", redis.address());
    let args = "-c 7 -n 2001 -P 4 -d 100 --keys 50 --threads 2 --rounds 2 -t set,get,mget:3,lrange_100";
    let args: Vec<&str> = ["--target", &target].into_iter().chain(args.split(' ')).collect();
    let report = bench(&args[..]);
    for (result, command) in
        report["results"].as_array().unwrap().iter().zip(["set", "get", "mget", "lrange"])
    {
        assert_eq!((&result["replies"], &result["errors"]), (&2001.into(), &0.into()), "{result}");
        assert_eq!(calls(&redis, command), Some(2001), "{command}");
        let ms = |name: &str| result[name].as_f64().unwrap();
        assert!(
            0.0 < ms("p50_ms") && ms("p50_ms") <= ms("p99_ms") && ms("p99_ms") <= ms("max_ms"),
            "{result}"
        );
        assert!(ms("max_ms") <= ms("seconds") * 1000.0 + 1.0, "{result}");
        let rate = 2001.0 / ms("seconds");
        assert!((rate * 0.99..rate * 1.01).contains(&ms("requests_per_second")), "{result}");
    }
    assert_eq!(redis.client().call(["DBSIZE"]).int(), 51, "50 keys and a list");
    assert_eq!(redis.client().call(["STRLEN", "key:000000000049"]).int(), 100);
}

#[test]
fn targets_are_compared_with_the_first_and_a_script_keeps_its_ratios() {
    let (redis, port) = (Redis::start(), Port::claim());
    let _proxy = Shardwise::start(&pool("alpha", &port, &[&redis], ""));
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("mix.txt");
    std::fs::write(
        &script,
        "# reads and writes\n90 GET key:__rand_int__\n10 SET key:__rand_int__ __data__\n",
    )
    .unwrap();
    let (direct, proxied) = (format!("redis={}", redis.address()), format!("proxy={}", port.address()));
    let script = script.to_str().unwrap();
    let report = bench(&[
        "--target", &direct, "--target", &proxied, "--script", script, "-n", "3000", "-c", "5", "--keys", "9",
    ]);
    let [first, second] = [&report["results"][0], &report["results"][1]];
    assert_eq!((&first["test"], &first["ratio"]), (&"mix".into(), &Value::Null));
    assert_eq!(
        (&second["target"], &second["errors"], &second["replies"]),
        (&"proxy".into(), &0.into(), &3000.into())
    );
    assert!(second["ratio"].as_f64().unwrap() > 0.0);
    let (gets, sets) = (calls(&redis, "get").unwrap(), calls(&redis, "set").unwrap());
    assert_eq!(gets + sets, 6000);
    assert!((450..750).contains(&sets), "{sets} of 6000 are about a tenth");
}

#[test]
fn without_keep_alive_every_batch_has_a_connection_of_its_own() {
    let redis = Redis::with(&["--requirepass", "s3cret"]);
    let target = redis.address();
    let before = redis_connections(&redis);
    let report =
        bench(&["--target", &target, "-a", "s3cret", "-k", "0", "-n", "200", "-c", "3", "-t", "set"]);
    assert_eq!((&report["results"][0]["replies"], &report["results"][0]["errors"]), (&200.into(), &0.into()));
    let made = redis_connections(&redis) - before;
    assert!((200..=202).contains(&made), "{made} connections, two of them our own");
}

fn redis_connections(redis: &Redis) -> i64 {
    let mut client = redis.client();
    client.call(["AUTH", "s3cret"]);
    let info = client.call(["INFO", "stats"]).bytes().to_vec();
    let info = String::from_utf8(info).unwrap();
    let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
    line.parse().unwrap()
}

#[test]
fn passwords_resp3_databases_and_unix_sockets() {
    let redis = Redis::on_unix_socket(&["--user", "bench", "on", ">pw", "~*", "+@all"]);
    let target = format!("unix={}", redis.address());
    let to = ["--target", &target, "--user", "bench", "-a", "pw", "-n", "100", "-c", "2"];
    for more in [&["-3", "--db", "5", "-t", "set"][..], &["-t", "set"], &["-3", "--", "HGETALL", "nothing"]] {
        let args: Vec<&str> = to.iter().chain(more).copied().collect();
        let report = bench(&args);
        assert_eq!(report["results"][0]["replies"], 100, "{more:?}: {report}");
    }
    let mut client = redis.client();
    client.call(["SELECT", "5"]);
    assert_eq!(client.call(["DBSIZE"]).int(), 1);
}

#[test]
fn with_a_rate_requests_come_no_faster_than_they_are_due() {
    let redis = Redis::start();
    let target = redis.address();
    let report = bench(&["--target", &target, "-c", "10", "--rate", "400", "-n", "200", "-t", "set"]);
    let result = &report["results"][0];
    assert_eq!(result["replies"], 200);
    // The last one is due 199/400 s after the first. A machine that is busy may be later, never earlier.
    let seconds = result["seconds"].as_f64().unwrap();
    assert!((0.49..20.0).contains(&seconds), "{result}");
}

#[test]
fn filled_keys_are_verified_through_the_proxy() {
    let (shards, port) = (Redis::start_many::<2>(), Port::claim());
    let _proxy = Shardwise::start(&pool("alpha", &port, &shards.each_ref(), ""));
    let target = port.address();
    let args = "-n 2000 -c 4 -P 3 -d 77 --keys 500 --fill --verify -t get,set,mget:9,mset:5";
    let args: Vec<&str> = ["--target", &target].into_iter().chain(args.split(' ')).collect();
    let report = bench(&args);
    for result in report["results"].as_array().unwrap() {
        assert_eq!((&result["replies"], &result["errors"]), (&2000.into(), &0.into()), "{result}");
    }
    let keys: i64 = shards.iter().map(|shard| shard.client().call(["DBSIZE"]).int()).sum();
    assert_eq!(keys, 500, "all keys were written, and no other");
}

#[test]
fn reports_go_to_files_and_the_table_to_the_terminal() {
    let redis = Redis::start();
    let dir = tempfile::tempdir().unwrap();
    let target = format!("<redis> & \"co\", =x={}", redis.address());
    let target = target.replace(", =x", "");
    let args = [
        "bench", "--target", &target, "-n", "300", "-t", "ping,set", "--csv", "a.csv", "--html", "a.html",
        "--json", "a.json",
    ];
    let output = run_in(dir.path(), &args);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for shown in ["req/s", "p99.9", "errors", "ratio", "own CPU", "ping_mbulk", "latency in ms", "█"] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    let read = |name: &str| std::fs::read_to_string(dir.path().join(name)).unwrap();
    let json: Value = serde_json::from_str(&read("a.json")).unwrap();
    assert_eq!(json["results"].as_array().unwrap().len(), 3);
    assert_eq!(read("a.csv").lines().count(), 4);
    assert_tags_match(&read("a.html"));
}

/// Every element that is opened is closed, in order.
fn assert_tags_match(page: &str) {
    const VOID: [&str; 5] = ["!doctype", "meta", "br", "li", "p"];
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("a tag ends");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        if VOID.contains(&name) || tag.ends_with('/') {
            continue;
        }
        match tag.starts_with('/') {
            true => assert_eq!(open.pop(), Some(name), "</{name}> closes what is open"),
            false => open.push(name),
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn what_cannot_be_run_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    for (args, why) in [
        (&["bench"][..], "--target"),
        (&["bench", "--target", "nowhere"], "expected HOST:PORT or /PATH"),
        (&["bench", "--target", "a=127.0.0.1:1", "-t", "gett"], "no test 'gett'; there are: "),
        (&["bench", "--target", "a=127.0.0.1:1", "--target", "a=127.0.0.1:2"], "two targets are called 'a'"),
        (&["bench", "--target", "a=127.0.0.1:1", "--script", "none.txt"], "none.txt: No such file"),
        (&["bench", "--target", "a=127.0.0.1:1", "--pid", "b=1"], "no target is called 'b'"),
        (&["bench", "--target", "a=127.0.0.1:1", "--rate", "0"], "expected a number above 0"),
    ] {
        let output = run_in(dir.path(), args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    }
}
