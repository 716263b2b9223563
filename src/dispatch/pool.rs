//! A pool as one worker sees it, and the way into it.

use std::cell::{Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::gather::Gather;
use super::hub::Hub;
use super::scripts::Scripts;
use crate::backend::{Fenced, Lane, Lease, LeasesSpent, Request, Server, Target};
use crate::command::{Call, CallError, CommandTable, Handling, Learned};
use crate::config::{self, Config};
use crate::exchange::{Recipient, Ticket, Turn};
use crate::resp::Args;
use crate::router::{Fold, Part, Plan, Rules, plan};
use crate::stats::PoolBlock;
use crate::topology::{Draw, PoolId, PoolIx, ServerIx, Topology};

/// One pool in one worker: who owns the keys now, and the connections to the servers.
pub struct Pool {
    /// What its clients share with everybody in this turn.
    pub turn: Rc<Turn>,
    /// Its cells.
    pub stats: Arc<PoolBlock>,
    /// What commands there are.
    pub table: &'static CommandTable,
    id: PoolId,
    draw: Draw,
    now: RefCell<Now>,
    /// Scripts that were seen, by whatever worker.
    pub(super) scripts: Arc<Scripts>,
    since: Instant,
    pub(super) hub: Rc<Hub>,
}

/// What of a pool the current generation says. Borrowed for moments only, never over an await: adopting the next
/// generation falls between two calls.
pub struct Now {
    /// The whole configuration.
    pub config: Arc<Config>,
    /// Which of its pools this is.
    pub ix: PoolIx,
    /// Who owns the keys.
    pub topology: Arc<Topology>,
    /// What only its servers know.
    pub learned: Arc<Learned>,
    /// By `ServerIx`.
    pub servers: Vec<Rc<Server>>,
}

/// Which of a server's connections a client uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The client's number.
    pub client: u64,
    /// Its database and protocol.
    pub target: Target,
}

/// The bytes of a request as its client's connection has them.
#[derive(Clone, Debug)]
pub enum Payload {
    /// In the scratch buffer.
    Scratch,
    /// On their own, because there are many.
    Own(Bytes),
}

impl Payload {
    /// What is sent of the request `args`.
    #[inline]
    pub fn request(self, args: Args<'_>) -> Request<'_> {
        match self {
            Self::Scratch => Request::Borrowed(args.raw()),
            Self::Own(bytes) => Request::Shared(bytes),
        }
    }
}

impl Pool {
    /// Pool `id`, as `now` has it. `scripts` are those of the whole process.
    pub fn new(
        id: PoolId,
        now: Now,
        stats: Arc<PoolBlock>,
        turn: Rc<Turn>,
        draw: Draw,
        scripts: Arc<Scripts>,
    ) -> Self {
        debug_assert_eq!(now.servers.len(), now.config.pools[now.ix.index()].servers.len());
        let (table, since) = (CommandTable::builtin(), Instant::now());
        let hub = Hub::new(Arc::clone(&stats));
        Self { turn, stats, table, id, draw, now: RefCell::new(now), scripts, since, hub }
    }

    /// Its settings now. Not to be held over an await.
    #[inline]
    pub fn config(&self) -> Ref<'_, config::Pool> {
        Ref::map(self.now.borrow(), |now| &now.config.pools[now.ix.index()])
    }

    /// Who it is.
    pub fn id(&self) -> PoolId {
        self.id
    }

    /// Every server in the pool's order, live or not.
    pub fn all_servers(&self) -> impl ExactSizeIterator<Item = ServerIx> + use<> {
        self.now.borrow().topology.servers()
    }

    /// How long it has been there: since the start, or the reload that brought it.
    pub fn uptime(&self) -> Duration {
        self.since.elapsed()
    }

    /// What the generation before said. Keys have new owners from the next call on; calls in flight end where they are.
    pub fn adopt(&self, now: Now) -> Now {
        let before = self.now.replace(now);
        self.hub.realign(self);
        before
    }

    /// Only the owners change, because servers went out or came back, or what the servers know.
    pub fn adopt_topology(&self, topology: Arc<Topology>, learned: Arc<Learned>) {
        let mut now = self.now.borrow_mut();
        now.learned = learned;
        if Arc::ptr_eq(&now.topology, &topology) {
            return;
        }
        now.topology = topology;
        drop(now);
        self.hub.realign(self);
    }

    /// Its servers with their names, and the configuration that names them.
    pub fn servers(&self) -> (Arc<Config>, PoolIx, Vec<Rc<Server>>) {
        let now = self.now.borrow();
        (Arc::clone(&now.config), now.ix, now.servers.clone())
    }

    /// Closes every server connection.
    pub fn close(&self) {
        // What fails now must not find the pool borrowed.
        let (.., servers) = self.servers();
        servers.iter().for_each(|server| server.close());
    }

    /// What only its servers know.
    pub fn learned(&self) -> Arc<Learned> {
        Arc::clone(&self.now.borrow().learned)
    }

    /// What the built-in table doesn't know, if a server has taught it. `error` is the table's, and stays the answer where nobody
    /// knows better.
    #[cold]
    pub fn learned_call<'a>(&self, error: CallError<'a>) -> Result<Call<'a>, CallError<'a>> {
        match error {
            CallError::UnknownCommand(args) | CallError::UnknownSubcommand(args) => {
                self.now.borrow().learned.lookup(args).unwrap_or(Err(error))
            }
            CallError::WrongArity(_) => Err(error),
        }
    }

    /// What to do with a call now.
    #[inline]
    pub fn plan(&self, call: &Call<'_>) -> Plan {
        let now = self.now.borrow();
        let rules = Rules { read_only: now.config.pools[now.ix.index()].read_only };
        plan(call, &now.topology, &self.draw, rules)
    }

    /// Sends a whole call to one server; its reply will be `client`'s.
    #[inline]
    pub fn send_one(
        &self,
        server: ServerIx,
        args: Args<'_>,
        payload: Payload,
        client: &Rc<dyn Recipient>,
        route: Route,
    ) -> Result<(), Fenced> {
        let lane = self.lane(server, route);
        lane.admits(client)?;
        let ticket = Ticket::client(Rc::clone(client), client.outbox().admit());
        lane.send(payload.request(args), ticket);
        Ok(())
    }

    /// Sends each part to its server; the folded reply will be `client`'s.
    pub fn send_parts(
        &self,
        call: &Call<'_>,
        parts: &[Part],
        fold: Fold,
        client: &Rc<dyn Recipient>,
        route: Route,
    ) -> Result<(), Fenced> {
        parts.iter().try_for_each(|part| self.lane(part.server, route).admits(client))?;
        let per_key = match call.handling() {
            Handling::Split(kind) => kind.arguments_per_key(),
            _ => 1,
        };
        let whole = Ticket::client(Rc::clone(client), client.outbox().admit());
        let gather = Gather::new(Rc::clone(client), whole, parts.len(), fold);
        for (i, part) in parts.iter().enumerate() {
            let encode = |out: &mut Vec<u8>| part.encode(call.args, per_key, out);
            let ticket = Ticket::part(gather.clone(), i as u32);
            self.lane(part.server, route).send(Request::Encoded(&encode), ticket);
        }
        self.stats.fragments.add(parts.len() as u64);
        Ok(())
    }

    /// Whether all that `client` has sent to `server` over shared connections has its outcome: only then may it go on over one of its
    /// own. What it is owed by other servers is no matter.
    pub fn is_through(
        &self,
        server: ServerIx,
        client: &Rc<dyn Recipient>,
        route: Route,
    ) -> Result<(), Fenced> {
        match client.outbox().pending() {
            0 => Ok(()),
            _ => self.lane(server, route).is_through(client),
        }
    }

    /// A connection to `server` for one client alone.
    pub fn lease(&self, server: ServerIx, target: Target) -> Result<Lease, LeasesSpent> {
        self.now.borrow().servers[server.index()].lease(target)
    }

    /// Whether `lease` is a connection to `server`.
    pub fn has_leased(&self, server: ServerIx, lease: &Lease) -> bool {
        self.now.borrow().servers[server.index()].has_leased(lease)
    }

    /// Who owns `key` now.
    pub(super) fn owner(&self, key: &[u8]) -> Option<ServerIx> {
        let topology = &self.now.borrow().topology;
        topology.group(key, &self.draw).and_then(|group| topology.server_of(group))
    }

    /// Where calls without a key go.
    pub fn first_live(&self) -> Option<ServerIx> {
        self.now.borrow().topology.first_live()
    }

    /// The servers that are live, in the pool's order.
    pub fn live(&self) -> Vec<ServerIx> {
        let now = self.now.borrow();
        (0..)
            .map(ServerIx)
            .zip(now.topology.live())
            .filter_map(|(server, live)| live.then_some(server))
            .collect()
    }

    pub(super) fn server(&self, server: ServerIx) -> Rc<Server> {
        Rc::clone(&self.now.borrow().servers[server.index()])
    }

    #[inline]
    pub(super) fn lane(&self, server: ServerIx, route: Route) -> Ref<'_, Rc<Lane>> {
        Ref::map(self.now.borrow(), |now| now.servers[server.index()].lane(route.target, route.client))
    }
}
