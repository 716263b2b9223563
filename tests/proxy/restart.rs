//! Restarts: another process takes over, first the listening sockets, then every client.

use std::time::Duration;

use rustix::process::Signal;

use super::fleet::entries;
use super::traffic::Traffic;
use crate::support::{PATIENCE, Port, Redis, Resp, Shardwise, Value, encode, pool_of, wait_until};

/// Where the processes of a test meet; removed with its folder.
fn meeting() -> (tempfile::TempDir, String) {
    let folder =
        tempfile::Builder::new().prefix("shardwise-handover-").tempdir().expect("a temporary folder");
    let line = format!("shardwise: {{handover: {}}}\n", folder.path().join("socket").display());
    (folder, line)
}

fn rounds(few: usize) -> usize {
    if std::env::var_os("SHARDWISE_SOAK").is_some() { 20 } else { few }
}

/// Pooled clients keep their connection over every restart, short ones are always let in.
#[test]
fn nobody_notices_restarts_under_load() {
    for settings in ["", "reuseport: true"] {
        let servers = Redis::start_many::<2>();
        let (port, (_folder, handover)) = (Port::claim(), meeting());
        let yaml = pool_of("alpha", &port.address(), &entries(&servers), settings);
        let mut proxy = Shardwise::start(&format!("{handover}{yaml}"));
        let traffic = Traffic::start(port.socket_addr(), 6, 2);
        for _ in 0..rounds(3) {
            traffic.wait_replies(200);
            assert_eq!(proxy.restart(), Some(0), "{}", proxy.log());
        }
        traffic.wait_replies(200);
        traffic.stop();
        assert!(proxy.log().contains("everything in flight was finished"), "{}", proxy.log());
    }
}

/// What was agreed with a client goes with it: its password, its name, and the half of a request that it has sent.
#[test]
fn a_client_goes_on_where_it_was() {
    let servers = Redis::start_many::<1>();
    let (port, (_folder, handover)) = (Port::claim(), meeting());
    let yaml = pool_of("alpha", &port.address(), &entries(&servers), "redis_auth: secret");
    let mut proxy = Shardwise::start(&format!("{handover}{yaml}"));
    let (mut client, mut stranger) = (Resp::port(port.number()), Resp::port(port.number()));
    assert_eq!(client.call(["AUTH", "secret"]), Value::ok());
    assert_eq!(client.call(["CLIENT", "SETNAME", "me"]), Value::ok());
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    assert!(stranger.call(["GET", "k"]).is_error("NOAUTH"));
    let request = encode(["GET", "k"]);
    client.send_raw(&request[..9]);
    assert_eq!(proxy.restart(), Some(0));
    client.send_raw(&request[9..]);
    assert_eq!(client.read(), Value::bulk("v"));
    assert_eq!(client.call(["CLIENT", "GETNAME"]), Value::bulk("me"));
    assert!(stranger.call(["GET", "k"]).is_error("NOAUTH"), "a stranger stays one");
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
}

/// A client waits for its reply in the old process, and then goes over.
#[test]
fn a_request_in_flight_is_answered_before_its_client_goes() {
    let mut servers = Redis::start_many::<1>();
    let (port, (_folder, handover)) = (Port::claim(), meeting());
    let yaml = pool_of("alpha", &port.address(), &entries(&servers), "");
    let mut proxy = Shardwise::start(&format!("{handover}{yaml}"));
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    servers[0].pause();
    client.send(["GET", "k"]);
    wait_until("the request to be with the server", PATIENCE, || {
        proxy.stats()["alpha"]["s0"]["out_queue"] == 1
    });
    let resumer = std::thread::spawn(move || {
        let mut servers = servers;
        // Whenever it is resumed, the reply must come; most likely the new process serves by then.
        std::thread::park_timeout(Duration::from_millis(300));
        servers[0].resume();
        servers
    });
    assert_eq!(proxy.restart(), Some(0));
    let _servers = resumer.join().expect("it only waits");
    assert_eq!(client.read(), Value::bulk("v"));
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"));
}

/// A new process that cannot start leaves the old one as it was.
#[test]
fn a_successor_that_does_not_start_harms_nobody() {
    let servers = Redis::start_many::<1>();
    let (port, taken, (_folder, handover)) = (Port::claim(), Port::claim(), meeting());
    let yaml = format!("{handover}{}", pool_of("alpha", &port.address(), &entries(&servers), ""));
    let mut proxy = Shardwise::start(&yaml);
    let mut client = Resp::port(port.number());
    assert_eq!(client.call(["SET", "k", "v"]), Value::ok());
    let _holder = std::net::TcpListener::bind(taken.socket_addr()).expect("it is ours");
    let more = pool_of("beta", &taken.address(), &entries(&servers), "");
    let output = Shardwise::run(&format!("{yaml}{more}"), &["-c", "conf.yml", "-s", "1"]);
    assert_eq!(output.status.code(), Some(1), "beta's address is taken");
    wait_until("the old process to go on", PATIENCE, || proxy.log().contains("going on"));
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"));
    assert_eq!(Resp::port(port.number()).call(["GET", "k"]), Value::bulk("v"));
    assert_eq!(proxy.restart(), Some(0), "and can still be replaced");
    assert_eq!(client.call(["GET", "k"]), Value::bulk("v"));
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.wait_exit(PATIENCE), Some(0));
}
