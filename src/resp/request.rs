//! Delimits requests: arrays of bulk strings, and inline commands.

use super::args::ArgSpan;
use super::error_reply::ErrorReply;
use super::inline::is_space;
use super::length::{self, Length};

/// Bounds of a request. Past them the client gets a protocol error and is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most arguments of one request.
    pub max_args: u32,
    /// Longest argument in bytes.
    pub max_bulk: usize,
    /// Longest inline command in bytes, without its newline.
    pub max_inline: usize,
    /// Longest request in bytes; at most 1 GiB (Redis's client-query-buffer-limit), so that spans fit 32 bits.
    pub max_request: usize,
    /// Whether the client has given the password, or needs none. Before, Redis's far smaller bounds hold: strangers
    /// must not fill the memory.
    pub authenticated: bool,
}

/// Most arguments of a request before the password was given, as in Redis.
const STRANGERS_ARGS: i64 = 10;

/// Longest argument in bytes before the password was given, as in Redis.
const STRANGERS_BULK: i64 = 16 << 10;

impl Default for Limits {
    /// Redis's own.
    fn default() -> Self {
        Self {
            max_args: 1024 * 1024,
            max_bulk: 512 << 20,
            max_inline: 64 << 10,
            max_request: 1 << 30,
            authenticated: true,
        }
    }
}

/// What the scanner found at the start of the bytes it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// No complete request yet: call again with the same bytes and more behind them.
    Incomplete,
    /// So many bytes that ask for nothing: an empty line, `*0`, `*-1`.
    Nothing(usize),
    /// A request of so many bytes; the spans of its arguments have been written.
    Array(usize),
    /// An inline command: `line` bytes of text, `len` bytes with its newline.
    Inline {
        /// Bytes of the command without CR and LF.
        line: usize,
        /// Bytes to consume.
        len: usize,
    },
}

/// Why the bytes of a client make no sense. The client is answered and closed: framing is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number behind `*` is no number, or too large.
    ArrayLength,
    /// The number behind `$` is no number, negative, or too large.
    BulkLength,
    /// More arguments than a client may send that hasn't given the password.
    StrangersArrayLength,
    /// A longer argument than a client may send that hasn't given the password.
    StrangersBulkLength,
    /// An argument does not start with `$`.
    ExpectedBulk(u8),
    /// An argument isn't followed by CRLF where its length says.
    Terminator,
    /// An inline command longer than `max_inline`.
    InlineTooBig,
    /// Quotes of an inline command don't match.
    UnbalancedQuotes,
    /// The request as a whole is longer than `max_request`.
    RequestTooBig,
}

impl ProtocolError {
    /// The line that the client gets before it is closed: Redis's texts.
    pub fn reply(&self) -> ErrorReply {
        match self {
            Self::ArrayLength => ErrorReply::protocol("invalid multibulk length"),
            Self::BulkLength => ErrorReply::protocol("invalid bulk length"),
            Self::StrangersArrayLength => ErrorReply::protocol("unauthenticated multibulk length"),
            Self::StrangersBulkLength => ErrorReply::protocol("unauthenticated bulk length"),
            Self::ExpectedBulk(byte) => ErrorReply::protocol_expected_bulk(*byte),
            Self::Terminator => ErrorReply::protocol("expected CRLF after bulk"),
            Self::InlineTooBig => ErrorReply::protocol("too big inline request"),
            Self::UnbalancedQuotes => ErrorReply::protocol("unbalanced quotes in request"),
            Self::RequestTooBig => ErrorReply::protocol("too big request"),
        }
    }
}

/// Finds where a request ends, resuming where it stopped.
///
/// The state is a few words; the spans live in the caller's vector, so that an idle client owns no memory for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestScanner {
    /// Bytes of the current request that need not be looked at again.
    at: usize,
    expects: Expects,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expects {
    #[default]
    Start,
    /// So many arguments are still to come.
    Argument(u32),
    /// The body of an argument up to its CRLF; then so many further arguments.
    Body { len: usize, then: u32 },
    /// The newline of an inline command.
    Newline,
}

impl RequestScanner {
    /// Looks at `buf`, which starts at the first byte of a request and holds all of it that has come.
    ///
    /// `spans` must be the same vector for all calls about one request; it is cleared at the request's start and
    /// complete when `Array` is returned. After anything but `Incomplete` the scanner is ready for the next request.
    #[inline]
    pub fn scan(
        &mut self,
        buf: &[u8],
        spans: &mut Vec<ArgSpan>,
        limits: &Limits,
    ) -> Result<Scanned, ProtocolError> {
        if self.expects == Expects::Start
            && let Some(len) = scan_small(buf, spans, limits)
        {
            return Ok(Scanned::Array(len));
        }
        // On a copy, which the compiler keeps in registers from step to step.
        let mut scanner = *self;
        let scanned = scanner.advance(buf, spans, limits);
        *self = scanner;
        scanned
    }

    #[inline(always)]
    fn advance(
        &mut self,
        buf: &[u8],
        spans: &mut Vec<ArgSpan>,
        limits: &Limits,
    ) -> Result<Scanned, ProtocolError> {
        loop {
            match self.expects {
                Expects::Start => match buf.first() {
                    None => return Ok(Scanned::Incomplete),
                    Some(b'*') => match length::read(buf, 1) {
                        Length::Incomplete => return Ok(Scanned::Incomplete),
                        Length::Read(count, next) if count <= 0 => return Ok(Scanned::Nothing(next)),
                        Length::Read(count, next) if count <= i64::from(limits.max_args) => {
                            if count > STRANGERS_ARGS && !limits.authenticated {
                                return Err(ProtocolError::StrangersArrayLength);
                            }
                            spans.clear();
                            self.at = next;
                            self.expects = Expects::Argument(count as u32);
                        }
                        _ => return Err(ProtocolError::ArrayLength),
                    },
                    Some(_) => self.expects = Expects::Newline,
                },
                Expects::Argument(0) => return Ok(Scanned::Array(self.finish())),
                Expects::Argument(left) => match buf.get(self.at) {
                    None => return Ok(Scanned::Incomplete),
                    Some(b'$') => match length::read(buf, self.at + 1) {
                        Length::Incomplete => return Ok(Scanned::Incomplete),
                        Length::Read(len, next) if len >= 0 && len as u64 <= limits.max_bulk as u64 => {
                            if len > STRANGERS_BULK && !limits.authenticated {
                                return Err(ProtocolError::StrangersBulkLength);
                            }
                            let len = len as usize;
                            if next + len > limits.max_request {
                                return Err(ProtocolError::RequestTooBig);
                            }
                            self.at = next;
                            self.expects = Expects::Body { len, then: left - 1 };
                        }
                        _ => return Err(ProtocolError::BulkLength),
                    },
                    Some(other) => return Err(ProtocolError::ExpectedBulk(*other)),
                },
                Expects::Body { len, then } => {
                    let end = self.at + len;
                    let terminator = buf.get(end..).unwrap_or_default();
                    match terminator {
                        [] => return Ok(Scanned::Incomplete),
                        [b'\r'] => return Ok(Scanned::Incomplete),
                        [b'\r', b'\n', ..] => {}
                        _ => return Err(ProtocolError::Terminator),
                    }
                    spans.push(ArgSpan { start: self.at as u32, len: len as u32 });
                    self.at = end + 2;
                    self.expects = Expects::Argument(then);
                }
                Expects::Newline => return self.inline(buf, limits),
            }
        }
    }

    /// Bytes that the argument now being received still lacks, its CRLF included; 0 between arguments.
    pub fn missing(&self, received: usize) -> usize {
        match self.expects {
            Expects::Body { len, .. } => (self.at + len + 2).saturating_sub(received),
            _ => 0,
        }
    }

    fn inline(&mut self, buf: &[u8], limits: &Limits) -> Result<Scanned, ProtocolError> {
        let newline = memchr::memchr(b'\n', &buf[self.at..]).map(|i| self.at + i);
        let seen = newline.unwrap_or(buf.len());
        // A CR that may belong to the newline isn't counted, so that every split gives the same answer.
        let text = if seen > 0 && buf[seen - 1] == b'\r' { seen - 1 } else { seen };
        if text > limits.max_inline {
            return Err(ProtocolError::InlineTooBig);
        }
        match newline {
            None => {
                self.at = buf.len();
                Ok(Scanned::Incomplete)
            }
            Some(newline) => {
                self.finish();
                let blank = buf[..text].iter().all(|byte| is_space(*byte));
                Ok(if blank {
                    Scanned::Nothing(newline + 1)
                } else {
                    Scanned::Inline { line: text, len: newline + 1 }
                })
            }
        }
    }

    fn finish(&mut self) -> usize {
        self.expects = Expects::Start;
        std::mem::take(&mut self.at)
    }
}

/// The length of a request that is here whole and has few and short arguments, as nearly all have. `None`: anything
/// else, whatever it is; nothing is decided then, and [`RequestScanner::advance`] looks at it from the start.
#[inline]
fn scan_small(buf: &[u8], spans: &mut Vec<ArgSpan>, limits: &Limits) -> Option<usize> {
    let [b'*', count @ b'1'..=b'9', b'\r', b'\n', ..] = buf else { return None };
    let count = count - b'0';
    if !limits.authenticated || u32::from(count) > limits.max_args {
        return None;
    }
    spans.clear();
    let mut at = 4;
    for _ in 0..count {
        let (len, start) = match buf.get(at..at + 5)? {
            [b'$', ones @ b'0'..=b'9', b'\r', b'\n', _] => (usize::from(ones - b'0'), at + 4),
            [b'$', tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n'] => {
                (usize::from(tens - b'0') * 10 + usize::from(ones - b'0'), at + 5)
            }
            _ => return None,
        };
        let end = start + len;
        if len > limits.max_bulk || end > limits.max_request || *buf.get(end..end + 2)? != *b"\r\n" {
            return None;
        }
        spans.push(ArgSpan { start: start as u32, len: len as u32 });
        at = end + 2;
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Outcome = Vec<Result<(Scanned, Vec<Vec<u8>>), ProtocolError>>;

    /// Everything that comes out of `input` when its bytes arrive in pieces that end at `cuts`.
    fn scan_in_pieces(input: &[u8], cuts: &[usize], limits: &Limits) -> Outcome {
        let mut outcome = Vec::new();
        let (mut scanner, mut spans) = (RequestScanner::default(), Vec::new());
        let mut start = 0;
        for &cut in cuts.iter().chain([&input.len()]) {
            loop {
                let buf = &input[start..cut];
                match scanner.scan(buf, &mut spans, limits) {
                    Err(error) => {
                        outcome.push(Err(error));
                        return outcome;
                    }
                    Ok(Scanned::Incomplete) => break,
                    Ok(found) => {
                        let (len, args) = match found {
                            Scanned::Array(len) => {
                                let args = crate::resp::Args::new(&buf[..len], &spans);
                                (len, args.iter_from(0).map(<[u8]>::to_vec).collect())
                            }
                            Scanned::Inline { line, len } => (len, vec![buf[..line].to_vec()]),
                            Scanned::Nothing(len) => (len, Vec::new()),
                            Scanned::Incomplete => unreachable!(),
                        };
                        outcome.push(Ok((found, args)));
                        start += len;
                    }
                }
            }
        }
        outcome
    }

    fn whole(input: &[u8]) -> Outcome {
        scan_in_pieces(input, &[], &Limits::default())
    }

    #[test]
    fn every_split_gives_the_same_requests() {
        let input = b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n\r\n*-1\r\nPING hello\r\n*0\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4\r\n\r\n\r\n\r\nx\n";
        let expected = whole(input);
        assert_eq!(expected.len(), 7);
        for cut in 0..=input.len() {
            assert_eq!(scan_in_pieces(input, &[cut], &Limits::default()), expected, "cut at {cut}");
        }
        let every_byte: Vec<usize> = (1..input.len()).collect();
        assert_eq!(scan_in_pieces(input, &every_byte, &Limits::default()), expected);
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_redis_texts() {
        for (input, text) in [
            (&b"*x\r\n"[..], "ERR Protocol error: invalid multibulk length"),
            (b"*\r\n", "ERR Protocol error: invalid multibulk length"),
            (b"*1048577\r\n", "ERR Protocol error: invalid multibulk length"),
            (b"*99999999999999999999", "ERR Protocol error: invalid multibulk length"),
            (b"*1\r\n:5\r\n", "ERR Protocol error: expected '$', got ':'"),
            (b"*1\r\n$-1\r\n", "ERR Protocol error: invalid bulk length"),
            (b"*1\r\n$\r\n", "ERR Protocol error: invalid bulk length"),
            (b"*1\r\n$536870913\r\n", "ERR Protocol error: invalid bulk length"),
            (b"*1\r\n$1\r\nabc", "ERR Protocol error: expected CRLF after bulk"),
        ] {
            let outcome = whole(input);
            let Some(Err(error)) = outcome.last() else { panic!("{} was taken", input.escape_ascii()) };
            assert_eq!(error.reply().as_str(), text, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn strangers_are_kept_short() {
        let limits = Limits { authenticated: false, ..Limits::default() };
        for (input, refused) in [
            (&b"*10\r\n$16384\r\n"[..], None),
            (b"*11\r\n", Some(ProtocolError::StrangersArrayLength)),
            (b"*1\r\n$16385\r\n", Some(ProtocolError::StrangersBulkLength)),
            (b"*1048577\r\n", Some(ProtocolError::ArrayLength)),
            (b"*1\r\n$536870913\r\n", Some(ProtocolError::BulkLength)),
        ] {
            let outcome = scan_in_pieces(input, &[], &limits);
            assert_eq!(
                outcome.last().map(|last| *last.as_ref().unwrap_err()),
                refused,
                "{}",
                input.escape_ascii()
            );
        }
    }

    #[test]
    fn an_inline_command_is_bounded_with_and_without_its_newline() {
        let limits = Limits { max_inline: 8, ..Limits::default() };
        for (input, fits) in [
            (&b"12345678"[..], true),
            (b"12345678\r", true),
            (b"12345678\r\n", true),
            (b"123456789", false),
            (b"123456789\r\n", false),
        ] {
            let outcome = scan_in_pieces(input, &[], &limits);
            assert_eq!(!outcome.iter().any(Result::is_err), fits, "{}", input.escape_ascii());
        }
    }

    #[test]
    fn a_request_longer_than_the_limit_is_refused_before_its_body_comes() {
        let limits = Limits { max_request: 100, ..Limits::default() };
        let outcome = scan_in_pieces(b"*2\r\n$3\r\nSET\r\n$90\r\n", &[], &limits);
        assert_eq!(outcome, [Err(ProtocolError::RequestTooBig)]);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(
            input in proptest::collection::vec(prop_oneof![
                Just(b"*1\r\n".to_vec()), Just(b"*2\r\n".to_vec()), Just(b"$3\r\nabc\r\n".to_vec()),
                Just(b"$0\r\n\r\n".to_vec()), Just(b"\r\n".to_vec()), Just(b"ping\r\n".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..6),
            ], 0..12),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let input = input.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(scan_in_pieces(&input, &cuts, &Limits::default()), whole(&input));
        }
    }
}
