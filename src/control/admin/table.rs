//! The commands of the admin port, one row each: lookup, HELP and docs/admin.md read it.

use std::fmt::Write;

use crate::resp::{Args, ErrorReply, encode};

/// One command, or one word of a container.
pub struct AdminCommand {
    /// Its words, in upper case.
    pub words: &'static [&'static str],
    /// Its arguments, as HELP shows them.
    arguments: &'static str,
    /// How many words and arguments it takes, at least and at most.
    arity: (usize, usize),
    /// What it does.
    pub verb: Verb,
    /// Whether it changes anything: then it is logged.
    pub changes: bool,
    /// One line; empty: it is there for clients that ask, and not worth a line.
    meaning: &'static str,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The rows say it.
pub enum Verb {
    Ping,
    Auth,
    Quit,
    Ok,
    Empty,
    Help,
    Info,
    ClientId,
    ClientName,
    ClientList,
    ClientKill,
    ClientPause,
    ClientUnpause,
    CommandCount,
    ConfigGet,
    ConfigSet,
    ConfigReload,
    SlowlogGet,
    SlowlogLen,
    SlowlogReset,
    LatencyHistogram,
    MemoryStats,
    ProxyPools,
    ProxyServers,
    ProxyWorkers,
    ProxyExplain,
    ProxyDrain,
    ProxyResume,
    ProxyBan,
    ProxyUnban,
    ProxyProbe,
    ProxyReconnect,
}

const MANY: usize = usize::MAX;

const fn look(
    words: &'static [&'static str],
    arguments: &'static str,
    arity: (usize, usize),
    verb: Verb,
    meaning: &'static str,
) -> AdminCommand {
    AdminCommand { words, arguments, arity, verb, changes: false, meaning }
}

const fn change(
    words: &'static [&'static str],
    arguments: &'static str,
    arity: (usize, usize),
    verb: Verb,
    meaning: &'static str,
) -> AdminCommand {
    AdminCommand { changes: true, ..look(words, arguments, arity, verb, meaning) }
}

/// All, in the order in which they are shown.
#[rustfmt::skip]
pub static ADMIN_COMMANDS: &[AdminCommand] = &[
    look(&["INFO"], "[section …]", (1, MANY), Verb::Info,
        "Everything in numbers, in Redis's sections and names where they mean the same; besides `pools`, `servers`, `workers`"),
    look(&["CLIENT", "LIST"], "[ID id]", (2, 4), Verb::ClientList, "Clients of all pools, a line each"),
    change(&["CLIENT", "KILL"], "addr | [ID id] [ADDR addr] [LADDR addr] [POOL name] [MAXAGE seconds]", (3, 12), Verb::ClientKill,
        "Closes the connections that all filters mean"),
    change(&["CLIENT", "PAUSE"], "milliseconds [ALL]", (3, 4), Verb::ClientPause, "Requests of all clients wait that long at most"),
    change(&["CLIENT", "UNPAUSE"], "", (2, 2), Verb::ClientUnpause, "They go on"),
    look(&["SLOWLOG", "GET"], "[count]", (2, 3), Verb::SlowlogGet,
        "The latest slow requests: number, time, microseconds, command, client's address and name; and then client's id, pool, server, microseconds in the proxy, microseconds waiting for the server"),
    look(&["SLOWLOG", "LEN"], "", (2, 2), Verb::SlowlogLen, "How many are remembered"),
    change(&["SLOWLOG", "RESET"], "", (2, 2), Verb::SlowlogReset, "Forgets them"),
    look(&["LATENCY", "HISTOGRAM"], "[command …]", (2, MANY), Verb::LatencyHistogram,
        "How long requests took, by command, over all pools: calls below each power of two of microseconds"),
    look(&["LATENCY", "LATEST"], "", (2, 2), Verb::Empty, ""),
    look(&["CONFIG", "GET"], "pattern …", (3, MANY), Verb::ConfigGet, "Settings of the process, and of pools as `pool.key`"),
    change(&["CONFIG", "SET"], "slowlog-log-slower-than microseconds", (4, 4), Verb::ConfigSet, "From when on a request is slow, until the next start; -1: never"),
    change(&["CONFIG", "RELOAD"], "", (2, 2), Verb::ConfigReload, "Takes the configuration file over, and answers what has changed, or why nothing has"),
    look(&["MEMORY", "STATS"], "", (2, 2), Verb::MemoryStats, "Memory of the process"),
    look(&["PROXY", "POOLS"], "", (2, 2), Verb::ProxyPools, "Each pool: clients, requests, errors, live servers"),
    look(&["PROXY", "SERVERS"], "[pool]", (2, 3), Verb::ProxyServers,
        "Each server: live or not, share of the ring, connections, requests, what waits, and how long requests took in the proxy and at the server"),
    look(&["PROXY", "WORKERS"], "", (2, 2), Verb::ProxyWorkers, "Each worker: clients, when its loop last came around"),
    look(&["PROXY", "EXPLAIN"], "pool command [argument …]", (4, MANY), Verb::ProxyExplain, "What would become of that request, and where each of its keys lives, and why"),
    change(&["PROXY", "DRAIN"], "server", (3, 3), Verb::ProxyDrain,
        "The server (`name`, or `pool/name` where several pools have that name) gets no new requests, its keys go to the others, and what is in flight ends; answered when all workers know. Not the last live one of a pool"),
    change(&["PROXY", "RESUME"], "server", (3, 3), Verb::ProxyResume, "The end of DRAIN: its keys come back"),
    change(&["PROXY", "BAN"], "server ttl", (4, 4), Verb::ProxyBan,
        "The server is out for so long (seconds, or `500ms`, `10m`, `2h`), whatever the probes say; a second BAN sets the time anew. Not the last live one of a pool"),
    change(&["PROXY", "UNBAN"], "server", (3, 3), Verb::ProxyUnban, "The end of BAN before its time"),
    look(&["PROXY", "PROBE"], "server", (3, 3), Verb::ProxyProbe, "Connects to the server now, as health does, and says what came of it and after how long"),
    change(&["PROXY", "RECONNECT"], "server", (3, 3), Verb::ProxyReconnect,
        "New connections take the place of those to the server; nothing in flight fails. How many connections that concerns"),
    look(&["COMMAND", "COUNT"], "", (2, 2), Verb::CommandCount, "How many commands pools know"),
    look(&["COMMAND"], "", (1, MANY), Verb::Empty, ""),
    look(&["AUTH"], "[default] password", (2, 3), Verb::Auth, "Gives the password"),
    look(&["PING"], "[message]", (1, 2), Verb::Ping, "PONG"),
    look(&["CLIENT", "ID"], "", (2, 2), Verb::ClientId, ""),
    look(&["CLIENT", "SETNAME"], "name", (3, 3), Verb::ClientName, ""),
    look(&["CLIENT", "GETNAME"], "", (2, 2), Verb::ClientName, ""),
    look(&["CLIENT", "SETINFO"], "attribute value", (4, 4), Verb::Ok, ""),
    look(&["SELECT"], "0", (2, 2), Verb::Ok, ""),
    look(&["QUIT"], "", (1, MANY), Verb::Quit, ""),
    look(&["CLIENT", "HELP"], "", (2, 2), Verb::Help, ""),
    look(&["CONFIG", "HELP"], "", (2, 2), Verb::Help, ""),
    look(&["SLOWLOG", "HELP"], "", (2, 2), Verb::Help, ""),
    look(&["LATENCY", "HELP"], "", (2, 2), Verb::Help, ""),
    look(&["MEMORY", "HELP"], "", (2, 2), Verb::Help, ""),
    look(&["PROXY", "HELP"], "", (2, 2), Verb::Help, "All of these"),
];

/// The text around the table of docs/admin.md.
const FRAME: &str = include_str!("admin.md");

/// The row of a request.
pub fn find(args: Args<'_>) -> Result<&'static AdminCommand, ErrorReply> {
    let is =
        |word: &str, at| args.get(at).is_some_and(|arg: &[u8]| arg.eq_ignore_ascii_case(word.as_bytes()));
    let fits = |command: &&AdminCommand| command.words.iter().enumerate().all(|(at, word)| is(word, at));
    let Some(command) = ADMIN_COMMANDS.iter().find(fits) else {
        let is_container =
            ADMIN_COMMANDS.iter().any(|command| command.words.len() > 1 && is(command.words[0], 0));
        return Err(match args.get(1) {
            Some(word) if is_container => ErrorReply::unknown_subcommand(args.name(), word),
            None if is_container => {
                ErrorReply::wrong_arity(&String::from_utf8_lossy(args.name()).to_lowercase())
            }
            _ => ErrorReply::unknown_command(args.name(), args.iter_from(1)),
        });
    };
    let (least, most) = command.arity;
    if !(least..=most).contains(&args.len()) {
        return Err(ErrorReply::wrong_arity(&command.words.join("|").to_lowercase()));
    }
    Ok(command)
}

/// HELP of one container; of PROXY: everything.
pub fn help(container: &[u8], out: &mut Vec<u8>) {
    let all = container.eq_ignore_ascii_case(b"PROXY");
    let wanted = |command: &&AdminCommand| {
        !command.meaning.is_empty() && (all || container.eq_ignore_ascii_case(command.words[0].as_bytes()))
    };
    let commands: Vec<_> = ADMIN_COMMANDS.iter().filter(wanted).collect();
    encode::array(out, commands.len() * 2);
    for command in commands {
        encode::simple(out, &command.usage());
        encode::simple(out, &format!("    {}.", command.meaning.replace('`', "")));
    }
}

/// docs/admin.md.
pub fn admin_reference() -> String {
    let mut table = "| Command | What |\n|---|---|\n".to_owned();
    for command in ADMIN_COMMANDS.iter().filter(|command| !command.meaning.is_empty()) {
        // Writing to a String does not fail.
        let _ = writeln!(table, "| `{}` | {} |", command.usage().replace('|', "\\|"), command.meaning);
    }
    FRAME.replace("{{commands}}\n", &table)
}

// === impl AdminCommand ===

impl AdminCommand {
    /// Its words and arguments.
    pub fn usage(&self) -> String {
        format!("{} {}", self.words.join(" "), self.arguments).trim_end().to_owned()
    }

    /// Whether it needs no password.
    pub fn is_open_to_all(&self) -> bool {
        matches!(self.verb, Verb::Auth | Verb::Quit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::{Limits, RequestScanner};

    fn found(words: &[&str]) -> Result<Verb, String> {
        let mut request = Vec::new();
        encode::request(&mut request, words.iter().map(|word| word.as_bytes()));
        let mut spans = Vec::new();
        RequestScanner::default().scan(&request, &mut spans, &Limits::default()).unwrap();
        let command = find(Args::new(&request, &spans));
        command.map(|command| command.verb).map_err(|error| error.as_str().to_owned())
    }

    #[test]
    fn rows_are_found_by_their_words_whatever_the_case() {
        assert_eq!(found(&["info"]), Ok(Verb::Info));
        assert_eq!(found(&["Client", "list"]), Ok(Verb::ClientList));
        assert_eq!(found(&["command", "docs"]), Ok(Verb::Empty));
        assert_eq!(found(&["command", "count"]), Ok(Verb::CommandCount));
        assert!(found(&["proxy", "nonsense"]).unwrap_err().contains("Try PROXY HELP"));
        assert!(found(&["client"]).unwrap_err().contains("wrong number"));
        assert!(found(&["get", "k"]).unwrap_err().contains("unknown command"));
        assert!(found(&["client", "pause"]).unwrap_err().contains("'client|pause'"));
    }

    #[test]
    fn a_container_comes_before_the_command_of_its_first_word_alone() {
        for (at, command) in ADMIN_COMMANDS.iter().enumerate() {
            let hides = |later: &AdminCommand| later.words.starts_with(command.words);
            let hidden = ADMIN_COMMANDS[at + 1..].iter().find(|later| hides(later));
            assert!(hidden.is_none(), "{} hides {}", command.usage(), hidden.unwrap().usage());
        }
    }
}
