//! The key hashes, bit for bit as twemproxy 0.5.0 computes them on x86-64, and xxh3-64.
//!
//! twemproxy's functions take C `char`s. Where a byte ≥ 0x80 enters the arithmetic as a `char`, its sign shows in
//! the result: [`CharSign`] says which way. All functions are pinned by `tests/golden/hashes.tsv`.

use std::fmt;

mod crc;
mod fnv;
mod hsieh;
mod jenkins;
mod murmur;
mod tag;

pub use tag::{SLOTS, slot};

/// A key hash by name.
#[allow(non_camel_case_types)] // As the configuration spells them: fnv1a_64 is not fnv1a64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Jenkins's one-at-a-time.
    OneAtATime,
    /// First four bytes of MD5, little-endian.
    Md5,
    /// CRC-16/XMODEM with an accumulator that is never cut to 16 bits.
    Crc16,
    /// 15 bits of CRC-32.
    Crc32,
    /// CRC-32.
    Crc32a,
    /// Low half of 64-bit FNV-1.
    Fnv1_64,
    /// Low half of 64-bit FNV-1a; twemproxy's default.
    Fnv1a_64,
    /// 32-bit FNV-1.
    Fnv1_32,
    /// 32-bit FNV-1a.
    Fnv1a_32,
    /// SuperFastHash.
    Hsieh,
    /// MurmurHash2.
    Murmur,
    /// lookup3 hashlittle.
    Jenkins,
    /// Low half of XXH3-64; shardwise's own, recommended for new deployments.
    Xxh3_64,
}

/// How bytes ≥ 0x80 enter the hashes written for C's `char`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CharSign {
    /// As nutcracker on x86-64.
    #[default]
    Signed,
    /// As nutcracker on AArch64.
    Unsigned,
}

/// From a key to the 32 bits that place it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyHash {
    /// Which function.
    pub algorithm: Algorithm,
    /// Sign of C's `char`.
    pub char_sign: CharSign,
    /// Opening and closing byte of a hash tag.
    pub tag: Option<[u8; 2]>,
}

// === impl Algorithm ===

impl Algorithm {
    /// All of them: twemproxy's twelve in the order of its documentation, then ours.
    pub const ALL: [Self; 13] = [
        Self::OneAtATime,
        Self::Md5,
        Self::Crc16,
        Self::Crc32,
        Self::Crc32a,
        Self::Fnv1_64,
        Self::Fnv1a_64,
        Self::Fnv1_32,
        Self::Fnv1a_32,
        Self::Hsieh,
        Self::Murmur,
        Self::Jenkins,
        Self::Xxh3_64,
    ];

    /// The name that the configuration uses.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OneAtATime => "one_at_a_time",
            Self::Md5 => "md5",
            Self::Crc16 => "crc16",
            Self::Crc32 => "crc32",
            Self::Crc32a => "crc32a",
            Self::Fnv1_64 => "fnv1_64",
            Self::Fnv1a_64 => "fnv1a_64",
            Self::Fnv1_32 => "fnv1_32",
            Self::Fnv1a_32 => "fnv1a_32",
            Self::Hsieh => "hsieh",
            Self::Murmur => "murmur",
            Self::Jenkins => "jenkins",
            Self::Xxh3_64 => "xxh3_64",
        }
    }

    /// The algorithm of that name, case-sensitive as in twemproxy. `xxh3-64` is also accepted.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "xxh3-64" {
            return Some(Self::Xxh3_64);
        }
        Self::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }

    /// How many low bits of the result can ever be set.
    ///
    /// 15 for `crc32`, whose values therefore all lie before the first points of a ketama ring; 32 for the others.
    pub const fn bits(self) -> u32 {
        match self {
            Self::Crc32 => 15,
            _ => 32,
        }
    }

    /// Whether a key with bytes ≥ 0x80 may hash differently with the other [`CharSign`].
    pub const fn depends_on_sign(self) -> bool {
        matches!(
            self,
            Self::OneAtATime | Self::Fnv1_64 | Self::Fnv1a_64 | Self::Fnv1_32 | Self::Fnv1a_32 | Self::Hsieh
        )
    }

    /// The bare function over `bytes`. An empty *key* is not hashed at all: see [`KeyHash::of`].
    #[inline]
    pub fn hash(self, sign: CharSign, bytes: &[u8]) -> u32 {
        match self {
            Self::OneAtATime => jenkins::one_at_a_time(sign, bytes),
            Self::Md5 => md5_prefix(bytes),
            Self::Crc16 => crc::crc16_uncut(bytes),
            Self::Crc32 => (crc::crc32(bytes) >> 16) & 0x7fff,
            Self::Crc32a => crc::crc32(bytes),
            Self::Fnv1_64 => fnv::fnv1(fnv::LOW_64, sign, bytes),
            Self::Fnv1a_64 => fnv::fnv1a(fnv::LOW_64, sign, bytes),
            Self::Fnv1_32 => fnv::fnv1(fnv::FULL_32, sign, bytes),
            Self::Fnv1a_32 => fnv::fnv1a(fnv::FULL_32, sign, bytes),
            Self::Hsieh => hsieh::hsieh(sign, bytes),
            Self::Murmur => murmur::murmur2(bytes),
            Self::Jenkins => jenkins::lookup3(bytes),
            // The low half is meant to be kept: XXH3 mixes all its 64 bits.
            Self::Xxh3_64 => twox_hash::XxHash3_64::oneshot(bytes) as u32,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// MD5 of `bytes`, for the four ring points that one label gives.
pub fn md5(bytes: &[u8]) -> [u8; 16] {
    use md5::Digest;
    md5::Md5::digest(bytes).into()
}

fn md5_prefix(bytes: &[u8]) -> u32 {
    let [a, b, c, d, ..] = md5(bytes);
    u32::from_le_bytes([a, b, c, d])
}

// === impl CharSign ===

impl CharSign {
    /// `byte` as C converts a `char` of this sign to 32 bits.
    #[inline(always)]
    fn widen(self, byte: u8) -> u32 {
        match self {
            Self::Signed => byte as i8 as u32,
            Self::Unsigned => u32::from(byte),
        }
    }
}

// === impl KeyHash ===

impl KeyHash {
    /// The 32 bits that place `key`: the hash of its [`hashed_part`](Self::hashed_part), and 0 for an empty key.
    #[inline]
    pub fn of(&self, key: &[u8]) -> u32 {
        let part = self.hashed_part(key);
        if part.is_empty() { 0 } else { self.algorithm.hash(self.char_sign, part) }
    }

    /// What of `key` is hashed: the text inside the hash tag if there is one and it isn't empty, else all of it.
    #[inline]
    pub fn hashed_part<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        match self.tag {
            None => key,
            Some(delimiters) => tag::inside(delimiters, key).unwrap_or(key),
        }
    }
}

impl Default for KeyHash {
    /// twemproxy's defaults: `fnv1a_64`, no tag, signed `char`.
    fn default() -> Self {
        Self { algorithm: Algorithm::Fnv1a_64, char_sign: CharSign::Signed, tag: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_lead_back() {
        for algorithm in Algorithm::ALL {
            assert_eq!(Algorithm::from_name(algorithm.name()), Some(algorithm));
        }
        assert_eq!(Algorithm::from_name("xxh3-64"), Some(Algorithm::Xxh3_64));
        assert_eq!(Algorithm::from_name("FNV1A_64"), None);
        assert_eq!(Algorithm::from_name(""), None);
    }

    /// The published XXH3-64 values for no input and for "a": 2d06800538d394c2 and e6c632b61e964e1f.
    #[test]
    fn xxh3_is_the_low_half_of_the_published_values() {
        let xxh3 = |key: &[u8]| Algorithm::Xxh3_64.hash(CharSign::Signed, key);
        assert_eq!(xxh3(b""), 0x38d3_94c2);
        assert_eq!(xxh3(b"a"), 0x1e96_4e1f);
    }

    #[test]
    fn sign_shows_only_in_high_bytes_and_only_where_said() {
        for algorithm in Algorithm::ALL {
            let both =
                |key: &[u8]| (algorithm.hash(CharSign::Signed, key), algorithm.hash(CharSign::Unsigned, key));
            let (signed, unsigned) = both(b"user:1000:profile");
            assert_eq!(signed, unsigned, "{algorithm}");
            let (signed, unsigned) = both(b"ab\xff");
            assert_eq!(signed != unsigned, algorithm.depends_on_sign(), "{algorithm}");
        }
    }

    #[test]
    fn empty_key_is_zero_whatever_the_function_says() {
        for algorithm in Algorithm::ALL {
            let hash = KeyHash { algorithm, ..KeyHash::default() };
            assert_eq!(hash.of(b""), 0, "{algorithm}");
        }
        assert_ne!(Algorithm::Fnv1a_64.hash(CharSign::Signed, b""), 0);
    }

    #[test]
    fn tag_is_hashed_alone() {
        let tagged = KeyHash { tag: Some(*b"{}"), ..KeyHash::default() };
        assert_eq!(tagged.of(b"user:{1000}:a"), tagged.of(b"1000"));
        assert_eq!(tagged.hashed_part(b"user:{1000}:a"), b"1000");
        assert_eq!(KeyHash::default().hashed_part(b"user:{1000}:a"), b"user:{1000}:a");
    }
}
