//! The stats port: whoever connects gets the report and is closed.
//!
//! No request is read, as with twemproxy: a monitor that sends nothing must be answered at once, so there is no
//! waiting for an HTTP request line either (`curl --http0.9` works).

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tracing::warn;

use super::report::Current;
use crate::net::{AcceptTrouble, AfterFailure};

/// Readers at once; more wait in the kernel's queue.
const READERS: usize = 32;

/// Longest that one reader may take.
const READER_LIMIT: Duration = Duration::from_secs(5);

/// How long, and how much, we read after the answer. What a peer sent must be read before the socket is closed: else
/// the kernel resets the connection and may take the answer away from the peer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 65_536;

/// Serves until it is dropped. Inside a `LocalRuntime` only.
pub async fn serve(listener: TcpListener, sources: Current) {
    let readers = Arc::new(Semaphore::new(READERS));
    let mut trouble = AcceptTrouble::default();
    loop {
        let place = readers.clone().acquire_owned().await.expect("the semaphore is never closed");
        match listener.accept().await {
            Ok((stream, _)) => {
                let report = sources.now().render();
                tokio::task::spawn_local(async move {
                    // A reader that goes away or is too slow is its own loss.
                    let _ = timeout(READER_LIMIT, answer(stream, &report)).await;
                    drop(place);
                });
            }
            Err(error) => {
                if let AfterFailure::Pause { log } = trouble.failed(&error, Instant::now()) {
                    if log {
                        warn!("cannot accept on the stats port, trying again: {error}");
                    }
                    tokio::time::sleep(AcceptTrouble::PAUSE).await;
                }
            }
        }
    }
}

async fn answer(mut stream: TcpStream, report: &[u8]) -> io::Result<()> {
    stream.write_all(report).await?;
    stream.shutdown().await?;
    let mut rest = (&mut stream).take(LINGER_BYTES);
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
    Ok(())
}
