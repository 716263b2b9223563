//! A connection that is ready for requests.

use std::future::poll_fn;
use std::io::IoSlice;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::task::Poll;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::fault::Fault;
use super::settings::{Settings, Target};
use crate::net::Stream;
use crate::resp::{Protocol, ReplyScanner, encode};
use crate::units::Endpoint;

/// How long a connection and its handshake may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Most bytes of replies to the handshake: HELLO's is a few hundred.
const HANDSHAKE_BYTES: usize = 64 << 10;

/// Where and how to connect; names are resolved once per turn.
#[derive(Clone, Debug)]
pub struct Door {
    place: Place,
    /// What is sent first, and how many replies it has.
    greeting: Vec<u8>,
    replies: usize,
    resp3: bool,
}

#[derive(Clone, Debug)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Door {
    /// Resolves the target's name; `Err` says why there is no address.
    pub fn new(target: &Target, settings: &Settings) -> Result<Self, String> {
        let place = match &target.endpoint {
            Endpoint::Unix(path) => Place::Unix(path.clone()),
            Endpoint::Tcp { host, port } => {
                let found = (host.as_str(), *port).to_socket_addrs().map(|mut addresses| addresses.next());
                let address = found.map_err(|error| format!("{}: {error}", target.endpoint))?;
                Place::Tcp(address.ok_or_else(|| format!("{}: no address", target.endpoint))?)
            }
        };
        let (greeting, replies) = greeting(target, settings);
        Ok(Self { place, greeting, replies, resp3: settings.resp3 })
    }

    /// Connects, authenticates, and says what has to be said.
    pub async fn open(&self) -> Result<Stream, Fault> {
        let ready = async {
            let mut stream = match &self.place {
                Place::Unix(path) => Stream::Unix(UnixStream::connect(path).await?),
                Place::Tcp(address) => {
                    let stream = TcpStream::connect(address).await?;
                    stream.set_nodelay(true)?;
                    Stream::Tcp(stream)
                }
            };
            if self.replies > 0 {
                self.greet(&mut stream).await?;
            }
            Ok(stream)
        };
        timeout(CONNECT_TIMEOUT, ready).await.unwrap_or(Err(Fault::ConnectTimeout))
    }

    /// A scanner for what such a connection sends.
    pub fn scanner(&self) -> ReplyScanner {
        ReplyScanner::of(if self.resp3 { Protocol::Resp3 } else { Protocol::Resp2 })
    }

    async fn greet(&self, stream: &mut Stream) -> Result<(), Fault> {
        let mut rest = self.greeting.as_slice();
        while !rest.is_empty() {
            match stream.try_write_vectored(&[IoSlice::new(rest)]) {
                Ok(len) => rest = &rest[len..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    poll_fn(|cx| stream.poll_write_ready(cx)).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        let (mut scanner, mut received, mut missing) = (self.scanner(), BytesMut::new(), self.replies);
        while missing > 0 {
            while let Some(len) = scanner.scan(&received).map_err(Fault::Protocol)? {
                refused(&received[..len])?;
                received.advance(len);
                missing = missing.saturating_sub(1);
            }
            if received.len() > HANDSHAKE_BYTES {
                return Err(Fault::TooBig);
            }
            if missing > 0 {
                received.reserve(1024);
                match poll_fn(|cx| -> Poll<_> { stream.poll_read_into(cx, &mut received) }).await? {
                    0 => return Err(Fault::Closed),
                    _more => {}
                }
            }
        }
        Ok(())
    }
}

/// HELLO with the password, or AUTH; then SELECT.
fn greeting(target: &Target, settings: &Settings) -> (Vec<u8>, usize) {
    let user = target.user.as_deref().map(str::as_bytes);
    let password = target.password.as_ref().map(|password| password.expose());
    let mut requests: Vec<Vec<&[u8]>> = Vec::new();
    match password {
        _ if settings.resp3 => {
            let auth = password.map(|password| [&b"AUTH"[..], user.unwrap_or(b"default"), password]);
            requests.push([&b"HELLO"[..], b"3"].into_iter().chain(auth.into_iter().flatten()).collect());
        }
        Some(password) => requests.push([&b"AUTH"[..]].into_iter().chain(user).chain([password]).collect()),
        None => {}
    }
    let database = settings.database.map(|number| number.to_string());
    if let Some(database) = &database {
        requests.push(vec![b"SELECT", database.as_bytes()]);
    }
    let mut bytes = Vec::new();
    requests.iter().for_each(|request| encode::request(&mut bytes, request.iter().copied()));
    (bytes, requests.len())
}

fn refused(reply: &[u8]) -> Result<(), Fault> {
    match reply.first() {
        Some(b'-' | b'!') => {
            Err(Fault::Refused(String::from_utf8_lossy(reply.trim_ascii_end()).into_owned()))
        }
        _ => Ok(()),
    }
}
