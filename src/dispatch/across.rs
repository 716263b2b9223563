//! Calls that concern every server of a pool.

use std::rc::Rc;

use super::gather::Gather;
use super::pool::{Payload, Pool, Route};
use crate::backend::{Fenced, Request};
use crate::exchange::{Recipient, Ticket};
use crate::resp::{Args, encode};
use crate::router::{Fold, Scan};
use crate::topology::ServerIx;

impl Pool {
    /// Sends the same call to all these servers; the folded reply will be `client`'s.
    pub fn send_all(
        &self,
        servers: &[ServerIx],
        args: Args<'_>,
        payload: &Payload,
        fold: Fold,
        client: &Rc<dyn Recipient>,
        route: Route,
    ) -> Result<(), Fenced> {
        servers.iter().try_for_each(|server| self.lane(*server, route).admits(client))?;
        let whole = Ticket::client(Rc::clone(client), client.outbox().admit());
        let gather = Gather::new(Rc::clone(client), whole, servers.len(), fold);
        for (i, server) in servers.iter().enumerate() {
            let request = match payload {
                Payload::Scratch => Request::Borrowed(args.raw()),
                Payload::Own(bytes) => Request::Shared(bytes.clone()),
            };
            self.lane(*server, route).send(request, Ticket::part(gather.clone(), i as u32));
        }
        self.stats.fragments.add(servers.len() as u64);
        Ok(())
    }

    /// Sends a SCAN on to the server that it has come to.
    pub fn send_scan(
        &self,
        scan: Scan,
        args: Args<'_>,
        client: &Rc<dyn Recipient>,
        route: Route,
    ) -> Result<(), Fenced> {
        let lane = Rc::clone(&self.lane(scan.server, route));
        lane.admits(client)?;
        let whole = Ticket::client(Rc::clone(client), client.outbox().admit());
        let gather = Gather::new(Rc::clone(client), whole, 1, Fold::Scan(scan));
        let encode = |out: &mut Vec<u8>| {
            encode::array(out, args.len());
            encode::bulk(out, args.name());
            encode::bulk(out, scan.cursor.to_string().as_bytes());
            args.iter_from(2).for_each(|option| encode::bulk(out, option));
        };
        lane.send(Request::Encoded(&encode), Ticket::part(gather, 0));
        Ok(())
    }

    /// Asks every server for its keyspace; `client` gets `own`, an INFO without it, and the sums.
    pub fn send_info(&self, own: Vec<u8>, client: &Rc<dyn Recipient>, route: Route) -> Result<(), Fenced> {
        let servers: Vec<ServerIx> = self.all_servers().collect();
        servers.iter().try_for_each(|server| self.lane(*server, route).admits(client))?;
        let whole = Ticket::client(Rc::clone(client), client.outbox().admit());
        let fold = Fold::Keyspace { before: own, protocol: route.target.protocol };
        let gather = Gather::new(Rc::clone(client), whole, servers.len(), fold);
        let encode = |out: &mut Vec<u8>| encode::request(out, [&b"INFO"[..], b"keyspace"].into_iter());
        for (i, server) in servers.iter().enumerate() {
            self.lane(*server, route).send(Request::Encoded(&encode), Ticket::part(gather.clone(), i as u32));
        }
        Ok(())
    }
}
