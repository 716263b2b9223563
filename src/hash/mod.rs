//! The key hashes, bit for bit as twemproxy 0.5.0 computes them on x86-64, and xxh3-64.

/// A key hash by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CharSign {
    /// As nutcracker on x86-64.
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

    /// Whether a key with bytes ≥ 0x80 may hash differently with the other [`CharSign`].
    pub const fn depends_on_sign(self) -> bool {
        matches!(
            self,
            Self::OneAtATime | Self::Fnv1_64 | Self::Fnv1a_64 | Self::Fnv1_32 | Self::Fnv1a_32 | Self::Hsieh
        )
    }
}
