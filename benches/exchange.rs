//! One request's way through a client's outbox, without sockets: admitted, settled, written at the end of the turn.

use std::cell::Cell;
use std::io::IoSlice;
use std::rc::Rc;

use bytes::Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use shardwise::exchange::{Flush, Outbox, Outcome, Recipient, Reply, Ticket, Turn};

/// A client whose socket takes everything.
struct Client {
    outbox: Outbox,
    sent: Cell<usize>,
}

impl Flush for Client {
    fn flush(&self) {
        let take = |parts: &[IoSlice<'_>]| {
            let len = parts.iter().map(|part| part.len()).sum();
            self.sent.set(self.sent.get() + len);
            Ok(len)
        };
        self.outbox.write_to(take).expect("this socket takes everything");
    }
}

impl Recipient for Client {
    fn outbox(&self) -> &Outbox {
        &self.outbox
    }
}

/// Pipelines whose replies come in order, and in the order that costs most: the last one first.
fn round_trips(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("outbox");
    for requests in [1, 16, 256] {
        group.throughput(Throughput::Elements(requests as u64));
        for (name, reversed) in [("in-order", false), ("last-first", true)] {
            let (turn, client, recipient) = client();
            let mut tickets = Vec::with_capacity(requests);
            group.bench_function(BenchmarkId::new(name, requests), |bencher| {
                bencher.iter(|| {
                    tickets.extend(
                        (0..requests).map(|_| Ticket::client(recipient.clone(), client.outbox.admit())),
                    );
                    if reversed {
                        tickets.reverse();
                    }
                    for ticket in tickets.drain(..) {
                        ticket.settle(Outcome::Reply(Reply::Borrowed(b"$3\r\nxxx\r\n")));
                    }
                    turn.drain();
                });
            });
            assert_eq!(client.outbox.pending(), 0, "every request has its reply");
        }
    }
    group.finish();
}

/// Replies that are large enough to move without a copy.
fn large(criterion: &mut Criterion) {
    let (turn, client, recipient) = client();
    let reply = Bytes::from(vec![b'x'; 60_000]);
    let mut group = criterion.benchmark_group("outbox-large");
    group.throughput(Throughput::Bytes(reply.len() as u64));
    group.bench_function("shared", |bencher| {
        bencher.iter(|| {
            let ticket = Ticket::client(recipient.clone(), client.outbox.admit());
            ticket.settle(Outcome::Reply(Reply::Shared(reply.clone())));
            turn.drain();
        });
    });
    group.finish();
}

fn client() -> (Rc<Turn>, Rc<Client>, Rc<dyn Recipient>) {
    let turn = Rc::new(Turn::default());
    let client = Rc::new(Client { outbox: Outbox::new(Rc::clone(&turn)), sent: Cell::new(0) });
    let recipient: Rc<dyn Recipient> = client.clone();
    (turn, client, recipient)
}

criterion_group!(benches, round_trips, large);
criterion_main!(benches);
