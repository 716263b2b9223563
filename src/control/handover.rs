//! One process goes, another comes, and no client notices: the listening sockets go over first, then every client.
//!
//! ```text
//!   old                                   new
//!    │ ◀──────────── connects ─────────────│  before it binds anything
//!    │ ─── L: listening sockets … , E ────▶│  binds what is missing, starts its workers, accepts
//!    │ ◀──────────── R: ready ─────────────│
//!    │ accepts no more                     │
//!    │ ─── C: client and its state … ─────▶│  each at a moment at which nothing is due to it
//!    │ ends                                │  waits for its own successor
//! ```
//!
//! Until `R` the old process goes on as if nothing had happened, so that a new one that does not start harms nobody.
//! Each side talks on a thread of its own, and with its control through channels.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use super::doors::Inherited;
use crate::net::handover::{Channel, MOST_DESCRIPTORS, await_successor, listener};
use crate::worker::{Carried, Moved};

/// How long the new process may take from its first word until it serves.
const START_LIMIT: Duration = Duration::from_secs(60);

/// How long the old one may take over its last client; its drain is bounded by less.
const CLIENTS_LIMIT: Duration = Duration::from_secs(2 * 86_400);

/// What the thread of the old process asks of control.
#[derive(Debug)]
pub enum Want {
    /// The listening sockets.
    Listeners(oneshot::Sender<Vec<OwnedFd>>),
    /// The successor serves: stop accepting, and send the clients there, with the names of their pools.
    Clients(Successor),
}

/// The process after this one.
#[derive(Debug)]
pub struct Successor {
    /// Where clients go: the names of their pools, and they themselves. Drop it behind the last.
    pub clients: mpsc::UnboundedSender<(String, Moved)>,
    /// Comes when all of them have been sent. Until then this process must not end: they would be closed with it.
    pub sent: oneshot::Receiver<()>,
}

/// What comes from a process before this one.
pub type Coming = mpsc::UnboundedReceiver<(String, Moved)>;

/// The process before this one, which still serves.
#[derive(Debug)]
pub struct Predecessor {
    channel: Channel,
}

/// A client on its way; its socket goes beside it, what it has sent of a request behind it.
#[derive(Debug, Serialize, Deserialize)]
struct Client {
    pool: String,
    carried: Carried,
}

/// Takes the listening sockets over from the process that waits at `path`, if there is one.
pub fn take_over(path: &Path) -> io::Result<Option<(Predecessor, Inherited)>> {
    let Some(channel) = Channel::to_predecessor(path)? else { return Ok(None) };
    let mut inherited = Inherited { listeners: Vec::new(), with_files: true };
    loop {
        match channel.receive(START_LIMIT)? {
            Some((message, descriptors)) if message == b"L" => {
                inherited.listeners.extend(descriptors.into_iter().filter_map(listener));
            }
            Some((message, _)) if message == b"E" => break,
            _ => return Err(io::Error::other("it did not hand its sockets over")),
        }
    }
    Ok(Some((Predecessor { channel }, inherited)))
}

// === impl Predecessor ===

impl Predecessor {
    /// This process serves: the clients may come.
    pub fn receive_clients(self) -> io::Result<Coming> {
        self.channel.send(b"R", &[])?;
        let (come, coming) = mpsc::unbounded_channel();
        thread("handover-from", move || {
            while let Ok(Some((message, descriptors))) = self.channel.receive(CLIENTS_LIMIT) {
                if let Some(client) = unpacked(&message, descriptors)
                    && come.send(client).is_err()
                {
                    return;
                }
            }
        })?;
        Ok(coming)
    }
}

/// Waits for a successor at `path` on a thread of its own, and asks control on its behalf.
pub fn offer(path: PathBuf, control: mpsc::UnboundedSender<Want>) -> io::Result<()> {
    let waiting = await_successor(&path)?;
    thread("handover-to", move || {
        while let Ok((socket, _)) = waiting.accept() {
            match Channel::over(socket).and_then(|channel| hand_over(&channel, &control)) {
                Ok(true) => return,
                Ok(false) => {
                    info!("another process asked for the sockets and did not start to serve: going on")
                }
                Err(error) => warn!("handing over to another process failed: {error}"),
            }
        }
    })
}

/// Whether the successor has taken over.
fn hand_over(channel: &Channel, control: &mpsc::UnboundedSender<Want>) -> io::Result<bool> {
    let (answer, answered) = oneshot::channel();
    let ending = || io::Error::other("this process is ending");
    control.send(Want::Listeners(answer)).map_err(|_| ending())?;
    let listeners = answered.blocking_recv().map_err(|_| ending())?;
    for part in listeners.chunks(MOST_DESCRIPTORS) {
        channel.send(b"L", &part.iter().map(AsFd::as_fd).collect::<Vec<_>>())?;
    }
    channel.send(b"E", &[])?;
    drop(listeners);
    match channel.receive(START_LIMIT)? {
        Some((message, _)) if message == b"R" => {}
        _ => return Ok(false),
    }
    let (clients, mut coming) = mpsc::unbounded_channel();
    let (all_sent, sent) = oneshot::channel();
    control.send(Want::Clients(Successor { clients, sent })).map_err(|_| ending())?;
    while let Some((pool, moved)) = coming.blocking_recv() {
        let sent = packed(pool, &moved).and_then(|bytes| channel.send(&bytes, &[moved.socket.as_fd()]));
        if let Err(error) = sent {
            warn!(%error, "a client could not be handed over, and is closed");
        }
    }
    let _ = all_sent.send(()); // control has not waited so long
    Ok(true)
}

/// `C`, the length of the JSON, the JSON, what the client has sent.
fn packed(pool: String, moved: &Moved) -> io::Result<Vec<u8>> {
    let json = serde_json::to_vec(&Client { pool, carried: moved.carried.clone() })?;
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    Ok([b"C", &length.to_le_bytes()[..], &json, &moved.input].concat())
}

fn unpacked(message: &[u8], descriptors: Vec<OwnedFd>) -> Option<(String, Moved)> {
    let (length, rest) = message.strip_prefix(b"C")?.split_first_chunk::<4>()?;
    let (json, input) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let Client { pool, carried } = serde_json::from_slice(json).ok()?;
    let socket = descriptors.into_iter().next()?;
    Some((pool, Moved { socket, carried, input: input.to_vec() }))
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}
