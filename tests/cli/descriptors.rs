//! More clients than file descriptors (B30).

use std::io::Read;
use std::net::TcpStream;

use rlimit::Resource;

use super::stats::parsed;
use crate::support::{PATIENCE, Port, Process, Redis, Shardwise, wait_until};

/// A proxy for `server` that may open 200 files at most; it has two workers.
fn proxy_of_few_files(server: &Redis, port: &Port, stats: &Port, dir: &std::path::Path) -> Process {
    let text = format!(
        "alpha:\n  listen: {}\n  redis: true\n  servers:\n   - {} one\n",
        port.address(),
        server.entry(1)
    );
    std::fs::write(dir.join("conf.yml"), text).unwrap();
    // Root could raise its own limit; without that capability it can't.
    let script =
        format!("ulimit -n 200; exec {} -c conf.yml -s {} --threads 2", Shardwise::PROGRAM, stats.number());
    let args = ["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "--", "sh", "-c", &script];
    let mut proxy = Process::start("proxy", "/usr/bin/setpriv", &args.map(str::to_owned), dir);
    proxy.wait_ready(|| port.is_listened_on() && stats.is_listened_on());
    assert!(proxy.log().contains("limit of open files is too low"), "{}", proxy.log());
    proxy
}

/// Clients took every descriptor before the first connection to the server was made, and nobody was served. Now those
/// of the servers are kept back: whoever is past them is told so, as Redis does it, and the others are served.
#[test]
fn clients_leave_the_servers_their_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    let (port, stats, server) = (Port::claim(), Port::claim(), Redis::start());
    let _proxy = proxy_of_few_files(&server, &port, &stats, dir.path());
    let mut clients: Vec<TcpStream> = (0..190).map(|_| TcpStream::connect(port.address()).unwrap()).collect();
    let (mut served, mut refused) = (0, 0);
    for client in &mut clients {
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        // One that was refused may have been closed already.
        let _ = std::io::Write::write_all(client, b"SET key value\r\n");
        let mut reply = [0; 5];
        match client.read_exact(&mut reply) {
            Ok(()) if reply == *b"+OK\r\n" => served += 1,
            Ok(()) => assert_eq!(reply, *b"-ERR "),
            Err(_) => refused += 1,
        }
        refused += i32::from(reply == *b"-ERR ");
    }
    assert!(served >= 50, "{served} were served");
    assert_eq!(served + refused, 190);
    assert_eq!(parsed(&stats.address())["alpha"]["client_connections"], served);
}

/// Accepting pauses when there are none at all, is logged once, and goes on when clients have left.
#[test]
fn running_out_of_descriptors_is_survived_and_logged_once() {
    let dir = tempfile::tempdir().unwrap();
    let (port, stats, server) = (Port::claim(), Port::claim(), Redis::start());
    let proxy = proxy_of_few_files(&server, &port, &stats, dir.path());
    // Lower than it was told at the start.
    rlimit::prlimit(proxy.pid() as i32, Resource::NOFILE, Some((60, 60)), None).unwrap();
    let clients: Vec<TcpStream> = (0..80).map(|_| TcpStream::connect(port.address()).unwrap()).collect();
    wait_until("the limit to be hit", PATIENCE, || proxy.log().contains("cannot accept clients"));
    drop(clients);
    let left = || parsed(&stats.address())["alpha"]["client_connections"] == 0;
    wait_until("the clients' leaving to be noticed", PATIENCE, left);
    let _another = TcpStream::connect(port.address()).unwrap();
    let served = || parsed(&stats.address())["alpha"]["client_connections"] == 1;
    wait_until("another client to be served", PATIENCE, served);
    assert_eq!(proxy.log().matches("cannot accept clients").count(), 1, "{}", proxy.log());
}
