//! A small blocking client of RESP2 and RESP3 that hides nothing.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::PATIENCE;

/// One connection. Reads and writes that take longer than [`PATIENCE`] panic with what was going on.
#[derive(Debug)]
pub struct Resp {
    reader: BufReader<Socket>,
}

impl Resp {
    /// Connects over TCP.
    pub fn tcp(address: impl Into<SocketAddr>) -> Self {
        let address = address.into();
        Self::try_tcp(address).unwrap_or_else(|e| panic!("no connection to {address}: {e}"))
    }

    /// Connects over TCP, if somebody listens.
    pub fn try_tcp(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self::over(Socket::Tcp(stream)))
    }

    /// Connects to a port on loopback.
    pub fn port(port: u16) -> Self {
        Self::tcp(([127, 0, 0, 1], port))
    }

    /// Connects to a unix socket.
    pub fn unix(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self::over(Socket::Unix(
            UnixStream::connect(path).unwrap_or_else(|e| panic!("no connection to {}: {e}", path.display())),
        ))
    }

    fn over(socket: Socket) -> Self {
        let mut client = Self { reader: BufReader::with_capacity(64 * 1024, socket) };
        client.set_read_timeout(PATIENCE);
        client
    }

    /// How long a read may wait from now on.
    pub fn set_read_timeout(&mut self, limit: Duration) {
        self.reader.get_ref().set_read_timeout(Some(limit)).expect("a timeout that is not zero");
    }

    /// Sends one command and reads its reply.
    #[track_caller]
    pub fn call<A: AsRef<[u8]>>(&mut self, args: impl IntoIterator<Item = A>) -> Value {
        self.send(args);
        self.read()
    }

    /// Sends one command.
    #[track_caller]
    pub fn send<A: AsRef<[u8]>>(&mut self, args: impl IntoIterator<Item = A>) {
        self.send_raw(encode(args));
    }

    /// Sends all commands in one go, and reads as many replies.
    #[track_caller]
    pub fn pipeline<A, C>(&mut self, commands: impl IntoIterator<Item = C>) -> Vec<Value>
    where
        A: AsRef<[u8]>,
        C: IntoIterator<Item = A>,
    {
        let mut bytes = Vec::new();
        let mut count = 0;
        for command in commands {
            bytes.extend(encode(command));
            count += 1;
        }
        self.packets(&[&bytes], count).unwrap_or_else(|e| panic!("the pipeline is cut: {e}"))
    }

    /// Sends these bytes, each piece by a write of its own, and reads so many replies.
    pub fn packets(&mut self, packets: &[&[u8]], count: usize) -> io::Result<Vec<Value>> {
        /// What every socket takes, however slow its peer is.
        const FITS: usize = 16 * 1024;
        if packets.iter().map(|packet| packet.len()).sum::<usize>() <= FITS {
            packets.iter().try_for_each(|packet| self.try_send_raw(packet))?;
            return (0..count).map(|_| self.try_read()).collect();
        }
        // Written from beside: a peer that stops reading until its replies are read must not stop us.
        let mut writer = self.reader.get_ref().try_clone()?;
        std::thread::scope(|scope| {
            let written = scope.spawn(move || packets.iter().try_for_each(|packet| writer.write_all(packet)));
            let replies = (0..count).map(|_| self.try_read()).collect();
            written.join().expect("the writer does not panic")?;
            replies
        })
    }

    /// Another hand on the same connection, to send with while this one reads.
    pub fn sender(&self) -> Sender {
        Sender(self.reader.get_ref().try_clone().expect("an open socket has another handle"))
    }

    /// Sends these bytes as they are.
    #[track_caller]
    pub fn send_raw(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send_raw(bytes).unwrap_or_else(|e| panic!("cannot send: {e}"));
    }

    /// Sends these bytes as they are, to a peer that may have closed.
    pub fn try_send_raw(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.reader.get_mut().write_all(bytes.as_ref())
    }

    /// Reads one reply.
    #[track_caller]
    pub fn read(&mut self) -> Value {
        self.try_read().unwrap_or_else(|e| panic!("no reply: {e}"))
    }

    /// Reads one reply; an error for EOF, reset, timeout, and bytes that are no RESP.
    pub fn try_read(&mut self) -> io::Result<Value> {
        let line = self.read_line()?;
        let (&kind, rest) = line.split_first().ok_or_else(|| invalid("an empty line"))?;
        let text = || String::from_utf8_lossy(rest).into_owned();
        match kind {
            b'+' => Ok(Value::Simple(text())),
            b'-' => Ok(Value::Error(text())),
            b':' => text().parse().map(Value::Int).map_err(|_| invalid(&text())),
            b'$' => match length(rest)? {
                None => Ok(Value::Nil),
                Some(n) => {
                    let mut bytes = self.try_read_raw(n + 2)?;
                    if !bytes.ends_with(b"\r\n") {
                        return Err(invalid("a bulk without its end"));
                    }
                    bytes.truncate(n);
                    Ok(Value::Bulk(bytes))
                }
            },
            b'*' => match length(rest)? {
                None => Ok(Value::Nil),
                Some(n) => (0..n).map(|_| self.try_read()).collect::<io::Result<_>>().map(Value::Array),
            },
            b'_' if rest.is_empty() => Ok(Value::Null),
            b'#' if rest == b"t" || rest == b"f" => Ok(Value::Bool(rest == b"t")),
            b',' => Ok(Value::Double(text())),
            b'(' => Ok(Value::BigNumber(text())),
            b'=' => {
                let mut bytes =
                    self.try_read_raw(length(rest)?.ok_or_else(|| invalid("a verbatim string"))? + 2)?;
                bytes.truncate(bytes.len() - 2);
                Ok(Value::Verbatim(bytes))
            }
            b'~' => self.try_read_many(rest, 1).map(Value::Set),
            b'>' => self.try_read_many(rest, 1).map(Value::Push),
            b'%' => {
                let mut items = self.try_read_many(rest, 2)?.into_iter();
                let pairs = std::iter::from_fn(|| Some((items.next()?, items.next()?)));
                Ok(Value::Map(pairs.collect()))
            }
            b'|' => {
                self.try_read_many(rest, 2)?;
                self.try_read()
            }
            _ => Err(invalid(&String::from_utf8_lossy(&line))),
        }
    }

    /// As many replies as `digits` say, `each` times.
    fn try_read_many(&mut self, digits: &[u8], each: usize) -> io::Result<Vec<Value>> {
        let count = length(digits)?.ok_or_else(|| invalid("a length below 0"))?;
        (0..count * each).map(|_| self.try_read()).collect()
    }

    /// Reads exactly `n` bytes as they come.
    #[track_caller]
    pub fn read_raw(&mut self, n: usize) -> Vec<u8> {
        self.try_read_raw(n).unwrap_or_else(|e| panic!("no {n} bytes: {e}"))
    }

    fn try_read_raw(&mut self, n: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; n];
        self.reader.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads one reply as the bytes it is.
    #[track_caller]
    pub fn read_bytes(&mut self) -> Vec<u8> {
        let mut reply = Vec::new();
        let mut outstanding = 1;
        while outstanding > 0 {
            outstanding -= 1;
            let line = self.read_line().unwrap_or_else(|e| panic!("no reply: {e}"));
            reply.extend_from_slice(&line);
            reply.extend_from_slice(b"\r\n");
            let announced = || length(&line[1..]).unwrap_or_else(|e| panic!("{e}")).unwrap_or(0);
            match line.first() {
                Some(b'$' | b'=') if line != b"$-1" => reply.extend(self.read_raw(announced() + 2)),
                Some(b'*' | b'~' | b'>') => outstanding += announced(),
                Some(b'%') => outstanding += 2 * announced(),
                _ => {}
            }
        }
        reply
    }

    /// Reads what has come, and waits for it if nothing has. `None` when the peer has closed, or reset.
    #[track_caller]
    pub fn read_some(&mut self) -> Option<Vec<u8>> {
        match self.reader.fill_buf() {
            Ok([]) => None,
            Ok(bytes) => {
                let bytes = bytes.to_vec();
                self.reader.consume(bytes.len());
                Some(bytes)
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => None,
            Err(e) => panic!("nothing comes: {e}"),
        }
    }

    /// Reads one line, without its CRLF.
    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.reader.read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(content) => Ok(content.to_vec()),
            None if line.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            None => Err(invalid("a line without its end")),
        }
    }

    /// Whether the peer closes (or resets) without sending anything more. Waits for it.
    pub fn closed(&mut self) -> bool {
        match self.reader.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(e) => matches!(e.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe),
        }
    }

    /// Whether nothing arrives and nobody closes for as long as `period`.
    pub fn silent_for(&mut self, period: Duration) -> bool {
        self.set_read_timeout(period);
        let silent = matches!(self.reader.fill_buf(), Err(e) if e.kind() == io::ErrorKind::WouldBlock);
        self.set_read_timeout(PATIENCE);
        silent
    }

    /// Sends FIN: no more requests, but replies are still read.
    pub fn finish(&mut self) {
        self.try_finish().expect("an open socket");
    }

    /// Like [`Self::finish`], to a peer that may have closed.
    pub fn try_finish(&mut self) -> io::Result<()> {
        self.reader.get_ref().shutdown(Shutdown::Write)
    }
}

/// Sends on a connection that somebody else reads.
#[derive(Debug)]
pub struct Sender(Socket);

impl Sender {
    /// Sends these bytes as they are, to a peer that may have closed.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }
}

/// A reply.
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// `+text`
    Simple(String),
    /// `-text`
    Error(String),
    /// `:n`
    Int(i64),
    /// `$n`
    Bulk(Vec<u8>),
    /// `*n`
    Array(Vec<Value>),
    /// `$-1` or `*-1`
    Nil,
    /// `_`
    Null,
    /// `#t` or `#f`
    Bool(bool),
    /// `,n`, as it was written
    Double(String),
    /// `(n`
    BigNumber(String),
    /// `=n`, the format in front
    Verbatim(Vec<u8>),
    /// `%n`
    Map(Vec<(Value, Value)>),
    /// `~n`
    Set(Vec<Value>),
    /// `>n`
    Push(Vec<Value>),
}

impl Value {
    /// A simple string.
    pub fn simple(text: &str) -> Self {
        Self::Simple(text.to_owned())
    }

    /// `+OK`
    pub fn ok() -> Self {
        Self::simple("OK")
    }

    /// A bulk string.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Self {
        Self::Bulk(bytes.as_ref().to_vec())
    }

    /// An array.
    pub fn array(items: impl IntoIterator<Item = Self>) -> Self {
        Self::Array(items.into_iter().collect())
    }

    /// A reply that was read as bytes.
    #[track_caller]
    pub fn parse(reply: &[u8]) -> Self {
        match Self::parse_one(reply) {
            Some((value, [])) => value,
            other => panic!("not one reply: {} ({other:?})", reply.escape_ascii()),
        }
    }

    /// Any number of replies that were read as bytes.
    #[track_caller]
    pub fn parse_all(mut replies: &[u8]) -> Vec<Self> {
        let mut values = Vec::new();
        while !replies.is_empty() {
            let Some((value, rest)) = Self::parse_one(replies) else {
                panic!("no reply in: {}", replies.escape_ascii());
            };
            values.push(value);
            replies = rest;
        }
        values
    }

    /// The reply at the beginning of `bytes`, and what follows it.
    fn parse_one(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let end = bytes.windows(2).position(|end| end == b"\r\n")?;
        let (line, mut rest) = (bytes.get(1..end)?, &bytes[end + 2..]);
        let text = || String::from_utf8_lossy(line).into_owned();
        let value = match bytes[0] {
            b'+' => Self::Simple(text()),
            b'-' => Self::Error(text()),
            b':' => Self::Int(text().parse().ok()?),
            b'$' => match length(line).ok()? {
                None => Self::Nil,
                Some(n) => {
                    let (bulk, after) = rest.split_at_checked(n)?;
                    rest = after.strip_prefix(b"\r\n")?;
                    Self::bulk(bulk)
                }
            },
            b'*' if line == b"-1" => Self::Nil,
            b'*' => Self::Array(Self::parse_many(line, 1, &mut rest)?),
            b'~' => Self::Set(Self::parse_many(line, 1, &mut rest)?),
            b'>' => Self::Push(Self::parse_many(line, 1, &mut rest)?),
            b'%' => {
                let mut items = Self::parse_many(line, 2, &mut rest)?.into_iter();
                Self::Map(std::iter::from_fn(|| Some((items.next()?, items.next()?))).collect())
            }
            b'_' => Self::Null,
            b'#' => Self::Bool(line == b"t"),
            b',' => Self::Double(text()),
            b'(' => Self::BigNumber(text()),
            b'=' => {
                let (verbatim, after) = rest.split_at_checked(length(line).ok()??)?;
                rest = after.strip_prefix(b"\r\n")?;
                Self::Verbatim(verbatim.to_vec())
            }
            _ => return None,
        };
        Some((value, rest))
    }

    /// As many replies at the beginning of `rest` as `digits` say, `each` times.
    fn parse_many(digits: &[u8], each: usize, rest: &mut &[u8]) -> Option<Vec<Self>> {
        let count = length(digits).ok()?? * each;
        let mut items = Vec::new();
        for _ in 0..count {
            let (item, after) = Self::parse_one(rest)?;
            items.push(item);
            *rest = after;
        }
        Some(items)
    }

    /// Whether this is an error that begins so.
    pub fn is_error(&self, beginning: &str) -> bool {
        matches!(self, Self::Error(text) if text.starts_with(beginning))
    }

    /// The content of a bulk or simple string; panics for anything else.
    #[track_caller]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            Self::Simple(text) => text.as_bytes(),
            other => panic!("a string was expected, not {other:?}"),
        }
    }

    /// The content of an integer; panics for anything else.
    #[track_caller]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(n) => *n,
            other => panic!("an integer was expected, not {other:?}"),
        }
    }

    /// The elements of an array; panics for anything else.
    #[track_caller]
    pub fn items(&self) -> &[Self] {
        match self {
            Self::Array(items) => items,
            other => panic!("an array was expected, not {other:?}"),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Simple(text) => write!(f, "+{text}"),
            Self::Error(text) => write!(f, "-{text}"),
            Self::Int(n) => write!(f, ":{n}"),
            Self::Bulk(bytes) if bytes.len() > 200 => {
                write!(f, "\"{}…\" ({} bytes)", bytes[..200].escape_ascii(), bytes.len())
            }
            Self::Bulk(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
            Self::Array(items) => f.debug_list().entries(items).finish(),
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "#{value}"),
            Self::Double(text) | Self::BigNumber(text) => write!(f, ",{text}"),
            Self::Verbatim(bytes) => write!(f, "={}", bytes.escape_ascii()),
            Self::Map(pairs) => f.debug_map().entries(pairs.iter().map(|(key, value)| (key, value))).finish(),
            Self::Set(items) => f.debug_set().entries(items).finish(),
            Self::Push(items) => f.debug_tuple("Push").field(items).finish(),
            Self::Nil => f.write_str("nil"),
        }
    }
}

/// A command as an array of bulk strings.
pub fn encode<A: AsRef<[u8]>>(args: impl IntoIterator<Item = A>) -> Vec<u8> {
    let args: Vec<A> = args.into_iter().collect();
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args.iter().map(A::as_ref) {
        bytes.extend(format!("${}\r\n", arg.len()).into_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// The length in a bulk's or array's first line; `None` for -1.
fn length(digits: &[u8]) -> io::Result<Option<usize>> {
    if digits == b"-1" {
        return Ok(None);
    }
    let text = std::str::from_utf8(digits).map_err(|_| invalid("a length"))?;
    text.parse().map(Some).map_err(|_| invalid(text))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("no RESP2: {what}"))
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn set_read_timeout(&self, limit: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(limit),
            Self::Unix(stream) => stream.set_read_timeout(limit),
        }
    }

    fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Tcp(stream) => stream.try_clone().map(Self::Tcp),
            Self::Unix(stream) => stream.try_clone().map(Self::Unix),
        }
    }

    fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
