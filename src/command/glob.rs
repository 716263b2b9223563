//! Redis's glob patterns, in any case of letters.

/// Whether `text` (lower case) matches `pattern`: `*`, `?`, `[abc]`, `[^a-z]`, and `\` before a byte that means itself.
/// Takes time in the product of the lengths at worst.
pub(super) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    // Where to go on after a mismatch: the last star, and the text behind what it has swallowed so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match token(&pattern[p..]) {
            Some((Token::Star, len)) => {
                p += len;
                star = Some((p, t));
            }
            Some((token, len)) if token.takes(text[t]) => {
                p += len;
                t += 1;
            }
            _ => match &mut star {
                Some((behind, swallowed)) => {
                    *swallowed += 1;
                    (p, t) = (*behind, *swallowed);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// One element of a pattern.
enum Token<'a> {
    Star,
    Any,
    Byte(u8),
    Set { bytes: &'a [u8], not: bool },
}

/// The first element of `pattern` and its length; `None` at the end.
fn token(pattern: &[u8]) -> Option<(Token<'_>, usize)> {
    Some(match pattern {
        [] => return None,
        [b'*', ..] => (Token::Star, 1),
        [b'?', ..] => (Token::Any, 1),
        [b'\\', byte, ..] => (Token::Byte(byte.to_ascii_lowercase()), 2),
        [b'[', rest @ ..] => {
            let (not, bytes) = match rest {
                [b'^', bytes @ ..] => (true, bytes),
                bytes => (false, bytes),
            };
            // As in Redis, a set that isn't closed goes on to the end of the pattern.
            let len = closing(bytes);
            let closed = usize::from(len < bytes.len());
            (Token::Set { bytes: &bytes[..len], not }, 1 + usize::from(not) + len + closed)
        }
        [byte, ..] => (Token::Byte(byte.to_ascii_lowercase()), 1),
    })
}

/// Where a set ends.
fn closing(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() && bytes[at] != b']' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

// === impl Token ===

impl Token<'_> {
    fn takes(&self, byte: u8) -> bool {
        match self {
            Token::Star => false,
            Token::Any => true,
            Token::Byte(own) => *own == byte,
            Token::Set { bytes, not } => in_set(bytes, byte) != *not,
        }
    }
}

fn in_set(mut set: &[u8], byte: u8) -> bool {
    while let [first, rest @ ..] = set {
        let (found, left) = match (first, rest) {
            (b'\\', [own, left @ ..]) => (own.eq_ignore_ascii_case(&byte), left),
            (from, [b'-', to, left @ ..]) => {
                let (from, to) = (from.to_ascii_lowercase(), to.to_ascii_lowercase());
                ((from.min(to)..=from.max(to)).contains(&byte), left)
            }
            (own, left) => (own.eq_ignore_ascii_case(&byte), left),
        };
        if found {
            return true;
        }
        set = left;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "client|kill", true),
            ("CLIENT|*", "client|kill", true),
            ("g?t", "get", true),
            ("g?t", "gt", false),
            ("*set*x", "msetnx", true),
            ("*set*x", "msetnxa", false),
            ("[^a-y]R[a-n]NK", "zrank", true),
            ("[z-a]et", "get", true),
            ("[abc", "b", true),
            ("[^", "b", true),
            ("[]", "b", false),
            (r"\get", "get", true),
            (r"\*", "get", false),
            (r"[\]]", "]", true),
            (r"a\", r"a\", true),
            ("get**", "get", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern:?} on {text:?}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(40) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(200).as_bytes()));
    }
}
