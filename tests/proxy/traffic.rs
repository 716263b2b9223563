//! Clients that must never notice anything: pooled connections and short ones, which count everything that goes wrong.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use crate::support::{PATIENCE, Random, Resp, Value, encode, wait_until};

/// Clients at work on one address.
#[derive(Debug)]
pub struct Traffic {
    shared: Arc<Shared>,
    failures: Receiver<String>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    replies: AtomicU64,
    connections: AtomicU64,
}

/// Keys that each client uses.
const KEYS: usize = 40;

impl Traffic {
    /// So many clients that keep their connection, and so many that make one for every two requests.
    pub fn start(to: SocketAddr, pooled: usize, short: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let (fail, failures) = mpsc::channel();
        let clients = (0..pooled + short).map(|number| {
            let (shared, fail) = (Arc::clone(&shared), fail.clone());
            let client = Client { number, to, random: Random::seeded(number as u64 + 1), shared };
            std::thread::spawn(
                move || if number < pooled { client.pooled(&fail) } else { client.short(&fail) },
            )
        });
        let clients = clients.collect();
        Self { shared, failures, clients }
    }

    /// Waits until so many more replies have come.
    #[track_caller]
    pub fn wait_replies(&self, more: u64) {
        let goal = self.shared.replies.load(Ordering::SeqCst) + more;
        wait_until("replies", PATIENCE, || {
            self.shared.replies.load(Ordering::SeqCst) >= goal
                || self.clients.iter().all(JoinHandle::is_finished)
        });
    }

    /// Ends all clients: how many replies and connections there were. Panics with what went wrong, if anything did.
    #[track_caller]
    pub fn stop(self) -> (u64, u64) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for client in self.clients {
            client.join().expect("clients tell what goes wrong and do not panic");
        }
        let failures: Vec<String> = self.failures.try_iter().collect();
        let some = &failures[..failures.len().min(10)];
        assert!(failures.is_empty(), "{} client errors, among them {some:#?}", failures.len());
        (self.shared.replies.load(Ordering::SeqCst), self.shared.connections.load(Ordering::SeqCst))
    }
}

struct Client {
    number: usize,
    to: SocketAddr,
    random: Random,
    shared: Arc<Shared>,
}

impl Client {
    fn pooled(mut self, fail: &Sender<String>) {
        let mut connection = self.connect();
        while !self.stops() {
            let outcome = match &mut connection {
                Ok(connection) => self.exchange(connection),
                Err(why) => Err(std::mem::take(why)),
            };
            if let Err(why) = outcome {
                let _ = fail.send(format!("pooled client {}: {why}", self.number));
                connection = self.connect();
            }
        }
    }

    fn short(mut self, fail: &Sender<String>) {
        while !self.stops() {
            let outcome = self.connect().and_then(|mut connection| self.exchange(&mut connection));
            if let Err(why) = outcome {
                let _ = fail.send(format!("short client {}: {why}", self.number));
            }
        }
    }

    /// Writes a value and reads it back, in one packet. Keys may have moved between the two.
    fn exchange(&mut self, connection: &mut Resp) -> Result<(), String> {
        let key = format!("{}:{}", self.random.below(KEYS), self.number);
        let value = format!("{key}={}", self.random.below(1_000_000));
        let mut bytes = encode(["SET", &key, &value]);
        bytes.extend(encode(["GET", &key]));
        connection.try_send_raw(&bytes).map_err(|error| format!("send: {error}"))?;
        for expected in [Value::ok(), Value::bulk(&value)] {
            let reply = connection.try_read().map_err(|error| format!("no reply: {error}"))?;
            if reply != expected && reply != Value::Nil {
                return Err(format!("{reply:?} instead of {expected:?}"));
            }
            self.shared.replies.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }

    fn connect(&self) -> Result<Resp, String> {
        self.shared.connections.fetch_add(1, Ordering::SeqCst);
        Resp::try_tcp(self.to).map_err(|error| format!("connect: {error}"))
    }

    fn stops(&self) -> bool {
        self.shared.stop.load(Ordering::SeqCst)
    }
}
