//! A connected socket of either family, read into a scratch buffer and written with vectors.

use std::io::{self, IoSlice, Read};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown};
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use socket2::{Domain, SockRef, Socket, TcpKeepalive};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::io::poll_read_buf;

/// A connected, non-blocking socket on this thread's runtime.
#[derive(Debug)]
pub enum Stream {
    /// TCP.
    Tcp(TcpStream),
    /// A unix socket.
    Unix(UnixStream),
    /// None any more: every use fails.
    Closed,
}

/// Whether the kernel probes a silent peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keepalive {
    /// Leave the socket as it is.
    Off,
    /// SO_KEEPALIVE with the system's own times (twemproxy's `tcpkeepalive`).
    System,
    /// Probe after 15 s of silence, every 5 s, 3 times: for server connections, where a dead host must be noticed.
    Fast,
}

/// How long unacknowledged data may stay on its way before the kernel gives the connection up.
const USER_TIMEOUT: Duration = Duration::from_secs(30);

impl Stream {
    /// Sets what every server connection has: no delay, keepalive, a bound on unacknowledged data.
    pub fn set_server_options(&self, keepalive: Keepalive) -> io::Result<()> {
        let Self::Tcp(stream) = self else { return Ok(()) };
        stream.set_nodelay(true)?;
        let socket = SockRef::from(stream);
        socket.set_tcp_user_timeout(Some(USER_TIMEOUT))?;
        set_keepalive(&socket, keepalive)
    }

    /// Takes the socket off this thread's runtime; `None` if there is none any more.
    pub fn into_descriptor(self) -> Option<OwnedFd> {
        match self {
            Self::Tcp(stream) => stream.into_std().ok().map(OwnedFd::from),
            Self::Unix(stream) => stream.into_std().ok().map(OwnedFd::from),
            Self::Closed => None,
        }
    }

    /// Puts a connected socket, as [`Stream::into_descriptor`] gave it, on this thread's runtime.
    pub fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        let socket = Socket::from(descriptor);
        socket.set_nonblocking(true)?;
        match socket.domain()? {
            Domain::UNIX => Ok(Self::Unix(UnixStream::from_std(socket.into())?)),
            _ => Ok(Self::Tcp(TcpStream::from_std(socket.into())?)),
        }
    }

    /// The address of the other side; none for a unix socket.
    pub fn peer_ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip()),
            Self::Unix(_) | Self::Closed => None,
        }
    }

    /// Waits until a read may find something. Costs no system call.
    #[inline]
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
            Self::Closed => Poll::Ready(Err(closed())),
        }
    }

    /// Reads once, into the free capacity of `buf` (which must have some). `Ok(0)`: the peer has closed.
    ///
    /// After a short read tokio clears readiness without a second system call.
    pub fn poll_read_into(&mut self, cx: &mut Context<'_>, buf: &mut BytesMut) -> Poll<io::Result<usize>> {
        debug_assert!(buf.capacity() > buf.len());
        match self {
            Self::Tcp(stream) => poll_read_buf(Pin::new(stream), cx, buf),
            Self::Unix(stream) => poll_read_buf(Pin::new(stream), cx, buf),
            Self::Closed => Poll::Ready(Err(closed())),
        }
    }

    /// Reads once and appends it, without asking the runtime whether anything has come. For a socket whose write has just
    /// failed: what the peer said before may be there although its event isn't. `WouldBlock` when nothing is.
    pub fn read_at_once(&self, buf: &mut BytesMut) -> io::Result<usize> {
        let mut bytes = [0; 4 << 10];
        let len = match self {
            Self::Tcp(stream) => (&*SockRef::from(stream)).read(&mut bytes)?,
            Self::Unix(stream) => (&*SockRef::from(stream)).read(&mut bytes)?,
            Self::Closed => return Err(closed()),
        };
        buf.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    /// Writes what the socket takes now, without waiting. `WouldBlock` when it is full.
    pub fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match (self, parts) {
            (Self::Tcp(stream), [one]) => stream.try_write(one),
            (Self::Unix(stream), [one]) => stream.try_write(one),
            (Self::Tcp(stream), _) => stream.try_write_vectored(parts),
            (Self::Unix(stream), _) => stream.try_write_vectored(parts),
            (Self::Closed, _) => Err(closed()),
        }
    }

    /// Where the peer is and where we are, as Redis writes it: `host:port`, or a unix socket's path and `:0`.
    pub fn addresses(&self) -> (String, String) {
        let tcp =
            |address: io::Result<std::net::SocketAddr>| address.map_or(String::new(), |at| at.to_string());
        match self {
            Self::Tcp(stream) => (tcp(stream.peer_addr()), tcp(stream.local_addr())),
            Self::Unix(stream) => {
                let path = stream.local_addr().ok();
                let path = path.as_ref().and_then(|address| address.as_pathname());
                let text = path.map_or(String::new(), |path| format!("{}:0", path.display()));
                (text.clone(), text)
            }
            Self::Closed => (String::new(), String::new()),
        }
    }

    /// Tells the peer that nothing more will be written (FIN).
    pub fn finish(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => SockRef::from(stream).shutdown(Shutdown::Write),
            Self::Unix(stream) => SockRef::from(stream).shutdown(Shutdown::Write),
            Self::Closed => Err(closed()),
        }
    }

    /// Waits until the socket can be written to again.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_write_ready(cx),
            Self::Unix(stream) => stream.poll_write_ready(cx),
            Self::Closed => Poll::Ready(Err(closed())),
        }
    }

    /// Where the peer is, `HOST:PORT`; of a unix socket only that it is one.
    pub fn peer_address(&self) -> String {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map_or_else(|_| "?:0".to_owned(), |at| at.to_string()),
            Self::Unix(_) => "unix:0".to_owned(),
            Self::Closed => "?:0".to_owned(),
        }
    }

    /// Where the peer came to.
    pub fn local_address(&self) -> String {
        match self {
            Self::Tcp(stream) => stream.local_addr().map_or_else(|_| "?:0".to_owned(), |at| at.to_string()),
            Self::Unix(_) => "unix:0".to_owned(),
            Self::Closed => "?:0".to_owned(),
        }
    }

    /// Whether bytes have come that were not read. Asks the kernel: the runtime does not know of a new socket what is
    /// there already, nor what came in this turn of the loop.
    pub fn has_unread(&self) -> bool {
        let peek = |socket: SockRef<'_>| matches!(socket.peek(&mut [MaybeUninit::uninit()]), Ok(1..));
        match self {
            Self::Tcp(stream) => peek(SockRef::from(stream)),
            Self::Unix(stream) => peek(SockRef::from(stream)),
            Self::Closed => false,
        }
    }

    /// Writes at once, whatever the runtime knows: of a new socket it does not know yet that it can be written to.
    pub fn write_at_once(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => SockRef::from(stream).send(bytes),
            Self::Unix(stream) => SockRef::from(stream).send(bytes),
            Self::Closed => Err(closed()),
        }
    }
}

fn closed() -> io::Error {
    io::ErrorKind::NotConnected.into()
}

/// Applies `keepalive` to a TCP socket.
pub fn set_keepalive(socket: &SockRef<'_>, keepalive: Keepalive) -> io::Result<()> {
    match keepalive {
        Keepalive::Off => Ok(()),
        Keepalive::System => socket.set_keepalive(true),
        Keepalive::Fast => socket.set_tcp_keepalive(
            &TcpKeepalive::new()
                .with_time(Duration::from_secs(15))
                .with_interval(Duration::from_secs(5))
                .with_retries(3),
        ),
    }
}
