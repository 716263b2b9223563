//! The PROXY protocol, versions 1 and 2: what a load balancer says in front of a connection of whom it brings.
//! <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>

use std::net::SocketAddr;

use ppp::{HeaderResult, PartialResult, v1, v2};

/// Where a client is and where it came to, as the load balancer saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The client.
    pub source: SocketAddr,
    /// What it connected to.
    pub destination: SocketAddr,
}

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The beginning of a header, as far as it goes.
    Incomplete,
    /// No header, or one that makes no sense.
    Bad,
    /// A header of so many bytes. `None`: the load balancer speaks for itself (its health checks: LOCAL, UNKNOWN), or its client has
    /// no IP address.
    Complete(usize, Option<Announced>),
}

/// Longest header that is taken, its extensions (TLV) included: they are skipped.
pub const MAX_HEADER: usize = 4 << 10;

/// What version 1 begins with.
const FIRST: &[u8] = b"PROXY ";

/// Longest line of version 1, CRLF included.
const MAX_LINE: usize = 107;

/// Reads the header at the start of `bytes`.
pub fn proxy_header(bytes: &[u8]) -> ProxyHeader {
    // A line is looked at when it is whole: cut at some places the parser takes it for a bad one.
    let line = &bytes[..bytes.len().min(MAX_LINE)];
    if (line.starts_with(FIRST) || FIRST.starts_with(line)) && memchr::memmem::find(line, b"\r\n").is_none() {
        return if bytes.len() < MAX_LINE { ProxyHeader::Incomplete } else { ProxyHeader::Bad };
    }
    let parsed = HeaderResult::parse(bytes);
    if parsed.is_incomplete() {
        return if bytes.len() < MAX_HEADER { ProxyHeader::Incomplete } else { ProxyHeader::Bad };
    }
    match parsed {
        HeaderResult::V1(Ok(header)) => ProxyHeader::Complete(header.header.len(), of_v1(header.addresses)),
        HeaderResult::V2(Ok(header)) if header.len() <= MAX_HEADER => {
            let announced = match header.command {
                v2::Command::Proxy => of_v2(header.addresses),
                v2::Command::Local => None,
            };
            ProxyHeader::Complete(header.len(), announced)
        }
        _ => ProxyHeader::Bad,
    }
}

fn of_v1(addresses: v1::Addresses) -> Option<Announced> {
    match addresses {
        v1::Addresses::Unknown => None,
        v1::Addresses::Tcp4(at) => Some(Announced {
            source: (at.source_address, at.source_port).into(),
            destination: (at.destination_address, at.destination_port).into(),
        }),
        v1::Addresses::Tcp6(at) => Some(Announced {
            source: (at.source_address, at.source_port).into(),
            destination: (at.destination_address, at.destination_port).into(),
        }),
    }
}

fn of_v2(addresses: v2::Addresses) -> Option<Announced> {
    match addresses {
        v2::Addresses::Unspecified | v2::Addresses::Unix(_) => None,
        v2::Addresses::IPv4(at) => Some(Announced {
            source: (at.source_address, at.source_port).into(),
            destination: (at.destination_address, at.destination_port).into(),
        }),
        v2::Addresses::IPv6(at) => Some(Announced {
            source: (at.source_address, at.source_port).into(),
            destination: (at.destination_address, at.destination_port).into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announced(source: &str, destination: &str) -> Option<Announced> {
        Some(Announced { source: source.parse().unwrap(), destination: destination.parse().unwrap() })
    }

    fn second(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
        let mut bytes = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
        bytes.extend([0x20 | command, family]);
        bytes.extend((body.len() as u16).to_be_bytes());
        bytes.extend(body);
        bytes
    }

    #[test]
    fn headers_of_both_versions_are_read_in_whatever_pieces() {
        let body = [10, 0, 0, 7, 10, 0, 0, 1, 0x30, 0x39, 0x18, 0xeb];
        let with_extension = [&body[..], &[0x04, 0, 1, 0]].concat();
        let four = announced("10.0.0.7:12345", "10.0.0.1:6379");
        for (header, expected) in [
            (b"PROXY TCP4 10.0.0.7 10.0.0.1 12345 6379\r\n".to_vec(), four),
            (b"PROXY TCP6 ::1 ::2 1 2\r\n".to_vec(), announced("[::1]:1", "[::2]:2")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
            (second(1, 0x11, &body), four),
            (second(1, 0x11, &with_extension), four),
            (second(0, 0x00, &[]), None),
        ] {
            for cut in 0..header.len() {
                assert_eq!(proxy_header(&header[..cut]), ProxyHeader::Incomplete, "{:?}", &header[..cut]);
            }
            let behind = [&header[..], b"GET k\r\n"].concat();
            assert_eq!(proxy_header(&behind), ProxyHeader::Complete(header.len(), expected));
        }
    }

    #[test]
    fn whatever_else_comes_is_refused() {
        for bytes in [
            &b"GET key\r\n"[..],
            b"*1\r\n$4\r\nPING\r\n",
            b"PROXY TCP4 10.0.0.7 10.0.0.1 12345 99999\r\n",
            b"PROXY TCP4 ::1 ::2 1 2\r\n",
            b"PROXY UDP4 10.0.0.7 10.0.0.1 1 2\r\n",
            &second(7, 0x11, &[0; 12]),
            &second(1, 0x11, &[0; 3]),
        ] {
            assert_eq!(proxy_header(bytes), ProxyHeader::Bad, "{:?}", bytes.escape_ascii());
        }
        assert_eq!(
            proxy_header(&[b"PROXY TCP4 ".to_vec(), vec![b'1'; MAX_HEADER]].concat()),
            ProxyHeader::Bad
        );
        assert_eq!(proxy_header(&second(1, 0x11, &vec![0; MAX_HEADER])), ProxyHeader::Bad);
    }
}
