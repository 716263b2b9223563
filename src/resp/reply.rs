//! Delimits replies of servers, without looking into them.

use super::length::{self, Length};
use super::protocol::Protocol;

/// Longest status or error line that a server may send: as long as its longest bulk.
const MAX_LINE: usize = 512 << 20;

/// Most elements that may be outstanding in nested arrays; a server announcing more is out of its mind.
const MAX_OUTSTANDING: u64 = 1 << 40;

/// The bytes of a server make no sense: its connection is poisoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyError {
    /// No type byte of the connection's protocol.
    Type(u8),
    /// A length that is no number or out of range.
    Length,
    /// A bulk that isn't followed by CRLF where its length says.
    Terminator,
    /// A line longer than any server sends.
    LineTooBig,
}

/// Finds where a reply ends, resuming where it stopped. Depth costs nothing: a flat count of what is still
/// to come stands for all open arrays.
///
/// Attributes (`|`) belong to the reply that follows them: both are one. The default is RESP2.
#[derive(Clone, Copy, Debug)]
pub struct ReplyScanner {
    protocol: Protocol,
    /// Bytes of the current reply that need not be looked at again.
    at: usize,
    /// Elements still to come, the one at `at` included.
    outstanding: u64,
    expects: Expects,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Head,
    /// The rest of a status or error line.
    Line,
    /// A bulk's body and CRLF, up to `end`; `top`: the bulk is the reply itself, not an element.
    Body {
        end: usize,
        top: bool,
    },
}

impl Default for ReplyScanner {
    fn default() -> Self {
        Self::of(Protocol::Resp2)
    }
}

impl ReplyScanner {
    /// For replies of a connection that speaks `protocol`.
    pub fn of(protocol: Protocol) -> Self {
        Self { protocol, at: 0, outstanding: 1, expects: Expects::Head }
    }

    /// Forgets a reply that is being looked at.
    pub fn reset(&mut self) {
        *self = Self::of(self.protocol);
    }

    /// Looks at `buf`, which starts at the first byte of a reply and holds all of it that has come.
    /// `Some(len)` when it is complete; the scanner is then ready for the next reply.
    #[inline]
    pub fn scan(&mut self, buf: &[u8]) -> Result<Option<usize>, ReplyError> {
        if self.expects == Expects::Head
            && self.at == 0
            && let Some(len) = scan_small(buf)
        {
            return Ok(Some(len));
        }
        // On a copy, which the compiler keeps in registers from step to step.
        let mut scanner = *self;
        let scanned = scanner.advance(buf);
        *self = scanner;
        scanned
    }

    #[inline(always)]
    fn advance(&mut self, buf: &[u8]) -> Result<Option<usize>, ReplyError> {
        while self.outstanding > 0 {
            match self.expects {
                Expects::Head => {
                    let Some(&kind) = buf.get(self.at) else { return Ok(None) };
                    match kind {
                        b'+' | b'-' | b':' => {
                            self.at += 1;
                            self.expects = Expects::Line;
                        }
                        b'$' | b'*' => match length::read(buf, self.at + 1) {
                            Length::Incomplete => return Ok(None),
                            Length::Bad => return Err(ReplyError::Length),
                            Length::Read(n, next) => self.head(kind, n, next)?,
                        },
                        other if self.protocol == Protocol::Resp2 => return Err(ReplyError::Type(other)),
                        b'_' | b'#' | b',' | b'(' => {
                            self.at += 1;
                            self.expects = Expects::Line;
                        }
                        b'=' | b'!' | b'%' | b'~' | b'>' | b'|' => match length::read(buf, self.at + 1) {
                            Length::Incomplete => return Ok(None),
                            Length::Bad => return Err(ReplyError::Length),
                            Length::Read(n, next) => self.head3(kind, n, next)?,
                        },
                        other => return Err(ReplyError::Type(other)),
                    }
                }
                Expects::Line => match memchr::memchr(b'\n', &buf[self.at..]) {
                    None if buf.len() > MAX_LINE => return Err(ReplyError::LineTooBig),
                    None => {
                        // A CR at the very end may be the line's: look at it again with what follows.
                        self.at = buf.len() - usize::from(buf.ends_with(b"\r") && buf.len() > self.at);
                        return Ok(None);
                    }
                    Some(i) if i > 0 && buf[self.at + i - 1] == b'\r' => {
                        self.at += i + 1;
                        self.element();
                    }
                    Some(_) => return Err(ReplyError::Terminator),
                },
                Expects::Body { end, .. } => {
                    if buf.len() < end {
                        return Ok(None);
                    }
                    if &buf[end - 2..end] != b"\r\n" {
                        return Err(ReplyError::Terminator);
                    }
                    self.at = end;
                    self.element();
                }
            }
        }
        let len = self.at;
        self.reset();
        Ok(Some(len))
    }

    /// Length of the whole reply, CRLF included, if it is one top-level bulk whose head has been read.
    pub fn bulk_len(&self) -> Option<usize> {
        match self.expects {
            Expects::Body { end, top: true } => Some(end),
            _ => None,
        }
    }

    /// Bytes that the bulk now being received still lacks; 0 elsewhere.
    pub fn missing(&self, received: usize) -> usize {
        match self.expects {
            Expects::Body { end, .. } => end.saturating_sub(received),
            _ => 0,
        }
    }

    #[inline]
    fn head(&mut self, kind: u8, n: i64, next: usize) -> Result<(), ReplyError> {
        let top = self.at == 0;
        self.at = next;
        match kind {
            _ if n == -1 => self.element(),
            _ if n < 0 => return Err(ReplyError::Length),
            b'$' if n as u64 <= MAX_LINE as u64 => {
                self.expects = Expects::Body { end: next + n as usize + 2, top };
            }
            b'*' => {
                self.outstanding = self.outstanding - 1 + n as u64;
                if self.outstanding > MAX_OUTSTANDING {
                    return Err(ReplyError::Length);
                }
            }
            _ => return Err(ReplyError::Length),
        }
        Ok(())
    }

    /// What only RESP3 has. It knows no lengths below 0.
    fn head3(&mut self, kind: u8, n: i64, next: usize) -> Result<(), ReplyError> {
        let n = u64::try_from(n).map_err(|_| ReplyError::Length)?;
        self.at = next;
        let elements = match kind {
            b'=' | b'!' if n <= MAX_LINE as u64 => {
                self.expects = Expects::Body { end: next + n as usize + 2, top: false };
                return Ok(());
            }
            b'~' | b'>' => {
                n.checked_sub(1).map_or(self.outstanding - 1, |more| self.outstanding.saturating_add(more))
            }
            b'%' => (self.outstanding - 1).saturating_add(n.saturating_mul(2)),
            b'|' => self.outstanding.saturating_add(n.saturating_mul(2)),
            _ => return Err(ReplyError::Length),
        };
        if elements > MAX_OUTSTANDING {
            return Err(ReplyError::Length);
        }
        self.outstanding = elements;
        Ok(())
    }

    #[inline]
    fn element(&mut self) {
        self.outstanding -= 1;
        self.expects = Expects::Head;
    }
}

/// The length of the replies that come most, if it is here whole: `+OK`, a missing or a short value. `None`: anything else.
#[inline]
fn scan_small(buf: &[u8]) -> Option<usize> {
    let (len, start) = match buf.get(..5)? {
        b"+OK\r\n" | b"$-1\r\n" => return Some(5),
        [b'$', ones @ b'0'..=b'9', b'\r', b'\n', _] => (usize::from(ones - b'0'), 4),
        [b'$', tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n'] => {
            (usize::from(tens - b'0') * 10 + usize::from(ones - b'0'), 5)
        }
        _ => return None,
    };
    let end = start + len;
    (*buf.get(end..end + 2)? == *b"\r\n").then_some(end + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan_in_pieces(input: &[u8], cuts: &[usize]) -> Vec<Result<usize, ReplyError>> {
        let (mut outcome, mut scanner, mut start) = (Vec::new(), ReplyScanner::default(), 0);
        for &cut in cuts.iter().chain([&input.len()]) {
            loop {
                match scanner.scan(&input[start..cut]) {
                    Err(error) => {
                        outcome.push(Err(error));
                        return outcome;
                    }
                    Ok(None) => break,
                    Ok(Some(len)) => {
                        outcome.push(Ok(len));
                        start += len;
                    }
                }
            }
        }
        outcome
    }

    #[test]
    fn every_split_gives_the_same_replies() {
        let input = b"+OK\r\n-ERR x\r\n:-12\r\n$-1\r\n*-1\r\n$3\r\na\r\n\r\n*2\r\n*0\r\n*2\r\n$0\r\n\r\n+\r\n:9223372036854775807\r\n+a\rb\r\n";
        let expected = scan_in_pieces(input, &[]);
        assert_eq!(expected.iter().filter_map(|r| r.ok()).sum::<usize>(), input.len());
        for cut in 0..=input.len() {
            assert_eq!(scan_in_pieces(input, &[cut]), expected, "cut at {cut}");
        }
        let every_byte: Vec<usize> = (1..input.len()).collect();
        assert_eq!(scan_in_pieces(input, &every_byte), expected);
    }

    #[test]
    fn depth_costs_nothing() {
        let mut input = b"*1\r\n".repeat(200_000);
        input.extend_from_slice(b":1\r\n");
        assert_eq!(scan_in_pieces(&input, &[]), [Ok(input.len())]);
    }

    #[test]
    fn garbage_poisons() {
        for (input, error) in [
            (&b"?x"[..], ReplyError::Type(b'?')),
            (b"%1\r\n", ReplyError::Type(b'%')),
            (b"$-2\r\n", ReplyError::Length),
            (b"$1\r\nabc", ReplyError::Terminator),
            (b"$x\r\n", ReplyError::Length),
            (b"+OK\n", ReplyError::Terminator),
            (b"*99999999999999\r\n", ReplyError::Length),
        ] {
            assert_eq!(scan_in_pieces(input, &[]).last(), Some(&Err(error)), "{}", input.escape_ascii());
        }
    }

    #[test]
    fn every_split_of_resp3_gives_the_same_replies() {
        let replies = [
            &b"_\r\n"[..],
            b"#t\r\n",
            b",1.5e3\r\n",
            b",inf\r\n",
            b"(3492890328409238509324850943850943825024385\r\n",
            b"=7\r\ntxt:a\r\n\r\n",
            b"!5\r\nERR x\r\n",
            b"%2\r\n+a\r\n:1\r\n$1\r\nb\r\n~2\r\n_\r\n#f\r\n",
            b"%0\r\n",
            b"~0\r\n",
            b"|1\r\n+ttl\r\n:3600\r\n*2\r\n:1\r\n:2\r\n",
            b"*2\r\n|1\r\n+k\r\n%1\r\n+x\r\n+y\r\n:1\r\n:2\r\n",
            b">3\r\n+message\r\n+c\r\n$-1\r\n",
            b"+OK\r\n",
            b"$3\r\nabc\r\n",
        ];
        let input = replies.concat();
        let lens: Vec<Option<usize>> = replies.iter().map(|reply| Some(reply.len())).collect();
        for cut in 0..=input.len() {
            let (mut found, mut scanner, mut start) = (Vec::new(), ReplyScanner::of(Protocol::Resp3), 0);
            for end in [cut, input.len()] {
                while let Some(len) = scanner.scan(&input[start..end]).unwrap().filter(|_| start < end) {
                    found.push(Some(len));
                    start += len;
                }
            }
            assert_eq!(found, lens, "cut at {cut}");
        }
        for garbage in
            [&b"%-1\r\n"[..], b"|99999999999999\r\n", b"~9223372036854775807\r\n", b"?\r\n", b"=1\r\nabc"]
        {
            assert!(ReplyScanner::of(Protocol::Resp3).scan(garbage).is_err(), "{}", garbage.escape_ascii());
        }
    }

    #[test]
    fn only_a_bulk_of_its_own_can_stream() {
        let mut scanner = ReplyScanner::default();
        assert_eq!(scanner.scan(b"$100000\r\nabc"), Ok(None));
        assert_eq!(scanner.bulk_len(), Some(100_011));
        assert_eq!(scanner.missing(12), 99_999);
        let mut scanner = ReplyScanner::default();
        assert_eq!(scanner.scan(b"*2\r\n$100000\r\nabc"), Ok(None));
        assert_eq!(scanner.bulk_len(), None);
        let mut scanner = ReplyScanner::default();
        assert_eq!(scanner.scan(b"*1\r\n$1000\r\nabc"), Ok(None));
        assert_eq!(scanner.bulk_len(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces(
            input in proptest::collection::vec(prop_oneof![
                Just(b"*2\r\n".to_vec()), Just(b"$3\r\nabc\r\n".to_vec()), Just(b":1\r\n".to_vec()),
                Just(b"+OK\r\n".to_vec()), Just(b"$-1\r\n".to_vec()),
                proptest::collection::vec(any::<u8>(), 0..5),
            ], 0..12),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let input = input.concat();
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(input.len() + 1)).collect();
            cuts.sort_unstable();
            prop_assert_eq!(scan_in_pieces(&input, &cuts), scan_in_pieces(&input, &[]));
        }
    }
}
