//! One entry of `servers`, and the three strings that twemproxy makes of it.

use std::collections::HashMap;
use std::num::NonZeroU32;

use crate::units::{Endpoint, Quoted, whole_number};

use super::error::{Reason, ServerError};
use super::findings::Findings;
use super::length_first;
use super::raw::{Node, Text};

/// The port that libmemcached leaves out of its ring labels, and twemproxy with it.
const PORT_WITHOUT_LABEL: u16 = 11211;

/// One server of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Ring label, stats key, identity: the name given, or what twemproxy makes of the address, with its quirks: the
    /// port is missing where it is 11211, and a unix socket's path has a colon behind it.
    pub name: String,
    /// The entry without its name (`127.0.0.1:6379:1`), for logs.
    pub pname: String,
    /// Where to connect.
    pub endpoint: Endpoint,
    /// Weight, 1…2147483647.
    pub weight: NonZeroU32,
}

impl Server {
    /// Reads `HOST:PORT:WEIGHT [NAME]` or `/PATH:WEIGHT [NAME]`, from the right as twemproxy does.
    pub fn parse(entry: &str) -> Result<Self, ServerError> {
        let (pname, name) = match entry.rsplit_once(' ') {
            Some((pname, name)) => (pname, Some(name)),
            None => (entry, None),
        };
        let (address, weight) = pname.rsplit_once(':').ok_or(ServerError::Format)?;
        let (endpoint, label) = if address.starts_with('/') { unix(address)? } else { tcp(address)? };
        Ok(Self {
            name: name.map_or(label, str::to_owned),
            pname: pname.to_owned(),
            endpoint,
            weight: parse_weight(weight)?,
        })
    }
}

/// Reads the list `items` of `path` into servers in twemproxy's order; faults and warnings go to `findings`.
pub(super) fn read(items: Vec<Node>, path: &str, line: usize, findings: &mut Findings) -> Vec<Server> {
    let mut servers = Vec::new();
    let mut lines = HashMap::new();
    if items.is_empty() {
        findings.error(line, path, Reason::NoServers, None);
    }
    if items.len() > usize::from(u16::MAX) {
        findings.error(line, path, Reason::TooMany("servers"), None);
    }
    for (index, item) in items.into_iter().enumerate() {
        let path = format!("{path}[{index}]");
        let Some(entry) = entry(item, &path, line, findings) else { continue };
        let server = match Server::parse(&entry.text) {
            Ok(server) => server,
            Err(why) => {
                findings.error(entry.line, path, Reason::Server(why), None);
                continue;
            }
        };
        if let Some(&first) = lines.get(&server.name) {
            let reason = Reason::DuplicateServer { name: server.name, line: first };
            findings.error(entry.line, path, reason, None);
            continue;
        }
        lines.insert(server.name.clone(), entry.line);
        warn(&server, &path, entry.line, findings);
        servers.push(server);
    }
    if servers.iter().try_fold(0_u32, |sum, server| sum.checked_add(server.weight.get())).is_none() {
        findings.error(line, path, Reason::Weights, None);
    }
    servers.sort_by(|a, b| length_first(&a.name, &b.name));
    servers
}

fn entry(item: Node, path: &str, line: usize, findings: &mut Findings) -> Option<Text> {
    let (line, reason) = match item {
        Node::Text(entry) if !entry.text.is_empty() => return Some(entry),
        Node::Text(entry) => (entry.line, Reason::Empty),
        other => (
            other.line().unwrap_or(line),
            Reason::WrongType { want: "HOST:PORT:WEIGHT [NAME]".to_owned(), found: other.kind() },
        ),
    };
    findings.error(line, path, reason, None);
    None
}

/// What twemproxy takes, although nothing good comes of it.
fn warn(server: &Server, path: &str, line: usize, findings: &mut Findings) {
    if server.name.is_empty() {
        findings.warning(line, path, "the name is empty, because a space follows the weight");
    }
    if !server.endpoint.is_plausible() {
        let address = server.endpoint.to_string();
        findings.warning(line, path, format_args!("nothing can be reached at {}", Quoted(&address)));
    }
}

fn unix(path: &str) -> Result<(Endpoint, String), ServerError> {
    if path.contains(':') {
        return Err(ServerError::Format);
    }
    let endpoint = Endpoint::unix(path).map_err(ServerError::Address)?;
    Ok((endpoint, format!("{path}:")))
}

fn tcp(address: &str) -> Result<(Endpoint, String), ServerError> {
    let (host, port_text) = address.rsplit_once(':').ok_or(ServerError::Format)?;
    let endpoint = Endpoint::tcp(host, port_text).map_err(ServerError::Address)?;
    let label = match &endpoint {
        Endpoint::Tcp { host, port: PORT_WITHOUT_LABEL } => host.clone(),
        // The port as it is written: leading zeros are part of twemproxy's label.
        Endpoint::Tcp { host, .. } => format!("{host}:{port_text}"),
        Endpoint::Unix(_) => address.to_owned(),
    };
    Ok((endpoint, label))
}

fn parse_weight(text: &str) -> Result<NonZeroU32, ServerError> {
    let invalid = || ServerError::Weight(text.to_owned());
    let weight = whole_number(text).ok_or_else(invalid)?;
    let weight = i32::try_from(weight).map_err(|_| invalid())?;
    NonZeroU32::new(weight.unsigned_abs()).ok_or(ServerError::ZeroWeight)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::units::AddressError;

    /// Entry, then name, pname, endpoint and weight; as seen on the running program.
    #[test]
    fn the_three_strings() {
        for (entry, name, pname, endpoint, weight) in [
            ("127.0.0.1:6379:1", "127.0.0.1:6379", "127.0.0.1:6379:1", "127.0.0.1:6379", 1),
            ("127.0.0.1:6379:7 alpha", "alpha", "127.0.0.1:6379:7", "127.0.0.1:6379", 7),
            ("127.0.0.1:11211:1", "127.0.0.1", "127.0.0.1:11211:1", "127.0.0.1:11211", 1),
            ("127.0.0.1:11211:1 a", "a", "127.0.0.1:11211:1", "127.0.0.1:11211", 1),
            ("127.0.0.1:06379:01", "127.0.0.1:06379", "127.0.0.1:06379:01", "127.0.0.1:6379", 1),
            ("redis.example:6379:2", "redis.example:6379", "redis.example:6379:2", "redis.example:6379", 2),
            ("/tmp/a.sock:1", "/tmp/a.sock:", "/tmp/a.sock:1", "/tmp/a.sock", 1),
            ("/tmp/a.sock:3 a", "a", "/tmp/a.sock:3", "/tmp/a.sock", 3),
            ("::1:6379:1", "::1:6379", "::1:6379:1", "[::1]:6379", 1),
            ("[::1]:6379:1", "::1:6379", "[::1]:6379:1", "[::1]:6379", 1),
            ("[::1]:11211:1", "::1", "[::1]:11211:1", "[::1]:11211", 1),
            ("h:6379:1 a:1:1", "a:1:1", "h:6379:1", "h:6379", 1),
            ("h:6379:1 ", "", "h:6379:1", "h:6379", 1),
        ] {
            let server = Server::parse(entry).unwrap_or_else(|why| panic!("{entry}: {why}"));
            assert_eq!((server.name.as_str(), server.pname.as_str()), (name, pname), "{entry}");
            assert_eq!(
                (server.endpoint.to_string().as_str(), server.weight.get()),
                (endpoint, weight),
                "{entry}"
            );
        }
        assert_eq!(
            Server::parse("/tmp/a:1").map(|server| server.endpoint),
            Ok(Endpoint::Unix(PathBuf::from("/tmp/a")))
        );
    }

    #[test]
    fn what_is_no_server() {
        let weight = |text: &str| ServerError::Weight(text.to_owned());
        let port = |text: &str| ServerError::Address(AddressError::Port(text.to_owned()));
        for (entry, why) in [
            ("", ServerError::Format),
            ("a", ServerError::Format),
            ("127.0.0.1:6379", ServerError::Format),
            ("/tmp/a", ServerError::Format),
            ("/tmp/a:b:1", ServerError::Format),
            ("/a b:1", ServerError::Format),
            ("127.0.0.1:6379:0", ServerError::ZeroWeight),
            ("127.0.0.1:6379:x", weight("x")),
            ("127.0.0.1:6379:-1", weight("-1")),
            ("127.0.0.1:6379:2147483648", weight("2147483648")),
            ("127.0.0.1:6379:1  a", weight("1 ")),
            ("127.0.0.1:6379:1 a b", weight("1 a")),
            ("127.0.0.1:0:1", port("0")),
            ("127.0.0.1:65536:1", port("65536")),
            ("127.0.0.1:p:1", port("p")),
        ] {
            assert_eq!(Server::parse(entry), Err(why), "{entry:?}");
        }
    }
}
