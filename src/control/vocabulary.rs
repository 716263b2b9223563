//! Asks a server which commands it knows: connect, AUTH if the pool has a password, COMMAND.
//!
//! On a connection of control's own, so that no request of a client waits behind the answer, which is long.

use std::io;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::probe::{self, ProbeError};
use crate::resp::ReplyScanner;
use crate::units::{Endpoint, Secret};

/// Longest answer that is taken, in bytes. Redis with a dozen modules needs less than a tenth.
const MOST_BYTES: usize = 4 << 20;

/// How long the whole answer may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// The server's reply to COMMAND, in RESP2 and complete. Takes at most `connect_limit`, a second for AUTH, and 5 s.
pub async fn ask(
    endpoint: &Endpoint,
    auth: Option<&Secret>,
    connect_limit: Duration,
) -> Result<BytesMut, ProbeError> {
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let connecting = TcpStream::connect((host.as_str(), *port));
            talk(probe::connect(connecting, connect_limit).await?, auth).await
        }
        Endpoint::Unix(path) => {
            talk(probe::connect(UnixStream::connect(path), connect_limit).await?, auth).await
        }
    }
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    auth: Option<&Secret>,
) -> Result<BytesMut, ProbeError> {
    probe::authenticate(&mut stream, auth).await?;
    let answer = async {
        stream.write_all(b"*1\r\n$7\r\nCOMMAND\r\n").await.map_err(probe::lost)?;
        reply(&mut stream).await
    };
    timeout(ANSWER_LIMIT, answer).await.map_err(|_| ProbeError::TimedOut)?
}

/// Reads one reply, which is an array.
async fn reply<S: AsyncRead + Unpin>(stream: &mut S) -> Result<BytesMut, ProbeError> {
    let mut bytes = BytesMut::with_capacity(64 << 10);
    let mut scanner = ReplyScanner::default();
    loop {
        if stream.read_buf(&mut bytes).await.map_err(probe::lost)? == 0 {
            return Err(ProbeError::Lost(io::ErrorKind::UnexpectedEof));
        }
        match scanner.scan(&bytes) {
            Ok(Some(len)) if bytes[0] == b'-' => {
                return Err(ProbeError::Refused(
                    String::from_utf8_lossy(&bytes[1..len]).trim_end().chars().take(80).collect(),
                ));
            }
            Ok(Some(len)) => {
                bytes.truncate(len);
                return Ok(bytes);
            }
            Ok(None) if bytes.len() < MOST_BYTES => {}
            Ok(None) | Err(_) => return Err(ProbeError::Unexpected),
        }
    }
}
