//! Signals.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{PATIENCE, Port, Shardwise, pool_of, wait_until};
use crate::yaml;

/// A request of one client is in flight to a server that never answers.
struct Stuck {
    proxy: Shardwise,
    _client: TcpStream,
    _server: TcpListener,
    _ports: [Port; 2],
}

fn stuck(process_settings: &str) -> Stuck {
    let ports = [Port::claim(), Port::claim()];
    let server = TcpListener::bind(ports[1].address()).unwrap();
    let pool = pool_of("alpha", &ports[0].address(), &[format!("{}:1 one", ports[1].address())], "");
    let proxy = Shardwise::start(&format!("{process_settings}{pool}"));
    let mut client = TcpStream::connect(ports[0].address()).unwrap();
    client.write_all(b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n").unwrap();
    let in_flight = || proxy.stats()["alpha"]["one"]["out_queue"] == 1;
    wait_until("the request to be in flight", PATIENCE, in_flight);
    Stuck { proxy, _client: client, _server: server, _ports: ports }
}

fn wait_for_line(proxy: &Shardwise, text: &str) {
    wait_until(text, PATIENCE, || proxy.log().contains(text));
}

#[test]
fn term_and_int_drain_and_end_with_0() {
    for signal in [Signal::TERM, Signal::INT] {
        let port = Port::claim();
        let mut proxy = Shardwise::start(&yaml(&port.address()));
        proxy.signal(signal);
        assert_eq!(proxy.wait_exit(PATIENCE), Some(0));
        let log = proxy.log();
        assert!(log.contains("drained: everything in flight was finished"), "{log}");
        assert!(!port.is_listened_on());
    }
}

#[test]
fn a_drain_stops_at_its_limit_and_says_what_it_waited_for() {
    let mut stuck = stuck("shardwise:\n  drain_timeout: 300\n");
    let start = Instant::now();
    assert_eq!(stuck.proxy.terminate(PATIENCE), Some(0));
    assert!(start.elapsed() >= Duration::from_millis(300));
    let log = stuck.proxy.log();
    assert!(log.contains("clients=1 requests=1 limit_ms=300"), "{log}");
    assert!(log.contains("cut=1"), "{log}");
}

#[test]
fn a_second_signal_ends_a_drain_at_once() {
    let mut stuck = stuck("shardwise:\n  drain_timeout: 60000\n");
    stuck.proxy.signal(Signal::TERM);
    wait_for_line(&stuck.proxy, "draining");
    assert_eq!(stuck.proxy.terminate(PATIENCE), Some(1));
    let log = stuck.proxy.log();
    assert!(log.contains("not drained: cut"), "{log}");
}

#[test]
fn no_client_is_accepted_while_draining_and_the_log_can_still_be_reopened() {
    let mut stuck = stuck("shardwise:\n  drain_timeout: 60000\n");
    stuck.proxy.signal(Signal::TERM);
    wait_for_line(&stuck.proxy, "draining");
    let port = stuck._ports[0].address();
    wait_until("the port to be closed", PATIENCE, || TcpStream::connect(&port).is_err());
    stuck.proxy.signal(Signal::HUP);
    wait_for_line(&stuck.proxy, "SIGHUP");
    assert!(stuck.proxy.is_running());
}

#[test]
fn hup_reopens_the_log_and_nothing_else() {
    let port = Port::claim();
    let mut proxy = Shardwise::with_args(&yaml(&port.address()), &["-o", "proxy.log"]);
    let (log, moved) = (proxy.dir().join("proxy.log"), proxy.dir().join("proxy.log.1"));
    std::fs::rename(&log, &moved).unwrap();
    let before = std::fs::read_to_string(&moved).unwrap();
    assert!(before.contains("started on pid"), "{before}");

    // The configuration is not read: a broken one changes nothing.
    std::fs::write(proxy.config_path(), "broken").unwrap();
    proxy.signal(Signal::HUP);
    wait_until("the new file", PATIENCE, || {
        std::fs::read_to_string(&log).is_ok_and(|text| text.contains("signal 1 (SIGHUP) received"))
    });
    assert_eq!(std::fs::read_to_string(&moved).unwrap(), before);
    assert!(port.is_listened_on());
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    assert_eq!(proxy.log(), "", "nothing went to the standard error");
}

#[test]
fn hup_without_a_log_file_is_only_noted() {
    let port = Port::claim();
    let mut proxy = Shardwise::start(&yaml(&port.address()));
    proxy.signal(Signal::HUP);
    wait_for_line(&proxy, "nothing to reopen");
    assert!(proxy.is_running());
}

#[test]
fn ttin_and_ttou_change_the_verbosity_within_its_bounds() {
    let port = Port::claim();
    let mut proxy = Shardwise::with_args(&yaml(&port.address()), &["-v", "10", "--threads", "1"]);
    for (signal, name, level) in [
        (Signal::TTIN, "SIGTTIN", 11),
        (Signal::TTIN, "SIGTTIN", 11),
        (Signal::TTOU, "SIGTTOU", 10),
        (Signal::TTOU, "SIGTTOU", 9),
    ] {
        let lines = |proxy: &Shardwise| {
            proxy.log().lines().filter(|line| line.contains(name) && line.contains("is set")).count()
        };
        let before = lines(&proxy);
        proxy.signal(signal);
        wait_until(name, PATIENCE, || lines(&proxy) == before + 1);
        let log = proxy.log();
        let last = log.lines().rfind(|line| line.contains("is set")).unwrap();
        assert!(last.contains(&format!("verbosity={level}")), "{last}");
    }
}

#[test]
fn usr1_and_usr2_are_noted_and_never_kill() {
    let port = Port::claim();
    let mut proxy = Shardwise::start(&yaml(&port.address()));
    proxy.signal(Signal::USR1);
    wait_for_line(&proxy, "SIGUSR1");
    proxy.signal(Signal::USR2);
    wait_for_line(&proxy, "SIGUSR2");
    assert!(proxy.is_running());
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
}
