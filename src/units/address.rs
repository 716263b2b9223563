//! Where clients and servers are: `HOST:PORT` and unix sockets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use super::{Quoted, whole_number};

/// Bytes that the path of a unix socket must stay below: the kernel's `sun_path` with its closing NUL.
pub const UNIX_PATH_BYTES: usize = 108;

/// Bytes that a host name may have in the DNS.
const HOST_BYTES: usize = 253;

/// Where a pool listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `HOST:PORT`; the host is resolved when it is bound.
    Tcp {
        /// Name or address, IPv6 without brackets.
        host: String,
        /// 1…65535.
        port: u16,
    },
    /// `/PATH [PERM]`.
    Unix {
        /// Socket file.
        path: PathBuf,
        /// chmod after bind, 1…0o777; `None` leaves it to the umask.
        mode: Option<u32>,
    },
}

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Host and port; the host is resolved at every connect.
    Tcp {
        /// Name or address, IPv6 without brackets.
        host: String,
        /// 1…65535.
        port: u16,
    },
    /// A unix socket.
    Unix(PathBuf),
}

/// Why a text is no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// There is no colon.
    NoPort,
    /// What follows the last colon isn't 1…65535.
    Port(String),
    /// What precedes the last colon is neither a host name nor an address.
    Host(String),
    /// The path of a unix socket has so many bytes, [`UNIX_PATH_BYTES`] or more.
    PathLength(usize),
    /// The path of a unix socket contains a NUL.
    PathNul,
    /// The permissions of a unix socket are above 0777, or negative.
    Mode(String),
}

// === impl Listen ===

impl Listen {
    /// Reads `HOST:PORT` or `/PATH [PERM]`.
    ///
    /// The host is what precedes the last colon; IPv6 may be bare (`::1:22121`) or in brackets. PERM is what follows
    /// the last space, octal as strtol(3) reads it: digits up to the first that is none, and 0 means "not given".
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        if text.starts_with('/') {
            return Self::parse_unix(text);
        }
        let (host, port) = text.rsplit_once(':').ok_or(AddressError::NoPort)?;
        let bare = unbracketed(host);
        if !is_host(bare) {
            return Err(AddressError::Host(host.to_owned()));
        }
        Ok(Self::Tcp { host: bare.to_owned(), port: parse_port(port)? })
    }

    /// The address alone, as a client would connect to it.
    pub fn endpoint(&self) -> Endpoint {
        match self {
            Self::Tcp { host, port } => Endpoint::Tcp { host: host.clone(), port: *port },
            Self::Unix { path, .. } => Endpoint::Unix(path.clone()),
        }
    }

    /// Whether clients can come from other machines over every interface: 0.0.0.0, `0` or `::`.
    pub fn is_any_address(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => {
                host == "0"
                    || host.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_unspecified())
                    || host.parse::<Ipv6Addr>().is_ok_and(|ip| ip.is_unspecified())
            }
            Self::Unix { .. } => false,
        }
    }

    /// Whether only this machine can connect: a loopback address, or a unix socket.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => {
                host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
            Self::Unix { .. } => true,
        }
    }

    fn parse_unix(text: &str) -> Result<Self, AddressError> {
        let (path, perm) = match text.rsplit_once(' ') {
            Some((path, perm)) => (path, Some(perm)),
            None => (text, None),
        };
        let mode = match perm {
            Some(perm) => parse_mode(perm)?,
            None => None,
        };
        Ok(Self::Unix { path: parse_path(path)?, mode })
    }
}

impl fmt::Display for Listen {
    /// As [`Listen::parse`] reads it, IPv6 in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => show_host_port(f, host, *port),
            Self::Unix { path, mode: None } => path.display().fmt(f),
            Self::Unix { path, mode: Some(mode) } => write!(f, "{} {mode:04o}", path.display()),
        }
    }
}

// === impl Endpoint ===

impl Endpoint {
    /// From a host, bare or in brackets, and a port. The host is taken as it is: see [`Endpoint::is_plausible`].
    pub fn tcp(host: &str, port: &str) -> Result<Self, AddressError> {
        Ok(Self::Tcp { host: unbracketed(host).to_owned(), port: parse_port(port)? })
    }

    /// From the path of a unix socket.
    pub fn unix(path: &str) -> Result<Self, AddressError> {
        Ok(Self::Unix(parse_path(path)?))
    }

    /// Whether the host can be a name or an address at all. One that can't never resolves.
    pub fn is_plausible(&self) -> bool {
        match self {
            Self::Tcp { host, .. } => is_host(host),
            Self::Unix(path) => path != Path::new("/"),
        }
    }
}

impl fmt::Display for Endpoint {
    /// `127.0.0.1:6379`, `[::1]:6379` or `/tmp/x.sock`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } => show_host_port(f, host, *port),
            Self::Unix(path) => path.display().fmt(f),
        }
    }
}

// === impl AddressError ===

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPort => f.write_str("has no port"),
            Self::Port(text) => write!(f, "has an invalid port {}, must be 1…65535", Quoted(text)),
            Self::Host(text) => {
                write!(f, "has an invalid host {}, must be a name or an address", Quoted(text))
            }
            Self::PathLength(bytes) => {
                write!(f, "has a path of {bytes} bytes, must be less than {UNIX_PATH_BYTES}")
            }
            Self::PathNul => f.write_str("has a path with a NUL in it"),
            Self::Mode(text) => {
                write!(f, "has invalid permissions {}, must be octal up to 0777", Quoted(text))
            }
        }
    }
}

impl std::error::Error for AddressError {}

fn show_host_port(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
}

fn unbracketed(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

fn parse_port(text: &str) -> Result<u16, AddressError> {
    match whole_number(text).and_then(|port| u16::try_from(port).ok()) {
        Some(port) if port != 0 => Ok(port),
        _ => Err(AddressError::Port(text.to_owned())),
    }
}

fn is_host(text: &str) -> bool {
    if text.contains(':') {
        let address = text.split_once('%').map_or(text, |(address, _zone)| address);
        return address.parse::<Ipv6Addr>().is_ok();
    }
    !text.is_empty()
        && text.len() <= HOST_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn parse_path(text: &str) -> Result<PathBuf, AddressError> {
    if text.len() >= UNIX_PATH_BYTES {
        return Err(AddressError::PathLength(text.len()));
    }
    if text.contains('\0') {
        return Err(AddressError::PathNul);
    }
    Ok(PathBuf::from(text))
}

/// strtol(3) in base 8: an optional sign, then digits up to the first that is none.
fn parse_mode(text: &str) -> Result<Option<u32>, AddressError> {
    let refused = || AddressError::Mode(text.to_owned());
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let mode = digits
        .chars()
        .map_while(|digit| digit.to_digit(8))
        .try_fold(0_u32, |mode, digit| Some(mode * 8 + digit).filter(|&mode| mode <= 0o777))
        .ok_or_else(refused)?;
    if negative && mode != 0 {
        return Err(refused());
    }
    Ok((mode != 0).then_some(mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(host: &str, port: u16) -> Listen {
        Listen::Tcp { host: host.to_owned(), port }
    }

    fn unix(path: &str, mode: Option<u32>) -> Listen {
        Listen::Unix { path: PathBuf::from(path), mode }
    }

    #[test]
    fn tcp_splits_at_the_last_colon() {
        assert_eq!(Listen::parse("127.0.0.1:22121"), Ok(tcp("127.0.0.1", 22121)));
        assert_eq!(Listen::parse("localhost:022121"), Ok(tcp("localhost", 22121)));
        assert_eq!(Listen::parse("::1:22121"), Ok(tcp("::1", 22121)));
        assert_eq!(Listen::parse("[::1]:22121"), Ok(tcp("::1", 22121)));
        assert_eq!(Listen::parse("fe80::1%eth0:22121"), Ok(tcp("fe80::1%eth0", 22121)));
        assert_eq!(Listen::parse("127.0.0.1"), Err(AddressError::NoPort));
        assert_eq!(Listen::parse(":22121"), Err(AddressError::Host(String::new())));
        for host in ["*", "a b", "a:b", "[::1", "[]", "ho\tst", "é"] {
            let refused = Listen::parse(&format!("{host}:22121"));
            assert_eq!(refused, Err(AddressError::Host(host.to_owned())), "{host:?}");
        }
        for port in ["", "0", "65536", "+1", " 1", "1x", "0x50", "99999999999999999999"] {
            let refused = Listen::parse(&format!("127.0.0.1:{port}"));
            assert_eq!(refused, Err(AddressError::Port(port.to_owned())), "{port:?}");
        }
    }

    #[test]
    fn permissions_are_octal_as_strtol_reads_them() {
        assert_eq!(Listen::parse("/tmp/a"), Ok(unix("/tmp/a", None)));
        assert_eq!(Listen::parse("/tmp/a 0600"), Ok(unix("/tmp/a", Some(0o600))));
        assert_eq!(Listen::parse("/tmp/a 660"), Ok(unix("/tmp/a", Some(0o660))));
        assert_eq!(Listen::parse("/tmp/a 0660x"), Ok(unix("/tmp/a", Some(0o660))));
        assert_eq!(Listen::parse("/tmp/a 0999"), Ok(unix("/tmp/a", None)));
        assert_eq!(Listen::parse("/tmp/a "), Ok(unix("/tmp/a", None)));
        assert_eq!(Listen::parse("/tmp/a  0600"), Ok(unix("/tmp/a ", Some(0o600))));
        assert_eq!(Listen::parse("/tmp/my sock"), Ok(unix("/tmp/my", None)));
        for perm in ["1000", "-1", "77777777777777777777"] {
            let refused = Listen::parse(&format!("/tmp/a {perm}"));
            assert_eq!(refused, Err(AddressError::Mode(perm.to_owned())), "{perm:?}");
        }
    }

    #[test]
    fn unix_paths_are_shorter_than_the_kernel_allows() {
        let path = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
        assert!(Listen::parse(&path(107)).is_ok());
        assert_eq!(Listen::parse(&path(108)), Err(AddressError::PathLength(108)));
        assert_eq!(Endpoint::unix(&path(108)), Err(AddressError::PathLength(108)));
        assert_eq!(Listen::parse("/a\0b"), Err(AddressError::PathNul));
    }

    #[test]
    fn what_is_shown_reads_back() {
        for text in ["127.0.0.1:22121", "[::1]:22121", "/tmp/a.sock", "/tmp/a.sock 0660"] {
            assert_eq!(Listen::parse(text).map(|listen| listen.to_string()), Ok(text.to_owned()));
        }
        let shown = |host| Endpoint::tcp(host, "6379").map(|endpoint| endpoint.to_string());
        assert_eq!(shown("127.0.0.1"), Ok("127.0.0.1:6379".to_owned()));
        assert_eq!(shown("::1"), Ok("[::1]:6379".to_owned()));
        assert_eq!(shown("[::1]"), Ok("[::1]:6379".to_owned()));
    }

    #[test]
    fn all_addresses_are_recognised_however_written() {
        for text in ["0.0.0.0:1", "0:1", ":::1", "[::]:1", "0:0:0:0:0:0:0:0:1"] {
            assert!(Listen::parse(text).is_ok_and(|listen| listen.is_any_address()), "{text}");
        }
        for text in ["127.0.0.1:1", "::1:1", "localhost:1", "/tmp/a"] {
            assert!(Listen::parse(text).is_ok_and(|listen| !listen.is_any_address()), "{text}");
        }
    }
}
