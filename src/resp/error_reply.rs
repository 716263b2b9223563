//! The wording of every error that a client can see, in one place.

use std::borrow::Cow;

/// An error reply as text, without the leading `-` and the closing CRLF.
/// The first word is Redis's own code (`ERR`, `NOAUTH`, `CROSSSLOT`, …): clients dispatch on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply(Cow<'static, str>);

impl ErrorReply {
    /// For the constructors beside this one; other modules use those.
    fn text(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }

    /// The text as it is sent, without `-` and CRLF.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Redis's own text for a wrong number of arguments; `name` in lower case (`get`, `config|get`).
    pub fn wrong_arity(name: &str) -> Self {
        Self::text(format!("ERR wrong number of arguments for '{name}' command"))
    }

    /// Redis's form of a framing error; the connection closes behind it.
    pub fn protocol(what: &'static str) -> Self {
        Self::text(format!("ERR Protocol error: {what}"))
    }

    /// An argument that starts with `byte` instead of `$`.
    pub fn protocol_expected_bulk(byte: u8) -> Self {
        Self::text(format!("ERR Protocol error: expected '$', got '{}'", printable(byte)))
    }

    /// A request that its server did not answer: what happened, which server, and what is known beyond.
    pub fn server_failed(words: &str, server: &str, detail: &str) -> Self {
        Self::text(format!("ERR {words}: {server}{detail}"))
    }

    /// A call whose keys live on several servers and that cannot be split: Redis's own words first.
    pub fn cross_server() -> Self {
        Self::text("CROSSSLOT Keys in request don't hash to the same slot: they live on different servers")
    }

    /// A key without an owner, as long as every server of the pool is ejected.
    pub fn no_server(pool: &str) -> Self {
        Self::text(format!("ERR Connection refused: no live server in pool {pool}"))
    }

    /// A call that needs a connection of its own when `max_leases` clients have one.
    pub fn max_leases(server: &str) -> Self {
        Self::text(format!("ERR max leased connections to {server} reached"))
    }

    /// MULTI inside MULTI; Redis's text.
    pub fn multi_nested() -> Self {
        Self::text("ERR MULTI calls can not be nested")
    }

    /// WATCH inside MULTI; Redis's text.
    pub fn watch_inside_multi() -> Self {
        Self::text("ERR WATCH inside MULTI is not allowed")
    }

    /// EXEC or DISCARD (`name`) outside of MULTI; Redis's text.
    pub fn without_multi(name: &str) -> Self {
        Self::text(format!("ERR {name} without MULTI"))
    }

    /// EXEC after a command that could not be queued; Redis's text.
    pub fn exec_abort() -> Self {
        Self::text("EXECABORT Transaction discarded because of previous errors.")
    }

    /// EXEC after the connection was lost on which commands were queued or keys watched; Redis's first words.
    pub fn exec_abort_lost(server: &str) -> Self {
        Self::text(format!("EXECABORT Transaction discarded because of: the connection to {server} was lost"))
    }

    /// EXEC that was itself wrong; Redis's text.
    pub fn exec_abort_because(error: &ErrorReply) -> Self {
        let text = error.as_str().strip_prefix("ERR ").unwrap_or(error.as_str());
        Self::text(format!("EXECABORT Transaction discarded because of: {text}"))
    }

    /// WATCH of, or a wait for, a key of another server than that whose keys are watched: Redis's own words first.
    pub fn cross_server_watching(server: &str) -> Self {
        Self::text(format!(
            "CROSSSLOT Keys in request don't hash to the same slot: keys are watched on {server}, and these live elsewhere"
        ))
    }

    /// A command inside MULTI that cannot be queued; Redis's text.
    pub fn not_in_transaction() -> Self {
        Self::text("ERR Command not allowed inside a transaction")
    }

    /// A command that isn't possible while keys are watched.
    pub fn not_while_watching() -> Self {
        Self::text("ERR Command not allowed while keys are watched: UNWATCH first")
    }

    /// More commands without a key than are held until a key says which server executes them.
    pub fn too_much_held() -> Self {
        Self::text("ERR too many commands without a key at the beginning of a transaction")
    }

    /// A command of a RESP2 client that is subscribed to something; Redis's text.
    pub fn only_subscribing(command: &str) -> Self {
        Self::text(format!(
            "ERR Can't execute '{command}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context"
        ))
    }

    /// A subscription that the proxy ended before it stood.
    pub fn subscription_ended() -> Self {
        Self::text("ERR the subscription was ended before it stood")
    }

    /// A client that is subscribed to as much as one may be.
    pub fn too_many_subscriptions(most: usize) -> Self {
        Self::text(format!("ERR too many subscriptions: a client may have {most}"))
    }

    /// A write in a pool with `read_only: true`.
    pub fn read_only(pool: &str) -> Self {
        Self::text(format!("READONLY You can't write against a read only pool: {pool}"))
    }

    /// A command that the pool's `commands` refuse: Redis's words, then whose rule it is.
    pub fn no_perm(command: &str, pool: &str) -> Self {
        Self::text(format!(
            "NOPERM this user has no permissions to run the '{command}' command: see commands of pool {pool}"
        ))
    }

    /// A part of a split call was answered with something that the command never answers.
    pub fn unexpected_part() -> Self {
        Self::text("ERR Invalid argument: a server answered its part with an unexpected type")
    }

    /// SCAN with a cursor that is no number; Redis's text.
    pub fn invalid_cursor() -> Self {
        Self::text("ERR invalid cursor")
    }

    /// SCAN with a cursor that names the server at `position`, which the pool doesn't have: an end would hide its keys.
    pub fn scan_position(position: u64, servers: usize, pool: &str) -> Self {
        Self::text(format!(
            "ERR invalid cursor: it continues at server {position} of pool {pool}, which has {servers} (counted from 0); start again at 0"
        ))
    }

    /// SCAN in a pool with more servers than a cursor can tell apart.
    pub fn scan_servers(servers: usize, most: usize, pool: &str) -> Self {
        Self::text(format!("ERR SCAN spans at most {most} servers, and pool {pool} has {servers}"))
    }

    /// SCAN, of which a server answered with a cursor that leaves no room for the server's position.
    pub fn scan_cursor_too_big() -> Self {
        Self::text(
            "ERR SCAN cannot go on: a server's cursor is 2^43 or more, which leaves no room for the server's position",
        )
    }

    /// A request before the password was given; twemproxy's text, without a period.
    pub fn no_auth() -> Self {
        Self::text("NOAUTH Authentication required")
    }

    /// `AUTH password` in a pool without one; twemproxy's text.
    pub fn auth_not_set() -> Self {
        Self::text("ERR Client sent AUTH, but no password is set")
    }

    /// `AUTH password` with a wrong one; twemproxy's text.
    pub fn invalid_password() -> Self {
        Self::text("ERR invalid password")
    }

    /// `AUTH user password`, one of them wrong; Redis's text.
    pub fn wrong_pass() -> Self {
        Self::text("WRONGPASS invalid username-password pair or user is disabled.")
    }

    /// HELLO with a version that isn't spoken; Redis's text.
    pub fn no_proto() -> Self {
        Self::text("NOPROTO unsupported protocol version")
    }

    /// HELLO with something else than a version; Redis's text.
    pub fn hello_not_a_version() -> Self {
        Self::text("ERR Protocol version is not an integer or out of range")
    }

    /// HELLO before the password was given; Redis's text.
    pub fn hello_no_auth() -> Self {
        Self::text(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time",
        )
    }

    /// HELLO with an option that doesn't exist or lacks its values; Redis's text.
    pub fn hello_syntax(option: &[u8]) -> Self {
        Self::text(format!("ERR Syntax error in HELLO option '{}'", shown(option, SHOWN)))
    }

    /// An argument that must be an integer; Redis's text.
    pub fn not_an_integer() -> Self {
        Self::text("ERR value is not an integer or out of range")
    }

    /// SELECT of a database past the last one; Redis's text.
    pub fn db_out_of_range() -> Self {
        Self::text("ERR DB index is out of range")
    }

    /// CLIENT SETNAME with a name that would break lists of clients; Redis's text.
    pub fn client_name() -> Self {
        Self::text("ERR Client names cannot contain spaces, newlines or special characters.")
    }

    /// CLIENT LIST TYPE of something unknown; Redis's text.
    pub fn client_type(kind: &[u8]) -> Self {
        Self::text(format!("ERR Unknown client type '{}'", shown(kind, SHOWN)))
    }

    /// CLIENT LIST ID with something that is no client's number; Redis's text.
    pub fn client_id() -> Self {
        Self::text("ERR Invalid client ID")
    }

    /// CLIENT SETINFO of something unknown; Redis's text.
    pub fn setinfo_option(option: &[u8]) -> Self {
        Self::text(format!("ERR Unrecognized option '{}'", shown(option, SHOWN)))
    }

    /// CLIENT SETINFO with a value that would break lists of clients; Redis's text.
    pub fn setinfo_value(name: &str) -> Self {
        Self::text(format!("ERR {name} cannot contain spaces, newlines or special characters."))
    }

    /// CLIENT KILL of an address that no client has; Redis's text.
    pub fn no_such_client() -> Self {
        Self::text("ERR No such client")
    }

    /// A pool that the configuration doesn't have.
    pub fn no_such_pool(name: &str) -> Self {
        Self::text(format!("ERR no such pool '{}', see PROXY POOLS", shown(name.as_bytes(), SHOWN)))
    }

    /// A server that no pool has, or that several have; `names` are those that there are.
    pub fn which_server(name: &str, why: &str, names: &str) -> Self {
        Self::text(format!("ERR {why} '{}': {names}", shown(name.as_bytes(), SHOWN)))
    }

    /// What an operator wants of a server can't be.
    pub fn server_stays(server: &str, why: &str) -> Self {
        Self::text(format!("ERR nothing has changed for server '{}': {why}", shown(server.as_bytes(), SHOWN)))
    }

    /// A time that is none, or too long.
    pub fn not_a_time(text: &[u8]) -> Self {
        Self::text(format!(
            "ERR '{}' is no time: give seconds, or a number with ms, s, m or h",
            shown(text, SHOWN)
        ))
    }

    /// CONFIG RELOAD of a file that is wrong.
    pub fn not_reloaded(why: &str) -> Self {
        Self::text(format!("ERR nothing has changed: {why}"))
    }

    /// CONFIG SET of something that only the file can change.
    pub fn not_settable(name: &str) -> Self {
        let name = shown(name.as_bytes(), SHOWN);
        Self::text(format!(
            "ERR CONFIG SET failed - '{name}' can't be set here: change the configuration file"
        ))
    }

    /// A client past `client_connections`; Redis's text.
    pub fn max_clients() -> Self {
        Self::text("ERR max number of clients reached")
    }

    /// Writes the error as it goes over the wire.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(b'-');
        out.extend(self.0.bytes().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        out.extend_from_slice(b"\r\n");
    }

    /// Redis's own text for a command that it doesn't know, with the beginning of the arguments behind the name.
    pub fn unknown_command<'a>(name: &[u8], args: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut text = format!("ERR unknown command '{}', with args beginning with: ", shown(name, SHOWN));
        let begin = text.len();
        for arg in args {
            let left = SHOWN.saturating_sub(text.len() - begin);
            if left == 0 {
                break;
            }
            text.push_str(&format!("'{}' ", shown(arg, left)));
        }
        Self::text(text)
    }

    /// Redis's own text for a sub-command that a container doesn't have.
    pub fn unknown_subcommand(container: &[u8], word: &[u8]) -> Self {
        let help = shown(container, SHOWN).to_ascii_uppercase();
        Self::text(format!("ERR unknown subcommand '{}'. Try {help} HELP.", shown(word, SHOWN)))
    }

    /// For a command that Redis knows and shardwise does not support: Redis's first words, and then what isn't supported.
    pub fn unsupported_command(name: &[u8], subcommand: Option<&[u8]>, what: &str) -> Self {
        let space = if subcommand.is_some() { " " } else { "" };
        let (name, subcommand) = (shown(name, SHOWN), shown(subcommand.unwrap_or_default(), SHOWN));
        Self::text(format!(
            "ERR unknown command '{name}{space}{subcommand}', shardwise does not support {what}"
        ))
    }

    /// Redis's own text for options that make no sense together.
    pub fn syntax_error() -> Self {
        Self::text("ERR syntax error")
    }

    /// Redis's own text for COMMAND GETKEYS of a command that it doesn't know.
    pub fn getkeys_unknown_command() -> Self {
        Self::text("ERR Invalid command specified")
    }

    /// Redis's own text for COMMAND GETKEYS of a command without keys.
    pub fn getkeys_no_keys() -> Self {
        Self::text("ERR The command has no key arguments")
    }

    /// Redis's own text for COMMAND GETKEYS of a command with a wrong number of arguments.
    pub fn getkeys_wrong_arity() -> Self {
        Self::text("ERR Invalid number of arguments specified for command")
    }

    /// Redis's own text for COMMAND GETKEYS of a command whose arguments contradict themselves.
    pub fn getkeys_bad_arguments() -> Self {
        Self::text("ERR Invalid arguments specified for command")
    }

    /// PING in a pool with `ping: reject`.
    pub fn ping_rejected(pool: &str) -> Self {
        let pool = shown(pool.as_bytes(), usize::MAX);
        Self::text(format!(
            "ERR unknown command 'PING', shardwise does not support it here: to have it answered, set 'ping: reply' in pool {pool}"
        ))
    }
}

/// Most bytes of a command's name, and of all of its arguments together, that an error repeats, as in Redis.
const SHOWN: usize = 128;

/// What a client sent, so that it can stand in an error line: cut to `most` bytes and, as in Redis, at the first NUL;
/// without line ends. Bytes that aren't UTF-8 become U+FFFD (Redis repeats them as they are).
fn shown(bytes: &[u8], most: usize) -> String {
    let cut = &bytes[..bytes.len().min(most)];
    let end = memchr::memchr(0, cut).unwrap_or(cut.len());
    String::from_utf8_lossy(&cut[..end]).replace(['\r', '\n'], " ")
}

/// A byte that is safe inside a line of text. Line ends become spaces, as in Redis, which repeats the rest as it is.
fn printable(byte: u8) -> char {
    match byte {
        b'\r' | b'\n' => ' ',
        byte if byte.is_ascii_graphic() || byte == b' ' => byte as char,
        _ => '?',
    }
}
