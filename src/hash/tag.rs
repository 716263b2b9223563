//! Hash tags, and Redis Cluster's slot, which has the rule built in.

use super::crc;

/// How many slots a Redis Cluster has.
pub const SLOTS: u16 = 16_384;

/// Redis Cluster's slot of `key`: CRC-16/XMODEM of its `{}` tag, or of all of it, modulo [`SLOTS`].
#[inline]
pub fn slot(key: &[u8]) -> u16 {
    let part = inside(*b"{}", key).unwrap_or(key);
    // Bits above the 16th of the uncut accumulator never reach the ones below: its low half is the true CRC-16.
    crc::crc16_uncut(part) as u16 % SLOTS
}

/// The text between the first opening byte and the first closing byte after it, unless there is none.
///
/// Both bytes may be the same. The search doesn't go on behind a tag that is empty: `{}{a}` has no tag.
#[inline]
pub(super) fn inside([open, close]: [u8; 2], key: &[u8]) -> Option<&[u8]> {
    let start = memchr::memchr(open, key)? + 1;
    let rest = &key[start..];
    let end = memchr::memchr(close, rest)?;
    (end > 0).then(|| &rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_tag_counts_unless_it_is_empty() {
        let braces = |key: &'static [u8]| inside(*b"{}", key);
        assert_eq!(braces(b"user:{1000}:a"), Some(&b"1000"[..]));
        assert_eq!(braces(b"{a}{b}"), Some(&b"a"[..]));
        assert_eq!(braces(b"}{a}"), Some(&b"a"[..]));
        assert_eq!(braces(b"{{a}}"), Some(&b"{a"[..]));
        assert_eq!(braces(b"{}x"), None);
        assert_eq!(braces(b"{}{a}"), None);
        assert_eq!(braces(b"{a"), None);
        assert_eq!(braces(b"a}"), None);
        assert_eq!(braces(b"{"), None);
        assert_eq!(braces(b""), None);
    }

    #[test]
    fn equal_delimiters_take_two_of_them() {
        assert_eq!(inside(*b"$$", b"a$b$c"), Some(&b"b"[..]));
        assert_eq!(inside(*b"$$", b"a$b"), None);
        assert_eq!(inside(*b"$$", b"$$b$"), None);
    }

    /// As `CLUSTER KEYSLOT` of a Redis 7.0 answers.
    #[test]
    fn slots_are_those_of_redis() {
        for (key, expected) in [
            (&b""[..], 0),
            (b"foo", 12_182),
            (b"123456789", 12_739),
            (b"{user1000}.following", 3_443),
            (b"{user1000}.followers", 3_443),
            (b"foo{}{bar}", 8_363),
            (b"foo{{bar}}zap", 4_015),
            (b"foo{bar}{zap}", 5_061),
            (b"\xff\xfe\x80", 11_813),
        ] {
            assert_eq!(slot(key), expected, "{}", key.escape_ascii());
        }
    }
}
