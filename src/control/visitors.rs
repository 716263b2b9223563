//! Accepting on a port of control's own: a bounded number of connections at once, the others wait in the kernel's queue.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tracing::warn;

use crate::net::{AcceptTrouble, AfterFailure, Listener};

/// A connection, TCP or unix.
pub trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// Somebody who has connected.
pub struct Visitor {
    /// Both directions.
    pub stream: Box<dyn Duplex>,
    /// Where from; a unix socket has no address.
    pub address: String,
}

/// A listener that the runtime watches.
pub enum Door {
    /// TCP.
    Tcp(TcpListener),
    /// Unix.
    Unix(UnixListener),
}

/// Lets `serve` have every visitor of `door`, at most `most` at once, until it is dropped. `port` is its name in the log.
/// Inside a `LocalRuntime` only.
pub async fn welcome<F>(door: Door, most: usize, port: &'static str, serve: impl Fn(Visitor) -> F + 'static)
where
    F: Future<Output = ()> + 'static,
{
    let places = Arc::new(Semaphore::new(most));
    let serve = Rc::new(serve);
    let mut trouble = AcceptTrouble::default();
    loop {
        let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
        match door.accept().await {
            Ok(visitor) => {
                let serve = Rc::clone(&serve);
                tokio::task::spawn_local(async move {
                    serve(visitor).await;
                    drop(place);
                });
            }
            Err(error) => {
                if let AfterFailure::Pause { log } = trouble.failed(&error, Instant::now()) {
                    if log {
                        warn!("cannot accept on the {port} port, trying again: {error}");
                    }
                    tokio::time::sleep(AcceptTrouble::PAUSE).await;
                }
            }
        }
    }
}

// === impl Door ===

impl Door {
    /// Registers `listener` with this thread's runtime.
    pub fn new(listener: Listener) -> io::Result<Self> {
        Ok(match listener {
            Listener::Tcp(listener) => Self::Tcp(TcpListener::from_std(listener)?),
            Listener::Unix(listener) => Self::Unix(UnixListener::from_std(listener)?),
        })
    }

    async fn accept(&self) -> io::Result<Visitor> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                Ok(Visitor { stream: Box::new(stream), address: address.to_string() })
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Visitor { stream: Box::new(stream), address: "unix".to_owned() })
            }
        }
    }
}
