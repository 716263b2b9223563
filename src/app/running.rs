//! A question to the admin port of a running proxy: what would become of a configuration there.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::config::MOST_BYTES;
use crate::resp::encode;

/// The variable with the admin port's password: redis-cli's own.
const PASSWORD: &str = "REDISCLI_AUTH";

/// How long connecting may take, and each part of an answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Longest line of an answer, and longest answer.
const MOST: u64 = 16 << 20;

/// Where a running proxy is asked.
#[derive(Debug, PartialEq, Eq)]
pub enum Address {
    /// `HOST:PORT`.
    Tcp(String),
    /// A path.
    Unix(String),
}

/// An address of an admin port, if it is one and no file: `HOST:PORT`, `PORT` of this machine, or the path of a unix socket.
pub fn address(text: &str) -> Option<Address> {
    let path = Path::new(text);
    if let Ok(found) = path.metadata() {
        return found.file_type().is_socket().then(|| Address::Unix(text.to_owned()));
    }
    if text.parse::<u16>().is_ok() {
        return Some(Address::Tcp(format!("127.0.0.1:{text}")));
    }
    let (host, port) = text.rsplit_once(':')?;
    (!host.is_empty() && port.parse::<u16>().is_ok()).then(|| Address::Tcp(text.to_owned()))
}

/// What a reload of `text`, in the place of its file, would change in the process whose admin port is there.
///
/// # Errors
///
/// Why that isn't known, or what is wrong with the text as that process sees it.
pub fn predict(address: &Address, text: &str) -> Result<String, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("the file has more than {MOST_BYTES} bytes"));
    }
    let failed = |error: io::Error| format!("no answer from the admin port: {error}");
    match address {
        Address::Tcp(at) => {
            let stream = connect(at).map_err(failed)?;
            ask(&stream, &stream, text).map_err(failed)?
        }
        Address::Unix(path) => {
            let stream = UnixStream::connect(path).map_err(failed)?;
            stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
            ask(&stream, &stream, text).map_err(failed)?
        }
    }
}

fn connect(at: &str) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in at.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, LIMIT) {
            Ok(stream) => {
                stream.set_read_timeout(Some(LIMIT))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn ask(input: impl Read, mut output: impl Write, text: &str) -> io::Result<Result<String, String>> {
    let mut input = BufReader::new(input.take(MOST));
    let mut request = Vec::new();
    if let Ok(password) = std::env::var(PASSWORD) {
        encode::request(&mut request, [b"AUTH", password.as_bytes()].into_iter());
        output.write_all(&request)?;
        if let Err(error) = reply(&mut input)? {
            return Ok(Err(format!("{PASSWORD}: {error}")));
        }
        request.clear();
    }
    encode::request(&mut request, [&b"PROXY"[..], b"PREDICT", text.as_bytes()].into_iter());
    output.write_all(&request)?;
    reply(&mut input)
}

/// A status, an error, or a bulk string.
fn reply(input: &mut impl BufRead) -> io::Result<Result<String, String>> {
    let mut line = Vec::new();
    input.read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
    let no_reply = || io::Error::new(io::ErrorKind::InvalidData, "it is no shardwise's");
    if let Some(error) = text.strip_prefix('-') {
        return Ok(Err(error.to_owned()));
    }
    if let Some(status) = text.strip_prefix('+') {
        return Ok(Ok(status.to_owned()));
    }
    let length = text.strip_prefix('$').and_then(|length| length.parse::<u64>().ok()).ok_or_else(no_reply)?;
    let mut bulk = Vec::new();
    input.take(length.saturating_add(2)).read_to_end(&mut bulk)?;
    if bulk.len() as u64 != length.saturating_add(2) {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    bulk.truncate(bulk.len() - 2);
    Ok(Ok(String::from_utf8_lossy(&bulk).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_addresses_are_told_apart() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(address(&file.path().display().to_string()), None);
        assert_eq!(address("22223"), Some(Address::Tcp("127.0.0.1:22223".into())));
        assert_eq!(address("proxy-1:22223"), Some(Address::Tcp("proxy-1:22223".into())));
        for file in ["running.yml", "/etc/a:b", "70000", ":1"] {
            assert_eq!(address(file), None, "{file}");
        }
    }

    #[test]
    fn answers_are_read_whole() {
        let read = |mut bytes: &[u8]| reply(&mut bytes).map_err(|error| error.kind());
        assert_eq!(read(b"$3\r\na\nb\r\n"), Ok(Ok("a\nb".into())));
        assert_eq!(read(b"-ERR no\r\n"), Ok(Err("ERR no".into())));
        assert_eq!(read(b"$3\r\na"), Err(io::ErrorKind::UnexpectedEof));
        assert_eq!(read(b"HTTP/1.1 400\r\n"), Err(io::ErrorKind::InvalidData));
        assert_eq!(read(b""), Err(io::ErrorKind::InvalidData));
    }
}
