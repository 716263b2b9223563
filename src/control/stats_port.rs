//! The stats port: whoever connects gets the report and is closed.
//!
//! No request is read, as with twemproxy: a monitor that sends nothing must be answered at once, so there is no
//! waiting for an HTTP request line either (`curl --http0.9` works).

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::report::Current;
use super::visitors::{Door, Duplex, welcome};

/// Readers at once; more wait in the kernel's queue.
const READERS: usize = 32;

/// Longest that one reader may take.
const READER_LIMIT: Duration = Duration::from_secs(5);

/// How long, and how much, we read after the answer. What a peer sent must be read before the socket is closed: else
/// the kernel resets the connection and may take the answer away from the peer.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 65_536;

/// Serves until it is dropped. Inside a `LocalRuntime` only.
pub async fn serve(door: Door, sources: Current) {
    welcome(door, READERS, "stats", move |visitor| {
        let report = sources.now().render();
        async move {
            // A reader that goes away or is too slow is its own loss.
            let _ = timeout(READER_LIMIT, answer(visitor.stream, &report)).await;
        }
    })
    .await;
}

async fn answer(mut stream: Box<dyn Duplex>, report: &[u8]) -> io::Result<()> {
    stream.write_all(report).await?;
    stream.shutdown().await?;
    let mut rest = stream.take(LINGER_BYTES);
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
    Ok(())
}
