//! The decimal numbers behind `*`, `$` and `:`, as Redis reads them.

/// What stands at the start of a length line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// The line isn't complete yet.
    Incomplete,
    /// The number, and the offset just behind its CRLF.
    Read(i64, usize),
    /// Not a number in Redis's canonical form, or not ended by CRLF.
    Bad,
}

/// No length in the protocol needs more digits; 64-bit arithmetic cannot overflow within them.
const MAX_DIGITS: usize = 18;

/// Reads digits and CRLF from `buf[at..]`: an optional `-`, then no leading zero (Redis's `string2ll`).
///
/// A line cut short is read again from its start when more has come: at most 21 bytes.
#[inline]
pub(super) fn read(buf: &[u8], at: usize) -> Length {
    // Nearly every length has one or two digits; these make up most of what a scanner reads.
    match buf.get(at..).unwrap_or_default() {
        [ones @ b'0'..=b'9', b'\r', b'\n', ..] => Length::Read(digit(*ones), at + 3),
        [tens @ b'1'..=b'9', ones @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Length::Read(digit(*tens) * 10 + digit(*ones), at + 4)
        }
        _ => read_any(buf, at),
    }
}

/// Of any length, or not even a number.
fn read_any(buf: &[u8], at: usize) -> Length {
    let negative = buf.get(at) == Some(&b'-');
    let first = at + usize::from(negative);
    let mut value: i64 = 0;
    let mut i = first;
    loop {
        match buf.get(i) {
            None => return Length::Incomplete,
            Some(&byte @ b'0'..=b'9') => {
                let leading_zero = value == 0 && i > first;
                if leading_zero || i - first >= MAX_DIGITS {
                    return Length::Bad;
                }
                value = value * 10 + digit(byte);
                i += 1;
            }
            Some(b'\r') if i > first => break,
            Some(_) => return Length::Bad,
        }
    }
    if negative && value == 0 {
        return Length::Bad;
    }
    match buf.get(i + 1) {
        None => Length::Incomplete,
        Some(b'\n') => Length::Read(if negative { -value } else { value }, i + 2),
        Some(_) => Length::Bad,
    }
}

#[inline]
fn digit(byte: u8) -> i64 {
    i64::from(byte - b'0')
}

#[cfg(test)]
mod tests {
    use super::{Length, read};

    #[test]
    fn reads_what_redis_reads() {
        for (text, expected) in [
            (&b"0\r\n"[..], Length::Read(0, 3)),
            (b"12\r\nx", Length::Read(12, 4)),
            (b"100\r\n", Length::Read(100, 5)),
            (b"-1\r\n", Length::Read(-1, 4)),
            (b"", Length::Incomplete),
            (b"-", Length::Incomplete),
            (b"12", Length::Incomplete),
            (b"12\r", Length::Incomplete),
            (b"\r\n", Length::Bad),
            (b"-\r\n", Length::Bad),
            (b"-0\r\n", Length::Bad),
            (b"01\r\n", Length::Bad),
            (b"+1\r\n", Length::Bad),
            (b" 1\r\n", Length::Bad),
            (b"1\rx", Length::Bad),
            (b"1\n", Length::Bad),
            (b"1234567890123456789\r\n", Length::Bad),
        ] {
            assert_eq!(read(text, 0), expected, "{}", text.escape_ascii());
        }
    }
}
