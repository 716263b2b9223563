//! One command of a load, encoded once: what changes from request to request is written over in place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memchr::memmem;

use super::random::Random;
use crate::resp::encode;

/// Stands for a random number of twelve digits, as with redis-benchmark.
pub const RANDOM: &[u8] = b"__rand_int__";
/// Stands for a value of the size that was asked for.
pub const VALUE: &[u8] = b"__data__";
const DIGITS: usize = RANDOM.len();

/// A request with places for random numbers and values.
#[derive(Clone, Debug)]
pub struct Template {
    /// The whole request, with zeroes for numbers.
    pub bytes: Vec<u8>,
    /// Where the numbers go, ascending.
    numbers: Vec<usize>,
    /// Values that depend on the number before them; empty unless values are verified.
    values: Vec<Value>,
    /// What a reply must be.
    pub expected: Expected,
}

#[derive(Clone, Copy, Debug)]
struct Value {
    at: usize,
    len: usize,
    /// The number, by its position in `numbers`, on which it depends.
    of: usize,
}

/// What is known of a command's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Nothing but that it is no error.
    Any,
    /// `+OK`.
    Ok,
    /// The value of the one key.
    Value,
    /// An array with the value of each key.
    Values,
}

/// Where the numbers of keys come from.
#[derive(Debug)]
pub enum Numbers {
    /// At random, below so many.
    Random(Random, u64),
    /// One after the other for all clients together, modulo so many.
    Sequence(Arc<AtomicU64>, u64),
}

impl Numbers {
    #[inline]
    fn draw(&mut self) -> u64 {
        match self {
            Self::Random(random, below) => random.below(*below),
            Self::Sequence(next, of) => next.fetch_add(1, Ordering::Relaxed) % *of,
        }
    }
}

impl Template {
    /// Encodes a command. `__data__` becomes a value of `value_bytes` bytes; with `verify` it depends on the key before it.
    pub fn new(args: &[Vec<u8>], value_bytes: usize, verify: bool) -> Self {
        let plain = vec![b'x'; value_bytes];
        let (mut bytes, mut numbers, mut values) = (Vec::new(), Vec::new(), Vec::new());
        encode::array(&mut bytes, args.len());
        for arg in args {
            let encoded = replaced(arg, VALUE, &plain);
            encode::bulk(&mut bytes, &encoded);
            let begin = bytes.len() - 2 - encoded.len();
            numbers.extend(memmem::find_iter(&encoded, RANDOM).map(|at| begin + at));
            if verify && arg == VALUE && !numbers.is_empty() {
                values.push(Value { at: begin, len: encoded.len(), of: numbers.len() - 1 });
            }
        }
        for at in &numbers {
            bytes[*at..*at + DIGITS].fill(b'0');
        }
        let expected = if verify { expected(args, numbers.len()) } else { Expected::Any };
        Self { bytes, numbers, values, expected }
    }

    /// Bytes that are sent as they are, whatever they say (`PING` as an inline command).
    pub fn raw(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), numbers: Vec::new(), values: Vec::new(), expected: Expected::Any }
    }

    /// Writes new numbers, and the values that depend on them, over `request`, which is a copy of `bytes`.
    /// Tells each number to `drawn`.
    #[inline]
    pub fn renew(&self, request: &mut [u8], numbers: &mut Numbers, mut drawn: impl FnMut(u64)) {
        let mut values = self.values.iter().peekable();
        for (i, at) in self.numbers.iter().enumerate() {
            let number = numbers.draw();
            write_digits(&mut request[*at..*at + DIGITS], number);
            drawn(number);
            while let Some(value) = values.next_if(|value| value.of == i) {
                write_value(&mut request[value.at..value.at + value.len], number);
            }
        }
    }

    /// How many numbers each request draws.
    pub fn numbers(&self) -> usize {
        self.numbers.len()
    }
}

/// The value that a key with this number must have: its twelve digits, over and over.
pub fn write_value(into: &mut [u8], number: u64) {
    let mut digits = [0; DIGITS];
    write_digits(&mut digits, number);
    for part in into.chunks_mut(DIGITS) {
        part.copy_from_slice(&digits[..part.len()]);
    }
}

#[inline]
fn write_digits(into: &mut [u8], mut number: u64) {
    for digit in into.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

fn replaced(arg: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(arg.len());
    let mut rest = arg;
    while let Some(at) = memmem::find(rest, what) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(by);
        rest = &rest[at + what.len()..];
    }
    result.extend_from_slice(rest);
    result
}

fn expected(args: &[Vec<u8>], numbers: usize) -> Expected {
    let is = |name: &str| args.first().is_some_and(|arg| arg.eq_ignore_ascii_case(name.as_bytes()));
    match () {
        () if is("GET") && numbers == 1 && args.len() == 2 => Expected::Value,
        () if is("MGET") && numbers == args.len() - 1 => Expected::Values,
        () if is("SET") && args.len() == 3 || is("MSET") => Expected::Ok,
        () => Expected::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(line: &str, value_bytes: usize, verify: bool) -> Template {
        let args: Vec<Vec<u8>> = line.split(' ').map(|arg| arg.as_bytes().to_vec()).collect();
        Template::new(&args, value_bytes, verify)
    }

    fn renewed(template: &Template, first: u64) -> (String, Vec<u64>) {
        let (mut request, mut drawn) = (template.bytes.clone(), Vec::new());
        template.renew(&mut request, &mut Numbers::Sequence(Arc::new(first.into()), 1000), |n| drawn.push(n));
        (String::from_utf8(request).unwrap(), drawn)
    }

    #[test]
    fn numbers_are_written_in_place_and_told() {
        let mset = template("MSET key:__rand_int__ __data__ key:__rand_int__ __data__", 3, false);
        let (request, drawn) = renewed(&mset, 41);
        let expected = "*5\r\n$4\r\nMSET\r\n$16\r\nkey:000000000041\r\n$3\r\nxxx\r\n$16\r\nkey:000000000042\r\n$3\r\nxxx\r\n";
        assert_eq!((request.as_str(), drawn), (expected, vec![41, 42]));
    }

    #[test]
    fn to_be_verified_a_value_says_its_key() {
        let mset = template("MSET key:__rand_int__ __data__ key:__rand_int__ __data__", 15, true);
        let (request, _) = renewed(&mset, 7);
        assert!(
            request.contains("$15\r\n000000000007000\r\n") && request.contains("$15\r\n000000000008000\r\n"),
            "{request}"
        );
        assert_eq!(mset.expected, Expected::Ok);
        assert_eq!(template("get key:__rand_int__", 3, true).expected, Expected::Value);
        assert_eq!(template("get key:__rand_int__", 3, false).expected, Expected::Any);
        assert_eq!(template("GET fixed", 3, true).expected, Expected::Any);
        assert_eq!(template("MGET k__rand_int__ k__rand_int__", 3, true).expected, Expected::Values);
        assert_eq!(template("INCR k__rand_int__", 3, true).expected, Expected::Any);
    }

    #[test]
    fn a_value_may_be_empty_or_have_any_size() {
        for size in [0, 9, 10, 100] {
            let set = template("SET key:__rand_int__ __data__", size, true);
            let (request, _) = renewed(&set, 5);
            let value: String = "000000000005".chars().cycle().take(size).collect();
            assert_eq!(
                request,
                format!("*3\r\n$3\r\nSET\r\n$16\r\nkey:000000000005\r\n${size}\r\n{value}\r\n")
            );
        }
    }
}
