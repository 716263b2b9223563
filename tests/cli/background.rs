//! `-d`.

use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::support::{PATIENCE, Port, wait_until};
use crate::{run_to_serve, stderr, yaml};

/// A daemon; killed at the latest when this is dropped.
struct Daemon(Pid);

impl Daemon {
    fn of(pid_file: &Path) -> Self {
        let pid = std::fs::read_to_string(pid_file).unwrap().parse().unwrap();
        Self(Pid::from_raw(pid).unwrap())
    }

    /// Still there and not a zombie that nobody waits for.
    fn lives(&self) -> bool {
        let stat =
            std::fs::read_to_string(format!("/proc/{}/stat", self.0.as_raw_nonzero())).unwrap_or_default();
        test_kill_process(self.0).is_ok() && !stat.contains(") Z ")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.lives() {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }
}

#[test]
fn it_returns_when_the_daemon_serves_and_keeps_folder_and_umask() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("pool.sock");
    let output = run_to_serve(dir.path(), &yaml(socket.to_str().unwrap()), &["-d", "-p", "pid", "-o", "log"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout.is_empty() && output.stderr.is_empty());

    // No waiting: it serves already.
    let daemon = Daemon::of(&dir.path().join("pid"));
    assert!(daemon.lives());
    std::os::unix::net::UnixStream::connect(&socket).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o777, "umask 0, as nutcracker");
    assert_eq!((mode(&dir.path().join("log")), mode(&dir.path().join("pid"))), (0o644, 0o644));
    let process = format!("/proc/{}", daemon.0.as_raw_nonzero());
    assert_eq!(std::fs::read_link(format!("{process}/cwd")).unwrap(), dir.path().canonicalize().unwrap());
    for fd in 0..3 {
        assert_eq!(std::fs::read_link(format!("{process}/fd/{fd}")).unwrap(), Path::new("/dev/null"));
    }

    kill_process(daemon.0, Signal::TERM).unwrap();
    wait_until("the daemon to end", PATIENCE, || !daemon.lives());
    assert!(!dir.path().join("pid").exists() && !socket.exists());
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(log.contains("SIGTERM") && log.contains("ended"), "{log}");
}

#[test]
fn it_says_why_the_daemon_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let port = Port::claim();
    let _holder = TcpListener::bind(port.address()).unwrap();
    let output = run_to_serve(dir.path(), &yaml(&port.address()), &["-d", "-p", "pid"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("pool 'alpha': cannot listen on"), "{}", stderr(&output));
    assert!(!dir.path().join("pid").exists());
}

#[test]
fn the_daemon_accepts_on_tcp() {
    let dir = tempfile::tempdir().unwrap();
    let port = Port::claim();
    let output = run_to_serve(dir.path(), &yaml(&port.address()), &["-d", "-p", "pid"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let _daemon = Daemon::of(&dir.path().join("pid"));
    TcpStream::connect(port.address()).unwrap();
}
