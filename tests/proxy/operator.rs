//! What an operator does to single servers: DRAIN, RESUME, BAN, UNBAN, PROBE, RECONNECT.

use std::time::{Duration, Instant};

use super::admin::{field, lines, ruled_pool, text};
use super::fleet::Fleet;
use super::reload::connections;
use super::traffic::Traffic;
use crate::support::{PATIENCE, Redis, Resp, Value, wait_until};

/// PROXY SERVERS' word for a server's state.
fn state(admin: &mut Resp, server: usize) -> String {
    let lines = lines(admin.call(["PROXY", "SERVERS", "alpha"]));
    let name = format!("s{server}");
    let line = lines.iter().find(|line| field(line, "name") == name).expect("it is in the pool");
    field(line, "state").to_owned()
}

/// As many clients as there are workers, and more.
fn clients(fleet: &Fleet) -> Vec<Resp> {
    (0..4).map(|_| fleet.client()).collect()
}

/// The server is left alone from the answer on, by every worker; what it owes still comes; and it gets its keys back.
#[test]
fn a_drained_server_finishes_and_gets_nothing_new() {
    let mut servers = Redis::start_many::<2>();
    let (mut fleet, mut admin) = ruled_pool(&servers, "", "");
    let key = fleet.key(1);
    let mut client = fleet.client();
    assert_eq!(client.call(["SET", &key, "old"]), Value::ok());
    servers[1].pause();
    client.send(["GET", &key]);
    wait_until("the request to be with the server", PATIENCE, || fleet.server_stat(1, "out_queue") == 1);
    assert_eq!(admin.call(["PROXY", "DRAIN", "s1"]), Value::ok());
    for other in &mut clients(&fleet) {
        assert_eq!(other.call(["GET", &key]), Value::Nil, "the other server has it now");
    }
    assert_eq!((state(&mut admin, 0), state(&mut admin, 1)), ("live".into(), "drained".into()));
    assert_eq!((fleet.server_stat(1, "live"), fleet.server_stat(1, "drained")), (0, 1));
    assert_eq!(fleet.server_stat(1, "out_queue"), 1);
    servers[1].resume();
    assert_eq!(client.read(), Value::bulk("old"), "what was in flight ends");

    // It stays so over a reload, as long as it is where it was.
    let yaml = std::fs::read_to_string(fleet.proxy.config_path()).unwrap();
    fleet.proxy.reload(&yaml.replace("redis: true", "redis: true\n  timeout: 5000"));
    assert_eq!(state(&mut admin, 1), "drained");
    assert_eq!(client.call(["GET", &key]), Value::Nil);
    assert_eq!(admin.call(["PROXY", "RESUME", "alpha/s1"]), Value::ok());
    for other in &mut clients(&fleet) {
        assert_eq!(other.call(["GET", &key]), Value::bulk("old"));
    }
    assert_eq!(state(&mut admin, 1), "live");
}

#[test]
fn what_can_not_be_is_refused_in_words() {
    let servers = Redis::start_many::<2>();
    let (mut fleet, mut admin) = ruled_pool(&servers, "", "");
    assert!(admin.call(["PROXY", "DRAIN", "s7"]).is_error("ERR no such server 's7': s0, s1"));
    assert!(
        admin
            .call(["PROXY", "RESUME", "s1"])
            .is_error("ERR nothing has changed for server 's1': it isn't drained")
    );
    assert!(
        admin
            .call(["PROXY", "UNBAN", "s1"])
            .is_error("ERR nothing has changed for server 's1': it isn't banned")
    );
    for ttl in ["0", "-1", "soon", "99999999999"] {
        assert!(admin.call(["PROXY", "BAN", "s1", ttl]).is_error("ERR '"), "{ttl}");
    }
    assert_eq!(admin.call(["PROXY", "DRAIN", "s1"]), Value::ok());
    let last = "ERR nothing has changed for server 's0': it is the last live server of its pool";
    assert!(admin.call(["PROXY", "DRAIN", "s0"]).is_error(last));
    assert!(admin.call(["PROXY", "BAN", "s0", "10"]).is_error(last));
    assert!(!fleet.client().call(["GET", &fleet.key(0)]).is_error(""));

    // Where a reload leaves no other server, the word is forgotten: keys must have an owner.
    let yaml = std::fs::read_to_string(fleet.proxy.config_path()).unwrap();
    let only: String =
        yaml.lines().filter(|line| !line.contains(" s0")).map(|line| format!("{line}\n")).collect();
    let told = fleet.proxy.reload(&only);
    assert!(told.contains("DRAIN and BAN are forgotten"), "{told}");
    assert!(!fleet.client().call(["GET", "k"]).is_error(""));
}

/// However well it answers: the probes of health would bring it back at once.
#[test]
fn a_ban_lasts_as_long_as_was_said() {
    let servers = Redis::start_many::<2>();
    let health = "auto_eject_hosts: true\nserver_retry_timeout: 10\nprobe_interval: 10ms";
    let (fleet, mut admin) = ruled_pool(&servers, "", health);
    let key = fleet.key(1);
    let mut client = fleet.client();
    client.call(["SET", &key, "v"]);
    let start = Instant::now();
    assert_eq!(admin.call(["PROXY", "BAN", "s1", "1200ms"]), Value::ok());
    assert!(state(&mut admin, 1).starts_with("banned:"));
    assert_eq!(client.call(["GET", &key]), Value::Nil);
    wait_until("the end of the ban", PATIENCE, || client.call(["GET", &key]) == Value::bulk("v"));
    assert!(start.elapsed() >= Duration::from_millis(1200), "{:?}", start.elapsed());
    assert_eq!((state(&mut admin, 1), fleet.server_stat(1, "banned_until")), ("live".into(), 0));

    assert_eq!(admin.call(["PROXY", "BAN", "s1", "600"]), Value::ok());
    let left: u64 = state(&mut admin, 1).trim_start_matches("banned:").parse().unwrap();
    assert!((590..=600).contains(&left), "{left}");
    assert_eq!(admin.call(["PROXY", "UNBAN", "s1"]), Value::ok());
    assert_eq!(client.call(["GET", &key]), Value::bulk("v"));
}

#[test]
fn a_probe_says_what_came_of_it() {
    let mut servers = Redis::start_many::<2>();
    let (_fleet, mut admin) = ruled_pool(&servers, "", "");
    let line = text(admin.call(["PROXY", "PROBE", "s1"]));
    assert!(
        line.starts_with("pool=alpha name=s1 address=127.0.0.1:") && line.ends_with("outcome=ok"),
        "{line}"
    );
    let usec: u64 = field(&line, "usec").parse().unwrap();
    assert!((1..5_000_000).contains(&usec), "{line}");
    servers[1].kill();
    let line = text(admin.call(["PROXY", "PROBE", "s1"]));
    assert!(line.contains("outcome=failed reason=cannot connect: connection refused"), "{line}");
    assert!(admin.call(["PROXY", "PROBE", "s9"]).is_error("ERR no such server"));
}

/// Under load, in the middle of a transaction, and with a request that the server is slow with.
#[test]
fn nothing_fails_when_connections_are_replaced() {
    let mut servers = Redis::start_many::<2>();
    let (fleet, mut admin) = ruled_pool(&servers, "", "");
    let traffic = Traffic::start(fleet.port.socket_addr(), 6, 1);
    traffic.wait_replies(500);
    let key = fleet.key(1);
    let mut client = fleet.client();
    client.call(["MULTI"]);
    client.call(["SET", &key, "v"]);
    let before = [0, 1].map(|server| connections(&servers[server]));
    for round in 0..5 {
        let Value::Int(replaced) = admin.call(["PROXY", "RECONNECT", "s1"]) else { panic!("no number") };
        assert!(replaced >= if round == 0 { 2 } else { 0 }, "{replaced}");
        traffic.wait_replies(200);
    }
    client.call(["INCR", &format!("{key}:no")]);
    assert_eq!(client.call(["GET", &key]), Value::Simple("QUEUED".into()), "its connection is its own");
    client.call(["DISCARD"]);
    traffic.stop();
    let mut shared = before[1].clone();
    wait_until("the old connections to be gone", PATIENCE, || {
        shared.retain(|id| connections(&servers[1]).contains(id));
        shared.is_empty()
    });
    assert!(before[0].is_subset(&connections(&servers[0])), "the other server keeps its own");

    assert_eq!(client.call(["SET", &key, "1"]), Value::ok());
    servers[1].pause();
    client.send(["INCR", &key]);
    wait_until("the request to be with the server", PATIENCE, || fleet.server_stat(1, "out_queue") == 1);
    admin.call(["PROXY", "RECONNECT", "s1"]);
    client.send(["INCR", &key]);
    assert!(client.silent_for(Duration::from_millis(50)));
    servers[1].resume();
    assert_eq!((client.read(), client.read()), (Value::Int(2), Value::Int(3)), "in their order");
}

/// Subscriptions go to the new connection.
#[test]
fn subscriptions_move_when_connections_are_replaced() {
    let servers = Redis::start_many::<1>();
    let (fleet, mut admin) = ruled_pool(&servers, "", "");
    let mut listener = fleet.client();
    listener.call(["SUBSCRIBE", "news"]);
    let before = connections(&servers[0]);
    admin.call(["PROXY", "RECONNECT", "s0"]);
    wait_until("the subscription to stand again", PATIENCE, || {
        let now = connections(&servers[0]);
        before.is_disjoint(&now)
            && servers[0].client().call(["PUBSUB", "NUMSUB", "news"]) == numbers("news", 1)
    });
    fleet.client().call(["PUBLISH", "news", "hello"]);
    assert_eq!(listener.read(), Value::array(["message", "news", "hello"].map(Value::bulk)));
    assert_eq!(fleet.server_stat(0, "subscription_gaps"), 1);
    assert_eq!(fleet.server_stat(0, "server_err"), 0);
}

fn numbers(name: &str, count: i64) -> Value {
    Value::array([Value::bulk(name), Value::Int(count)])
}
