//! Plans and refusals as plain values.

use super::fold::Fold;
use super::scan::{BadCursor, Scan};
use crate::command::{
    AllKind, Call, CommandIx, Flags, Handling, Keys, Local, Pin, SplitKind, Transaction, Why,
};
use crate::resp::{Args, ErrorReply, Space, encode};
use crate::topology::{Draw, Group, ServerIx, Topology};

/// What to do with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Send it as it is to one server.
    One(ServerIx),
    /// Send each part to its server, and fold the replies.
    Split {
        /// Not empty, disjoint, together every key once.
        parts: Vec<Part>,
        /// How the replies become one.
        fold: Fold,
    },
    /// Send it as it is to all these servers, and fold the replies.
    All {
        /// Every server of the pool, ejected ones too: their keys must not be missing from the answer unnoticed.
        servers: Vec<ServerIx>,
        /// How the replies become one.
        fold: Fold,
    },
    /// Send it to one server with that server's own cursor, and make a cursor of the pool of what it answers.
    Scan(Scan),
    /// Send it as it is to one server, on a connection that the client has for itself.
    Pin {
        /// Who gets it.
        server: ServerIx,
        /// What for.
        pin: Pin,
    },
    /// Ask every server that the client wrote to.
    Wait,
    /// A step of the client's transaction: its state decides.
    Transaction(Transaction),
    /// The client subscribes to something.
    Subscribe(Space),
    /// The client wants no more of it.
    Unsubscribe(Space),
    /// The proxy answers.
    Local(Local),
    /// The proxy refuses.
    Refuse(Refusal),
}

/// The share of one server in a split call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Who gets it.
    pub server: ServerIx,
    /// Argument indexes of its keys, in the order of the request.
    pub keys: Vec<u32>,
}

/// Why a call isn't sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its keys live on several servers, and it cannot be split.
    CrossServer,
    /// No server of the pool is live, or none has the key's slot.
    NoServer,
    /// It may write, and the pool is read-only.
    ReadOnly,
    /// The cursor of a SCAN is none that this pool can have given.
    Cursor(BadCursor),
    /// Keys and values of a split command don't pair up.
    Unpaired(&'static str),
    /// Not supported.
    Unsupported(Why),
}

/// What of the pool's configuration bears on a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// `read_only`.
    pub read_only: bool,
}

/// The plan for `call` with the owners in `topology`.
#[inline]
pub fn plan(call: &Call<'_>, topology: &Topology, draw: &Draw, rules: Rules) -> Plan {
    let handling = call.handling();
    if rules.read_only && may_write(call, handling) {
        return Plan::Refuse(Refusal::ReadOnly);
    }
    match handling {
        Handling::Keyed => keyed(call, topology, draw),
        Handling::Split(kind) => split(call, kind, topology, draw),
        Handling::Pinned(pin) => match keyed(call, topology, draw) {
            Plan::One(server) => Plan::Pin { server, pin },
            refused => refused,
        },
        Handling::Wait => Plan::Wait,
        Handling::Transaction(step) => Plan::Transaction(step),
        Handling::AnyServer => any(topology),
        Handling::OnlyServer(_) if topology.servers().len() == 1 => any(topology),
        Handling::OnlyServer(why) => Plan::Refuse(Refusal::Unsupported(why)),
        Handling::Everywhere(kind) => all(kind, topology, draw),
        Handling::Scan => scan(call, topology),
        Handling::Subscribe(space) => Plan::Subscribe(space),
        Handling::Unsubscribe(space) => Plan::Unsubscribe(space),
        Handling::Publish => one(topology.group(argument(call.args, 1), draw), topology),
        Handling::Local(local) => Plan::Local(local),
        Handling::Unsupported(why) => Plan::Refuse(Refusal::Unsupported(why)),
    }
}

#[inline]
fn keyed(call: &Call<'_>, topology: &Topology, draw: &Draw) -> Plan {
    // A call whose keys cannot be told is an error on every server: the first live one words it.
    let Ok(keys) = call.keys() else { return any(topology) };
    match keys.single() {
        Some(key) => one(topology.group(argument(call.args, key), draw), topology),
        None if keys.is_empty() => any(topology),
        None => together(call.args, keys, topology, draw),
    }
}

/// All keys must be of one group.
fn together(args: Args<'_>, keys: Keys, topology: &Topology, draw: &Draw) -> Plan {
    let mut groups = keys.iter().map(|key| topology.group(argument(args, key), draw));
    let first = groups.next().flatten();
    if groups.all(|group| group == first) { one(first, topology) } else { Plan::Refuse(Refusal::CrossServer) }
}

fn split(call: &Call<'_>, kind: SplitKind, topology: &Topology, draw: &Draw) -> Plan {
    let Ok(keys) = call.keys() else { return any(topology) };
    if let Some(key) = keys.single() {
        return one(topology.group(argument(call.args, key), draw), topology);
    }
    if !(call.args.len() - 1).is_multiple_of(kind.arguments_per_key()) {
        return Plan::Refuse(Refusal::Unpaired(call.row.name));
    }
    let mut groups: Vec<Group> = Vec::new();
    let mut parts: Vec<Part> = Vec::new();
    let mut order = Vec::with_capacity(if kind == SplitKind::Concat { keys.len() } else { 0 });
    for key in keys.iter() {
        let Some(group) = topology.group(argument(call.args, key), draw) else {
            return Plan::Refuse(Refusal::NoServer);
        };
        let part = match groups.iter().position(|known| *known == group) {
            Some(part) => part,
            None => {
                let Some(server) = topology.server_of(group) else { return Plan::Refuse(Refusal::NoServer) };
                groups.push(group);
                parts.push(Part { server, keys: Vec::with_capacity(keys.len()) });
                parts.len() - 1
            }
        };
        parts[part].keys.push(key as u32);
        if kind == SplitKind::Concat {
            order.push(part as u16);
        }
    }
    if let [only] = parts.as_slice() {
        return Plan::One(only.server);
    }
    let fold = match kind {
        SplitKind::Concat => Fold::Concat { order },
        SplitKind::AllOk => Fold::AllOk,
        SplitKind::Sum => Fold::Sum,
    };
    Plan::Split { parts, fold }
}

#[inline]
fn one(group: Option<Group>, topology: &Topology) -> Plan {
    match group.and_then(|group| topology.server_of(group)) {
        Some(server) => Plan::One(server),
        None => Plan::Refuse(Refusal::NoServer),
    }
}

fn any(topology: &Topology) -> Plan {
    topology.first_live().map_or(Plan::Refuse(Refusal::NoServer), Plan::One)
}

fn all(kind: AllKind, topology: &Topology, draw: &Draw) -> Plan {
    let servers: Vec<ServerIx> = topology.servers().collect();
    if let [only] = servers.as_slice() {
        return Plan::One(*only);
    }
    let fold = match kind {
        AllKind::Sum => Fold::Sum,
        AllKind::Same => Fold::Same,
        AllKind::Join => Fold::Join,
        AllKind::And => Fold::And,
        AllKind::Max => Fold::Max,
        AllKind::Counts => Fold::Counts,
        AllKind::Draw => Fold::Draw(draw.below(u32::MAX)),
    };
    Plan::All { servers, fold }
}

fn scan(call: &Call<'_>, topology: &Topology) -> Plan {
    match Scan::of(call.args.get(1).unwrap_or_default(), topology.servers().len()) {
        Ok(scan) => Plan::Scan(scan),
        Err(bad) => Plan::Refuse(Refusal::Cursor(bad)),
    }
}

/// Scripts are marked neither as reads nor as writes, and may do both: with keys, only what is marked as a read is one.
fn may_write(call: &Call<'_>, handling: Handling) -> bool {
    match handling {
        Handling::Keyed | Handling::Split(_) | Handling::Pinned(Pin::Block(_)) | Handling::OnlyServer(_) => {
            !call.row.flags.contains(Flags::READONLY)
        }
        Handling::Everywhere(_) if call.ix == CommandIx::LEARNED => !call.row.flags.contains(Flags::READONLY),
        Handling::AnyServer | Handling::Everywhere(_) | Handling::Scan => call.row.is_write(),
        Handling::Pinned(Pin::Watch)
        | Handling::Transaction(_)
        | Handling::Wait
        | Handling::Subscribe(_)
        | Handling::Unsubscribe(_)
        | Handling::Publish
        | Handling::Local(_)
        | Handling::Unsupported(_) => false,
    }
}

#[inline]
fn argument<'a>(args: Args<'a>, index: usize) -> &'a [u8] {
    args.get(index).expect("keys() gives indexes of arguments")
}

// === impl Part ===

impl Part {
    /// Writes the request for this part's server: the command's name, and each key with what belongs to it.
    pub fn encode(&self, args: Args<'_>, per_key: usize, out: &mut Vec<u8>) {
        encode::array(out, 1 + self.keys.len() * per_key);
        encode::bulk(out, args.name());
        for key in &self.keys {
            (0..per_key).for_each(|i| encode::bulk(out, argument(args, *key as usize + i)));
        }
    }
}

// === impl Refusal ===

impl Refusal {
    /// The answer; `pool` is the pool's name. (What isn't supported is worded by the call: [`Call::refusal`].)
    pub fn reply(&self, call: &Call<'_>, pool: &str) -> ErrorReply {
        match self {
            Self::CrossServer => ErrorReply::cross_server(),
            Self::NoServer => ErrorReply::no_server(pool),
            Self::ReadOnly => ErrorReply::read_only(pool),
            Self::Cursor(bad) => bad.reply(pool),
            Self::Unpaired(name) => ErrorReply::wrong_arity(name),
            Self::Unsupported(why) => call.refusal(*why),
        }
    }
}
