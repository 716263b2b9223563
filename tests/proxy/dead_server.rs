//! Servers that die, are not there, or lose their connections.

use std::time::{Duration, Instant};

use super::fleet::{Fleet, entries};
use super::load::Load;
use crate::support::{PATIENCE, Port, Process, Redis, Resp, Shardwise, Value, pool_of, wait_until};

/// DESIGN §6: a restarted server is used again within this time.
const BACK_WITHIN: Duration = Duration::from_millis(1500);

/// What two busy cores may add to a time that is promised.
const SLACK: Duration = Duration::from_millis(1500);

/// Connections killed one after the other in a test.
const KILLS: usize = 25;

fn is_down(reply: &Value, label: &str) -> bool {
    let words = ["ERR Connection refused", "ERR Connection reset by peer"];
    words.iter().any(|words| reply.is_error(&format!("{words}: {label}")))
}

/// B1, B20 and the main promise: one shard is killed under load. Its keys fail, and no others; the errors name it; no
/// reply goes to a wrong request; when it is back its keys work without a touch on the proxy.
#[test]
fn one_shard_is_killed_under_load() {
    let mut servers = Redis::start_many::<3>();
    let fleet = Fleet::of(&servers, "");
    let load = Load::start(&fleet, 8);
    (0..3).for_each(|server| load.wait_replies(server, 100));

    servers[1].kill();
    load.wait_errors(1, 100);
    let mut client = fleet.client();
    let (dead, alive) = (fleet.key(1), fleet.key(0));
    wait_until("a worker to know it", PATIENCE, || {
        let start = Instant::now();
        let reply = client.call(["GET", &dead]);
        assert!(is_down(&reply, &fleet.label(1)), "{reply:?}");
        start.elapsed() < Duration::from_millis(100)
    });
    assert_eq!(client.call(["SET", &alive, "v"]), Value::ok());
    [0, 2].into_iter().for_each(|server| load.wait_replies(server, 100));

    servers[1].restart();
    let start = Instant::now();
    fleet.wait_served(1, BACK_WITHIN + SLACK);
    load.wait_replies(1, 100);
    assert!(start.elapsed() < BACK_WITHIN + SLACK);
    assert_eq!([load.errors(0), load.errors(2)], [0, 0], "errors for keys of servers that live");
    load.stop();
    drop(client);
    fleet.wait_idle();
}

/// B13: with one part dead, MGET answered nil for keys that exist, and DEL and EXISTS left them out.
#[test]
fn a_call_with_a_dead_part_is_an_error_as_a_whole() {
    let mut servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, "");
    let mut client = fleet.client();
    let keys = [fleet.key(0), fleet.key(1)];
    assert_eq!(client.call(["MSET", &keys[0], "a", &keys[1], "b"]), Value::ok());
    servers[1].kill();
    for command in ["MGET", "EXISTS", "TOUCH", "DEL", "UNLINK"] {
        let reply = client.call([command, &keys[0], &keys[1]]);
        assert!(is_down(&reply, &fleet.label(1)), "{command}: {reply:?}");
    }
    let reply = client.call(["MSET", &keys[0], "c", &keys[1], "d"]);
    assert!(is_down(&reply, &fleet.label(1)), "{reply:?}");
    assert_eq!(
        client.call(["GET", &keys[0]]),
        Value::bulk("c"),
        "the living part was done, which an error allows"
    );
    assert_eq!(client.call(["MGET", &keys[0]]), Value::array([Value::bulk("c")]));
    assert!(fleet.stat("forward_error") >= 6);
}

/// B24: the proxy starts without one of its servers, says so, and uses it when it comes.
#[test]
fn a_server_that_is_down_at_the_start_is_used_when_it_comes() {
    let mut servers = Redis::start_many::<2>();
    servers[0].kill();
    let fleet = Fleet::of(&servers, "preconnect: true");
    wait_until("the log to say so", PATIENCE, || {
        let log = fleet.proxy.log();
        log.lines().any(|line| line.contains("cannot connect") && line.contains("server=\"s0\""))
    });
    let mut client = fleet.client();
    let reply = client.call(["GET", &fleet.key(0)]);
    assert!(reply.is_error(&format!("ERR Connection refused: {}", fleet.label(0))), "{reply:?}");
    assert_eq!(client.call(["GET", &fleet.key(1)]), Value::Nil);
    servers[0].restart();
    fleet.wait_served(0, BACK_WITHIN + SLACK);
    let tries = fleet.proxy.log().matches("cannot connect").count();
    assert!(tries <= 2, "each of two workers says it once, not {tries} times");
}

/// A server behind a unix socket dies and comes back like any other.
#[test]
fn a_server_on_a_unix_socket_comes_back_too() {
    let mut servers = [Redis::on_unix_socket(&[])];
    let fleet = Fleet::of(&servers, "");
    let mut client = fleet.client();
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    servers[0].kill();
    wait_until("the proxy to notice", PATIENCE, || is_down(&client.call(["GET", "k"]), &fleet.label(0)));
    servers[0].restart();
    fleet.wait_served(0, BACK_WITHIN + SLACK);
}

/// A host name that nobody knows fails its own keys and says why; the others are served.
#[test]
fn a_name_that_does_not_resolve_fails_its_own_keys() {
    let server = Redis::start();
    let list = [format!("{} s0", server.entry(1)), "no-such-host.invalid:6379:1 s1".to_owned()];
    let fleet = Fleet::over(&list, "connect_timeout: 5s", &["--threads", "1"]);
    let mut client = fleet.client();
    let reply = client.call(["GET", &fleet.key(1)]);
    let label = "s1 (no-such-host.invalid:6379)";
    assert!(reply.is_error(&format!("ERR Host is down: {label}, its name does not resolve")), "{reply:?}");
    assert_eq!(client.call(["GET", &fleet.key(0)]), Value::Nil);
}

/// B23: names were resolved once, at the start. The proxy gets a hosts file of its own, in which the name appears
/// after the start, first with an address at which nobody listens.
#[test]
fn a_name_is_resolved_again_at_each_connect() {
    if !std::process::Command::new("unshare").args(["--mount", "true"]).status().is_ok_and(|s| s.success()) {
        eprintln!("not tested: this needs the right to make a mount namespace");
        return;
    }
    let (port, stats, server) = (Port::claim(), Port::claim(), Redis::start());
    let dir = tempfile::tempdir().unwrap();
    let hosts = dir.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.1 localhost\n").unwrap();
    let entry = format!("moving-shard:{}:1 s0", server.port());
    std::fs::write(dir.path().join("conf.yml"), pool_of("alpha", &port.address(), &[entry], "")).unwrap();
    let script = format!(
        "mount --bind hosts /etc/hosts && exec {} -c conf.yml -s {} --threads 1",
        Shardwise::PROGRAM,
        stats.number()
    );
    let args = ["--mount", "sh", "-c", &script].map(str::to_owned);
    let mut proxy = Process::start("proxy", "/usr/bin/unshare", &args, dir.path());
    proxy.wait_ready(|| port.is_listened_on() && stats.is_listened_on());

    let mut client = Resp::port(port.number());
    let mut reply = || client.call(["GET", "k"]);
    assert!(reply().is_error("ERR Host is down: s0"), "{:?}", reply());
    std::fs::write(&hosts, "127.0.0.2 moving-shard\n").unwrap();
    wait_until("the name to be known", PATIENCE, || reply().is_error("ERR Connection refused: s0"));
    std::fs::write(&hosts, "127.0.0.1 moving-shard\n").unwrap();
    wait_until("the other address to be used", PATIENCE, || reply() == Value::Nil);
}

/// B1 and "never sent is not maybe sent": the connections of all servers are killed again and again under load. Every
/// reply is the one of its request, and no request is executed twice.
#[test]
fn connections_are_killed_again_and_again_under_load() {
    let servers = Redis::start_many::<2>();
    let fleet = Fleet::of(&servers, "server_connections: 2");
    let load = Load::start(&fleet, 6);
    let counting: Vec<_> = (0..4)
        .map(|number| {
            let (client, key) =
                (fleet.client(), fleet.keys(number % 2, &format!("counter {number}"), 1).remove(0));
            let stop = crate::support::Gate::default();
            let until = stop.clone();
            (stop, std::thread::spawn(move || count(client, key, &until)))
        })
        .collect();
    for kill in 0..KILLS {
        let server = kill % 2;
        load.wait_replies(server, 50);
        servers[server].client().call(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    }
    (0..2).for_each(|server| fleet.wait_served(server, BACK_WITHIN + SLACK));
    counting.iter().for_each(|(stop, _)| stop.open());
    for (number, (_, thread)) in counting.into_iter().enumerate() {
        let Counted { key, acknowledged, unknown } = thread.join().expect("its replies counted up");
        let executed = servers[number % 2].client().call(["GET", &key]);
        let executed: u64 = String::from_utf8_lossy(executed.bytes()).parse().unwrap();
        assert!(
            (acknowledged..=acknowledged + unknown).contains(&executed),
            "{acknowledged} INCRs were acknowledged and {unknown} failed, but {executed} were executed"
        );
    }
    load.stop();
    fleet.wait_idle();
}

struct Counted {
    key: String,
    acknowledged: u64,
    unknown: u64,
}

/// Counts a key up in pipelines. Replies must grow: by one, and by at most one more for each that failed before.
fn count(mut client: Resp, key: String, stop: &crate::support::Gate) -> Counted {
    let (mut acknowledged, mut unknown) = (0, 0);
    let (mut last, mut failed_since) = (0, 0);
    while !stop.is_open() {
        client.send_raw(crate::support::encode(["INCR", &key]).repeat(10));
        for _ in 0..10 {
            match client.read() {
                Value::Int(n) => {
                    let n = u64::try_from(n).expect("it counts up");
                    assert!(
                        (last + 1..=last + 1 + failed_since).contains(&n),
                        "{n} after {last}, {failed_since} failed"
                    );
                    (last, failed_since) = (n, 0);
                    acknowledged += 1;
                }
                Value::Error(_) => {
                    failed_since += 1;
                    unknown += 1;
                }
                other => panic!("INCR was answered by {other:?}"),
            }
        }
    }
    Counted { key, acknowledged, unknown }
}

/// A close with nothing in flight is no failure, and nobody notices it: servers close idle connections.
#[test]
fn a_server_that_closes_idle_connections_is_not_failing() {
    let servers = Redis::start_many::<1>();
    let fleet = Fleet::over(&entries(&servers), "auto_eject_hosts: true", &["--threads", "1"]);
    let mut client = fleet.client();
    for round in 0..10 {
        assert_eq!(client.call(["SET", "k", "v"]), Value::ok(), "in round {round}");
        let connected = fleet.server_stat(0, "server_total");
        servers[0].client().call(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
        wait_until("the next connection", PATIENCE, || fleet.server_stat(0, "server_total") > connected);
    }
    assert_eq!(fleet.server_stat(0, "failed_attempts"), 0);
    assert_eq!(fleet.server_stat(0, "server_connections"), 1);
    assert!(fleet.server_stat(0, "server_eof") >= 10);
}
