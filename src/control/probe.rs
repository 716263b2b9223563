//! Asks an ejected server whether it can serve: connect, AUTH if the pool has a password, SELECT its database, PING.
//!
//! A server that refuses the password, or wants one that the pool hasn't got (NOAUTH), is alive, but would refuse every
//! request: it stays out, and the log says that the configuration is wrong. One that only forbids PING (NOPERM) serves what
//! its rules allow: it is ready.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use redis_protocol::resp2::decode::decode;
use redis_protocol::resp2::encode::extend_encode;
use redis_protocol::resp2::types::{BytesFrame, OwnedFrame};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::backend::needs_no_password;
use crate::config::Pool;
use crate::topology::ServerIx;
use crate::units::{Endpoint, Secret};

/// How long each answer may take.
const REPLY_LIMIT: Duration = Duration::from_secs(1);

/// Longest answer that is read; a status or an error is one short line.
const REPLY_BYTES: usize = 1024;

/// Why a server is not ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeError {
    /// No connection.
    Connect(io::ErrorKind),
    /// The connection ended before the answer.
    Lost(io::ErrorKind),
    /// No connection or no answer in time.
    TimedOut,
    /// An error reply (`LOADING …`, `NOAUTH …`); its first 80 characters.
    Refused(String),
    /// Something that is no answer to what was asked.
    Unexpected,
}

/// Asks a server of `pool` as the pool's settings say.
pub fn server(pool: &Pool, server: ServerIx) -> impl Future<Output = Result<(), ProbeError>> + use<> {
    let endpoint = pool.servers[server.index()].endpoint.clone();
    let (auth, db, limit) = (pool.redis_auth.clone(), pool.redis_db, pool.connect_timeout);
    async move { ping(&endpoint, auth.as_ref(), db, limit).await }
}

/// Succeeds when the server answers PING with PONG, in the database `db`. Takes at most `connect_limit` and a second per answer.
async fn ping(
    endpoint: &Endpoint,
    auth: Option<&Secret>,
    db: u32,
    connect_limit: Duration,
) -> Result<(), ProbeError> {
    match endpoint {
        Endpoint::Tcp { host, port } => {
            let connecting = TcpStream::connect((host.as_str(), *port));
            talk(connect(connecting, connect_limit).await?, auth, db).await
        }
        Endpoint::Unix(path) => {
            talk(connect(UnixStream::connect(path), connect_limit).await?, auth, db).await
        }
    }
}

async fn connect<S>(
    connecting: impl Future<Output = io::Result<S>>,
    limit: Duration,
) -> Result<S, ProbeError> {
    let connected = timeout(limit, connecting).await.map_err(|_| ProbeError::TimedOut)?;
    connected.map_err(|error| ProbeError::Connect(error.kind()))
}

async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    auth: Option<&Secret>,
    db: u32,
) -> Result<(), ProbeError> {
    if let Some(password) = auth {
        match ask(&mut stream, &[b"AUTH", password.expose()], b"OK").await {
            Err(ProbeError::Refused(error)) if needs_no_password(error.as_bytes()) => {}
            answer => answer?,
        }
    }
    if db != 0 {
        ask(&mut stream, &[b"SELECT", db.to_string().as_bytes()], b"OK").await?;
    }
    match ask(&mut stream, &[b"PING"], b"PONG").await {
        Err(ProbeError::Refused(error)) if error.starts_with("NOPERM ") => Ok(()),
        answer => answer,
    }
}

async fn ask<S>(stream: &mut S, request: &[&[u8]], expected: &[u8]) -> Result<(), ProbeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let asked = async {
        stream.write_all(&encoded(request)).await.map_err(lost)?;
        reply(stream).await
    };
    match timeout(REPLY_LIMIT, asked).await.map_err(|_| ProbeError::TimedOut)?? {
        OwnedFrame::SimpleString(text) if text == expected => Ok(()),
        OwnedFrame::Error(text) => Err(ProbeError::Refused(text.chars().take(80).collect())),
        _ => Err(ProbeError::Unexpected),
    }
}

fn encoded(request: &[&[u8]]) -> BytesMut {
    let arguments = request.iter().map(|argument| BytesFrame::BulkString(Bytes::copy_from_slice(argument)));
    let mut bytes = BytesMut::new();
    extend_encode(&mut bytes, &BytesFrame::Array(arguments.collect()), false)
        .expect("an array of bulk strings can be encoded");
    bytes
}

/// Reads one status or error line. Only those are decoded: they cannot nest, so the decoder cannot recurse.
async fn reply<S: AsyncRead + Unpin>(stream: &mut S) -> Result<OwnedFrame, ProbeError> {
    let mut bytes = BytesMut::with_capacity(REPLY_BYTES);
    loop {
        if stream.read_buf(&mut bytes).await.map_err(lost)? == 0 {
            return Err(ProbeError::Lost(io::ErrorKind::UnexpectedEof));
        }
        if !matches!(bytes.first(), Some(b'+' | b'-')) {
            return Err(ProbeError::Unexpected);
        }
        match decode(&bytes) {
            Ok(Some((frame, _))) => return Ok(frame),
            Ok(None) if bytes.len() < REPLY_BYTES => {}
            Ok(None) | Err(_) => return Err(ProbeError::Unexpected),
        }
    }
}

fn lost(error: io::Error) -> ProbeError {
    ProbeError::Lost(error.kind())
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(kind) => write!(f, "cannot connect: {kind}"),
            Self::Lost(kind) => write!(f, "connection lost: {kind}"),
            Self::TimedOut => f.write_str("no answer in time"),
            Self::Refused(text) if is_misconfigured(text) => {
                write!(f, "it is alive and refuses us, look at redis_auth and redis_db: {text}")
            }
            Self::Refused(text) => write!(f, "it answered: {text}"),
            Self::Unexpected => f.write_str("it did not answer as Redis does"),
        }
    }
}

impl std::error::Error for ProbeError {}

/// Errors that no waiting mends.
fn is_misconfigured(text: &str) -> bool {
    ["NOAUTH", "WRONGPASS", "NOPERM", "ERR invalid password", "ERR DB index"]
        .iter()
        .any(|begin| text.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    /// Asks a server that gives `answers`, one to each request of so many bytes.
    fn probe(auth: Option<&Secret>, answers: &[(&'static [u8], &'static [u8])]) -> Result<(), ProbeError> {
        probe_db(auth, 0, answers)
    }

    fn probe_db(
        auth: Option<&Secret>,
        db: u32,
        answers: &[(&'static [u8], &'static [u8])],
    ) -> Result<(), ProbeError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint =
            Endpoint::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
        let answers = answers.to_vec();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for (request, answer) in answers {
                let mut read = vec![0; request.len()];
                stream.read_exact(&mut read).unwrap();
                assert_eq!(read.escape_ascii().to_string(), request.escape_ascii().to_string());
                stream.write_all(answer).unwrap();
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(ping(&endpoint, auth, db, Duration::from_secs(1)));
        server.join().unwrap();
        result
    }

    const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";

    #[test]
    fn pong_is_ready() {
        assert_eq!(probe(None, &[(PING, b"+PONG\r\n")]), Ok(()));
    }

    #[test]
    fn the_password_goes_first_and_must_be_taken() {
        const AUTH: &[u8] = b"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n";
        let password = Secret::new(&b"pw"[..]);
        assert_eq!(probe(Some(&password), &[(AUTH, b"+OK\r\n"), (PING, b"+PONG\r\n")]), Ok(()));
        let refused = probe(Some(&password), &[(AUTH, b"-WRONGPASS no\r\n")]);
        assert_eq!(refused, Err(ProbeError::Refused("WRONGPASS no".into())));
        const NONE: &[u8] =
            b"-ERR AUTH <password> called without any password configured for the default user.\r\n";
        assert_eq!(probe(Some(&password), &[(AUTH, NONE), (PING, b"+PONG\r\n")]), Ok(()));
    }

    #[test]
    fn the_database_is_selected_and_must_be_there() {
        const SELECT: &[u8] = b"*2\r\n$6\r\nSELECT\r\n$2\r\n15\r\n";
        assert_eq!(probe_db(None, 15, &[(SELECT, b"+OK\r\n"), (PING, b"+PONG\r\n")]), Ok(()));
        let gone = probe_db(None, 15, &[(SELECT, b"-ERR DB index is out of range\r\n")]).unwrap_err();
        assert!(gone.to_string().starts_with("it is alive and refuses us"), "{gone}");
    }

    /// A server that wants a password refuses everything; one whose rules forbid PING serves what they allow.
    #[test]
    fn refusals_that_no_waiting_mends_are_told_apart() {
        let wants = probe(None, &[(PING, b"-NOAUTH Authentication required.\r\n")]).unwrap_err();
        assert!(wants.to_string().contains("look at redis_auth"), "{wants}");
        assert_eq!(
            probe(None, &[(PING, b"-NOPERM User default has no permissions to run 'ping'\r\n")]),
            Ok(())
        );
    }

    #[test]
    fn loading_is_not_ready() {
        let loading = probe(None, &[(PING, b"-LOADING Redis is loading the dataset in memory\r\n")]);
        assert_eq!(
            loading,
            Err(ProbeError::Refused("LOADING Redis is loading the dataset in memory".into()))
        );
    }

    #[test]
    fn nonsense_is_bounded_and_never_decoded_deeply() {
        static NESTED: [u8; 4000] = {
            let mut bytes = [0; 4000];
            let mut i = 0;
            while i < bytes.len() {
                bytes[i] = b"*1\r\n"[i % 4];
                i += 1;
            }
            bytes
        };
        static ENDLESS: [u8; 4000] = [b'+'; 4000];
        assert_eq!(probe(None, &[(PING, &NESTED)]), Err(ProbeError::Unexpected));
        assert_eq!(probe(None, &[(PING, &ENDLESS)]), Err(ProbeError::Unexpected));
        assert_eq!(probe(None, &[(PING, b"+PO")]), Err(ProbeError::Lost(io::ErrorKind::UnexpectedEof)));
        assert_eq!(probe(None, &[(PING, b"")]), Err(ProbeError::Lost(io::ErrorKind::UnexpectedEof)));
    }

    #[test]
    fn a_closed_port_is_said() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint =
            Endpoint::Tcp { host: "127.0.0.1".into(), port: listener.local_addr().unwrap().port() };
        drop(listener);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let result = runtime.block_on(ping(&endpoint, None, 0, Duration::from_secs(1)));
        assert_eq!(result, Err(ProbeError::Connect(io::ErrorKind::ConnectionRefused)));
    }
}
