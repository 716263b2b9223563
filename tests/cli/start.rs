//! The start, and what stops it.

use std::net::TcpListener;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixListener;

use crate::support::{PATIENCE, Port, Shardwise, pool_of};
use crate::{run_in, run_to_serve, stderr, yaml};

#[test]
fn it_says_who_it_is_and_where_it_listens_and_little_more() {
    let port = Port::claim();
    let mut proxy = Shardwise::with_args(&yaml(&port.address()), &["-m", "1024", "-i", "100"]);
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    let log = proxy.log();
    let once = |text: &str| assert_eq!(log.matches(text).count(), 1, "{text} in:\n{log}");
    once(&format!("started on pid {}", proxy.pid()));
    once(&format!("listening on {}", port.address()));
    once("stats on 127.0.0.1:");
    once("--mbuf-size has no effect");
    once("--stats-interval has no effect");
    assert!(log.lines().count() < 15, "a quiet log:\n{log}");
}

#[test]
fn a_lower_verbosity_is_silent() {
    let port = Port::claim();
    let mut proxy = Shardwise::with_args(&yaml(&port.address()), &["-v", "4", "--threads", "1"]);
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    assert_eq!(proxy.log(), "");
}

#[test]
fn the_log_can_be_json() {
    let port = Port::claim();
    let yaml = format!("shardwise:\n  log_format: json\n{}", yaml(&port.address()));
    let mut proxy = Shardwise::start(&yaml);
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    for line in proxy.log().lines() {
        let value: serde_json::Value = serde_json::from_str(line).expect(line);
        assert!(value["level"].is_string() && value["message"].is_string(), "{line}");
    }
}

#[test]
fn the_pid_file_holds_the_pid_and_goes_at_the_end() {
    let port = Port::claim();
    let mut proxy = Shardwise::with_args(&yaml(&port.address()), &["-p", "proxy.pid"]);
    let path = proxy.dir().join("proxy.pid");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), proxy.pid().to_string());
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    assert!(!path.exists());
}

#[test]
fn the_pid_file_of_a_successor_stays() {
    let port = Port::claim();
    let mut proxy = Shardwise::with_args(&yaml(&port.address()), &["-p", "proxy.pid"]);
    let path = proxy.dir().join("proxy.pid");
    std::fs::write(&path, "1").unwrap();
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "1");
}

#[test]
fn a_wrong_configuration_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    for daemonize in [&[][..], &["-d"]] {
        let output = run_to_serve(dir.path(), "alpha:\n  listen: nonsense\n", daemonize);
        assert_eq!(output.status.code(), Some(1), "{daemonize:?}");
        assert!(stderr(&output).starts_with("conf.yml:"), "{}", stderr(&output));
    }
    let output = run_to_serve(dir.path(), "alpha:\n  listen: nonsense\n", &["-o", "log"]);
    assert!(stderr(&output).starts_with("conf.yml:"), "{}", stderr(&output));
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(log.contains("conf.yml:"), "{log}");
}

#[test]
fn a_log_or_pid_file_that_cannot_be_opened_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let port = Port::claim();
    for option in ["-o", "-p"] {
        let output = run_to_serve(dir.path(), &yaml(&port.address()), &[option, "no/such/folder"]);
        assert_eq!(output.status.code(), Some(1), "{option}");
        let text = stderr(&output);
        assert!(text.contains("no/such/folder") && text.contains("No such file"), "{option}: {text}");
    }
}

#[test]
fn a_port_in_use_is_named_with_its_pool_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let (free, taken) = (Port::claim(), Port::claim());
    let _holder = TcpListener::bind(taken.address()).unwrap();
    let server = ["127.0.0.1:1:1 one".to_owned()];
    let yaml =
        pool_of("alpha", &free.address(), &server, "") + &pool_of("beta", &taken.address(), &server, "");
    let output = run_to_serve(dir.path(), &yaml, &["-p", "pid"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1));
    let expected = format!("pool 'beta': cannot listen on {}: ", taken.address());
    assert!(text.contains(&expected) && text.contains("in use"), "{text}");
    assert!(!dir.path().join("pid").exists());

    // The reason is on the terminal also when the log is a file.
    let output = run_to_serve(dir.path(), &yaml, &["-o", "log"]);
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    assert!(std::fs::read_to_string(dir.path().join("log")).unwrap().contains(&expected));
}

#[test]
fn a_stats_port_in_use_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (port, stats) = (Port::claim(), Port::claim());
    let _holder = TcpListener::bind(stats.address()).unwrap();
    std::fs::write(dir.path().join("conf.yml"), yaml(&port.address())).unwrap();
    let number = stats.number().to_string();
    let output = run_in(dir.path(), &["-c", "conf.yml", "-s", &number]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(&format!("stats port: cannot listen on {}", stats.address())));
}

#[test]
fn a_stale_unix_socket_is_replaced_and_ours_goes_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pool.sock");
    drop(UnixListener::bind(&path).unwrap()); // the file stays behind
    let mut proxy = Shardwise::start(&yaml(path.to_str().unwrap()));
    let second = run_to_serve(dir.path(), &yaml(path.to_str().unwrap()), &[]);
    assert_eq!(second.status.code(), Some(1));
    assert!(stderr(&second).contains("another process answers"), "{}", stderr(&second));
    assert!(path.metadata().unwrap().file_type().is_socket(), "the second left it alone");
    assert_eq!(proxy.terminate(PATIENCE), Some(0));
    assert!(!path.exists());
}
