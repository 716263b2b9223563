//! Clients behind a load balancer that names them (`proxy_protocol`).

use std::time::Duration;

use super::fleet::Fleet;
use crate::support::{Redis, Resp, Value, encode};

/// A client that has sent `header`, and behind it in the same packet an ECHO, which is answered.
fn named(fleet: &Fleet, header: &[u8]) -> Resp {
    let mut client = fleet.client();
    client.send_raw([header, &encode(["ECHO", "here"])].concat());
    assert_eq!(client.read(), Value::bulk("here"));
    client
}

fn info(client: &mut Resp) -> String {
    String::from_utf8(client.call(["CLIENT", "INFO"]).bytes().to_vec()).unwrap()
}

/// A header of version 2: `command` 1 brings somebody, 0 is the load balancer itself.
fn second(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([0x20 | command, family]);
    header.extend((body.len() as u16).to_be_bytes());
    header.extend(body);
    header
}

#[test]
fn a_client_has_the_address_that_is_announced() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "proxy_protocol: v1v2");
    let mut first = named(&fleet, b"PROXY TCP4 10.1.2.3 10.0.0.1 5555 6379\r\n");
    let text = info(&mut first);
    assert!(text.contains(" addr=10.1.2.3:5555 ") && text.contains(" laddr=10.0.0.1:6379 "), "{text}");
    // Version 2 with an extension, byte by byte, and the request likewise.
    let header = second(1, 0x11, &[10, 1, 2, 4, 10, 0, 0, 1, 0x15, 0xb3, 0x18, 0xeb, 4, 0, 1, 0]);
    let mut slow = fleet.client();
    for byte in [&header[..], &encode(["SET", "key", "value"])].concat() {
        slow.send_raw([byte]);
    }
    assert_eq!(slow.read(), Value::ok());
    let text = info(&mut slow);
    assert!(text.contains(" addr=10.1.2.4:5555 "), "{text}");
    // The load balancer's own checks: they are where they come from.
    for header in [&second(0, 0, &[])[..], b"PROXY UNKNOWN\r\n"] {
        let text = info(&mut named(&fleet, header));
        assert!(text.contains(" addr=127.0.0.1:"), "{text}");
    }
    assert_eq!(fleet.stat("proxy_header_errors"), 0);
}

/// All clients of a load balancer have its address: a limit for each address was a limit for all.
#[test]
fn it_is_the_announced_address_that_has_so_many_clients() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "proxy_protocol: v1v2\n  clients_per_address: 1");
    let header = |host: &str| format!("PROXY TCP4 {host} 10.0.0.1 5555 6379\r\n").into_bytes();
    let _one = named(&fleet, &header("10.1.2.3"));
    let _other = named(&fleet, &header("10.1.2.4"));
    let mut third = fleet.client();
    third.send_raw(header("10.1.2.3"));
    assert_eq!(third.read(), Value::Error("ERR max number of clients reached".into()));
    assert!(third.closed());
}

#[test]
fn whoever_is_not_announced_is_closed() {
    let servers = [Redis::start()];
    let fleet = Fleet::of(&servers, "proxy_protocol: v1v2\n  first_request_timeout: 1s");
    for bytes in [&b"*1\r\n$4\r\nPING\r\n"[..], b"PROXY TCP4 10.1.2.3 10.0.0.1 5555 99999\r\n", &[0; 5000]] {
        let mut client = fleet.client();
        // Closed while it is still sending, perhaps.
        let _ = client.try_send_raw(bytes);
        assert!(client.closed(), "{:?}", bytes.escape_ascii());
    }
    // One that says nothing.
    assert!(!fleet.client().silent_for(Duration::from_secs(5)), "its time is over after one second");
    let mut gone = fleet.client();
    gone.send_raw(b"PROXY ");
    gone.finish();
    assert!(gone.closed());
    assert_eq!([fleet.stat("proxy_header_errors"), fleet.stat("client_connections")], [5, 0]);
    let _ = named(&fleet, b"PROXY TCP4 10.1.2.3 10.0.0.1 5555 6379\r\n");
}
