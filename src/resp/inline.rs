//! Inline commands: a line of words, as people type them into telnet.

use super::encode;
use super::request::ProtocolError;

/// Rewrites the words of an inline command as the array that the rest of the proxy and the servers understand.
///
/// Quoting is Redis's: `"…"` with `\n \r \t \b \a \xHH` and `\` before anything else, `'…'` with `\'` only;
/// a closing quote must be followed by a space or the end.
pub fn inline_to_array(line: &[u8]) -> Result<Vec<u8>, ProtocolError> {
    let words = words(line)?;
    let mut out = Vec::with_capacity(line.len() + 16 * (words.len() + 1));
    encode::request(&mut out, words.iter().map(Vec::as_slice));
    Ok(out)
}

fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let mut words = Vec::new();
    let mut rest = skip_space(line);
    while !rest.is_empty() {
        let mut word = Vec::new();
        rest = skip_space(plain(rest, &mut word)?);
        words.push(word);
    }
    Ok(words)
}

/// Reads up to the end of the word, which a quoted piece is always at. As in Redis, vertical tabs and form feeds are
/// space between words only. A NUL, at which Redis would wait for the rest of the line for ever, ends a word.
fn plain<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'"' => return double_quoted(after, word),
            b'\'' => return single_quoted(after, word),
            b' ' | b'\t' | b'\r' | b'\n' | 0 => return Ok(after),
            byte => word.push(byte),
        }
        rest = after;
    }
    Ok(rest)
}

/// Reads up to the closing quote; what follows it must end the word.
fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                word.push(hex(*high) << 4 | hex(*low));
                after
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                after
            }
            [b'"', after @ ..] => return ended(after),
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        rest = match rest {
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [b'\'', after @ ..] => return ended(after),
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
            [] => return Err(ProtocolError::UnbalancedQuotes),
        };
    }
}

fn ended(after: &[u8]) -> Result<&[u8], ProtocolError> {
    match after.first() {
        Some(byte) if !is_space(*byte) => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(after),
    }
}

fn skip_space(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| is_space(**byte)).count()..]
}

/// C's isspace.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn hex(digit: u8) -> u8 {
    (digit as char).to_digit(16).expect("the caller matched a hex digit") as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_as_redis_splits_them() {
        for (line, expected) in [
            (&b"set a b"[..], &[&b"set"[..], b"a", b"b"][..]),
            (b"  set\ta  b ", &[b"set", b"a", b"b"]),
            (br#"set "a b" 'c d'"#, &[b"set", b"a b", b"c d"]),
            (br#"set "\x00\xff\n\"\q" 'it\'s \n'"#, &[b"set", b"\x00\xff\n\"q", b"it's \\n"]),
            (br#"set "" ''"#, &[b"set", b"", b""]),
            (br#"se"t"  a"#, &[b"set", b"a"]),
            (b"\x0b\x0cset \x0ba\x0c \"b\"\x0bc", &[b"set", b"a\x0c", b"b", b"c"]),
        ] {
            assert_eq!(words(line).unwrap(), expected, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn quotes_that_do_not_match_are_refused() {
        for line in [&br#"set "a"#[..], b"set 'a", br#"set "a"b"#, b"set 'a'b", br#"set "a\"#] {
            assert_eq!(words(line), Err(ProtocolError::UnbalancedQuotes), "{}", line.escape_ascii());
        }
    }

    #[test]
    fn the_array_is_canonical() {
        assert_eq!(inline_to_array(b"get  a").unwrap(), b"*2\r\n$3\r\nget\r\n$1\r\na\r\n");
    }
}
