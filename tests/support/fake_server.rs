//! A server that does what a real one can't be made to do: half replies, nonsense, silence at a chosen moment.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Port;
use super::wait::{PATIENCE, wait_until};

/// Serves each connection by a script on a thread of its own. The connection is closed when its script returns.
///
/// Dropping it waits for all scripts: drop the proxy first, so that those that wait for requests see the end. A
/// script that panicked then fails the test.
#[derive(Debug)]
pub struct FakeServer {
    port: Port,
    state: Arc<State>,
    acceptor: Option<JoinHandle<Vec<JoinHandle<()>>>>,
}

#[derive(Debug, Default)]
struct State {
    accepted: AtomicUsize,
    ended: AtomicBool,
}

/// One connection to a [`FakeServer`].
#[derive(Debug)]
pub struct Peer {
    stream: TcpStream,
    received: Vec<u8>,
}

impl FakeServer {
    /// `script` gets the number of the connection, counted from 0, and the connection.
    pub fn start(script: impl Fn(usize, &mut Peer) + Send + Sync + 'static) -> Self {
        let port = Port::claim();
        let listener = TcpListener::bind(port.socket_addr()).expect("a port of our own");
        let state = Arc::new(State::default());
        let acceptor = std::thread::spawn({
            let (state, script) = (Arc::clone(&state), Arc::new(script));
            move || accept(&listener, &state, &script)
        });
        Self { port, state, acceptor: Some(acceptor) }
    }

    /// Its line in a pool's `servers`.
    pub fn entry(&self, name: &str) -> String {
        format!("{}:1 {name}", self.port.address())
    }

    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        self.port.address()
    }

    /// How clients of the proxy see it when it is called `name`.
    pub fn label(&self, name: &str) -> String {
        format!("{name} ({})", self.port.address())
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }
}

fn accept(
    listener: &TcpListener,
    state: &State,
    script: &Arc<impl Fn(usize, &mut Peer) + Send + Sync + 'static>,
) -> Vec<JoinHandle<()>> {
    let mut threads = Vec::new();
    for stream in listener.incoming() {
        let stream = stream.expect("a listener of our own");
        if state.ended.load(Ordering::SeqCst) {
            break;
        }
        stream.set_nodelay(true).expect("an open socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("an open socket");
        let number = state.accepted.fetch_add(1, Ordering::SeqCst);
        let script = Arc::clone(script);
        threads.push(std::thread::spawn(move || {
            let mut peer = Peer { stream, received: Vec::new() };
            script(number, &mut peer);
        }));
    }
    threads
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        let _woken = TcpStream::connect(self.port.socket_addr());
        let threads = self.acceptor.take().and_then(|acceptor| acceptor.join().ok()).unwrap_or_default();
        let failed = threads.into_iter().filter_map(|thread| thread.join().err()).count();
        assert!(failed == 0 || std::thread::panicking(), "{failed} scripts of a fake server failed");
    }
}

impl Peer {
    /// Reads one request (an array of bulk strings). `None` when the connection ends before one is complete.
    pub fn request(&mut self) -> Option<Vec<Vec<u8>>> {
        loop {
            if let Some((args, len)) = parse(&self.received) {
                self.received.drain(..len);
                return Some(args);
            }
            let mut buffer = [0; 64 << 10];
            match self.stream.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(n) => self.received.extend_from_slice(&buffer[..n]),
            }
        }
    }

    /// Reads so many requests; panics when the connection ends before.
    pub fn requests(&mut self, count: usize) -> Vec<Vec<Vec<u8>>> {
        (0..count).map(|i| self.request().unwrap_or_else(|| panic!("no request {i} of {count}"))).collect()
    }

    /// Answers every request by `reply` until the connection ends.
    pub fn answer_all(&mut self, mut reply: impl FnMut(&[Vec<u8>]) -> Vec<u8>) {
        while let Some(request) = self.request() {
            let reply = reply(&request);
            self.send(reply);
        }
    }

    /// Reads at least `n` bytes and forgets them.
    pub fn skip(&mut self, n: usize) {
        let mut left = n.saturating_sub(self.received.len());
        self.received.clear();
        let mut buffer = vec![0; 64 << 10];
        while left > 0 {
            let n = self.stream.read(&mut buffer).expect("the proxy still sends");
            assert!(n > 0, "the proxy closed, {left} bytes before the expected end");
            left = left.saturating_sub(n);
        }
    }

    /// Sends these bytes. A peer that has closed is none of the script's business.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _gone = self.stream.write_all(bytes.as_ref());
    }

    /// Waits until the proxy has closed the connection, and reads nothing but that.
    pub fn wait_closed(&mut self) {
        let mut buffer = vec![0; 64 << 10];
        while matches!(self.stream.read(&mut buffer), Ok(1..)) {}
    }

    /// Makes the end of the script close the connection with RST.
    pub fn reset_at_end(&mut self) {
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).expect("an open socket");
    }
}

/// The first request in `bytes`, and its length.
fn parse(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let mut at = 0;
    let number = |kind: u8, at: &mut usize| -> Option<usize> {
        let len = bytes[*at..].windows(2).position(|two| two == b"\r\n")?;
        let line = &bytes[*at..*at + len];
        assert_eq!(line.first(), Some(&kind), "the proxy sent no request: {}", bytes.escape_ascii());
        *at += len + 2;
        Some(String::from_utf8_lossy(&line[1..]).parse().expect("a length"))
    };
    let count = number(b'*', &mut at)?;
    let mut args = Vec::with_capacity(count);
    for _ in 0..count {
        let len = number(b'$', &mut at)?;
        args.push(bytes.get(at..at + len)?.to_vec());
        bytes.get(at + len..at + len + 2)?;
        at += len + 2;
    }
    Some((args, at))
}

/// Something that one thread waits for and another makes happen.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<AtomicBool>);

impl Gate {
    /// Lets everybody pass from now on.
    pub fn open(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether it is open.
    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until it is open.
    #[track_caller]
    pub fn pass(&self) {
        wait_until("a gate to open", PATIENCE, || self.is_open());
    }
}
