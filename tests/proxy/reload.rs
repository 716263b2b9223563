//! Reloads: what stays is not touched, what goes ends in an orderly way, and a bad file changes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use super::fleet::entries;
use super::traffic::Traffic;
use crate::support::{PATIENCE, Port, Redis, Resp, Shardwise, Value, encode, pool_of, wait_until};

/// A pool over the servers of these numbers, named s0, s1, ….
fn alpha(port: &Port, servers: &[Redis], which: &[usize], settings: &str) -> String {
    let all = entries(servers);
    let entries: Vec<String> = which.iter().map(|server| all[*server].clone()).collect();
    pool_of("alpha", &port.address(), &entries, settings)
}

/// Ids of the connections that a server has, our own left out.
pub fn connections(server: &Redis) -> BTreeSet<String> {
    let mut client = server.client();
    let own = client.call(["CLIENT", "ID"]).int();
    let list = client.call(["CLIENT", "LIST"]);
    let text = String::from_utf8_lossy(list.bytes()).into_owned();
    let ids = text.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next());
    ids.filter(|id| *id != own.to_string()).map(str::to_owned).collect()
}

/// How many reloads: a few, or as many as the soak test wants.
fn rounds(few: usize) -> usize {
    if std::env::var_os("SHARDWISE_SOAK").is_some() { 100 } else { few }
}

/// Servers come and go, a pool comes, moves and goes, and files are wrong, while clients work. No client gets an error,
/// and no connection to a server that stays is closed.
#[test]
fn nobody_notices_reloads_under_load() {
    let servers = Redis::start_many::<4>();
    let (port, beta, moved) = (Port::claim(), Port::claim(), Port::claim());
    let with_beta = |alpha: &str, port: &Port| {
        format!("{alpha}{}", pool_of("beta", &port.address(), &entries(&servers[..1]), ""))
    };
    let three = alpha(&port, &servers, &[0, 1, 2], "");
    let four = alpha(&port, &servers, &[0, 1, 2, 3], "");
    let mut proxy = Shardwise::start(&three);
    let traffic = Traffic::start(port.socket_addr(), 6, 2);
    traffic.wait_replies(500);
    let before: Vec<_> = servers[..3].iter().map(connections).collect();
    assert!(before.iter().all(|ids| ids.len() == 2), "one for each worker: {before:?}");

    for round in 0..rounds(12) {
        let told = match round % 6 {
            0 => proxy.reload(&four),
            1 => proxy.reload(&with_beta(&four, &beta)),
            2 => {
                assert_eq!(Resp::port(beta.number()).call(["SET", "k", "v"]), Value::ok());
                proxy.reload(&with_beta(&four, &moved))
            }
            3 => {
                assert_eq!(Resp::port(moved.number()).call(["GET", "k"]), Value::bulk("v"));
                wait_until("the old address to be closed", PATIENCE, || {
                    Resp::try_tcp(beta.socket_addr()).is_err()
                });
                proxy.reload(&three)
            }
            4 => proxy.reload(&three.replace("redis: true", "redis: true\n  tiemout: 3")),
            _ => proxy.reload(&four.replace(&port.address(), &format!("127.0.0.1:{}", servers[0].port()))),
        };
        let refused = round % 6 >= 4;
        assert_eq!(told.contains("nothing has changed"), refused, "round {round}: {told}");
        traffic.wait_replies(200);
    }
    let after: Vec<_> = servers[..3].iter().map(connections).collect();
    let (replies, made) = traffic.stop();
    assert_eq!(after, before, "connections of servers that stay, {replies} replies, {made} connections");
}

#[test]
fn the_answer_says_what_changes_and_what_it_costs() {
    let servers = Redis::start_many::<3>();
    let (port, other) = (Port::claim(), Port::claim());
    let mut proxy = Shardwise::start(&alpha(&port, &servers, &[0, 1], ""));
    let mut client = Resp::port(port.number());
    for i in 0..20 {
        client.call(["SET", &format!("{i}:key"), "v"]);
    }
    let three = alpha(&port, &servers, &[0, 1, 2], "");
    let told = proxy.reload(&three);
    assert!(told.contains("pool 'alpha': server 's2' added"), "{told}");
    assert!(told.contains("% of the keys move"), "{told}");
    assert!(!told.contains("closes:"), "{told}");
    let told = proxy.reload(&three);
    assert!(told.contains("nothing changes"), "{told}");
    let told = proxy.reload(&three.replace("redis: true", "redis: true\n  hash: no_such"));
    assert!(told.contains("alpha.hash") && told.contains("no_such"), "names the key: {told}");
    let beta = pool_of("beta", &other.address(), &entries(&servers[..1]), "");
    let told = proxy.reload(&format!("{beta}shardwise: {{threads: 1}}\n"));
    assert!(told.contains("pool 'alpha' removed") && told.contains("pool 'beta' added"), "{told}");
    assert!(told.contains("shardwise.threads changed (needs a restart)"), "{told}");
    assert!(told.contains("1 clients, 1 listening addresses"), "{told}");
    assert!(client.closed(), "the client of a removed pool");
}

/// The pool takes another name, and what it had goes with the address.
#[test]
fn a_pool_may_be_renamed_on_its_address() {
    let servers = Redis::start_many::<1>();
    let port = Port::claim();
    let yaml = alpha(&port, &servers, &[0], "");
    let mut proxy = Shardwise::start(&yaml);
    assert_eq!(Resp::port(port.number()).call(["SET", "k", "v"]), Value::ok());
    let told = proxy.reload(&yaml.replace("alpha:", "omega:"));
    assert!(told.contains("pool 'omega' added"), "{told}");
    assert_eq!(Resp::port(port.number()).call(["GET", "k"]), Value::bulk("v"));
    assert!(proxy.stats()["omega"]["s0"]["requests"].as_u64().unwrap() >= 1);
}

/// A request that waits for its server while that is removed is still answered by it.
#[test]
fn requests_in_flight_on_a_removed_server_finish() {
    let mut servers = Redis::start_many::<2>();
    let port = Port::claim();
    let mut proxy = Shardwise::start(&alpha(&port, &servers, &[0], ""));
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", "old"]), Value::ok());
    servers[0].pause();
    client.send(["GET", "k"]);
    wait_until("the request to be with the server", PATIENCE, || {
        proxy.stats()["alpha"]["s0"]["out_queue"] == 1
    });
    proxy.reload(&alpha(&port, &servers, &[1], ""));
    servers[1].client().call(["SET", "k", "new"]);
    client.send(["GET", "k"]);
    servers[0].resume();
    assert_eq!((client.read(), client.read()), (Value::bulk("old"), Value::bulk("new")));
    wait_until("the removed server to be left alone", PATIENCE, || connections(&servers[0]).is_empty());
}

/// A server that moves gets a client's requests only after its earlier ones have ended at the old place: else a read could
/// come before the write that it follows.
#[test]
fn requests_do_not_overtake_those_at_the_old_address() {
    let mut servers = Redis::start_many::<2>();
    let port = Port::claim();
    let at = |server: &Redis| pool_of("alpha", &port.address(), &[format!("{} only", server.entry(1))], "");
    let mut proxy = Shardwise::start(&at(&servers[0]));
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", "1"]), Value::ok());
    servers[0].pause();
    client.send(["INCR", "k"]);
    wait_until("the request to be with the server", PATIENCE, || {
        proxy.stats()["alpha"]["only"]["out_queue"] == 1
    });
    let told = proxy.reload(&at(&servers[1]));
    assert!(
        told.contains("address of server 'only' changed") && told.contains("closes: connections to 1"),
        "{told}"
    );
    client.send(["INCR", "k"]);
    client.set_read_timeout(PATIENCE);
    assert!(client.silent_for(Duration::from_millis(100)));
    assert_eq!(servers[1].client().call(["EXISTS", "k"]).int(), 0, "the second must wait for the first");
    servers[0].resume();
    assert_eq!((client.read(), client.read()), (Value::Int(2), Value::Int(1)));
    // Others don't wait, and neither does this client any more.
    assert_eq!(client.call(["INCR", "k"]), Value::Int(2));
    wait_until("the old server to be left alone", PATIENCE, || connections(&servers[0]).is_empty());
}

/// Keys of an ejected server don't come back to it because something else was reloaded.
#[test]
fn an_ejected_server_stays_out() {
    let mut servers = Redis::start_many::<3>();
    let port = Port::claim();
    let settings = "auto_eject_hosts: true\nserver_retry_timeout: 60000\nserver_failure_limit: 1";
    let mut proxy = Shardwise::start(&alpha(&port, &servers, &[0, 1], settings));
    servers[0].kill();
    let mut client = Resp::port(port.number());
    let keys: Vec<String> = (0..40).map(|i| format!("{i}:key")).collect();
    let errors = |client: &mut Resp| {
        client
            .pipeline(keys.iter().map(|key| ["SET", key, "v"]))
            .iter()
            .filter(|reply| reply.is_error(""))
            .count()
    };
    wait_until("the ejection", PATIENCE, || errors(&mut client) == 0);
    let told = proxy.reload(&alpha(&port, &servers, &[0, 1, 2], settings));
    assert!(told.contains("server 's2' added"), "{told}");
    assert_eq!(errors(&mut client), 0);
    assert!(servers[2].client().call(["DBSIZE"]).int() > 0);
}

/// Passwords, limits and timeouts hold from the reload on, also for clients that are there.
#[test]
fn settings_of_a_pool_hold_at_once() {
    let servers = Redis::start_many::<1>();
    let port = Port::claim();
    let plain = alpha(&port, &servers, &[0], "");
    let mut proxy = Shardwise::start(&plain);
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    proxy.reload(&alpha(&port, &servers, &[0], "read_only: true\nclient_connections: 1"));
    assert!(client.call(["SET", "k", "w"]).is_error("READONLY"));
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"));
    let mut second = Resp::port(port.number());
    assert!(second.read().is_error("ERR max"), "client_connections holds");
    proxy.reload(&alpha(&port, &servers, &[0], "redis_auth: secret"));
    let mut third = Resp::port(port.number());
    assert!(third.call(["GET", "k"]).is_error("NOAUTH"));
    proxy.reload(&plain);
    assert_eq!(third.call(["GET", "k"]), Value::bulk("v"), "there is no password any more");
    let mut packet = encode(["GET", "k"]);
    packet.extend(encode(["PING"]));
    third.send_raw(packet);
    assert_eq!(third.read(), Value::bulk("v"));
}

/// Nobody sends a signal: the file is enough. It is replaced, as editors and ConfigMaps do.
#[test]
fn a_changed_file_is_taken_over_by_itself() {
    let servers = Redis::start_many::<2>();
    let port = Port::claim();
    let watching = "shardwise: {reload_on_change: true}\n";
    let proxy = Shardwise::start(&format!("{watching}{}", alpha(&port, &servers, &[0], "")));
    let new = proxy.dir().join("new");
    std::fs::write(&new, format!("{watching}{}", alpha(&port, &servers, &[0, 1], ""))).unwrap();
    std::fs::rename(new, proxy.config_path()).unwrap();
    wait_until("the reload", PATIENCE, || proxy.log().contains("server 's1' added"));
}

#[test]
fn check_predicts_a_reload_and_refuses_a_wrong_file() {
    let entries = |n: u16| (1..=n).map(|i| format!("127.0.0.1:{i}:1 s{i}")).collect::<Vec<_>>();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (name, servers) in [("old.yml", 3), ("new.yml", 4)] {
        std::fs::write(path(name), pool_of("alpha", "127.0.0.1:22121", &entries(servers), "")).unwrap();
    }
    std::fs::write(path("bad.yml"), "alpha: {listen: nowhere}\n").unwrap();
    let check = |args: &[&str]| {
        let output = Shardwise::run("", &[&["check"], args].concat());
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, _) = check(&[&path("new.yml")]);
    assert_eq!((code, out.contains("is valid: 1 pools, 4 servers")), (Some(0), true), "{out}");
    let (code, out, _) = check(&[&path("new.yml"), "--against", &path("old.yml")]);
    assert_eq!(code, Some(0));
    assert!(out.starts_with("pool 'alpha': server 's4' added\npool 'alpha': "), "{out}");
    let percent: f64 = out.split("': ").last().unwrap().split('%').next().unwrap().parse().unwrap();
    assert!((15.0..35.0).contains(&percent), "a fourth server takes about a quarter: {out}");
    for args in [vec![path("bad.yml")], vec![path("new.yml"), "--against".into(), path("bad.yml")]] {
        let (code, _, err) = check(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("alpha.listen"), "{err}");
    }
}
