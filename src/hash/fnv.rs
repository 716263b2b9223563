//! FNV-1 and FNV-1a.

use super::CharSign;

/// Start value and multiplier.
#[derive(Clone, Copy)]
pub(super) struct Basis {
    offset: u32,
    prime: u32,
}

/// The 32-bit function.
pub(super) const FULL_32: Basis = Basis { offset: 0x811c_9dc5, prime: 0x0100_0193 };

/// The low halves of the 64-bit basis. Bits only ever move up, so the low half of the 64-bit function needs no more.
pub(super) const LOW_64: Basis = Basis { offset: 0x8422_2325, prime: 0x1b3 };

/// FNV-1: multiply, then add the byte.
#[inline]
pub(super) fn fnv1(basis: Basis, sign: CharSign, bytes: &[u8]) -> u32 {
    bytes.iter().fold(basis.offset, |hash, &byte| hash.wrapping_mul(basis.prime) ^ sign.widen(byte))
}

/// FNV-1a: add the byte, then multiply.
#[inline]
pub(super) fn fnv1a(basis: Basis, sign: CharSign, bytes: &[u8]) -> u32 {
    bytes.iter().fold(basis.offset, |hash, &byte| (hash ^ sign.widen(byte)).wrapping_mul(basis.prime))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With unsigned bytes these are the functions as their authors publish them.
    #[test]
    fn unsigned_gives_the_published_values() {
        assert_eq!(fnv1a(FULL_32, CharSign::Unsigned, b"foobar"), 0xbf9c_f968);
        assert_eq!(fnv1(FULL_32, CharSign::Unsigned, b"foobar"), 0x31f0_b262);
        assert_eq!(fnv1a(LOW_64, CharSign::Unsigned, b"foobar"), 0x8594_4171_f739_67e8_u64 as u32);
        assert_eq!(fnv1(LOW_64, CharSign::Unsigned, b"foobar"), 0x340d_8765_a4dd_a9c2_u64 as u32);
    }
}
