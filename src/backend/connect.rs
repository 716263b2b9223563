//! A new connection: resolve, connect, AUTH, HELLO, SELECT.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::server::{Settings, Target};
use crate::exchange::Cause;
use crate::net::Stream;
use crate::resp::{Protocol, ReplyScanner, encode};
use crate::units::Endpoint;

/// Why there is no connection: the cause for clients, and the details for the log.
#[derive(Debug)]
pub struct ConnectError {
    /// For the error replies.
    pub cause: Cause,
    /// For the log: the system's or the server's own words.
    pub detail: String,
}

/// Most bytes of handshake replies: each is one short line, but for that to HELLO, which names the modules.
const HANDSHAKE_BYTES: usize = 16 << 10;

/// Connects and makes the connection ready for traffic, all within `limit`. Names are resolved anew each time.
pub async fn connect(settings: &Settings, target: Target, limit: Duration) -> Result<Stream, ConnectError> {
    let ready = async {
        let stream = open(settings).await?;
        handshake(stream, settings, target).await
    };
    timeout(limit, ready).await.unwrap_or_else(|_| {
        Err(ConnectError { cause: Cause::ConnectTimeout, detail: format!("nothing within {limit:?}") })
    })
}

async fn open(settings: &Settings) -> Result<Stream, ConnectError> {
    let stream = match &settings.endpoint {
        Endpoint::Unix(path) => Stream::Unix(UnixStream::connect(path).await.map_err(unreachable)?),
        Endpoint::Tcp { host, port } => Stream::Tcp(open_tcp(host, *port).await?),
    };
    stream.set_server_options(settings.keepalive).map_err(unreachable)?;
    Ok(stream)
}

/// Tries the addresses of a name in turn; the last error counts.
async fn open_tcp(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let unresolved = |detail: String| ConnectError { cause: Cause::Unresolved, detail };
    let addresses: Vec<SocketAddr> =
        tokio::net::lookup_host((host, port)).await.map_err(|error| unresolved(error.to_string()))?.collect();
    let mut last = unresolved(format!("{host} has no address"));
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) if is_itself(&stream) => {
                last = ConnectError { cause: Cause::Refused, detail: "reached only itself".into() };
            }
            Ok(stream) => return Ok(stream),
            Err(error) => last = unreachable(error),
        }
    }
    Err(last)
}

/// Whether a socket is connected to itself. It happens on loopback when nobody listens on a port from which the
/// kernel also takes local ones: both are the same, then, and requests would come back as replies.
fn is_itself(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

/// AUTH, then HELLO, then SELECT, before any traffic; each answer is checked (twemproxy does neither).
async fn handshake(stream: Stream, settings: &Settings, target: Target) -> Result<Stream, ConnectError> {
    let mut requests = Vec::new();
    let mut steps = Vec::new();
    if let Some(password) = &settings.auth {
        encode::request(&mut requests, [&b"AUTH"[..], password.expose()].into_iter());
        steps.push("AUTH");
    }
    if target.protocol == Protocol::Resp3 {
        encode::request(&mut requests, [&b"HELLO"[..], b"3"].into_iter());
        steps.push("HELLO");
    }
    if target.db > 0 {
        encode::request(&mut requests, [&b"SELECT"[..], target.db.to_string().as_bytes()].into_iter());
        steps.push("SELECT");
    }
    if steps.is_empty() {
        return Ok(stream);
    }
    match stream {
        Stream::Tcp(mut tcp) => {
            converse(&mut tcp, &requests, &steps, target.protocol).await?;
            Ok(Stream::Tcp(tcp))
        }
        Stream::Unix(mut unix) => {
            converse(&mut unix, &requests, &steps, target.protocol).await?;
            Ok(Stream::Unix(unix))
        }
        Stream::Closed => Ok(Stream::Closed), // its first use fails
    }
}

async fn converse(
    stream: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin),
    requests: &[u8],
    steps: &[&str],
    protocol: Protocol,
) -> Result<(), ConnectError> {
    let refused = |detail: String| ConnectError { cause: Cause::Handshake, detail };
    stream.write_all(requests).await.map_err(unreachable)?;
    let mut received = BytesMut::new();
    let mut scanner = ReplyScanner::of(protocol);
    for step in steps {
        let reply = loop {
            match scanner.scan(&received) {
                Ok(Some(len)) => break received.split_to(len),
                Ok(None) if received.len() < HANDSHAKE_BYTES => {}
                _ => return Err(refused(format!("{step}: the answer is not a Redis server's"))),
            }
            if stream.read_buf(&mut received).await.map_err(unreachable)? == 0 {
                return Err(refused(format!("{step}: the server closed the connection")));
            }
        };
        if !matches!(reply.first(), Some(b'+' | b'%'))
            && !reply.strip_prefix(b"-").is_some_and(needs_no_password)
        {
            let text = String::from_utf8_lossy(&reply);
            return Err(refused(format!("{step}: {}", text.trim_end())));
        }
    }
    if !received.is_empty() {
        return Err(refused("more answers than questions".into()));
    }
    Ok(())
}

/// Whether this error (without its `-`) says that a server was sent AUTH and has no password.
///
/// nutcracker never looked at the answer, so a pool whose `redis_auth` is for its clients only has to go on working. Such
/// a server takes everything, with or without AUTH.
pub fn needs_no_password(error: &[u8]) -> bool {
    error.starts_with(b"ERR AUTH <password> called without any password configured")
        || error.starts_with(b"ERR Client sent AUTH, but no password is set")
}

fn unreachable(error: io::Error) -> ConnectError {
    ConnectError { cause: cause_of(&error), detail: error.to_string() }
}

/// The cause that clients are told for a system error on a server's socket.
pub fn cause_of(error: &io::Error) -> Cause {
    match error.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Cause::Refused,
        io::ErrorKind::TimedOut => Cause::ConnectTimeout,
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
            Cause::Reset
        }
        io::ErrorKind::WriteZero => Cause::Reset,
        _ => Cause::Unreachable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_reached_itself_is_seen() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime.block_on(async {
            let any = SocketAddr::from(([127, 0, 0, 1], 0));
            let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            socket.bind(&any.into()).unwrap();
            let own = socket.local_addr().unwrap();
            socket.connect(&own).unwrap();
            socket.set_nonblocking(true).unwrap();
            assert!(is_itself(&TcpStream::from_std(socket.into()).unwrap()));

            let listener = std::net::TcpListener::bind(any).unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            assert!(!is_itself(&stream));
        });
    }
}
