//! WAIT and WAITAOF: how many replicas have what this client wrote, over all servers that it wrote to.
//!
//! A server judges by the last write of the connection that asks, which is none of those that the writes came over. But any command
//! makes it note how far its replication stream is now: so each server is sent PING and then the call, on a connection of the
//! client's own, when all that the client wrote has been answered. The least of the answers is the answer.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::incoming::Incoming;
use super::mode::Mode;
use super::session::{Session, Verdict};
use super::transaction::Unheard;
use crate::backend::Lease;
use crate::exchange::{BackendError, Outcome, Recipient, Reply, Settle, Ticket};
use crate::resp::{ErrorReply, encode};
use crate::topology::ServerIx;

/// The servers that a client wrote to since it connected. With more than 64 servers in the pool some stand for others, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Written(u64);

impl Written {
    #[inline]
    pub(super) fn add(&mut self, server: ServerIx) {
        self.0 |= 1 << (server.0 % 64);
    }

    fn contains(self, server: ServerIx) -> bool {
        self.0 & 1 << (server.0 % 64) != 0
    }
}

impl Session {
    /// Sends WAIT to every server that the client wrote to; to the first one if there is none, which tells how many replicas it has.
    pub(super) fn wait(&mut self, wait: Option<Duration>, incoming: Incoming<'_>) -> Verdict {
        if incoming.recipient.outbox().pending() > 0 {
            return Verdict::Fenced;
        }
        let pool = incoming.pool();
        let mut servers = pool.live();
        if servers.iter().any(|server| self.written.contains(*server)) {
            servers.retain(|server| self.written.contains(*server));
        } else {
            servers.truncate(1);
        }
        if servers.is_empty() {
            return incoming.refuse(ErrorReply::no_server(&pool.config().name));
        }
        let leases: Result<Vec<Lease>, _> =
            servers.into_iter().map(|server| pool.lease(server, self.target)).collect();
        let leases = match leases {
            Ok(leases) => leases,
            Err(spent) => return incoming.refuse(spent.reply()),
        };
        let unheard = Unheard::of(incoming.recipient);
        let least = Least::of(&incoming, leases.len());
        for lease in &leases {
            Incoming::send(lease, b"PING", Ticket::part(unheard.clone(), 0));
            lease.send_patiently(incoming.request(), Ticket::part(least.clone(), 0), wait);
        }
        self.mode = Mode::Waiting(leases);
        Verdict::Held
    }
}

/// Waits for the numbers of all servers.
struct Least {
    client: Rc<dyn Recipient>,
    state: RefCell<State>,
}

struct State {
    whole: Option<Ticket>,
    left: usize,
    /// The least so far; WAITAOF has two numbers.
    least: Option<Vec<i64>>,
    failed: Option<Failed>,
}

enum Failed {
    Backend(BackendError),
    /// A server's own error, or bytes that are no answer to WAIT.
    Reply(Vec<u8>),
}

impl Least {
    fn of(incoming: &Incoming<'_>, parts: usize) -> Rc<Self> {
        let state = State { whole: Some(incoming.ticket()), left: parts, least: None, failed: None };
        Rc::new(Self { client: Rc::clone(incoming.recipient), state: RefCell::new(state) })
    }
}

impl Settle for Least {
    fn settle(&self, _: u32, outcome: Outcome<'_>) {
        let mut state = self.state.borrow_mut();
        match outcome {
            Outcome::Reply(reply) => match numbers(reply.as_slice()) {
                Some(numbers) => state.lower(numbers),
                None => {
                    state.failed.get_or_insert_with(|| Failed::Reply(reply.as_slice().to_vec()));
                }
            },
            Outcome::Unsent(error) | Outcome::Unknown(error) => {
                state.failed.get_or_insert(Failed::Backend(error));
            }
        }
        state.left = state.left.saturating_sub(1);
        if state.left > 0 {
            return;
        }
        let (whole, failed, least) = (state.whole.take(), state.failed.take(), state.least.take());
        drop(state);
        let Some(whole) = whole else { return };
        match failed {
            Some(Failed::Backend(error)) => whole.settle(Outcome::Unknown(error)),
            Some(Failed::Reply(reply)) => whole.settle(Outcome::Reply(Reply::Shared(reply.into()))),
            None => whole.settle(Outcome::Reply(Reply::Shared(written(&least.unwrap_or_default()).into()))),
        }
    }

    fn client(&self) -> &Rc<dyn Recipient> {
        &self.client
    }
}

impl State {
    fn lower(&mut self, numbers: Vec<i64>) {
        match &mut self.least {
            Some(least) => {
                least.iter_mut().zip(numbers).for_each(|(least, number)| *least = number.min(*least))
            }
            None => self.least = Some(numbers),
        }
    }
}

/// The number of WAIT, or the two of WAITAOF.
fn numbers(reply: &[u8]) -> Option<Vec<i64>> {
    let text = std::str::from_utf8(reply).ok()?;
    let numbers = text.strip_prefix("*2\r\n").unwrap_or(text);
    numbers.split_terminator("\r\n").map(|line| line.strip_prefix(':')?.parse().ok()).collect()
}

fn written(numbers: &[i64]) -> Vec<u8> {
    let mut out = Vec::new();
    if numbers.len() > 1 {
        encode::array(&mut out, numbers.len());
    }
    numbers.iter().for_each(|number| encode::integer(&mut out, *number));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_forms() {
        assert_eq!(numbers(b":3\r\n"), Some(vec![3]));
        assert_eq!(numbers(b"*2\r\n:1\r\n:2\r\n"), Some(vec![1, 2]));
        assert_eq!(numbers(b"-ERR x\r\n"), None);
        assert_eq!(written(&[1, 2]), b"*2\r\n:1\r\n:2\r\n");
        assert_eq!(written(&[3]), b":3\r\n");
    }
}
