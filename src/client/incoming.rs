//! One request on its way through a session.

use std::rc::Rc;
use std::time::Duration;

use super::conn::ClientConn;
use super::session::{Verdict, refuse};
use crate::backend::{Lease, Request};
use crate::command::Call;
use crate::dispatch::{Payload, Pool};
use crate::exchange::{Outbox, Recipient, Ticket};
use crate::resp::ErrorReply;

/// A call, its bytes, and whose it is.
pub(super) struct Incoming<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) payload: Payload,
    pub(super) client: &'a ClientConn,
    pub(super) recipient: &'a Rc<dyn Recipient>,
}

impl<'a> Incoming<'a> {
    pub(super) fn pool(&self) -> &'a Pool {
        self.client.pool()
    }

    /// A place for its reply among those of its client.
    pub(super) fn ticket(&self) -> Ticket {
        Ticket::client(Rc::clone(self.recipient), self.recipient.outbox().admit())
    }

    /// Answers it with a status.
    pub(super) fn answer(&self, status: &str) -> Verdict {
        Outbox::answer(self.recipient, |out| crate::resp::encode::simple(out, status));
        Verdict::Done
    }

    pub(super) fn refuse(&self, error: ErrorReply) -> Verdict {
        refuse(error, self.pool(), self.recipient)
    }

    /// Sends it as it is.
    pub(super) fn pass(self, lease: &Lease) {
        let ticket = self.ticket();
        lease.send(self.payload.request(self.call.args), ticket);
    }

    /// Sends a call that may wait for so long.
    pub(super) fn pass_patiently(self, lease: &Lease, wait: Option<Duration>) {
        let ticket = self.ticket();
        lease.send_patiently(self.payload.request(self.call.args), ticket, wait);
    }

    /// What is sent of it, for the second time and on.
    pub(super) fn request(&self) -> Request<'_> {
        Request::Borrowed(self.call.args.raw())
    }

    /// Sends `name`, a command without arguments, in its stead.
    pub(super) fn send(lease: &Lease, name: &[u8], ticket: Ticket) {
        let encode = |out: &mut Vec<u8>| crate::resp::encode::request(out, [name].into_iter());
        lease.send(Request::Encoded(&encode), ticket);
    }
}
