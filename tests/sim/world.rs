//! The whole: clients, the proxy between, servers. One step at a time, each drawn from the seed.

use std::rc::Rc;
use std::time::{Duration, Instant};

use shardwise::backend::Request;
use shardwise::command::{Call, CommandTable, Handling};
use shardwise::config::{Distribution, Pool};
use shardwise::dispatch::Gather;
use shardwise::exchange::{Moment, Outbox, Recipient, Ticket, Turn};
use shardwise::hash::KeyHash;
use shardwise::resp::{ArgSpan, Args, Limits, RequestScanner, Scanned};
use shardwise::router::{Fold, Part, Plan, Rules, plan};
use shardwise::topology::{Draw, Topology};

use super::client::{Client, Socket};
use super::lane::{Lane, Link, TIMEOUT};
use super::server::Server;
use crate::pools;
use crate::support::Random;

/// Everything there is.
pub struct World {
    random: Random,
    turn: Rc<Turn>,
    now: Moment,
    pool: Pool,
    topology: Topology,
    draw: Draw,
    live: [bool; SERVERS],
    servers: [Server; SERVERS],
    lanes: [Lane; SERVERS],
    guests: Vec<Guest>,
}

/// A client and the proxy's side of it.
struct Guest {
    client: Client,
    /// `None`: it has gone.
    socket: Option<Rc<Socket>>,
    scanner: RequestScanner,
    spans: Vec<ArgSpan>,
    input: Vec<u8>,
    /// Requests that the proxy has taken from the input.
    admitted: usize,
}

const SERVERS: usize = 3;
const STEPS: usize = 250;
/// Bounds of a client, so low that they are met.
const MAX_PENDING: usize = 6;
const OUT_SOFT: usize = 1_000;

impl World {
    /// The one of `seed`.
    pub fn new(seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let turn = Rc::new(Turn::default());
        let distribution = *random.pick(&[Distribution::Modula, Distribution::Modula, Distribution::Ketama]);
        let pool = pools::pool(KeyHash::default(), distribution, pools::servers(&[1; SERVERS]));
        let guests = (0..1 + random.below(4)).map(|number| Guest {
            client: Client::new(number, 1 + random.below(30), &mut random),
            socket: Some(Socket::new(&turn)),
            scanner: RequestScanner::default(),
            spans: Vec::new(),
            input: Vec::new(),
            admitted: 0,
        });
        Self {
            guests: guests.collect(),
            topology: Topology::all_live(&pool),
            draw: Draw::seeded(seed),
            live: [true; SERVERS],
            servers: Default::default(),
            lanes: std::array::from_fn(|_| Lane::new(&turn)),
            now: Moment::at(Instant::now()) + Duration::from_secs(3600),
            random,
            turn,
            pool,
        }
    }

    /// All of it, to the end.
    pub fn run(mut self) {
        for _ in 0..STEPS {
            self.step();
            self.check();
        }
        self.settle_down();
        self.check_the_end();
    }

    fn step(&mut self) {
        let server = self.random.below(SERVERS);
        let guest = self.random.below(self.guests.len());
        let which = self.random.below(4);
        let some = match self.random.below(4) {
            0 => self.random.below(5),
            1 => self.random.below(1_000),
            _ => self.random.below(100),
        };
        match self.random.below(1_000) {
            0..250 => self.client_speaks(guest, some),
            250..400 => self.lanes[server].write(some, self.now),
            400..550 => self.server_works(server, which),
            550..700 => self.lanes[server].read(which, some),
            700..800 => self.turn.drain(),
            800..900 => self.client_listens(guest, some),
            900..950 => self.lanes[server].connected(self.random.below(4) > 0),
            950..970 => {
                self.now += TIMEOUT / 3;
                self.lanes.iter_mut().for_each(|lane| lane.expire(self.now));
            }
            970..980 => self.lanes[server].lose(),
            980..985 if !self.lanes[server].retiring.is_empty() => self.lanes[server].lose_retired(0),
            985..990 => {
                // It dies, and comes back with nothing.
                self.servers[server].lose_everything();
                self.lanes[server].lose();
            }
            990..996 => {
                self.live[server] = !self.live[server];
                self.topology = Topology::new(&self.pool, &self.live);
            }
            996 => self.client_leaves(guest),
            _ => self.dispatch_all(),
        }
    }

    /// Part of its script arrives, wherever it is cut.
    fn client_speaks(&mut self, guest: usize, most: usize) {
        let guest_ = &mut self.guests[guest];
        if guest_.socket.is_some() {
            let take = guest_.client.script.len().min(most);
            guest_.input.extend(guest_.client.script.drain(..take));
            self.dispatch(guest);
        }
    }

    fn client_listens(&mut self, guest: usize, most: usize) {
        let guest = &mut self.guests[guest];
        if let Some(socket) = &guest.socket {
            socket.make_room(most);
            guest.client.hear(&socket.take_sent());
        }
    }

    fn client_leaves(&mut self, guest: usize) {
        if let Some(socket) = self.guests[guest].socket.take() {
            socket.outbox().close();
            assert_eq!((socket.outbox().pending(), socket.outbox().unsent()), (0, 0));
        }
    }

    fn server_works(&mut self, server: usize, which: usize) {
        if let Some(conn) = self.lanes[server].conn(which) {
            conn.execute(&mut self.servers[server]);
        }
    }

    fn dispatch_all(&mut self) {
        (0..self.guests.len()).for_each(|guest| self.dispatch(guest));
    }

    /// Every complete request of a client, as far as its bounds and the fence allow.
    fn dispatch(&mut self, guest: usize) {
        let Some(socket) = self.guests[guest].socket.clone() else { return };
        let recipient: Rc<dyn Recipient> = socket.clone();
        let mut input = std::mem::take(&mut self.guests[guest].input);
        let mut spans = std::mem::take(&mut self.guests[guest].spans);
        loop {
            let outbox = socket.outbox();
            if outbox.pending() >= MAX_PENDING || outbox.unsent() >= OUT_SOFT {
                break;
            }
            let scanner = &mut self.guests[guest].scanner;
            match scanner.scan(&input, &mut spans, &Limits::default()).expect("clients speak RESP") {
                Scanned::Array(len) => {
                    if !self.handle(Args::new(&input[..len], &spans), &recipient) {
                        break;
                    }
                    input.drain(..len);
                    self.guests[guest].admitted += 1;
                }
                _ => break,
            }
        }
        self.guests[guest].input = input;
        self.guests[guest].spans = spans;
    }

    /// Plans a request and sends its parts; false if it has to wait.
    fn handle(&mut self, args: Args<'_>, client: &Rc<dyn Recipient>) -> bool {
        let call = CommandTable::builtin().lookup(args).expect("a command");
        match plan(&call, &self.topology, &self.draw, Rules::default()) {
            Plan::One(server) => {
                let lane = &mut self.lanes[server.index()];
                if !lane.admits(client) {
                    return false;
                }
                assert!(self.live[server.index()], "a server that is out owns a key");
                let ticket = Ticket::client(Rc::clone(client), client.outbox().admit());
                lane.send(Request::Borrowed(args.raw()), ticket, self.now);
            }
            Plan::Split { parts, fold } => return self.split(&call, &parts, fold, client),
            Plan::Refuse(refusal) => {
                assert!(!self.live.contains(&true), "{refusal:?} although a server is live");
                let text = refusal.reply(&call, "alpha");
                // What a client hears when no server is left; made one of the errors that the clients here know.
                assert!(!text.as_str().is_empty());
                Outbox::answer(client, |out| out.extend_from_slice(b"-ERR Connection refused\r\n"));
            }
            other => panic!("nobody asked for {other:?}"),
        }
        true
    }

    fn split(&mut self, call: &Call<'_>, parts: &[Part], fold: Fold, client: &Rc<dyn Recipient>) -> bool {
        let Handling::Split(kind) = call.handling() else { panic!("only such calls are split") };
        check_parts(call, parts);
        if !parts.iter().all(|part| self.lanes[part.server.index()].admits(client)) {
            return false;
        }
        let whole = Ticket::client(Rc::clone(client), client.outbox().admit());
        let gather = Gather::new(Rc::clone(client), whole, parts.len(), fold);
        for (i, part) in parts.iter().enumerate() {
            let encode = |out: &mut Vec<u8>| part.encode(call.args, kind.arguments_per_key(), out);
            let ticket = Ticket::part(gather.clone(), i as u32);
            self.lanes[part.server.index()].send(Request::Encoded(&encode), ticket, self.now);
        }
        true
    }

    /// What holds after every step.
    fn check(&mut self) {
        for guest in &self.guests {
            let Some(socket) = &guest.socket else { continue };
            assert!(guest.client.heard <= guest.admitted, "a reply to what was not asked");
            assert!(guest.admitted - guest.client.heard >= socket.outbox().pending());
            assert!(socket.outbox().pending() <= MAX_PENDING);
        }
    }

    /// Every server lives, every byte moves, until nothing is on its way any more.
    fn settle_down(&mut self) {
        for _ in 0..10_000 {
            self.dispatch_all();
            for (lane, server) in self.lanes.iter_mut().zip(&mut self.servers) {
                if !matches!(lane.link, Link::Up(_)) {
                    lane.connected(true);
                }
                lane.write(usize::MAX, self.now);
                for which in (0..=lane.retiring.len()).rev() {
                    while lane.conn(which).is_some_and(|conn| conn.execute(server)) {}
                    lane.read(which, usize::MAX);
                }
            }
            self.turn.drain();
            for guest in 0..self.guests.len() {
                self.client_speaks(guest, usize::MAX);
                self.client_listens(guest, 1 << 20);
            }
            let heard =
                |guest: &Guest| guest.socket.is_none() || guest.client.heard == guest.client.requests();
            if self.guests.iter().all(|guest| heard(guest) || is_cut(guest))
                && self.lanes.iter().all(Lane::is_idle)
            {
                return;
            }
        }
        let missing: Vec<_> =
            self.guests.iter().map(|guest| (guest.client.heard, guest.client.requests())).collect();
        panic!("something never comes; heard, asked: {missing:?}");
    }

    /// What holds when all is over: nothing left, nothing executed twice, each client's requests in order.
    fn check_the_end(self) {
        for guest in &self.guests {
            if let Some(socket) = &guest.socket
                && !is_cut(guest)
            {
                assert_eq!((socket.outbox().pending(), socket.outbox().unsent()), (0, 0));
            }
        }
        for server in &self.servers {
            let mut last = vec![None; self.guests.len()];
            for &(client, number) in &server.executed {
                let guest = &self.guests[client].client;
                let token = (client, number);
                let count = server.executed.iter().filter(|other| **other == token).count();
                assert_eq!(count, 1, "{token:?} was executed {count} times by a server");
                assert!(
                    !guest.unsent.contains(&token),
                    "{token:?} was executed, and its client told that it never left"
                );
                // One that failed may be executed late; of one that has gone nobody knows.
                if guest.failed.contains(&token) || number >= guest.heard {
                    continue;
                }
                assert!(last[client] < Some(number), "{token:?} was executed behind {:?}", last[client]);
                last[client] = Some(number);
            }
        }
    }
}

fn is_cut(guest: &Guest) -> bool {
    guest.socket.as_ref().is_some_and(|socket| socket.outbox().is_cut())
}

/// Parts are not empty, disjoint, and have each key once.
fn check_parts(call: &Call<'_>, parts: &[Part]) {
    let mut keys: Vec<u32> = parts.iter().flat_map(|part| part.keys.iter().copied()).collect();
    assert!(parts.len() > 1 && parts.iter().all(|part| !part.keys.is_empty()));
    keys.sort_unstable();
    let all: Vec<u32> = call.keys().expect("a split call has keys").iter().map(|key| key as u32).collect();
    assert_eq!(keys, all);
}
