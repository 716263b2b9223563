//! Whether a reply is what it must be. Only looked at when values are verified.

use super::template::{Expected, write_value};

/// What is wrong with a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// Another value, or another kind of reply.
    Value,
    /// Nothing is there although all keys were written.
    Missing,
}

/// Checks replies against numbers of keys; keeps one value's room.
#[derive(Debug)]
pub struct Verifier {
    value: Vec<u8>,
    /// Whether every key must be there.
    all_there: bool,
}

impl Verifier {
    /// For values of so many bytes.
    pub fn new(value_bytes: usize, all_there: bool) -> Self {
        Self { value: vec![0; value_bytes], all_there }
    }

    /// `keys`: the numbers that the request drew, in order.
    pub fn check(
        &mut self,
        expected: Expected,
        reply: &[u8],
        keys: impl ExactSizeIterator<Item = u64>,
    ) -> Result<(), Wrong> {
        match expected {
            Expected::Any => Ok(()),
            Expected::Ok if reply == b"+OK\r\n" => Ok(()),
            Expected::Ok => Err(Wrong::Value),
            Expected::Value | Expected::Values => {
                let mut rest = reply;
                if expected == Expected::Values {
                    let head = format!("*{}\r\n", keys.len());
                    rest = reply.strip_prefix(head.as_bytes()).ok_or(Wrong::Value)?;
                }
                for key in keys {
                    rest = self.value(rest, key)?;
                }
                if rest.is_empty() { Ok(()) } else { Err(Wrong::Value) }
            }
        }
    }

    /// Checks one value at the beginning of `reply`; what follows it.
    fn value<'a>(&mut self, reply: &'a [u8], key: u64) -> Result<&'a [u8], Wrong> {
        if let Some(rest) = reply.strip_prefix(b"$-1\r\n").or_else(|| reply.strip_prefix(b"_\r\n")) {
            return if self.all_there { Err(Wrong::Missing) } else { Ok(rest) };
        }
        write_value(&mut self.value, key);
        let rest = reply.strip_prefix(b"$").ok_or(Wrong::Value)?;
        let end = memchr::memchr(b'\n', rest).ok_or(Wrong::Value)?;
        let announced =
            rest[..end].strip_suffix(b"\r").and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        if announced != Some(self.value.len()) {
            return Err(Wrong::Value);
        }
        let rest = rest[end + 1..].strip_prefix(self.value.as_slice()).ok_or(Wrong::Value)?;
        rest.strip_prefix(b"\r\n").ok_or(Wrong::Value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: Expected, reply: &str, keys: &[u64], all_there: bool) -> Result<(), Wrong> {
        Verifier::new(3, all_there).check(expected, reply.as_bytes(), keys.iter().copied())
    }

    #[test]
    fn only_the_value_of_the_key_passes() {
        assert_eq!(check(Expected::Value, "$3\r\n000\r\n", &[5], true), Ok(()));
        for wrong in ["$3\r\n005\r\n", "$4\r\n0000\r\n", "+OK\r\n", ":1\r\n", "$x\r\n", "$3\r\n"] {
            assert_eq!(check(Expected::Value, wrong, &[5], true), Err(Wrong::Value), "{wrong}");
        }
        assert_eq!(
            Verifier::new(12, true).check(Expected::Value, b"$12\r\n000000000005\r\n", [5].into_iter()),
            Ok(())
        );
        assert_eq!(
            Verifier::new(12, true).check(Expected::Value, b"$12\r\n000000000005\r\n", [6].into_iter()),
            Err(Wrong::Value)
        );
    }

    #[test]
    fn missing_is_wrong_only_where_all_were_written() {
        assert_eq!(check(Expected::Value, "$-1\r\n", &[5], false), Ok(()));
        assert_eq!(check(Expected::Value, "_\r\n", &[5], true), Err(Wrong::Missing));
    }

    #[test]
    fn arrays_have_each_value_in_order() {
        assert_eq!(check(Expected::Values, "*2\r\n$3\r\n000\r\n$-1\r\n", &[1, 2], false), Ok(()));
        assert_eq!(check(Expected::Values, "*1\r\n$3\r\n000\r\n", &[1, 2], false), Err(Wrong::Value));
        assert_eq!(check(Expected::Ok, "+OK\r\n", &[1], true), Ok(()));
        assert_eq!(check(Expected::Ok, ":1\r\n", &[1], true), Err(Wrong::Value));
    }
}
