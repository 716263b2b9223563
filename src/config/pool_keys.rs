//! The keys of a pool: twemproxy's with its defaults and meanings, then ours.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::command::{CommandSet, CommandTable};
use crate::hash::{Algorithm, CharSign, KeyHash};
use crate::units::{Limit, Listen};

use super::error::Reason;
use super::keys::{Absent, Field, INT_MAX, Key, Origin, Zero};
use super::pool::{Distribution, Ping, Pool, ProxyProtocol, Readmit};
use super::raw::{Entries, Node, Text};

/// A pool while its keys are read. The blanks in `pool` are filled before it leaves the module.
pub(super) struct Draft {
    /// Everything but `listen`, `servers` and `redis_auth`.
    pub(super) pool: Pool,
    /// And its text.
    pub(super) listen: Option<(Listen, String)>,
    pub(super) servers: Option<Vec<Node>>,
    pub(super) redis: bool,
    pub(super) redis_auth: Option<Text>,
    pub(super) redis_auth_file: Option<Text>,
}

impl Draft {
    /// A blank one; [`Key::set_absent`] puts the defaults in.
    pub(super) fn new(name: String) -> Self {
        let pool = Pool {
            name,
            listen: Listen::Unix { path: std::path::PathBuf::new(), mode: None },
            servers: Vec::new(),
            hash: KeyHash { algorithm: Algorithm::Fnv1a_64, char_sign: CharSign::Signed, tag: None },
            distribution: Distribution::Ketama,
            timeout: None,
            backlog: 0,
            client_connections: Limit::off(),
            tcpkeepalive: false,
            reuseport: false,
            redis_auth: None,
            redis_db: 0,
            databases: NonZeroU32::MIN,
            preconnect: false,
            auto_eject_hosts: false,
            server_connections: NonZeroU32::MIN,
            server_retry_timeout: Duration::ZERO,
            server_failure_limit: NonZeroU32::MIN,
            proxy_protocol: ProxyProtocol::Off,
            ping: Ping::Reject,
            readmit: Readmit::Probe,
            probe_interval: Duration::ZERO,
            probe_rise: NonZeroU32::MIN,
            max_ejected: 0,
            read_only: false,
            learn_commands: true,
            commands: None,
            max_pending: Limit::off(),
            out_soft: Limit::off(),
            out_hard: Limit::off(),
            out_stall: Limit::off(),
            server_queue: Limit::off(),
            client_rate: Limit::off(),
            clients_per_address: Limit::off(),
            idle_timeout: Limit::off(),
            first_request_timeout: Limit::off(),
            max_bulk: 0,
            max_args: 0,
            max_inline: 0,
            connect_timeout: Duration::ZERO,
            max_leases: NonZeroU32::MIN,
        };
        Self { pool, listen: None, servers: None, redis: false, redis_auth: None, redis_auth_file: None }
    }
}

const KB: u64 = 1 << 10;
const MB: u64 = 1 << 20;
const GB: u64 = 1 << 30;
const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

/// All keys, in the order of the documentation.
pub(super) static KEYS: &[Key<Draft>] = &[
    Key {
        name: "listen",
        origin: Origin::Twemproxy,
        absent: Absent::Required,
        field: Field::Text("HOST:PORT or /PATH [PERM]", |draft, text| {
            draft.listen = Some((Listen::parse(text).map_err(Reason::Listen)?, text.to_owned()));
            Ok(())
        }),
        meaning: "Where clients connect. A host name is resolved when the pool starts to listen.",
    },
    Key {
        name: "servers",
        origin: Origin::Twemproxy,
        absent: Absent::Required,
        field: Field::List("a list of servers", |draft, items| draft.servers = Some(items)),
        meaning: "The Redis servers, each HOST:PORT:WEIGHT or /PATH:WEIGHT with a name behind it or none.",
    },
    Key {
        name: "hash",
        origin: Origin::Twemproxy,
        absent: Absent::Value("fnv1a_64"),
        field: Field::Choice(
            "a hash",
            || Algorithm::ALL.iter().map(|algorithm| algorithm.name()).collect(),
            |draft, text| put(&mut draft.pool.hash.algorithm, Algorithm::from_name(text)),
        ),
        meaning: "From a key to the number that places it. `xxh3_64` is shardwise's own and the one to take for new \
                  deployments; the others are twemproxy's, bit for bit.",
    },
    Key {
        name: "hash_tag",
        origin: Origin::Twemproxy,
        absent: Absent::Unset("the whole key is hashed"),
        field: Field::Text("two characters, like \"{}\"", |draft, text| {
            draft.pool.hash.tag = Some(hash_tag(text)?);
            Ok(())
        }),
        meaning: "Where a key contains both characters with something between them, only that is hashed. Exactly two \
                  bytes; `{}` needs quotes.",
    },
    Key {
        name: "distribution",
        origin: Origin::Twemproxy,
        absent: Absent::Value("ketama"),
        field: Field::Choice(
            "a distribution",
            || Distribution::ALL.iter().map(|distribution| distribution.name()).collect(),
            |draft, text| put(&mut draft.pool.distribution, Distribution::from_name(text)),
        ),
        meaning: "How servers share the keys: `ketama` is consistent hashing, `modula` is hash modulo weights, \
                  `random` is any server each time.",
    },
    Key {
        name: "timeout",
        origin: Origin::Twemproxy,
        absent: Absent::Unset("never"),
        field: Field::Millis(|draft, v| draft.pool.timeout = (!v.is_zero()).then_some(v)),
        meaning: "How long a server may take to answer a request, in milliseconds. 0: never times out.",
    },
    Key {
        name: "backlog",
        origin: Origin::Twemproxy,
        absent: Absent::Value("512"),
        field: Field::Number(0..=INT_MAX, |draft, n| draft.pool.backlog = n),
        meaning: "Clients that may wait to be accepted; the kernel caps it at net.core.somaxconn.",
    },
    Key {
        name: "client_connections",
        origin: Origin::Twemproxy,
        absent: Absent::Value("0"),
        field: Field::LimitNumber(0..=INT_MAX, Zero::IsOff, |draft, v| draft.pool.client_connections = v),
        meaning: "Most clients of this pool at once; one more is refused with Redis's own error. 0: no limit. \
                  (nutcracker reads the key and does nothing with it.)",
    },
    Key {
        name: "tcpkeepalive",
        origin: Origin::Twemproxy,
        absent: Absent::Value("false"),
        field: Field::Flag(|draft, v| draft.pool.tcpkeepalive = v),
        meaning: "TCP keepalive on the connections of clients. Those of servers always have it.",
    },
    Key {
        name: "reuseport",
        origin: Origin::Twemproxy,
        absent: Absent::Value("false"),
        field: Field::Flag(|draft, v| draft.pool.reuseport = v),
        meaning: "Each worker binds its own socket with SO_REUSEPORT, and the kernel deals out the clients. Another \
                  process may then share the port.",
    },
    Key {
        name: "redis",
        origin: Origin::Twemproxy,
        absent: Absent::Value("false"),
        field: Field::Flag(|draft, v| draft.redis = v),
        meaning: "Must be `true`: shardwise speaks Redis only, and twemproxy's default is memcached.",
    },
    Key {
        name: "redis_auth",
        origin: Origin::Twemproxy,
        absent: Absent::Unset("no password"),
        field: Field::Secret("a password", |draft, text| draft.redis_auth = Some(text)),
        meaning: "The password that clients must send, and that servers are sent. `${VARIABLE}` is taken from the \
                  environment; write `$${` for a plain `${`.",
    },
    Key {
        name: "redis_db",
        origin: Origin::Twemproxy,
        absent: Absent::Value("0"),
        field: Field::Number(0..=INT_MAX, |draft, n| draft.pool.redis_db = n),
        meaning: "The database of clients that have not selected another.",
    },
    Key {
        name: "preconnect",
        origin: Origin::Twemproxy,
        absent: Absent::Value("false"),
        field: Field::Flag(|draft, v| draft.pool.preconnect = v),
        meaning: "Connect to every server at start rather than at the first request.",
    },
    Key {
        name: "auto_eject_hosts",
        origin: Origin::Twemproxy,
        absent: Absent::Value("false"),
        field: Field::Flag(|draft, v| draft.pool.auto_eject_hosts = v),
        meaning: "Take a failing server out, so that the others get its keys. For caches: what is written meanwhile is \
                  not where the key was. The last server is never taken out.",
    },
    Key {
        name: "server_connections",
        origin: Origin::Twemproxy,
        absent: Absent::Value("1"),
        field: Field::Number(1..=INT_MAX, |draft, n| {
            draft.pool.server_connections = NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        }),
        meaning: "Connections to each server, per worker thread.",
    },
    Key {
        name: "server_retry_timeout",
        origin: Origin::Twemproxy,
        absent: Absent::Value("30000"),
        field: Field::Millis(|draft, v| draft.pool.server_retry_timeout = v),
        meaning: "How long an ejected server stays out at least, in milliseconds.",
    },
    Key {
        name: "server_failure_limit",
        origin: Origin::Twemproxy,
        absent: Absent::Value("2"),
        field: Field::Number(0..=INT_MAX, |draft, n| {
            draft.pool.server_failure_limit = NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        }),
        meaning: "Consecutive failures at which a server is ejected. 0 is 1.",
    },
    Key {
        name: "proxy_protocol",
        origin: Origin::Shardwise,
        absent: Absent::Value("off"),
        field: Field::Choice(
            "off or v1v2",
            || ProxyProtocol::ALL.iter().map(|one| one.name()).collect(),
            |draft, text| put(&mut draft.pool.proxy_protocol, ProxyProtocol::from_name(text)),
        ),
        meaning: "`v1v2`: every connection begins with a header of the PROXY protocol, as load balancers send it (HAProxy's \
                  `send-proxy`); the client's address is the one that it names, in `clients_per_address`, CLIENT LIST and the log. \
                  A connection without one is closed.",
    },
    Key {
        name: "ping",
        origin: Origin::Shardwise,
        absent: Absent::Value("reject"),
        field: Field::Choice(
            "reject or reply",
            || Ping::ALL.iter().map(|ping| ping.name()).collect(),
            |draft, text| put(&mut draft.pool.ping, Ping::from_name(text)),
        ),
        meaning: "What PING gets: an error as for any unsupported command, or `+PONG`.",
    },
    Key {
        name: "readmit",
        origin: Origin::Shardwise,
        absent: Absent::Value("probe"),
        field: Field::Choice(
            "probe or optimistic",
            || Readmit::ALL.iter().map(|readmit| readmit.name()).collect(),
            |draft, text| put(&mut draft.pool.readmit, Readmit::from_name(text)),
        ),
        meaning: "How an ejected server comes back after server_retry_timeout: once it has answered a PING of the \
                  proxy's own, or at once and at the risk of live requests, as twemproxy does.",
    },
    Key {
        name: "probe_interval",
        origin: Origin::Shardwise,
        absent: Absent::Value("1s"),
        field: Field::Duration(Duration::from_millis(10)..=Duration::from_secs(3_600), |draft, v| {
            draft.pool.probe_interval = v;
        }),
        meaning: "With `readmit: probe`: time between two PINGs to an ejected server. The first comes after \
                  server_retry_timeout.",
    },
    Key {
        name: "probe_rise",
        origin: Origin::Shardwise,
        absent: Absent::Value("1"),
        field: Field::Number(1..=1_000, |draft, n| {
            draft.pool.probe_rise = NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        }),
        meaning: "With `readmit: probe`: PINGs in a row that an ejected server must answer before it comes back.",
    },
    Key {
        name: "max_ejected",
        origin: Origin::Shardwise,
        absent: Absent::Value("100"),
        field: Field::Number(0..=100, |draft, n| draft.pool.max_ejected = n),
        meaning: "Most servers of the pool that are ejected at once, in percent, rounded down. The last live server is never \
                  ejected.",
    },
    Key {
        name: "read_only",
        origin: Origin::Shardwise,
        absent: Absent::Value("false"),
        field: Field::Flag(|draft, v| draft.pool.read_only = v),
        meaning: "Commands that write are refused with -READONLY.",
    },
    Key {
        name: "learn_commands",
        origin: Origin::Shardwise,
        absent: Absent::Value("true"),
        field: Field::Flag(|draft, v| draft.pool.learn_commands = v),
        meaning: "Ask the servers with COMMAND which commands they know, at the start and when they come back, so that those of \
                  modules and of newer servers work, too. `false`: what docs/commands.md doesn't list is unknown.",
    },
    Key {
        name: "commands",
        origin: Origin::Shardwise,
        absent: Absent::Unset("all"),
        field: Field::Mapping("a mapping like {deny: [FLUSHALL, KEYS]}", |draft, entries| {
            draft.pool.commands = Some(denied(entries)?);
            Ok(())
        }),
        meaning: "Commands that clients may not send: those of `deny`, or all but those of `allow`. A container like CLIENT \
                  is meant with its sub-commands; one of these alone is written with a bar between the names. It holds for \
                  commands that only a server knows, too. What is refused gets -NOPERM. AUTH, HELLO, QUIT and RESET are always allowed; scripts do on their server \
                  what they like.",
    },
    Key {
        name: "hash_char",
        origin: Origin::Shardwise,
        absent: Absent::Value("signed"),
        field: Field::Choice(
            "signed or unsigned",
            || SIGNS.iter().map(|(name, _)| *name).collect(),
            |draft, text| {
                let sign = SIGNS.iter().find(|(name, _)| *name == text).map(|(_, sign)| *sign);
                put(&mut draft.pool.hash.char_sign, sign)
            },
        ),
        meaning: "How key bytes from 0x80 on enter the hashes written for C's `char`: `signed` as nutcracker on x86, \
                  `unsigned` as nutcracker on ARM.",
    },
    Key {
        name: "redis_auth_file",
        origin: Origin::Shardwise,
        absent: Absent::Unset("no file"),
        field: Field::Secret("the name of a file", |draft, text| draft.redis_auth_file = Some(text)),
        meaning: "A file with the password, instead of `redis_auth`; one newline at its end is left out. A relative \
                  name starts at the folder of the configuration file.",
    },
    Key {
        name: "connect_timeout",
        origin: Origin::Shardwise,
        absent: Absent::Value("1s"),
        field: Field::Duration(Duration::from_millis(1)..=Duration::from_secs(3_600), |draft, v| {
            draft.pool.connect_timeout = v;
        }),
        meaning: "How long connecting to a server may take.",
    },
    Key {
        name: "databases",
        origin: Origin::Shardwise,
        absent: Absent::Value("16"),
        field: Field::Number(1..=1024, |draft, n| {
            draft.pool.databases = NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        }),
        meaning: "How many databases clients may SELECT, from 0 on; `redis_db` is always one of them. Connections for another than \
                  `redis_db` are opened when a client first uses it.",
    },
    Key {
        name: "max_leases",
        origin: Origin::Shardwise,
        absent: Absent::Value("1000"),
        field: Field::Number(1..=1_000_000, |draft, n| {
            draft.pool.max_leases = NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        }),
        meaning: "Connections to each server that clients may have for themselves at once, over all workers: a \
                  transaction or a blocking command takes one for as long as it lasts. One more gets an error.",
    },
    Key {
        name: "max_pending",
        origin: Origin::Shardwise,
        absent: Absent::Value("1024"),
        field: Field::LimitNumber(1..=1_000_000, Zero::IsRefused, |draft, v| draft.pool.max_pending = v),
        meaning: "Requests of one client that may be on their way at once; what it sends beyond them waits.",
    },
    Key {
        name: "out_soft",
        origin: Origin::Shardwise,
        absent: Absent::Value("1mb"),
        field: Field::LimitSize(KB..=1024 * GB, |draft, v| draft.pool.out_soft = v),
        meaning: "Bytes of replies that a client hasn't taken yet at which its further requests wait.",
    },
    Key {
        name: "out_hard",
        origin: Origin::Shardwise,
        absent: Absent::Value("1gb"),
        field: Field::LimitSize(KB..=1024 * GB, |draft, v| draft.pool.out_hard = v),
        meaning: "Bytes of replies that a client hasn't taken yet at which it is closed. Not less than `out_soft`.",
    },
    Key {
        name: "out_stall",
        origin: Origin::Shardwise,
        absent: Absent::Value("60s"),
        field: Field::LimitDuration(SECOND..=DAY, |draft, v| draft.pool.out_stall = v),
        meaning: "How long a client with `out_soft` bytes of replies or more may take none of them before it is closed. \
                  One that takes any, however slowly, never is.",
    },
    Key {
        name: "server_queue",
        origin: Origin::Shardwise,
        absent: Absent::Value("64mb"),
        field: Field::LimitSize(KB..=1024 * GB, |draft, v| draft.pool.server_queue = v),
        meaning: "Bytes of requests that wait to be written on one server connection at which further ones fail with \
                  `-ERR Connection busy`.",
    },
    Key {
        name: "client_rate",
        origin: Origin::Shardwise,
        absent: Absent::Value("off"),
        field: Field::LimitNumber(1..=100_000_000, Zero::IsRefused, |draft, v| draft.pool.client_rate = v),
        meaning: "Requests a second of one client; after a pause as many at once. What it sends beyond them waits.",
    },
    Key {
        name: "clients_per_address",
        origin: Origin::Shardwise,
        absent: Absent::Value("off"),
        field: Field::LimitNumber(1..=INT_MAX, Zero::IsRefused, |draft, v| {
            draft.pool.clients_per_address = v
        }),
        meaning: "Most clients of this pool at once from one IP address; one more is refused with Redis's own error. \
                  Clients on a unix socket have none and are not counted.",
    },
    Key {
        name: "idle_timeout",
        origin: Origin::Shardwise,
        absent: Absent::Value("off"),
        field: Field::LimitDuration(SECOND..=DAY, |draft, v| draft.pool.idle_timeout = v),
        meaning: "How long a client that awaits no reply may be silent before it is closed, to within two seconds.",
    },
    Key {
        name: "first_request_timeout",
        origin: Origin::Shardwise,
        absent: Absent::Value("off"),
        field: Field::LimitDuration(SECOND..=DAY, |draft, v| draft.pool.first_request_timeout = v),
        meaning: "How long a new client may take to send its first whole request before it is closed, to within two \
                  seconds. Off by default: pools of client libraries connect long before they ask for anything.",
    },
    Key {
        name: "max_bulk",
        origin: Origin::Shardwise,
        absent: Absent::Value("512mb"),
        field: Field::Size(KB..=512 * MB, |draft, n| draft.pool.max_bulk = n),
        meaning: "Longest argument of a request; a longer one is a protocol error.",
    },
    Key {
        name: "max_args",
        origin: Origin::Shardwise,
        absent: Absent::Value("1048576"),
        field: Field::Number(16..=1_048_576, |draft, n| draft.pool.max_args = n),
        meaning: "Most arguments of a request; more are a protocol error.",
    },
    Key {
        name: "max_inline",
        origin: Origin::Shardwise,
        absent: Absent::Value("64kb"),
        field: Field::Size(256..=64 * KB, |draft, n| draft.pool.max_inline = n),
        meaning: "Longest inline command; a longer one is a protocol error.",
    },
];

const SIGNS: [(&str, CharSign); 2] = [("signed", CharSign::Signed), ("unsigned", CharSign::Unsigned)];

fn put<V>(place: &mut V, value: Option<V>) -> bool {
    match value {
        Some(value) => {
            *place = value;
            true
        }
        None => false,
    }
}

/// The commands that are refused, from `deny` or `allow` with a list of names.
fn denied(entries: Entries) -> Result<CommandSet, Reason> {
    let wanted = || "deny or allow with a list of commands".to_owned();
    let mut given = entries.into_iter();
    let (Some((word, list)), None) = (given.next(), given.next()) else {
        return Err(Reason::Invalid { text: "commands".to_owned(), want: wanted() });
    };
    let Node::List(items) = list else {
        return Err(Reason::WrongType { want: wanted(), found: list.kind() });
    };
    let table = CommandTable::builtin();
    let mut set = CommandSet::default();
    for item in items {
        match item {
            // A server may know one that the table doesn't; a warning says so.
            Node::Text(name) if is_command_name(&name.text) => {
                set.add(table, &name.text);
            }
            Node::Text(name) => {
                return Err(Reason::Invalid { text: name.text, want: "a command".to_owned() });
            }
            other => return Err(Reason::WrongType { want: "a command".to_owned(), found: other.kind() }),
        }
    }
    match word.text.as_str() {
        "deny" => Ok(set),
        "allow" => Ok(set.others(table)),
        _ => Err(Reason::Invalid { text: word.text, want: wanted() }),
    }
}

fn is_command_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn hash_tag(text: &str) -> Result<[u8; 2], Reason> {
    text.as_bytes().try_into().map_err(|_| Reason::Invalid {
        text: text.to_owned(),
        want: "a hash tag of exactly two characters".to_owned(),
    })
}
