//! A pool as one worker sees it, and the way into it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::gather::Gather;
use super::scripts::{Loaded, Scripts};
use crate::backend::{Fenced, Lane, Request, Server};
use crate::command::{Call, CommandTable, Handling};
use crate::config::{self, Config};
use crate::exchange::{Recipient, Ticket, Turn};
use crate::resp::Args;
use crate::router::{Fold, Part, Plan, Rules, plan};
use crate::stats::PoolBlock;
use crate::topology::{Draw, PoolIx, ServerIx, Topology};

/// One pool in one worker: who owns the keys now, and the connections to the servers.
pub struct Pool {
    /// What its clients share with everybody in this turn.
    pub turn: Rc<Turn>,
    /// Its cells.
    pub stats: Arc<PoolBlock>,
    /// What commands there are.
    pub table: &'static CommandTable,
    config: Arc<Config>,
    ix: PoolIx,
    draw: Draw,
    topology: RefCell<Arc<Topology>>,
    /// By `ServerIx`.
    servers: Vec<Server>,
    /// Scripts that were seen, by whatever worker.
    pub(super) scripts: Arc<Scripts>,
    /// Scripts that the servers have, by `ServerIx`.
    pub(super) loaded: Vec<Loaded>,
    since: Instant,
}

/// The bytes of a request as its client's connection has them.
#[derive(Clone, Debug)]
pub enum Payload {
    /// In the scratch buffer.
    Scratch,
    /// On their own, because there are many.
    Own(Bytes),
}

impl Pool {
    /// Pool `ix` of `config`, with one entry in `servers` for each of its servers.
    pub fn new(
        config: Arc<Config>,
        ix: PoolIx,
        topology: Arc<Topology>,
        servers: Vec<Server>,
        stats: Arc<PoolBlock>,
        turn: Rc<Turn>,
        draw: Draw,
        scripts: Arc<Scripts>,
    ) -> Self {
        let topology = RefCell::new(topology);
        let (table, since) = (CommandTable::builtin(), Instant::now());
        let loaded = servers.iter().map(|_| Loaded::default()).collect();
        Self { turn, stats, table, config, ix, draw, topology, servers, scripts, loaded, since }
    }

    /// Its settings.
    #[inline]
    pub fn config(&self) -> &config::Pool {
        &self.config.pools[self.ix.index()]
    }

    /// Its index.
    pub fn ix(&self) -> PoolIx {
        self.ix
    }

    /// Keys have new owners from the next call on; calls in flight end where they are.
    pub fn adopt(&self, topology: Arc<Topology>) {
        *self.topology.borrow_mut() = topology;
    }

    /// Every server in the pool's order, live or not.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = ServerIx> + use<> {
        self.topology.borrow().servers()
    }

    /// How long it has been there: since the start, or the reload that brought it.
    pub fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    /// Whose scripts are its own.
    pub(super) fn script_space(&self) -> u32 {
        self.ix.0.into()
    }

    /// Opens the connections to every server.
    pub fn preconnect(&self) {
        self.servers.iter().for_each(Server::preconnect);
    }

    /// Closes every server connection.
    pub fn close(&self) {
        self.servers.iter().for_each(Server::close);
    }

    /// What to do with a call now.
    #[inline]
    pub fn plan(&self, call: &Call<'_>) -> Plan {
        let rules = Rules { read_only: self.config().read_only };
        plan(call, &self.topology.borrow(), &self.draw, rules)
    }

    /// Sends a whole call to one server; its reply will be `client`'s.
    #[inline]
    pub fn send_one(
        &self,
        server: ServerIx,
        args: Args<'_>,
        payload: Payload,
        client: &Rc<dyn Recipient>,
        number: u64,
    ) -> Result<(), Fenced> {
        let lane = self.lane(server, number);
        lane.admits(client)?;
        let ticket = Ticket::client(Rc::clone(client), client.outbox().admit());
        let request = match payload {
            Payload::Scratch => Request::Borrowed(args.raw()),
            Payload::Own(bytes) => Request::Shared(bytes),
        };
        lane.send(request, ticket);
        Ok(())
    }

    /// Sends each part to its server; the folded reply will be `client`'s.
    pub fn send_parts(
        &self,
        call: &Call<'_>,
        parts: &[Part],
        fold: Fold,
        client: &Rc<dyn Recipient>,
        number: u64,
    ) -> Result<(), Fenced> {
        parts.iter().try_for_each(|part| self.lane(part.server, number).admits(client))?;
        let per_key = match call.handling() {
            Handling::Split(kind) => kind.arguments_per_key(),
            _ => 1,
        };
        let whole = Ticket::client(Rc::clone(client), client.outbox().admit());
        let gather = Gather::new(Rc::clone(client), whole, parts.len(), fold);
        for (i, part) in parts.iter().enumerate() {
            let encode = |out: &mut Vec<u8>| part.encode(call.args, per_key, out);
            let ticket = Ticket::part(gather.clone(), i as u32);
            self.lane(part.server, number).send(Request::Encoded(&encode), ticket);
        }
        self.stats.fragments.add(parts.len() as u64);
        Ok(())
    }

    #[inline]
    pub(super) fn lane(&self, server: ServerIx, number: u64) -> &Rc<Lane> {
        self.servers[server.index()].lane(number)
    }
}
