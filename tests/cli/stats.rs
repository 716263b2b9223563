//! The stats port, and clients as it counts them.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::support::{PATIENCE, Port, Shardwise, wait_until};
use crate::{stdout, yaml};

pub(crate) fn ask(address: &str, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

pub(crate) fn parsed(address: &str) -> serde_json::Value {
    serde_json::from_str(&ask(address, b"")).expect("JSON")
}

fn with_stats(threads: &str) -> (Shardwise, Port, String) {
    let (port, stats) = (Port::claim(), Port::claim());
    let number = stats.number().to_string();
    let proxy = Shardwise::with_args(&yaml(&port.address()), &["-s", &number, "--threads", threads]);
    (proxy, port, stats.address())
}

#[test]
fn the_shape_is_twemproxys_down_to_the_spacing() {
    let (_proxy, _port, stats) = with_stats("1");
    let text = ask(&stats, b"");
    assert!(text.starts_with(r#"{"service":"shardwise", "source":""#), "{text}");
    assert!(
        text.contains(r#", "alpha": {"client_eof":0, "client_err":0, "client_connections":0, "#),
        "{text}"
    );
    assert!(text.contains(r#""one": {"server_eof":0, "server_err":"#), "{text}");
    assert!(text.ends_with("}}}\n") && text.lines().count() == 1, "{text}");
}

#[test]
fn all_numbers_are_described() {
    let (_proxy, _port, stats) = with_stats("1");
    let described = stdout(&Shardwise::run("", &["-D"]));
    let stats = parsed(&stats);
    for (name, value) in stats["alpha"].as_object().unwrap() {
        match value.as_object() {
            None => assert!(described.contains(&format!("  {name} ")), "{name}"),
            Some(server) => {
                for name in server.keys() {
                    assert!(described.contains(&format!("  {name} ")), "{name}");
                }
            }
        }
    }
}

#[test]
fn a_request_is_not_needed_and_does_no_harm() {
    let (_proxy, _port, stats) = with_stats("1");
    let text = ask(&stats, &[b"GET / HTTP/1.0\r\n", &[b'x'; 10_000][..], b"\r\n\r\n"].concat());
    assert!(text.ends_with("}}}\n"), "{text}");
}

#[test]
fn readers_that_never_read_do_not_keep_others_out() {
    let (_proxy, _port, stats) = with_stats("1");
    let idle: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(&stats).unwrap()).collect();
    assert!(ask(&stats, b"").ends_with("}}}\n"));
    drop(idle);
}

#[test]
fn clients_are_counted_at_once_and_spread_evenly() {
    let (_proxy, port, stats) = with_stats("4");
    let pool = |name: &str| parsed(&stats)["alpha"][name].as_u64().unwrap();
    let mut clients: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(port.address()).unwrap()).collect();
    wait_until("all clients to be counted", PATIENCE, || pool("client_connections") == 20);
    assert_eq!((pool("client_connections_least"), pool("client_connections_most")), (5, 5));
    assert_eq!(pool("client_total"), 20);

    clients.truncate(7);
    wait_until("those that left to be noticed", PATIENCE, || pool("client_connections") == 7);
    clients.extend((0..9).map(|_| TcpStream::connect(port.address()).unwrap()));
    wait_until("the new ones", PATIENCE, || pool("client_connections") == 16);
    assert_eq!((pool("client_connections_least"), pool("client_connections_most")), (4, 4));
}
