//! Many pipelining clients that know what each of their replies must be.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use super::fleet::Fleet;
use crate::support::{PATIENCE, Random, Resp, Value, wait_until};

/// Clients at work. Each writes keys of its own, with values that name their key and count up, and reads them back.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    /// By server.
    tallies: Vec<Tally>,
}

/// What the clients got from one server.
#[derive(Debug, Default)]
struct Tally {
    replies: AtomicU64,
    errors: AtomicU64,
}

/// Requests sent in one go.
const BATCH: usize = 24;

/// Keys of a client on each server.
const KEYS: usize = 3;

/// A client's key, and what is known of it.
struct Key {
    name: String,
    server: usize,
    /// The last value that may have been written.
    last: u64,
    /// The last value that certainly was.
    certain: u64,
    /// Values whose writes failed: the server may have executed them, or may do so late.
    unknown: Vec<u64>,
}

impl Load {
    /// Starts so many clients over all of the pool's servers. A reply that cannot be right makes [`Self::stop`] panic.
    pub fn start(fleet: &Fleet, clients: usize) -> Self {
        let servers = fleet.pool().servers.len();
        let tallies = (0..servers).map(|_| Tally::default()).collect();
        let shared = Arc::new(Shared { stop: AtomicBool::new(false), tallies });
        let clients = (0..clients).map(|number| {
            let keys = (0..servers).flat_map(|server| {
                let names = fleet.keys(server, &format!("client {number}"), KEYS);
                names.into_iter().map(move |name| Key {
                    name,
                    server,
                    last: 0,
                    certain: 0,
                    unknown: Vec::new(),
                })
            });
            let (keys, client, shared) = (keys.collect(), fleet.client(), Arc::clone(&shared));
            let labels = (0..servers).map(|server| fleet.label(server)).collect();
            std::thread::spawn(move || work(client, keys, labels, Random::seeded(number as u64), &shared))
        });
        let clients = clients.collect();
        Self { shared, clients }
    }

    /// Replies from server `server` that were no errors.
    pub fn replies(&self, server: usize) -> u64 {
        self.shared.tallies[server].replies.load(Ordering::SeqCst)
    }

    /// Error replies for keys of server `server`.
    pub fn errors(&self, server: usize) -> u64 {
        self.shared.tallies[server].errors.load(Ordering::SeqCst)
    }

    /// Waits until server `server` has answered some more.
    #[track_caller]
    pub fn wait_replies(&self, server: usize, more: u64) {
        let goal = self.replies(server) + more;
        wait_until("replies of a server", PATIENCE, || self.replies(server) >= goal);
    }

    /// Waits until requests for server `server` fail.
    #[track_caller]
    pub fn wait_errors(&self, server: usize, more: u64) {
        let goal = self.errors(server) + more;
        wait_until("errors for a server's keys", PATIENCE, || self.errors(server) >= goal);
    }

    /// Ends all clients; panics if one of them got a reply that cannot be right.
    pub fn stop(self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        let failed = self.clients.into_iter().filter_map(|client| client.join().err()).count();
        assert_eq!(failed, 0, "clients with wrong replies");
    }
}

fn work(mut client: Resp, mut keys: Vec<Key>, labels: Vec<String>, mut random: Random, shared: &Shared) {
    while !shared.stop.load(Ordering::SeqCst) {
        let batch: Vec<(usize, bool)> =
            (0..BATCH).map(|_| (random.below(keys.len()), random.below(2) == 0)).collect();
        let mut bytes = Vec::new();
        // What each request may be answered with: the values that may be there when it is executed.
        let mut expected = Vec::with_capacity(BATCH);
        for &(at, write) in &batch {
            let key = &mut keys[at];
            if write {
                key.last += 1;
                bytes.extend(crate::support::encode([
                    "SET",
                    &key.name,
                    &format!("{}#{}", key.name, key.last),
                ]));
            } else {
                bytes.extend(crate::support::encode(["GET", &key.name]));
            }
            expected.push(key.last);
        }
        client.send_raw(bytes);
        for (&(at, write), upto) in batch.iter().zip(expected) {
            let (key, reply) = (&mut keys[at], client.read());
            let tally = &shared.tallies[key.server];
            if let Value::Error(text) = &reply {
                assert!(text.contains(&labels[key.server]), "{text} for a key of {}", labels[key.server]);
                tally.errors.fetch_add(1, Ordering::SeqCst);
                if write {
                    key.unknown.push(upto);
                }
                continue;
            }
            tally.replies.fetch_add(1, Ordering::SeqCst);
            if write {
                assert_eq!(reply, Value::ok(), "to SET {}", key.name);
                key.certain = upto;
            } else {
                check_read(key, &reply, upto);
            }
        }
    }
}

/// The value must be one that this client wrote to this key, not older than the last that was acknowledged. After a
/// restart there is none.
fn check_read(key: &Key, reply: &Value, upto: u64) {
    if *reply == Value::Nil {
        return;
    }
    let text = String::from_utf8_lossy(reply.bytes()).into_owned();
    let number = text.strip_prefix(&key.name).and_then(|rest| rest.strip_prefix('#'));
    let number: u64 = number
        .and_then(|number| number.parse().ok())
        .unwrap_or_else(|| panic!("{text:?} is no value of {:?}", key.name));
    assert!(
        (key.certain..=upto).contains(&number) || key.unknown.contains(&number),
        "{:?} is {number}, but {} was acknowledged and {upto} is the newest",
        key.name,
        key.certain
    );
}
