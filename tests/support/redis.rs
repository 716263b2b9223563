//! A real redis-server.

use std::path::{Path, PathBuf};

use rustix::process::Signal;
use tempfile::TempDir;

use super::ports::listens_unix;
use super::{Port, Process, Resp, Value, locate};

/// A redis-server of this test's own, without persistence, on loopback.
#[derive(Debug)]
pub struct Redis {
    // Fields drop in this order: the process ends before its port and folder are given back.
    process: Process,
    program: PathBuf,
    args: Vec<String>,
    at: At,
    dir: TempDir,
}

#[derive(Debug)]
enum At {
    Tcp(Port),
    Unix(PathBuf),
}

impl Redis {
    /// Starts one on a free port.
    pub fn start() -> Self {
        Self::with(&[])
    }

    /// Starts one on a free port with further options (`["--requirepass", "x"]`).
    pub fn with(options: &[&str]) -> Self {
        Self::of_program(&locate("redis-server"), options)
    }

    /// Starts another server that takes redis-server's options (a valkey-server).
    pub fn of_program(program: &Path, options: &[&str]) -> Self {
        Self::launch(program, At::Tcp(Port::claim()), options, folder())
    }

    /// Starts one that listens on a unix socket only.
    pub fn on_unix_socket(options: &[&str]) -> Self {
        let dir = folder();
        let at = At::Unix(dir.path().join("redis.sock"));
        Self::launch(&locate("redis-server"), at, options, dir)
    }

    /// Starts `N` on free ports.
    pub fn start_many<const N: usize>() -> [Self; N] {
        std::array::from_fn(|_| Self::start())
    }

    fn launch(program: &Path, at: At, options: &[&str], dir: TempDir) -> Self {
        let mut args: Vec<String> =
            ["--save", "", "--appendonly", "no", "--enable-debug-command", "yes", "--dir"]
                .map(str::to_owned)
                .into();
        args.push(dir.path().display().to_string());
        match &at {
            At::Tcp(port) => {
                args.extend(["--bind".into(), "127.0.0.1".into(), "--port".into(), port.number().to_string()])
            }
            At::Unix(path) => {
                args.extend(["--port".into(), "0".into(), "--unixsocket".into(), path.display().to_string()])
            }
        }
        args.extend(options.iter().map(|option| (*option).to_owned()));
        let process = Process::start("redis", program, &args, dir.path());
        let mut redis = Self { process, program: program.to_owned(), args, at, dir };
        redis.wait_ready();
        redis
    }

    /// The port; panics for one on a unix socket.
    pub fn port(&self) -> u16 {
        match &self.at {
            At::Tcp(port) => port.number(),
            At::Unix(path) => panic!("this server is at {}", path.display()),
        }
    }

    /// `127.0.0.1:PORT`, or the path of the socket.
    pub fn address(&self) -> String {
        match &self.at {
            At::Tcp(port) => port.address(),
            At::Unix(path) => path.display().to_string(),
        }
    }

    /// The server's line in a pool's `servers`, without a name.
    pub fn entry(&self, weight: u32) -> String {
        format!("{}:{weight}", self.address())
    }

    /// A connection past every proxy.
    pub fn client(&self) -> Resp {
        match &self.at {
            At::Tcp(port) => Resp::tcp(port.socket_addr()),
            At::Unix(path) => Resp::unix(path),
        }
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// One number of its INFO (`"connected_clients"`); panics when there is none of that name.
    pub fn info(&self, field: &str) -> i64 {
        let text = self.client().call(["INFO", "everything"]);
        let text = String::from_utf8_lossy(text.bytes()).into_owned();
        let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value
            .and_then(|v| v.trim().parse().ok())
            .unwrap_or_else(|| panic!("INFO has no number {field}:\n{text}"))
    }

    /// SIGKILL: gone at once, its connections are reset or closed by the kernel.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// SIGSTOP: connections stay, nothing is answered.
    pub fn pause(&mut self) {
        self.process.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub fn resume(&mut self) {
        self.process.signal(Signal::CONT);
    }

    /// Starts it again at the same address, empty; kills it first if it runs.
    pub fn restart(&mut self) {
        self.process.kill();
        self.process = Process::start("redis", &self.program, &self.args, self.dir.path());
        self.wait_ready();
    }

    /// [`Self::restart`] with these options besides those that it has.
    pub fn restart_with(&mut self, options: &[&str]) {
        self.args.extend(options.iter().map(|option| (*option).to_owned()));
        self.restart();
    }

    fn wait_ready(&mut self) {
        let at = &self.at;
        self.process.wait_ready(|| match at {
            At::Tcp(port) => port.is_listened_on(),
            At::Unix(path) => listens_unix(&path.display().to_string()),
        });
        // It listens before it serves; with a password the answer is NOAUTH, which is an answer.
        let answer = self.client().call(["PING"]);
        assert!(
            answer == Value::simple("PONG") || answer.is_error("NOAUTH"),
            "PING is answered by {answer:?}:\n{}",
            self.log()
        );
    }
}

fn folder() -> TempDir {
    tempfile::Builder::new().prefix("shardwise-redis-").tempdir().expect("a temporary folder")
}
