//! Passing open sockets from one process to the next (SCM_RIGHTS over a unix socket that keeps messages apart), and
//! taking over those that systemd has opened.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use socket2::{Domain, SockAddr, Socket, Type};

use super::Listener;

/// One end of a conversation of two processes of this program. Every call blocks.
#[derive(Debug)]
pub struct Channel {
    socket: Socket,
}

/// Descriptors in one message.
pub const MOST_DESCRIPTORS: usize = 64;

/// Bytes of one message. More is cut off by the kernel, and an error here.
pub const MOST_BYTES: usize = 128 << 10;

/// How long the other side may leave us waiting for a message, or for room for one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the process that goes waits for the one that comes. Only its own user may connect. The file takes the place
/// of whatever socket is at `path`.
pub fn await_successor(path: &Path) -> io::Result<Socket> {
    let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
    // Under another name first: the process before us may still be asked at this one until we listen.
    let mut new = path.as_os_str().to_owned();
    new.push(format!(".{}", std::process::id()));
    let new = Path::new(&new);
    let _ = std::fs::remove_file(new); // of a process of this number that died
    socket.bind(&SockAddr::unix(new)?)?;
    std::fs::set_permissions(new, std::fs::Permissions::from_mode(0o600))?;
    socket.listen(1)?;
    std::fs::rename(new, path)?;
    Ok(socket)
}

impl Channel {
    /// To the process that waits at `path`; `None`: nobody does.
    pub fn to_predecessor(path: &Path) -> io::Result<Option<Self>> {
        let socket = Socket::new(Domain::UNIX, Type::SEQPACKET, None)?;
        match socket.connect(&SockAddr::unix(path)?) {
            Ok(()) => Self::over(socket).map(Some),
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Over a socket that was accepted from [`await_successor`].
    pub fn over(socket: Socket) -> io::Result<Self> {
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.set_send_buffer_size(4 * MOST_BYTES)?;
        Ok(Self { socket })
    }

    /// Sends one message.
    pub fn send(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
            return Err(io::Error::other("too many descriptors for one message"));
        }
        sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// The next message, at most `limit` later; `None`: the other side has ended.
    pub fn receive(&self, limit: Duration) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
        self.socket.set_read_timeout(Some(limit))?;
        let mut bytes = vec![0; MOST_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let parts = &mut [IoSliceMut::new(&mut bytes)];
        let received = recvmsg(&self.socket, parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = message {
                descriptors.extend(passed);
            }
        }
        bytes.truncate(received.bytes);
        Ok((received.bytes > 0).then_some((bytes, descriptors)))
    }
}

/// A listening socket from its descriptor; `None` if it is of no kind that is known here.
pub fn listener(descriptor: OwnedFd) -> Option<Listener> {
    let socket = Socket::from(descriptor);
    socket.set_nonblocking(true).ok()?;
    match socket.domain().ok()? {
        Domain::IPV4 | Domain::IPV6 => Some(Listener::Tcp(socket.into())),
        Domain::UNIX => Some(Listener::Unix(socket.into())),
        _ => None,
    }
}

/// The listening sockets that systemd has opened for this process (LISTEN_FDS); each is taken once.
pub fn from_systemd() -> Vec<Listener> {
    let mut given = listenfd::ListenFd::from_env();
    let mut listeners = Vec::new();
    for index in 0..given.len() {
        let tcp = given.take_tcp_listener(index).ok().flatten();
        let descriptor = match tcp {
            Some(tcp) => Some(OwnedFd::from(tcp)),
            None => given.take_unix_listener(index).ok().flatten().map(OwnedFd::from),
        };
        listeners.extend(descriptor.and_then(listener));
    }
    listeners
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_arrive_with_their_message_and_others_with_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("handover");
        assert!(Channel::to_predecessor(&path).unwrap().is_none(), "nobody is there");
        let waiting = await_successor(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let new = Channel::to_predecessor(&path).unwrap().unwrap();
        let old = Channel::over(waiting.accept().unwrap().0).unwrap();
        let bound = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        old.send(b"one", &[bound.as_fd()]).unwrap();
        old.send(b"two", &[]).unwrap();
        let limit = Duration::from_secs(5);
        let (bytes, mut descriptors) = new.receive(limit).unwrap().unwrap();
        assert_eq!((&bytes[..], descriptors.len()), (&b"one"[..], 1));
        let passed = listener(descriptors.remove(0)).unwrap();
        assert_eq!(passed.tcp_address(), bound.local_addr().ok());
        assert_eq!(new.receive(limit).unwrap().unwrap().0, b"two");
        drop(old);
        assert!(new.receive(limit).unwrap().is_none());
    }
}
