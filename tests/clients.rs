//! Today's client libraries, with their defaults, against the running proxy over four shards.
//!
//! Each script in tests/clients/ takes HOST and PORT, prints a line for each check, and fails if any failed.
//! `make setup` installs the libraries.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{Port, Redis, Shardwise, locate, pool};

#[test]
fn redis_cli_and_redis_benchmark() {
    check(&locate("bash"), "redis-cli/smoke.sh");
}

#[test]
fn redis_py() {
    check(&home().join(".venv/bin/python"), "python/smoke.py");
}

#[test]
fn ioredis() {
    check(&locate("node"), "node/ioredis.js");
}

#[test]
fn node_redis() {
    check(&locate("node"), "node/node-redis.js");
}

#[test]
fn phpredis() {
    check(&locate("php"), "php/smoke.php");
}

/// Runs one script against a proxy of its own.
fn check(interpreter: &Path, script: &str) {
    assert!(interpreter.exists(), "{} is not there; `make setup` installs it", interpreter.display());
    let shards = Redis::start_many::<4>();
    let port = Port::claim();
    // Names that differ in their last digits only have neighbouring hashes with the default hash, and the ring depends on
    // the ports: a hundred such keys may leave a shard out.
    let _shardwise = Shardwise::start(&pool("alpha", &port, &shards.each_ref(), "hash: murmur"));
    let script = home().join("tests/clients").join(script);
    let run = Command::new(interpreter).arg(script).args(["127.0.0.1", &port.number().to_string()]).output();
    let output = run.expect("the interpreter starts");
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success(), "{}:\n{text}", output.status);
    let keys: Vec<i64> = shards.iter().map(|shard| shard.client().call(["DBSIZE"]).int()).collect();
    assert!(keys.iter().all(|count| *count > 0), "every shard has keys: {keys:?}");
}

fn home() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
