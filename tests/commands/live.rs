//! A live server on a unix socket, and just enough of a client.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// A server of its own for one test, killed when dropped.
pub struct Server {
    process: Child,
    stream: BufReader<UnixStream>,
    folder: tempfile::TempDir,
}

/// The server's log, in its folder.
const LOG: &str = "log";

/// A reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Simple(String),
    Error(Vec<u8>),
    Int(i64),
    Bulk(Vec<u8>),
    Nil,
    Array(Vec<Value>),
}

impl Server {
    /// Redis 7.0.
    pub fn redis() -> Server {
        Server::start(&std::env::var_os("REDIS_SERVER").unwrap_or("redis-server".into()))
    }

    /// Valkey.
    pub fn valkey() -> Server {
        let binary = std::env::var_os("VALKEY_SERVER")
            .map(PathBuf::from)
            .or_else(|| find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv"), "valkey-server"))
            .expect("VALKEY_SERVER is not set, and there is none in .venv: run make setup");
        Server::start(&binary.into())
    }

    fn start(binary: &OsString) -> Server {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let socket = folder.path().join("socket");
        let log = File::create(folder.path().join(LOG)).expect("the folder is writable");
        let process = Command::new(binary)
            .args(["--port", "0", "--save", "", "--dir"])
            .arg(folder.path())
            .arg("--unixsocket")
            .arg(&socket)
            .stdout(log)
            .spawn()
            .unwrap_or_else(|error| panic!("{} does not start: {error}", binary.display()));
        let deadline = Instant::now() + Duration::from_secs(20);
        let stream = loop {
            match UnixStream::connect(&socket) {
                Ok(stream) => break stream,
                Err(error) => {
                    assert!(Instant::now() < deadline, "{} does not listen: {error}", binary.display())
                }
            }
            #[allow(clippy::disallowed_methods)] // the pause of a bounded poll
            std::thread::sleep(Duration::from_millis(5));
        };
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a socket takes a timeout");
        Server { process, stream: BufReader::new(stream), folder }
    }

    /// Sends a request and waits for its reply.
    pub fn ask<T: AsRef<[u8]>>(&mut self, args: &[T]) -> Value {
        let request = super::request::encode(args);
        let sent = self.stream.get_mut().write_all(&request);
        sent.unwrap_or_else(|error| self.is_gone(&error.to_string()));
        self.read()
    }

    /// Ends the test with what the server has to say.
    fn is_gone(&mut self, why: &str) -> ! {
        let log = std::fs::read_to_string(self.folder.path().join(LOG)).unwrap_or_default();
        panic!("no answer: {why}; exit: {:?}; log:\n{log}", self.process.try_wait());
    }

    fn read(&mut self) -> Value {
        let mut line = Vec::new();
        if let Err(error) = self.stream.read_until(b'\n', &mut line) {
            self.is_gone(&error.to_string());
        }
        let Some(text) = line.strip_suffix(b"\r\n").map(<[u8]>::to_vec) else {
            self.is_gone("end of stream")
        };
        let number = || std::str::from_utf8(&text[1..]).unwrap().parse::<i64>().expect("a number");
        match text[0] {
            b'+' => Value::Simple(String::from_utf8(text[1..].to_vec()).unwrap()),
            b'-' => Value::Error(text[1..].to_vec()),
            b':' => Value::Int(number()),
            b'$' | b'*' if number() < 0 => Value::Nil,
            b'$' => {
                let mut content = vec![0; number() as usize + 2];
                self.stream.read_exact(&mut content).expect("a whole bulk");
                content.truncate(content.len() - 2);
                Value::Bulk(content)
            }
            b'*' => Value::Array((0..number()).map(|_| self.read()).collect()),
            other => panic!("unexpected type byte {other}"),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Value {
    pub fn array(&self) -> &[Value] {
        match self {
            Value::Array(values) => values,
            other => panic!("{other:?} is no array"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Value::Simple(text) => text,
            Value::Bulk(bytes) => std::str::from_utf8(bytes).expect("text"),
            other => panic!("{other:?} is no text"),
        }
    }

    pub fn int(&self) -> i64 {
        match self {
            Value::Int(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }

    /// The texts of an array.
    pub fn texts(&self) -> Vec<&str> {
        self.array().iter().map(Value::text).collect()
    }

    /// The value of a field in an array of names and values.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.array().chunks(2).find(|pair| pair[0].text() == name).map(|pair| &pair[1])
    }
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    std::fs::read_dir(folder).ok()?.filter_map(Result::ok).find_map(|entry| {
        let path = entry.path();
        match entry.file_type().ok()? {
            kind if kind.is_dir() => find(&path, name),
            _ => (entry.file_name() == name).then_some(path),
        }
    })
}
