//! Binding listening sockets: twemproxy's steps and options, with two of its faults mended.
//!
//! A unix socket's file is taken away only when nobody answers on it (twemproxy unlinks whatever is there), and it
//! is removed again at the end.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use crate::units::Listen;

/// A listening socket: bound, non-blocking, closed on exec.
#[derive(Debug)]
pub enum Listener {
    /// TCP. Accepted sockets inherit TCP_NODELAY and keepalive from it (Linux).
    Tcp(TcpListener),
    /// Unix.
    Unix(UnixListener),
}

/// An accepted connection, non-blocking.
#[derive(Debug)]
pub enum Peer {
    /// From a TCP listener.
    Tcp(TcpStream),
    /// From a unix listener.
    Unix(UnixStream),
}

/// Options of a listening socket.
#[derive(Clone, Copy, Debug)]
pub struct ListenOptions {
    /// Connections that the kernel keeps until they are accepted; it caps this at somaxconn.
    pub backlog: u32,
    /// SO_REUSEPORT: several sockets share the port. TCP only.
    pub reuseport: bool,
    /// SO_KEEPALIVE on the accepted sockets. TCP only.
    pub keepalive: bool,
}

/// The file of a unix socket. Dropping it removes the file, if it is still the one that was bound.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: Identity,
}

/// Device, inode, and time of making in seconds and nanoseconds: inode numbers are used again.
type Identity = (u64, u64, i64, i64);

/// Why an address could not be listened on. `Display` names the address and the cause.
#[derive(Debug)]
pub struct BindError {
    address: String,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    Unresolved(io::Error),
    NoAddress,
    Answered,
    NotASocket,
    Step(&'static str, io::Error),
}

/// What to do after accept(2) failed, and whether it is worth a line in the log.
///
/// Too few descriptors must neither stop accepting for good nor make it spin: it pauses, and one incident (failures
/// less than [`AcceptTrouble::INCIDENT`] apart) is logged once.
#[derive(Debug, Default)]
pub struct AcceptTrouble {
    last: Option<Instant>,
}

/// Binds and listens. The file comes with unix sockets only.
///
/// A host name is resolved here, by getaddrinfo, and its first address is taken. The call blocks meanwhile.
pub fn bind(at: &Listen, options: &ListenOptions) -> Result<(Listener, Option<SocketFile>), BindError> {
    let bound = match at {
        Listen::Tcp { host, port } => {
            bind_tcp(host, *port, options).map(|socket| (Listener::Tcp(socket), None))
        }
        Listen::Unix { path, mode } => {
            bind_unix(path, *mode, options).map(|(socket, file)| (Listener::Unix(socket), Some(file)))
        }
    };
    bound.map_err(|cause| BindError { address: address(at), cause })
}

/// The socket address that [`bind`] would take; `None` for a unix socket. Blocks while the name is resolved.
pub fn resolve(at: &Listen) -> Result<Option<SocketAddr>, BindError> {
    match at {
        Listen::Tcp { host, port } => match resolve_tcp(host, *port) {
            Ok(found) => Ok(Some(found)),
            Err(cause) => Err(BindError { address: address(at), cause }),
        },
        Listen::Unix { .. } => Ok(None),
    }
}

fn resolve_tcp(host: &str, port: u16) -> Result<SocketAddr, Cause> {
    (host, port).to_socket_addrs().map_err(Cause::Unresolved)?.next().ok_or(Cause::NoAddress)
}

fn bind_tcp(host: &str, port: u16, options: &ListenOptions) -> Result<TcpListener, Cause> {
    let address = resolve_tcp(host, port)?;
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)
        .map_err(step("cannot make a socket"))?;
    let set = step("cannot set the socket's options");
    socket.set_reuse_address(true).map_err(set)?;
    if options.reuseport {
        socket.set_reuse_port(true).map_err(set)?;
    }
    if options.keepalive {
        socket.set_keepalive(true).map_err(set)?;
    }
    socket.set_tcp_nodelay(true).map_err(set)?;
    socket.set_nonblocking(true).map_err(set)?;
    socket.bind(&address.into()).map_err(step("cannot bind"))?;
    socket.listen(backlog(options)).map_err(step("cannot listen"))?;
    Ok(socket.into())
}

fn bind_unix(
    path: &Path,
    mode: Option<u32>,
    options: &ListenOptions,
) -> Result<(UnixListener, SocketFile), Cause> {
    let name = SockAddr::unix(path).map_err(step("unusable path"))?;
    clear_stale(path, &name)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(step("cannot make a socket"))?;
    socket.set_nonblocking(true).map_err(step("cannot set the socket's options"))?;
    socket.bind(&name).map_err(step("cannot bind"))?;
    let file = SocketFile::of(path).map_err(step("cannot see the socket's file"))?;
    // Before listen: nobody gets in under the wrong mode.
    if let Some(mode) = mode.filter(|mode| *mode != 0) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .map_err(step("cannot set the file's mode"))?;
    }
    socket.listen(backlog(options)).map_err(step("cannot listen"))?;
    Ok((socket.into(), file))
}

/// Removes a socket file that a dead process left behind; anything else in its place is an error.
fn clear_stale(path: &Path, name: &SockAddr) -> Result<(), Cause> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Cause::Step("cannot look at the path", error)),
        Ok(found) if !found.file_type().is_socket() => return Err(Cause::NotASocket),
        Ok(_) => {}
    }
    let probe = Socket::new(Domain::UNIX, Type::STREAM, None).map_err(step("cannot make a socket"))?;
    // A listener with a full queue must answer at once too (EAGAIN).
    probe.set_nonblocking(true).map_err(step("cannot set the socket's options"))?;
    match probe.connect(name) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(step("cannot remove the old socket"))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Err(Cause::Step("cannot tell whether the socket there is in use", error))
        }
        _ => Err(Cause::Answered),
    }
}

fn step(what: &'static str) -> impl Fn(io::Error) -> Cause + Copy {
    move |error| Cause::Step(what, error)
}

fn backlog(options: &ListenOptions) -> i32 {
    i32::try_from(options.backlog).unwrap_or(i32::MAX)
}

fn address(at: &Listen) -> String {
    match at {
        Listen::Tcp { host, port } => format!("{host}:{port}"),
        Listen::Unix { path, .. } => path.display().to_string(),
    }
}

// === impl Listener ===

impl Listener {
    /// Another descriptor of the same socket, which stays open until all of them are closed.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
        })
    }

    /// Where it is bound, for TCP.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(listener) => listener.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// Takes over those options that a listening socket can change: the backlog, and the keepalive of the sockets
    /// accepted from now on.
    pub fn set_options(&self, options: &ListenOptions) -> io::Result<()> {
        let socket = match self {
            Self::Tcp(listener) => SockRef::from(listener),
            Self::Unix(listener) => SockRef::from(listener),
        };
        if matches!(self, Self::Tcp(_)) {
            socket.set_keepalive(options.keepalive)?;
        }
        socket.listen(backlog(options))
    }

    /// Accepts one connection; `WouldBlock` when there is none.
    pub fn accept(&self) -> io::Result<Peer> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Peer::Tcp(stream))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok(Peer::Unix(stream))
            }
        }
    }
}

// === impl SocketFile ===

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), identity: Self::identity(path)? })
    }

    fn identity(path: &Path) -> io::Result<Identity> {
        let found = std::fs::symlink_metadata(path)?;
        Ok((found.dev(), found.ino(), found.mtime(), found.mtime_nsec()))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if Self::identity(&self.path).is_ok_and(|found| found == self.identity) {
            // Nothing can be done about a failure; the next start clears it.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

// === impl AcceptTrouble ===

/// What follows a failed accept(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFailure {
    /// That one connection was lost; try the next at once.
    Next,
    /// Try again after [`AcceptTrouble::PAUSE`].
    Pause {
        /// Whether this is a new incident.
        log: bool,
    },
}

impl AcceptTrouble {
    /// How long accepting rests.
    pub const PAUSE: Duration = Duration::from_millis(100);
    /// Failures closer together than this belong to one incident.
    pub const INCIDENT: Duration = Duration::from_secs(10);

    /// Judges a failure. `WouldBlock` is none and must not be passed.
    pub fn failed(&mut self, error: &io::Error, now: Instant) -> AfterFailure {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
        if matches!(error.kind(), ConnectionAborted | ConnectionReset | Interrupted) {
            return AfterFailure::Next;
        }
        let known = self.last.is_some_and(|last| now.saturating_duration_since(last) < Self::INCIDENT);
        self.last = Some(now);
        AfterFailure::Pause { log: !known }
    }
}

// === impl BindError ===

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: ", self.address)?;
        match &self.cause {
            Cause::Unresolved(error) => write!(f, "the host does not resolve: {error}"),
            Cause::NoAddress => f.write_str("the host has no address"),
            Cause::Answered => f.write_str("another process answers on this socket"),
            Cause::NotASocket => f.write_str("the path exists and is not a socket"),
            Cause::Step(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for BindError {}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: ListenOptions = ListenOptions { backlog: 16, reuseport: false, keepalive: true };

    fn tcp(host: &str, port: u16) -> Listen {
        Listen::Tcp { host: host.into(), port }
    }

    fn port_of(listener: &Listener) -> u16 {
        match listener {
            Listener::Tcp(socket) => socket.local_addr().unwrap().port(),
            Listener::Unix(_) => unreachable!("asked for TCP"),
        }
    }

    #[test]
    fn accepted_sockets_are_non_blocking_and_inherit_the_options() {
        let (listener, file) = bind(&tcp("127.0.0.1", 0), &PLAIN).unwrap();
        assert!(file.is_none());
        assert_eq!(listener.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let _client = TcpStream::connect(("127.0.0.1", port_of(&listener))).unwrap();
        let peer = loop {
            match listener.accept() {
                Ok(Peer::Tcp(stream)) => break stream,
                Ok(Peer::Unix(_)) => unreachable!("a TCP listener"),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert!(peer.nodelay().unwrap());
        assert!(socket2::SockRef::from(&peer).keepalive().unwrap());
        let read = io::Read::read(&mut &peer, &mut [0; 8]);
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn a_port_in_use_is_named() {
        let (listener, _) = bind(&tcp("127.0.0.1", 0), &PLAIN).unwrap();
        let port = port_of(&listener);
        let error = bind(&tcp("127.0.0.1", port), &PLAIN).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot listen on 127.0.0.1:{port}: cannot bind: ")), "{error}");
        assert!(error.contains("in use"), "{error}");
    }

    #[test]
    fn a_shared_port_takes_several_sockets() {
        let shared = ListenOptions { reuseport: true, ..PLAIN };
        let (first, _) = bind(&tcp("127.0.0.1", 0), &shared).unwrap();
        let port = port_of(&first);
        bind(&tcp("127.0.0.1", port), &shared).unwrap();
        bind(&tcp("127.0.0.1", port), &PLAIN).unwrap_err();
    }

    #[test]
    fn names_and_ipv6_resolve() {
        bind(&tcp("localhost", 0), &PLAIN).unwrap();
        bind(&tcp("::1", 0), &PLAIN).unwrap();
        let error = bind(&tcp("no-such-host.invalid", 0), &PLAIN).unwrap_err().to_string();
        assert!(error.contains("does not resolve"), "{error}");
    }

    #[test]
    fn a_unix_socket_is_cleared_only_when_nobody_answers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pool.sock");
        let at = Listen::Unix { path: path.clone(), mode: Some(0o660) };

        let (listener, file) = bind(&at, &PLAIN).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        let error = bind(&at, &PLAIN).unwrap_err().to_string();
        assert!(error.contains("another process answers"), "{error}");

        drop(listener); // as a process that died: the file stays
        assert!(path.exists());
        let (again, file_again) = bind(&at, &PLAIN).unwrap();
        drop(file); // the first one's file has gone already; the second's stays
        assert!(path.exists());
        drop((again, file_again));
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_is_no_socket_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("precious");
        std::fs::write(&path, "data").unwrap();
        let error = bind(&Listen::Unix { path: path.clone(), mode: None }, &PLAIN).unwrap_err().to_string();
        assert!(error.contains("not a socket"), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "data");
    }

    #[test]
    fn running_out_of_descriptors_pauses_and_is_logged_once() {
        let out_of_files = io::Error::from_raw_os_error(24); // EMFILE
        let mut trouble = AcceptTrouble::default();
        let start = Instant::now();
        assert_eq!(trouble.failed(&out_of_files, start), AfterFailure::Pause { log: true });
        for tenth in 1..100 {
            let now = start + tenth * AcceptTrouble::PAUSE;
            assert_eq!(trouble.failed(&out_of_files, now), AfterFailure::Pause { log: false });
        }
        let later = start + Duration::from_secs(60);
        assert_eq!(trouble.failed(&out_of_files, later), AfterFailure::Pause { log: true });
        let aborted = io::Error::from(io::ErrorKind::ConnectionAborted);
        assert_eq!(trouble.failed(&aborted, later), AfterFailure::Next);
    }
}
