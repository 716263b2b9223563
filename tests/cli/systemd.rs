//! As systemd starts it: with sockets that are open already, and with a place to be told how it goes.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{PATIENCE, Port, Shardwise, wait_until};
use crate::yaml;

/// Ends with the test.
struct Service(Child);

impl Service {
    /// With `listener` as the first descriptor that systemd passes, and states sent to `notify`.
    fn start(dir: &Path, yaml: &str, listener: TcpListener, notify: &Path) -> Self {
        std::fs::write(dir.join("conf.yml"), yaml).expect("a file in a folder of our own");
        let stats = Port::claim();
        // Descriptors from 3 on, and LISTEN_PID with the program's own number: what only a shell can do for it here.
        let shell = r#"exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@""#;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--", "sh", "-c", shell, Shardwise::PROGRAM, "-c", "conf.yml"]);
        command.args(["-s", &stats.number().to_string(), "--threads", "2"]).current_dir(dir);
        command.stdin(OwnedFd::from(listener)).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.env("NOTIFY_SOCKET", notify).spawn().expect("the program starts"))
    }

    fn signal(&self, signal: Signal) {
        let pid =
            i32::try_from(self.0.id()).ok().and_then(Pid::from_raw).expect("a child has a positive pid");
        kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ended_already = self.0.kill();
        let _reaped = self.0.wait();
    }
}

fn told(notify: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let read = notify.recv(&mut buffer).expect("systemd is told in time");
    String::from_utf8_lossy(&buffer[..read]).into_owned()
}

#[test]
fn sockets_of_systemd_are_used_and_it_is_told_how_it_goes() {
    let dir = tempfile::tempdir().unwrap();
    let notify_path = dir.path().join("notify");
    let notify = UnixDatagram::bind(&notify_path).unwrap();
    notify.set_read_timeout(Some(PATIENCE)).unwrap();
    let port = Port::claim();
    let listener = TcpListener::bind(port.socket_addr()).unwrap();
    // It waits in the queue before the program runs.
    let _early = TcpStream::connect(port.socket_addr()).unwrap();
    let yaml = yaml(&port.address());
    let mut service = Service::start(dir.path(), &yaml, listener, &notify_path);
    let ready = told(&notify);
    assert!(ready.contains("READY=1") && ready.contains(&format!("MAINPID={}", service.0.id())), "{ready}");

    service.signal(Signal::USR1);
    let reloading = told(&notify);
    assert!(reloading.contains("RELOADING=1") && reloading.contains("MONOTONIC_USEC="), "{reloading}");
    assert!(told(&notify).contains("READY=1"));

    service.signal(Signal::TERM);
    assert!(told(&notify).contains("STOPPING=1"));
    wait_until("the end", PATIENCE, || service.0.try_wait().unwrap().is_some());
}
