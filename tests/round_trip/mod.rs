//! One worker's data path without sockets, clock or tasks: what a request and its reply go through, in the order
//! in which the proxy does it. For the test that counts allocations, and for benches.
//!
//! ```text
//!   receive   client's read → scan → lookup → plan → ticket → server's pipe
//!   end_turn  the turn's list: each dirty server is written once, then each ready client
//!   reply     server's read → scan → pop → settle → client's outbox
//! ```
#![allow(dead_code)] // Not every user needs everything.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Instant;

use bytes::Buf;
use shardwise::backend::{Pipe, Request};
use shardwise::command::{Call, CommandTable, Handling};
use shardwise::config::Distribution;
use shardwise::dispatch::Gather;
use shardwise::exchange::{Flush, Moment, Outbox, Outcome, Recipient, Reply, Ticket, Took, Turn};
use shardwise::hash::KeyHash;
use shardwise::resp::{Args, Limits, ReplyScanner, RequestScanner, Scanned};
use shardwise::router::{Fold, Part, Plan, Rules, plan};
use shardwise::stats::{CommandTimes, Histogram};
use shardwise::topology::{Draw, ServerIx, Topology};

#[path = "../pools/mod.rs"]
mod pools;
pub mod script;

/// Clients and servers of one worker, and the keys' owners.
pub struct RoundTrip {
    turn: Rc<Turn>,
    clients: Vec<Rc<Client>>,
    servers: Vec<Rc<Server>>,
    owners: Owners,
    limits: Limits,
    now: Moment,
}

/// Which server has a key, on a ketama ring with the default hash.
pub struct Owners {
    /// The ring.
    pub topology: Topology,
    /// For distributions that draw lots; ketama does not.
    pub draw: Draw,
}

struct Client {
    outbox: Outbox,
    scanner: RefCell<RequestScanner>,
    socket: Socket,
    commands: CommandTimes,
}

struct Server {
    pipe: RefCell<Pipe>,
    scanner: RefCell<ReplyScanner>,
    marked: Cell<bool>,
    turn: Rc<Turn>,
    socket: Socket,
    waited: Histogram,
    answered: Histogram,
    label: Rc<str>,
}

/// Takes everything at once, and keeps what it took until it is looked at.
struct Socket(RefCell<Vec<u8>>);

// === impl RoundTrip ===

impl RoundTrip {
    /// `clients` clients of a pool of `servers` servers.
    pub fn new(clients: usize, servers: usize) -> Self {
        let turn = Rc::new(Turn::default());
        Self {
            clients: (0..clients).map(|_| Client::new(&turn)).collect(),
            servers: (0..servers).map(|_| Server::new(&turn)).collect(),
            owners: Owners::new(servers),
            limits: Limits::default(),
            now: Moment::at(Instant::now()),
            turn,
        }
    }

    /// Which server has a key.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// One read of `client` that holds complete requests.
    pub fn receive(&self, client: usize, bytes: &[u8]) {
        let client = &self.clients[client];
        let recipient: Rc<dyn Recipient> = client.clone();
        let buffers = &self.turn.buffers;
        let mut buffer = buffers.take_scratch();
        buffer.extend_from_slice(bytes);
        let mut spans = buffers.take_spans();
        let mut at = 0;
        while at < buffer.len() {
            let scanned = client.scanner.borrow_mut().scan(&buffer[at..], &mut spans, &self.limits);
            let Ok(Scanned::Array(len)) = scanned else { panic!("not a whole request: {scanned:?}") };
            self.dispatch(Args::new(&buffer[at..at + len], &spans), &recipient);
            at += len;
        }
        buffer.advance(at);
        buffers.give_scratch(buffer);
        buffers.give_spans(spans);
    }

    /// Writes what this turn has queued: to servers, then to clients.
    pub fn end_turn(&self) {
        self.turn.drain();
    }

    /// One read of `server` that holds complete replies.
    pub fn reply(&self, server: usize, bytes: &[u8]) {
        let server = &self.servers[server];
        let mut buffer = self.turn.buffers.take_scratch();
        buffer.extend_from_slice(bytes);
        let mut at = 0;
        while at < buffer.len() {
            let scanned = server.scanner.borrow_mut().scan(&buffer[at..]);
            let Ok(Some(len)) = scanned else { panic!("not a whole reply: {scanned:?}") };
            let (head, early) = server.pipe.borrow_mut().pop().expect("a reply is awaited");
            assert!(!early, "a reply before its request was written");
            let ticket = head.ticket.expect("nothing expires here");
            let answer = self.now.micros_since(head.since);
            server.answered.record(answer);
            ticket.note(&Took { queue: u64::from(head.queued), answer, server: &server.label });
            ticket.settle(Outcome::Reply(Reply::Borrowed(&buffer[at..at + len])));
            at += len;
        }
        buffer.advance(at);
        self.turn.buffers.give_scratch(buffer);
    }

    /// Hands what was written to `client` since the last call to `look`.
    pub fn sent_to_client<T>(&self, client: usize, look: impl FnOnce(&[u8]) -> T) -> T {
        self.clients[client].socket.taken(look)
    }

    /// Hands what was written to `server` since the last call to `look`.
    pub fn sent_to_server<T>(&self, server: usize, look: impl FnOnce(&[u8]) -> T) -> T {
        self.servers[server].socket.taken(look)
    }

    fn dispatch(&self, args: Args<'_>, client: &Rc<dyn Recipient>) {
        let call = CommandTable::builtin().lookup(args).expect("a command");
        client.outbox().set_command(call.ix.0);
        match self.owners.plan(&call) {
            Plan::One(server) => {
                let ticket = Ticket::client(Rc::clone(client), client.outbox().admit());
                self.push(server, Request::Borrowed(args.raw()), ticket);
            }
            Plan::Split { parts, fold } => self.split(&call, &parts, fold, client),
            other => panic!("not for a server: {other:?}"),
        }
    }

    fn split(&self, call: &Call<'_>, parts: &[Part], fold: Fold, client: &Rc<dyn Recipient>) {
        let Handling::Split(kind) = call.handling() else { unreachable!("only such calls are split") };
        let whole = Ticket::client(Rc::clone(client), client.outbox().admit());
        let gather = Gather::new(Rc::clone(client), whole, parts.len(), fold);
        for (i, part) in parts.iter().enumerate() {
            let encode = |out: &mut Vec<u8>| part.encode(call.args, kind.arguments_per_key(), out);
            self.push(part.server, Request::Encoded(&encode), Ticket::part(gather.clone(), i as u32));
        }
    }

    fn push(&self, server: ServerIx, request: Request<'_>, ticket: Ticket) {
        let server = &self.servers[server.index()];
        server.pipe.borrow_mut().push(request, ticket, self.now, &self.turn.buffers);
        if !server.marked.replace(true) {
            self.turn.mark_server(server.clone());
        }
    }
}

impl Drop for RoundTrip {
    fn drop(&mut self) {
        let open = self.servers.iter().any(|server| server.pipe.borrow().awaits(|_| true));
        assert!(!open || std::thread::panicking(), "replies are still awaited");
    }
}

// === impl Owners ===

impl Owners {
    /// A ring of `servers` servers of equal weight.
    pub fn new(servers: usize) -> Self {
        let pool = pools::pool(KeyHash::default(), Distribution::Ketama, pools::servers(&vec![1; servers]));
        Self { topology: Topology::all_live(&pool), draw: Draw::seeded(1) }
    }

    /// The plan of a call.
    #[inline]
    pub fn plan(&self, call: &Call<'_>) -> Plan {
        plan(call, &self.topology, &self.draw, Rules::default())
    }

    /// The server that has `key`.
    pub fn of(&self, key: &str) -> usize {
        self.topology.server(key.as_bytes(), &self.draw).expect("every server is live").index()
    }

    /// The first `count` keys that `server` has.
    pub fn keys_of(&self, server: usize, count: usize) -> Vec<String> {
        keys().filter(|key| self.of(key) == server).take(count).collect()
    }
}

// === impl Client, Server, Socket ===

impl Client {
    fn new(turn: &Rc<Turn>) -> Rc<Self> {
        Rc::new(Self {
            outbox: Outbox::new(Rc::clone(turn)),
            scanner: RefCell::default(),
            socket: Socket::new(),
            commands: CommandTimes::default(),
        })
    }
}

impl Flush for Client {
    fn flush(&self) {
        self.outbox.write_to(|parts| self.socket.write(parts)).expect("the socket takes everything");
    }
}

impl Recipient for Client {
    fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    fn answered(&self, command: u16, took: &Took<'_>) {
        self.commands.record(command, took.queue + took.answer);
    }
}

impl Server {
    fn new(turn: &Rc<Turn>) -> Rc<Self> {
        Rc::new(Self {
            pipe: RefCell::default(),
            scanner: RefCell::default(),
            marked: Cell::new(false),
            turn: Rc::clone(turn),
            socket: Socket::new(),
            waited: Histogram::default(),
            answered: Histogram::default(),
            label: "a server".into(),
        })
    }
}

impl Flush for Server {
    fn flush(&self) {
        self.marked.set(false);
        let mut pipe = self.pipe.borrow_mut();
        pipe.out().write_to(|parts| self.socket.write(parts)).expect("the socket takes everything");
        pipe.after_write(|| Moment::at(Instant::now()), &self.waited);
        pipe.out().release(&self.turn.buffers);
    }
}

impl Socket {
    fn new() -> Self {
        Self(RefCell::default())
    }

    fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut taken = self.0.borrow_mut();
        let before = taken.len();
        parts.iter().for_each(|part| taken.extend_from_slice(part));
        Ok(taken.len() - before)
    }

    fn taken<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        let mut taken = self.0.borrow_mut();
        let result = look(&taken);
        taken.clear();
        result
    }
}

// === bytes ===

/// Keys as redis-benchmark makes them, in no order. (On fnv1a, keys that differ in the last digit only are neighbours.)
pub fn keys() -> impl Iterator<Item = String> {
    (1..).map(|number: u64| format!("key:{:012}", number * 48_271 % 100_000))
}

/// A request of these arguments.
pub fn request<A: AsRef<[u8]>>(args: impl IntoIterator<Item = A>) -> Vec<u8> {
    let args: Vec<A> = args.into_iter().collect();
    let mut out = format!("*{}\r\n", args.len()).into_bytes();
    args.iter().for_each(|arg| out.extend_from_slice(&bulk(arg)));
    out
}

/// A bulk string.
pub fn bulk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("${}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// An array of these replies.
pub fn array(elements: &[Vec<u8>]) -> Vec<u8> {
    [format!("*{}\r\n", elements.len()).into_bytes(), elements.concat()].concat()
}
