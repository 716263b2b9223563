//! The stats port's numbers under traffic: what they count, and that they are live.

use super::fleet::{Fleet, entries};
use crate::support::{PATIENCE, Redis, Value, encode, wait_until};

fn one_worker(servers: &[Redis], settings: &str) -> Fleet {
    Fleet::over(&entries(servers), settings, &["--threads", "1"])
}

#[test]
fn requests_and_replies_are_counted_with_their_bytes() {
    let servers = Redis::start_many::<2>();
    let fleet = one_worker(&servers, "");
    let mut client = fleet.client();
    let (key, other) = (fleet.key(0), fleet.key(1));
    let set = encode(["SET", &key, "some value"]);
    client.send_raw(&set);
    assert_eq!(client.read(), Value::ok());
    let count = |name: &str| fleet.server_stat(0, name);
    assert_eq!([count("requests"), count("request_bytes")], [1, set.len() as u64]);
    assert_eq!([count("responses"), count("response_bytes")], [1, "+OK\r\n".len() as u64]);

    assert_eq!(client.call(["DEL", &key, &other]), Value::Int(1));
    assert_eq!([count("requests"), count("responses"), fleet.server_stat(1, "requests")], [2, 2, 1]);
    assert_eq!(fleet.stat("fragments"), 2);
    assert_eq!([count("server_connections"), count("server_total")], [1, 1]);

    assert!(client.call(["NOSUCHCOMMAND"]).is_error("ERR unknown command"));
    assert_eq!(fleet.stat("forward_error"), 1);
    assert_eq!([fleet.stat("client_connections"), fleet.stat("client_total")], [1, 1]);
    drop(client);
    fleet.wait_idle();
    assert_eq!([fleet.stat("client_eof"), fleet.stat("client_err")], [1, 0]);
}

/// With several connections to a server the queues are those of all of them, not of the one that moved last.
#[test]
fn queues_are_live_and_summed_over_connections() {
    let mut servers = [Redis::start()];
    let fleet = one_worker(&servers, "server_connections: 3");
    let mut clients: Vec<_> = (0..9).map(|_| fleet.client()).collect();
    clients.iter_mut().for_each(|client| drop(client.call(["SET", "k", "v"])));
    let request = encode(["GET", "k"]);
    servers[0].pause();
    clients.iter_mut().for_each(|client| client.send_raw(request.repeat(2)));
    wait_until("all to be on their way", PATIENCE, || fleet.server_stat(0, "out_queue") == 18);
    assert_eq!(fleet.server_stat(0, "out_queue_bytes"), 18 * request.len() as u64);
    assert_eq!([fleet.server_stat(0, "in_queue"), fleet.server_stat(0, "in_queue_bytes")], [0, 0]);
    servers[0].resume();
    for client in &mut clients {
        assert_eq!([client.read(), client.read()], [Value::bulk("v"), Value::bulk("v")]);
    }
    drop(clients);
    fleet.wait_idle();
}

#[test]
fn ends_of_server_connections_are_counted_by_their_kind() {
    let mut servers = [Redis::start()];
    let fleet = one_worker(&servers, "timeout: 200");
    let mut client = fleet.client();
    let count = |name: &str| fleet.server_stat(0, name);
    client.call(["SET", "k", "v"]);
    servers[0].client().call(["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
    wait_until("the close to be counted", PATIENCE, || count("server_eof") == 1);
    assert_eq!([count("server_err"), count("server_timedout")], [0, 0]);

    fleet.wait_served(0, PATIENCE);
    servers[0].pause();
    client.send_raw(encode(["GET", "k"]).repeat(5));
    (0..5).for_each(|_| assert!(client.read().is_error("ERR Connection timed out")));
    assert_eq!([count("server_timedout"), count("failed_attempts")], [1, 1], "one connection, one failure");
    assert!(count("failing_since") > 1_600_000_000_000_000, "microseconds since 1970");
    assert_eq!(fleet.stat("forward_error"), 5);

    servers[0].resume();
    fleet.wait_served(0, PATIENCE);
    assert_eq!([count("failed_attempts"), count("failing_since")], [0, 0]);
    assert!(count("last_success") > 1_600_000_000_000_000);

    servers[0].kill();
    wait_until("attempts to connect to be counted", PATIENCE, || count("server_err") >= 1);
    assert_eq!(count("server_connections"), 0);
    assert!(count("failed_attempts") >= 1);
}

/// B19: the kernel probes a silent server, whatever `tcpkeepalive` says. Timer 2 in the kernel's table is keepalive.
#[test]
fn server_connections_have_keepalive() {
    let servers = [Redis::start()];
    let fleet = one_worker(&servers, "");
    fleet.client().call(["GET", "k"]);
    let remote = format!(":{:04X}", servers[0].port());
    let timer = || {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        table.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let established = fields[2].ends_with(&remote) && fields[3] == "01";
            established.then(|| fields[5][..2].to_owned())
        })
    };
    // 1 while the last bytes are not acknowledged yet.
    wait_until("a keepalive timer", PATIENCE, || timer().as_deref() == Some("02"));
}
