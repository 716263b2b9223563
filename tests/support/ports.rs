//! Ports that no other test uses at the same time.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below Linux's ephemeral range (32768…), so that no outgoing connection takes one, and so is the port
/// 10000 higher, which Redis Cluster's bus takes.
const FIRST: u32 = 12_000;
const COUNT: u32 = 10_000;

/// A TCP port on loopback, ours until this is dropped.
///
/// Binding port 0 and closing it again would leave a gap in which a neighbour gets the same number. Instead each
/// port in use is claimed by an abstract unix socket named for it, which the kernel gives back when its process
/// ends, however it ends.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _claim: UnixListener,
}

impl Port {
    /// Claims a port on which nothing listens.
    pub fn claim() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Processes start far apart, so that they seldom try the same number.
        let start = std::process::id().wrapping_mul(997);
        for _ in 0..COUNT {
            let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
            let number = u16::try_from(FIRST + offset).expect("the range ends below 65536");
            if let Some(port) = Self::try_claim(number) {
                return port;
            }
        }
        panic!("all {COUNT} test ports are taken");
    }

    fn try_claim(number: u16) -> Option<Self> {
        let name = UnixAddr::from_abstract_name(format!("shardwise-test-port-{number}"))
            .expect("the name is shorter than a unix address");
        let claim = UnixListener::bind_addr(&name).ok()?;
        TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).ok()?;
        Some(Self { number, _claim: claim })
    }

    /// The number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// As `127.0.0.1:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.number)
    }

    /// As a socket address on loopback.
    pub fn socket_addr(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    /// Whether something listens on it. Reads the kernel's table: a trial connection would show up in the
    /// statistics of what is tested.
    pub fn is_listened_on(&self) -> bool {
        listens(self.number)
    }
}

/// Whether any TCP socket of this machine listens on `port`.
pub fn listens(port: u16) -> bool {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    ["/proc/net/tcp", "/proc/net/tcp6"].iter().any(|table| {
        std::fs::read_to_string(table).unwrap_or_default().lines().skip(1).any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next().unwrap_or_default();
            let state = fields.nth(1).unwrap_or_default();
            local.ends_with(&suffix) && state == LISTEN
        })
    })
}

/// Whether a unix socket at `path` listens.
pub fn listens_unix(path: &str) -> bool {
    const ACCEPTS_CONNECTIONS: &str = "00010000";
    std::fs::read_to_string("/proc/net/unix").unwrap_or_default().lines().any(|line| {
        let mut fields = line.split_whitespace();
        fields.nth(3) == Some(ACCEPTS_CONNECTIONS) && fields.nth(3) == Some(path)
    })
}
