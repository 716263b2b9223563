//! Calls of scripts: a server that lacks one is given it, when the proxy has seen it in this pool.
//!
//! ```text
//!  EVALSHA ─┬─ never seen here           sent as it is: NOSCRIPT is the server's answer
//!           ├─ loaded there, as we think sent as it is; on NOSCRIPT, SCRIPT LOAD and once more
//!           └─ seen, not loaded there    SCRIPT LOAD in front of it, on the same connection
//! ```

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use super::pool::{Payload, Pool, Route};
use super::scripts::parse_sha;
use crate::backend::{Fenced, Lane, Request};
use crate::command::{Call, ScriptUse};
use crate::exchange::{Outcome, Recipient, Settle, Ticket};
use crate::resp::encode;
use crate::stats::PoolBlock;
use crate::topology::ServerIx;

/// The answer to an EVALSHA, until it is known not to be NOSCRIPT.
struct Rescue {
    client: Rc<dyn Recipient>,
    /// Taken when the answer comes.
    whole: RefCell<Option<Ticket>>,
    lane: Rc<Lane>,
    request: Bytes,
    body: Bytes,
    stats: Arc<PoolBlock>,
}

/// Whoever waits for the answer to a SCRIPT LOAD of the proxy's own: nobody. What went wrong with it, the EVALSHA behind it
/// is told as well.
struct Quiet(Rc<dyn Recipient>);

impl Pool {
    /// Notes what a call says about scripts; called for those whose row has a [`ScriptUse`] before they are sent.
    pub fn note_script(&self, call: &Call<'_>) {
        match (call.row.script, call.args.get(1), call.args.get(2)) {
            (ScriptUse::Body, Some(body), _) | (ScriptUse::Load, _, Some(body)) => {
                self.scripts.remember(self.id().0, body);
            }
            (ScriptUse::Flush, ..) => {
                self.scripts.forget(self.id().0);
                self.all_servers().for_each(|server| self.server(server).loaded().clear());
            }
            _ => {}
        }
    }

    /// Sends an EVALSHA to one server, with the script in front if the server may lack it.
    pub fn send_evalsha(
        &self,
        server: ServerIx,
        call: &Call<'_>,
        payload: Payload,
        client: &Rc<dyn Recipient>,
        route: Route,
    ) -> Result<(), Fenced> {
        let known = call.args.get(1).and_then(parse_sha).and_then(|sha| {
            let body = self.scripts.body(self.id().0, &sha)?;
            Some((sha, body))
        });
        let Some((sha, body)) = known else {
            return self.send_one(server, call.args, payload, client, route);
        };
        let lane = Rc::clone(&self.lane(server, route));
        lane.admits(client)?;
        if self.server(server).loaded().lacks(&sha, lane.epoch()) {
            self.stats.scripts_loaded.add(1);
            load(&lane, &body, client);
        }
        let request = match payload {
            Payload::Scratch => Bytes::copy_from_slice(call.args.raw()),
            Payload::Own(bytes) => bytes,
        };
        let rescue = Rc::new(Rescue {
            client: Rc::clone(client),
            whole: RefCell::new(Some(Ticket::client(Rc::clone(client), client.outbox().admit()))),
            lane: Rc::clone(&lane),
            request: request.clone(),
            body,
            stats: Arc::clone(&self.stats),
        });
        lane.send(Request::Shared(request), Ticket::part(rescue, 0));
        Ok(())
    }
}

impl Settle for Rescue {
    fn settle(&self, _: u32, outcome: Outcome<'_>) {
        let Some(whole) = self.whole.take() else { return };
        match outcome {
            // Once only, and never past a later request of the client: then NOSCRIPT is the answer, which clients know how
            // to take.
            Outcome::Reply(reply) if is_noscript(reply.as_slice()) && !self.lane.awaits(&self.client) => {
                self.stats.scripts_loaded.add(1);
                load(&self.lane, &self.body, &self.client);
                self.lane.send(Request::Shared(self.request.clone()), whole);
            }
            outcome => whole.settle(outcome),
        }
    }

    fn client(&self) -> &Rc<dyn Recipient> {
        &self.client
    }
}

impl Settle for Quiet {
    fn settle(&self, _: u32, _: Outcome<'_>) {}

    fn client(&self) -> &Rc<dyn Recipient> {
        &self.0
    }
}

fn load(lane: &Rc<Lane>, body: &Bytes, client: &Rc<dyn Recipient>) {
    let encode = |out: &mut Vec<u8>| encode::request(out, [&b"SCRIPT"[..], b"LOAD", body].into_iter());
    lane.send(Request::Encoded(&encode), Ticket::part(Rc::new(Quiet(Rc::clone(client))), 0));
}

fn is_noscript(reply: &[u8]) -> bool {
    reply.starts_with(b"-NOSCRIPT")
}
