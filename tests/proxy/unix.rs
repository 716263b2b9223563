//! Listeners and servers that aren't on IPv4.

use std::net::Ipv6Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Port, Redis, Resp, Shardwise, Value, encode, pool_of};

/// A conversation that touches all: several servers, a pipeline, a large value, bad input, the end.
fn converse(mut connect: impl FnMut() -> Resp) {
    let mut client = connect();
    let keys: Vec<String> = (0..200).map(|i| format!("key:{i}")).collect();
    let pairs = keys.iter().flat_map(|key| [key.as_str(), key]);
    assert_eq!(client.call(["MSET"].into_iter().chain(pairs)), Value::ok());
    let values = client.call(["MGET"].into_iter().chain(keys.iter().map(String::as_str)));
    assert_eq!(values, Value::array(keys.iter().map(Value::bulk)));
    let replies = client.pipeline(keys.iter().map(|key| ["GET", key]));
    assert_eq!(Value::array(replies), values);
    let large = "v".repeat(5 << 20);
    assert_eq!(client.call(["SET", "large", &large]), Value::ok());
    let replies = client.pipeline([["GET", "large"]; 10]);
    assert!(replies.iter().all(|reply| reply.bytes() == large.as_bytes()));
    client.send_raw(encode(["GET", "large"]).repeat(3));
    client.finish();
    for _ in 0..3 {
        assert_eq!(client.read().bytes().len(), large.len());
    }
    assert!(client.closed());
    for (input, last) in
        [("QUIT\r\nGET a\r\n", "+OK\r\n"), ("*x\r\n", "-ERR Protocol error: invalid multibulk length\r\n")]
    {
        let mut client = connect();
        client.send_raw(input);
        assert_eq!(client.read_raw(last.len()), last.as_bytes());
        assert!(client.closed());
    }
}

fn entries(servers: &[Redis]) -> Vec<String> {
    servers.iter().enumerate().map(|(i, server)| format!("{} server{i}", server.entry(1))).collect()
}

#[test]
fn clients_and_servers_may_use_unix_sockets() {
    let servers = [Redis::on_unix_socket(&[]), Redis::start(), Redis::on_unix_socket(&[])];
    let dir = tempfile::Builder::new().prefix("shardwise-").tempdir().expect("a temporary folder");
    let path = dir.path().join("proxy.sock");
    for (perm, mode) in [("", None), (" 0600", Some(0o600)), (" 0777", Some(0o777))] {
        let listen = format!("{}{perm}", path.display());
        let yaml = pool_of("alpha", &listen, &entries(&servers), "hash: murmur\nserver_connections: 2");
        // The socket of a process that was killed is still there when the next one starts.
        let proxy = Shardwise::start(&yaml);
        let found = std::fs::metadata(&path).expect("the socket is there").permissions().mode() & 0o777;
        assert!(mode.is_none_or(|mode| mode == found), "{found:o}");
        converse(|| Resp::unix(&path));
        assert!(servers.iter().all(|server| server.client().call(["DBSIZE"]).int() > 0));
        drop(proxy);
    }
}

#[test]
fn a_unix_socket_without_a_server_is_refused_by_name() {
    let redis = Redis::start();
    let port = Port::claim();
    let servers = ["/nonexistent/redis.sock:1".to_owned(), redis.entry(1)];
    let _proxy = Shardwise::start(&pool_of("alpha", &port.address(), &servers, "hash: murmur"));
    let mut client = Resp::port(port.number());
    let replies = client.pipeline((0..100).map(|i| ["SET".to_owned(), format!("key:{i}"), "v".to_owned()]));
    let failed: Vec<&Value> = replies.iter().filter(|reply| **reply != Value::ok()).collect();
    assert!(!failed.is_empty() && failed.len() < 100);
    for reply in failed {
        assert!(reply.is_error("ERR Connection refused: /nonexistent/redis.sock"), "{reply:?}");
    }
}

#[test]
fn listeners_and_servers_may_use_ipv6() {
    assert!(Path::new("/proc/net/if_inet6").exists(), "this machine has no IPv6");
    let redis = Redis::with(&["--bind", "127.0.0.1", "::1"]);
    let other = Redis::start();
    for (listen, server) in [("::1:PORT", "::1"), ("\"[::1]:PORT\"", "[::1]")] {
        let port = Port::claim();
        let listen = listen.replace("PORT", &port.number().to_string());
        let servers = [format!("\"{server}:{}:1 six\"", redis.port()), format!("{} four", other.entry(1))];
        let _proxy = Shardwise::start(&pool_of("alpha", &listen, &servers, "hash: murmur"));
        converse(|| Resp::tcp((Ipv6Addr::LOCALHOST, port.number())));
        assert!(redis.client().call(["DBSIZE"]).int() > 0);
    }
}
