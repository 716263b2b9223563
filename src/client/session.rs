//! What a client may do now, and what becomes of each of its requests.

use std::net::SocketAddr;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::about::Library;
use super::conn::{ClientConn, Closed};
use super::incoming::Incoming;
use super::info::{self, Told};
use super::mode::Mode;
use super::subscribing::Subscriptions;
use super::wait::Written;
use super::{about, hello, local};
use crate::backend::{Fenced, Target};
use crate::command::{Call, CallError, ClientQuery, Flags, Local, ScriptUse, TimeoutAt};
use crate::config;
use crate::dispatch::{Payload, Pool, Route};
use crate::exchange::{Outbox, Recipient, Replies};
use crate::net::Announced;
use crate::resp::{Args, ErrorReply, Limits, Protocol};
use crate::router::Plan;

/// The state of one client beside its bytes.
pub struct Session {
    /// Whether it has given the pool's password, or the pool has none.
    pub(super) authenticated: bool,
    /// CLIENT SETNAME.
    pub(super) name: Option<Box<[u8]>>,
    /// Wrong passwords since the last right one.
    pub(super) failures: u32,
    /// CLIENT SETINFO.
    pub(super) library: Option<Box<Library>>,
    /// Its database (SELECT) and protocol (HELLO).
    pub(super) target: Target,
    /// Where it wrote: for WAIT.
    pub(super) written: Written,
    /// What it is in the middle of.
    pub(super) mode: Mode,
    /// What it is subscribed to; `None`: nothing.
    pub(super) subscriptions: Option<Box<Subscriptions>>,
}

/// What of a client's state goes with it to another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    authenticated: bool,
    name: Option<Vec<u8>>,
    db: u32,
    resp3: bool,
    /// Whom a load balancer has named: the client, and what it came to.
    #[serde(default)]
    announced: Option<(SocketAddr, SocketAddr)>,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is on its way, or answered.
    Done,
    /// It is answered, by an error: so many wrong passwords have come in a row.
    Slow(u32),
    /// It must wait until earlier requests of this client have ended on an older connection; nothing was done.
    Fenced,
    /// It is on its way, and what follows must wait until it is answered.
    Held,
    /// It was the last one: what is due is delivered, then the connection ends.
    Close(Closed),
}

/// Longest request as a whole: Redis's client-query-buffer-limit.
const MAX_REQUEST: usize = 1 << 30;

impl From<Result<(), Fenced>> for Verdict {
    fn from(sent: Result<(), Fenced>) -> Self {
        match sent {
            Ok(()) => Self::Done,
            Err(Fenced) => Self::Fenced,
        }
    }
}

impl Carried {
    /// With the addresses that a load balancer has named.
    pub(super) fn with(self, announced: Option<Announced>) -> Self {
        Self { announced: announced.map(|at| (at.source, at.destination)), ..self }
    }

    /// The addresses that a load balancer has named.
    pub fn announced(&self) -> Option<Announced> {
        self.announced.map(|(source, destination)| Announced { source, destination })
    }
}

impl Session {
    /// A client that has just connected.
    pub fn new(pool: &config::Pool) -> Self {
        let target = Target { db: pool.redis_db, protocol: Protocol::Resp2 };
        Self {
            authenticated: pool.redis_auth.is_none(),
            name: None,
            failures: 0,
            library: None,
            target,
            written: Written::default(),
            mode: Mode::Normal,
            subscriptions: None,
        }
    }

    /// What another process goes on with; `None`: this client can't go on elsewhere.
    pub fn carried(&self) -> Option<Carried> {
        if !matches!(self.mode, Mode::Normal) || self.subscriptions.is_some() {
            return None;
        }
        let name = self.name.as_ref().map(|name| name.to_vec());
        let Target { db, protocol } = self.target;
        let resp3 = protocol == Protocol::Resp3;
        Some(Carried { authenticated: self.authenticated, name, db, resp3, announced: None })
    }

    /// A client that comes from another process.
    pub fn resumed(carried: Carried) -> Self {
        let Carried { authenticated, name, db, resp3, announced: _ } = carried;
        let protocol = if resp3 { Protocol::Resp3 } else { Protocol::Resp2 };
        Self {
            authenticated,
            name: name.map(Vec::into_boxed_slice),
            failures: 0,
            library: None,
            target: Target { db, protocol },
            written: Written::default(),
            mode: Mode::Normal,
            subscriptions: None,
        }
    }

    /// Bounds of its requests.
    pub fn limits(&self, pool: &config::Pool) -> Limits {
        Limits {
            max_args: pool.max_args,
            max_bulk: pool.max_bulk,
            max_inline: pool.max_inline,
            max_request: MAX_REQUEST,
            authenticated: self.authenticated,
        }
    }

    /// Handles one complete request.
    #[inline]
    pub fn handle(
        &mut self,
        args: Args<'_>,
        payload: Payload,
        client: &ClientConn,
        recipient: &Rc<dyn Recipient>,
    ) -> Verdict {
        let pool = client.pool();
        let call = match pool.table.lookup(args) {
            Ok(call) => call,
            Err(CallError::UnknownCommand(args)) if is_http(args.name()) => {
                let (address, _) = client.addresses();
                let pool = &*pool.config().name;
                tracing::warn!(
                    client = client.id(),
                    pool,
                    address,
                    "a client speaks HTTP: some web page attacks; closed"
                );
                return Verdict::Close(Closed::Http);
            }
            Err(error) => match pool.learned_call(error) {
                Ok(call) => call,
                Err(_) if !self.may_pass(pool) => return refuse(ErrorReply::no_auth(), pool, recipient),
                Err(error) => return self.not_queued(&error, pool, recipient),
            },
        };
        pool.stats.client_requests.add(1);
        recipient.outbox().set_command(call.ix.0);
        let plan = pool.plan(&call);
        if !call.row.flags.contains(Flags::READONLY) {
            self.note_write(&plan);
        }
        if !self.may_pass(pool) && !is_open_to_all(&plan) {
            return refuse(ErrorReply::no_auth(), pool, recipient);
        }
        if let Some(denied) = &pool.config().commands
            && denied.refuses(&call)
        {
            return self.denied(&call, pool, recipient);
        }
        if client.tally().is_due() && !matches!(plan, Plan::Refuse(_) | Plan::Local(_)) {
            client.sample(&call);
        }
        if call.row.script != ScriptUse::None {
            pool.note_script(&call);
        }
        let incoming = Incoming { call: &call, payload, client, recipient };
        let verdict = if !matches!(self.mode, Mode::Normal) || self.subscriptions.is_some() {
            self.handle_in_mode(plan, incoming)
        } else {
            self.carry_out(plan, incoming)
        };
        // One that is fenced comes again.
        if client.is_monitored() && verdict != Verdict::Fenced {
            client.show(&call, self.target.db);
        }
        verdict
    }

    /// Refuses a command that the pool's `commands` deny; inside MULTI it spoils the transaction.
    fn denied(&mut self, call: &Call<'_>, pool: &Pool, recipient: &Rc<dyn Recipient>) -> Verdict {
        if let Mode::Multi(multi) = &mut self.mode {
            multi.spoil(ErrorReply::exec_abort);
        }
        refuse(ErrorReply::no_perm(call.row.name, &pool.config().name), pool, recipient)
    }

    /// Does what the plan says for a client in the normal mode.
    #[inline]
    pub(super) fn carry_out(&mut self, plan: Plan, incoming: Incoming<'_>) -> Verdict {
        let Incoming { call, payload, client, recipient } = incoming;
        let pool = client.pool();
        let args = call.args;
        let route = Route { client: client.id(), target: self.target };
        let sent = match plan {
            Plan::One(server) if call.row.script == ScriptUse::Sha => {
                pool.send_evalsha(server, call, payload, recipient, route)
            }
            Plan::One(server) => pool.send_one(server, args, payload, recipient, route),
            Plan::Split { parts, fold } => pool.send_parts(call, &parts, fold, recipient, route),
            Plan::All { servers, fold } => pool.send_all(&servers, args, &payload, fold, recipient, route),
            Plan::Scan(scan) => pool.send_scan(scan, args, recipient, route),
            Plan::Refuse(refusal) => {
                return refuse(refusal.reply(call, &pool.config().name), pool, recipient);
            }
            Plan::Local(local) => return self.answer(local, call, client, recipient),
            Plan::Pin { server, pin } => {
                return self.pin(server, pin, Incoming { call, payload, client, recipient });
            }
            Plan::Wait => {
                let wait = call.wait(TimeoutAt::LastMillis);
                return self.wait(wait, Incoming { call, payload, client, recipient });
            }
            Plan::Subscribe(space) => {
                return self.subscribe(space, &Incoming { call, payload, client, recipient });
            }
            Plan::Unsubscribe(space) => {
                return self.unsubscribe(space, &Incoming { call, payload, client, recipient });
            }
            Plan::Transaction(step) => return self.begin_or_refuse(step, pool, recipient),
        };
        sent.into()
    }

    /// Notes where something that may write goes. (A refused call may be noted, too: WAIT then asks a server more.)
    #[inline]
    fn note_write(&mut self, plan: &Plan) {
        match plan {
            Plan::One(server) | Plan::Pin { server, .. } => self.written.add(*server),
            Plan::Split { parts, .. } => parts.iter().for_each(|part| self.written.add(part.server)),
            Plan::All { servers, .. } => servers.iter().for_each(|server| self.written.add(*server)),
            _ => {}
        }
    }

    /// Whether it has given the password, or there is none any more since a reload.
    #[inline]
    fn may_pass(&mut self, pool: &Pool) -> bool {
        if !self.authenticated {
            self.authenticated = pool.config().redis_auth.is_none();
        }
        self.authenticated
    }

    /// Answers without any server.
    pub(super) fn answer(
        &mut self,
        local: Local,
        call: &Call<'_>,
        client: &ClientConn,
        recipient: &Rc<dyn Recipient>,
    ) -> Verdict {
        let pool = client.pool();
        let config = &*pool.config();
        let args = call.args;
        if changes_target(local) && recipient.outbox().pending() > 0 {
            return Verdict::Fenced;
        }
        let protocol = self.target.protocol;
        let failures = self.failures;
        let mut verdict = Verdict::Done;
        let mut reply = Vec::new();
        let result = match local {
            Local::Auth => self.auth(args, config).and_then(|()| local::simple("OK", &mut reply)),
            Local::Hello => hello::hello(self, args, config, client.id(), &mut reply),
            Local::Quit => {
                verdict = Verdict::Close(Closed::Quit);
                self.subscriptions = None;
                local::simple("OK", &mut reply)
            }
            Local::Reset => {
                *self = Self { failures: self.failures, ..Self::new(config) };
                recipient.outbox().set_replies(Replies::On);
                local::simple("RESET", &mut reply)
            }
            Local::Ping => local::ping(args, config, &mut reply),
            Local::Echo => local::bulk(args.get(1).unwrap_or_default(), &mut reply),
            Local::Select => local::select(args, config, self, &mut reply),
            Local::ServerInfo => match info::info(args, pool, protocol, &mut reply) {
                Told::All => Ok(()),
                Told::AllButKeyspace => {
                    let route = Route { client: client.id(), target: self.target };
                    return pool.send_info(reply, recipient, route).into();
                }
            },
            Local::ConfigGet => local::config_get(args, protocol, &mut reply),
            Local::Client(ClientQuery::Reply) => match about::reply(args, recipient) {
                Ok(verdict) => return verdict,
                Err(error) => Err(error),
            },
            Local::Client(ClientQuery::ClientInfo) => about::info(call.row.name, self, client, &mut reply),
            Local::Client(ClientQuery::ListClients) => about::list(args, self, client, &mut reply),
            Local::Accepted => local::simple("OK", &mut reply),
            Local::Client(query) => local::client(query, args, self, client.id(), &mut reply),
            Local::Command(query) => {
                local::command(query, args, (pool.table, &pool.learned()), protocol, &mut reply)
            }
            Local::Help => local::help(pool.table, call.ix, &mut reply),
        };
        if let Err(error) = result {
            let refused = refuse(error, pool, recipient);
            return if self.failures > failures { Verdict::Slow(self.failures) } else { refused };
        }
        Outbox::answer(recipient, |out| out.extend_from_slice(&reply));
        verdict
    }

    /// Whether its calls may go on over connections for `target`, which is then returned: not while keys are watched on one of before.
    pub(super) fn may_change_target(&self, target: Target) -> Result<Target, ErrorReply> {
        if target != self.target && !matches!(self.mode, Mode::Normal) {
            return Err(ErrorReply::not_while_watching());
        }
        Ok(target)
    }

    /// AUTH with one argument has twemproxy's texts, with two Redis's.
    pub(super) fn auth(&mut self, args: Args<'_>, pool: &config::Pool) -> Result<(), ErrorReply> {
        match (args.get(1), args.get(2), args.len()) {
            (Some(password), None, 2) => self.auth_password(password, pool),
            (Some(user), Some(password), 3) => self.auth_user(user, password, pool),
            _ => Err(ErrorReply::syntax_error()),
        }
    }

    /// The only user is Redis's `default`. Without a password it may always come in, as in Redis.
    pub(super) fn auth_user(
        &mut self,
        user: &[u8],
        password: &[u8],
        pool: &config::Pool,
    ) -> Result<(), ErrorReply> {
        let matches = pool.redis_auth.as_ref().is_none_or(|secret| secret.matches(password));
        if user != b"default" || !matches {
            self.failures = self.failures.saturating_add(1);
            return Err(ErrorReply::wrong_pass());
        }
        (self.authenticated, self.failures) = (true, 0);
        Ok(())
    }

    fn auth_password(&mut self, password: &[u8], pool: &config::Pool) -> Result<(), ErrorReply> {
        let Some(secret) = &pool.redis_auth else { return Err(ErrorReply::auth_not_set()) };
        self.authenticated = secret.matches(password);
        self.failures = if self.authenticated { 0 } else { self.failures.saturating_add(1) };
        if self.authenticated { Ok(()) } else { Err(ErrorReply::invalid_password()) }
    }
}

/// Words of an HTTP request that no Redis command has for its name. A web page can make a browser of the same network
/// send what it likes behind them; so, as in Redis, nothing behind them is looked at.
fn is_http(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

/// What a client may ask for before it has given the password.
fn is_open_to_all(plan: &Plan) -> bool {
    matches!(plan, Plan::Local(Local::Auth | Local::Hello | Local::Quit | Local::Reset))
}

/// Whether the client's traffic may move to other server connections by it: all that it has sent must be answered before.
fn changes_target(local: Local) -> bool {
    matches!(local, Local::Select | Local::Hello | Local::Reset)
}

pub(super) fn refuse(error: ErrorReply, pool: &Pool, recipient: &Rc<dyn Recipient>) -> Verdict {
    pool.stats.forward_error.add(1);
    Outbox::answer(recipient, |out| error.encode(out));
    Verdict::Done
}
