//! The row of a command.

use super::flags::{Categories, Flags, Hints};
use super::keys::KeyRule;
use super::spec::KeySpec;
use crate::resp::Space;

/// One command or sub-command: what Redis publishes about it, and what shardwise does with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Lower case; a sub-command has its container's name in front (`config|get`).
    pub name: &'static str,
    /// Number of arguments, the name included (for a sub-command both words); negative: at least so many.
    pub arity: i8,
    /// What Redis says about the command as a whole.
    pub flags: Flags,
    /// Where its keys are, as Redis publishes it.
    pub keys: &'static [KeySpec],
    /// How a cluster client should send it.
    pub request: RequestPolicy,
    /// How a cluster client should put replies together.
    pub reply: ReplyPolicy,
    /// What else Redis says about its reply.
    pub hints: Hints,
    /// Sub-commands. A row with any is a container.
    pub subs: &'static [Row],
    /// Who publishes it.
    pub origin: Origin,
    /// How its keys are really found: derived from `keys`, unless options need a rule of their own.
    pub(super) rule: KeyRule,
    /// What shardwise does with it, but for the calls that `unless` names ([`Call::handling`](super::Call::handling)).
    pub(super) handling: Handling,
    /// Which of its calls are handled otherwise.
    pub unless: Unless,
    /// What a call of it says about a script.
    pub script: ScriptUse,
    /// ACL categories instead of the group's own.
    pub(super) categories: Option<Categories>,
}

/// What shardwise does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Sent whole to the one server that has all its keys (`-CROSSSLOT` if there is none); without a key, to any server.
    Keyed,
    /// Cut into one part per server; the replies become one.
    Split(SplitKind),
    /// Sent like [`Handling::Keyed`], on a connection that the client has for itself.
    Pinned(Pin),
    /// A step of a transaction, taken on the connection that its keys choose.
    Transaction(Transaction),
    /// WAIT, WAITAOF: asked of every server that the client wrote to. The last argument is how many milliseconds it may take.
    Wait,
    /// Has no key: any server can answer. Always the first live one in sorted order.
    AnyServer,
    /// Sent to the server of a pool that has just one; elsewhere refused, since it can't be told who should get it.
    OnlyServer(Why),
    /// Sent whole to every server of the pool, dead ones among them; the replies become one.
    Everywhere(AllKind),
    /// SCAN: sent to the servers one after the other, as the cursor says.
    Scan,
    /// SUBSCRIBE and its like: upstream at the server that owns the name, once for all clients of a worker.
    Subscribe(Space),
    /// UNSUBSCRIBE and its like.
    Unsubscribe(Space),
    /// PUBLISH, SPUBLISH: sent to the server that owns the channel's name, argument 1.
    Publish,
    /// Answered by shardwise itself.
    Local(Local),
    /// Refused as an unknown command.
    Unsupported(Why),
}

/// Why a call needs a server connection that its client has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pin {
    /// WATCH: the keys are watched for that connection.
    Watch,
    /// BLPOP, XREAD with BLOCK, …: replies of others would wait behind its own.
    Block(TimeoutAt),
}

/// Where a call says how long it may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutAt {
    /// Seconds, in the first argument.
    First,
    /// Seconds, in the last argument.
    Last,
    /// Milliseconds, in the last argument.
    LastMillis,
    /// Milliseconds, behind the option BLOCK.
    Option,
    /// Nobody says: as long as the server likes.
    Unsaid,
}

/// The steps of a transaction, without WATCH, which has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transaction {
    /// MULTI.
    Multi,
    /// EXEC.
    Exec,
    /// DISCARD.
    Discard,
    /// UNWATCH.
    Unwatch,
}

/// How a command is cut, and how the parts' replies become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitKind {
    /// MGET: one value for each key, in the order of the keys.
    Concat,
    /// MSET: each key goes with its value; OK if all parts say so.
    AllOk,
    /// DEL, EXISTS, …: the sum of the parts' counts.
    Sum,
}

/// How the replies of all servers to the same call become one. (Redis's tip `response_policy`; what Redis calls special is
/// said here.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllKind {
    /// DBSIZE: the sum.
    Sum,
    /// FLUSHALL, SCRIPT LOAD: what all servers say alike.
    Same,
    /// KEYS: the elements one after the other, in the order of the servers.
    Join,
    /// SCRIPT EXISTS: 1 where all servers say 1.
    And,
    /// RANDOMKEY: the answer of one server that has a key, drawn anew for each call.
    Draw,
    /// PUBSUB NUMPAT: the greatest number.
    Max,
    /// PUBSUB NUMSUB: names and numbers, of which each is the sum.
    Counts,
}

/// The calls that shardwise answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// AUTH.
    Auth,
    /// HELLO.
    Hello,
    /// QUIT.
    Quit,
    /// RESET.
    Reset,
    /// PING, answered or refused as the pool's `ping` says.
    Ping,
    /// ECHO.
    Echo,
    /// READONLY, READWRITE: nothing changes, there are no replicas to read from.
    Accepted,
    /// SELECT: only the pool's own database.
    Select,
    /// INFO: about shardwise itself, with the keyspaces of the servers added up.
    ServerInfo,
    /// CONFIG GET: the few parameters that tools ask for.
    ConfigGet,
    /// CLIENT …, what concerns the client's own connection.
    Client(ClientQuery),
    /// COMMAND …, from this table.
    Command(CommandQuery),
    /// … HELP of a container of which shardwise answers a part: [`CommandTable::help`](super::CommandTable::help).
    Help,
}

/// The sub-commands of CLIENT that are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientQuery {
    /// CLIENT ID.
    Id,
    /// CLIENT GETNAME.
    GetName,
    /// CLIENT SETNAME.
    SetName,
    /// CLIENT SETINFO.
    SetInfo,
    /// CLIENT INFO.
    ClientInfo,
    /// CLIENT LIST: of the client itself.
    ListClients,
    /// CLIENT REPLY.
    Reply,
    /// CLIENT NO-EVICT.
    NoEvict,
    /// CLIENT NO-TOUCH.
    NoTouch,
    /// CLIENT GETREDIR.
    GetRedir,
    /// CLIENT TRACKINGINFO.
    TrackingInfo,
}

/// The forms of COMMAND.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandQuery {
    /// COMMAND: every row.
    All,
    /// COMMAND COUNT.
    Count,
    /// COMMAND INFO \[name …\].
    Info,
    /// COMMAND LIST \[FILTERBY …\].
    List,
    /// COMMAND GETKEYS command \[argument …\].
    GetKeys,
}

/// Why a command isn't supported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// MOVE, SWAPDB: concerns another database than the pool's.
    Databases,
    /// SCRIPT KILL, FUNCTION STATS, …: concerns what one server runs now.
    ScriptAdmin,
    /// CONFIG SET, ACL, SHUTDOWN, …: concerns a server, not its data.
    Administration,
    /// WAIT, REPLICAOF, …
    Replication,
    /// CLUSTER, ASKING, …
    Cluster,
    /// CLIENT TRACKING, CACHING: a server's word that a key has changed would have to reach the client.
    Tracking,
    /// CLIENT CAPA, …: a setting of a connection, which clients share here.
    ConnectionState,
    /// COMMAND GETKEYSANDFLAGS.
    KeyFlags,
    /// Sent by servers to each other, or for Redis's own tests.
    Internal,
    /// Learned from a server: has no key that says which server should get it.
    Keyless,
    /// Learned from a server, which doesn't say where all its keys are.
    KeysUnknown,
    /// Learned from servers that say different things of it.
    Disagreement,
}

/// Calls that are handled otherwise than others of their command: their arguments tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unless {
    /// None is.
    Never,
    /// XREAD and XREADGROUP with BLOCK: [`Pin::Block`].
    Block,
    /// COPY with DB is refused: [`Why::Databases`].
    Database,
}

/// What a call says about a script, for servers that lack it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptUse {
    /// Nothing.
    None,
    /// EVAL: its text is argument 1.
    Body,
    /// EVALSHA: its SHA-1 is argument 1.
    Sha,
    /// SCRIPT LOAD: its text is argument 2.
    Load,
    /// SCRIPT FLUSH: there is none any more.
    Flush,
}

/// Redis's groups of commands; each has a file of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Bits of strings.
    Bitmap,
    /// Redis Cluster.
    Cluster,
    /// The client's connection.
    Connection,
    /// Keys whatever their type.
    Generic,
    /// Geo sets.
    Geo,
    /// Hashes.
    Hash,
    /// HyperLogLogs.
    HyperLogLog,
    /// Lists.
    List,
    /// Publish/subscribe.
    PubSub,
    /// Scripts and functions.
    Scripting,
    /// A server.
    Server,
    /// Sets.
    Set,
    /// Sorted sets.
    SortedSet,
    /// Streams.
    Stream,
    /// Strings.
    String,
    /// Transactions.
    Transactions,
}

impl Group {
    /// Redis's word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bitmap => "bitmap",
            Self::Cluster => "cluster",
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Geo => "geo",
            Self::Hash => "hash",
            Self::HyperLogLog => "hyperloglog",
            Self::List => "list",
            Self::PubSub => "pubsub",
            Self::Scripting => "scripting",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Stream => "stream",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }
}

/// Who publishes a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Redis 7.0 and Valkey.
    Redis70,
    /// Valkey; some of these are in later versions of Redis, too.
    Valkey,
}

/// Which servers a request is for (Redis's tip `request_policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPolicy {
    /// By its keys, or any server if it has none.
    Default,
    /// Every server, replicas included.
    AllNodes,
    /// Every server that has keys of its own.
    AllShards,
    /// Every server that has some of the keys, with those keys.
    MultiShard,
    /// None of these.
    Special,
}

/// How replies of several servers become one (Redis's tip `response_policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyPolicy {
    /// By kind: values in the order of the keys, elements one after the other.
    Default,
    /// The first success.
    OneSucceeded,
    /// A success if all are.
    AllSucceeded,
    /// The sum.
    AggSum,
    /// The least.
    AggMin,
    /// The greatest.
    AggMax,
    /// 1 where all say 1.
    AggLogicalAnd,
    /// 1 where any says 1.
    AggLogicalOr,
    /// None of these.
    Special,
}

/// A row with what every row has; the methods add what few have.
pub(super) const fn row(
    name: &'static str,
    arity: i8,
    flags: u32,
    keys: &'static [KeySpec],
    handling: Handling,
) -> Row {
    Row {
        name,
        arity,
        flags: Flags::of(flags),
        keys,
        request: RequestPolicy::Default,
        reply: ReplyPolicy::Default,
        hints: Hints::NONE,
        subs: &[],
        origin: Origin::Redis70,
        rule: KeyRule::of(keys),
        handling,
        unless: Unless::Never,
        script: ScriptUse::None,
        categories: None,
    }
}

// === impl Row ===

impl Row {
    pub(super) const fn request(self, request: RequestPolicy) -> Self {
        Self { request, ..self }
    }

    pub(super) const fn reply(self, reply: ReplyPolicy) -> Self {
        Self { reply, ..self }
    }

    pub(super) const fn hints(self, hints: u8) -> Self {
        Self { hints: Hints::of(hints), ..self }
    }

    pub(super) const fn subs(self, subs: &'static [Row]) -> Self {
        Self { subs, ..self }
    }

    pub(super) const fn valkey(self) -> Self {
        Self { origin: Origin::Valkey, ..self }
    }

    pub(super) const fn find_keys(self, rule: KeyRule) -> Self {
        Self { rule, ..self }
    }

    pub(super) const fn unless(self, unless: Unless) -> Self {
        Self { unless, ..self }
    }

    pub(super) const fn script(self, script: ScriptUse) -> Self {
        Self { script, ..self }
    }

    pub(super) const fn acl(self, categories: Categories) -> Self {
        Self { categories: Some(categories), ..self }
    }

    /// Whether it may change a key: refused in a pool with `read_only: true`. So may scripts, which Redis doesn't call
    /// writes because it looks at each command that they run.
    pub const fn is_write(&self) -> bool {
        let is_sent =
            matches!(self.handling, Handling::Keyed | Handling::Split(_) | Handling::Pinned(Pin::Block(_)));
        self.flags.contains(Flags::WRITE) || is_sent && !self.flags.contains(Flags::READONLY)
    }

    /// What shardwise does with the command, unless arguments (BLOCK) make it something else: for documentation.
    /// What to do with a call is said by [`Call::handling`](super::Call::handling).
    pub const fn usual_handling(&self) -> Handling {
        self.handling
    }

    /// Whether `count` arguments, the name included, are a number that the command takes.
    pub(super) const fn takes(&self, count: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity >= 0 { count == arity } else { count >= arity }
    }
}

// === impl Why ===

impl Why {
    /// What isn't supported, to follow "shardwise does not support".
    pub const fn phrase(self) -> &'static str {
        match self {
            Why::Databases => "databases other than the pool's",
            Why::ScriptAdmin => "the administration of running scripts",
            Why::Administration => "the administration of servers",
            Why::Replication => "replication commands",
            Why::Cluster => "cluster commands",
            Why::Tracking => "client-side caching",
            Why::ConnectionState => "this setting of a connection",
            Why::KeyFlags => "the flags of single keys",
            Why::Internal => "commands internal to Redis",
            Why::Keyless => "commands of modules without a key on several servers",
            Why::KeysUnknown => "commands whose servers do not publish where their keys are",
            Why::Disagreement => "commands that the servers of the pool publish differently",
        }
    }
}

// === impl SplitKind ===

impl SplitKind {
    /// How many arguments belong to each key, itself included.
    pub const fn arguments_per_key(self) -> usize {
        match self {
            SplitKind::AllOk => 2,
            SplitKind::Concat | SplitKind::Sum => 1,
        }
    }
}
