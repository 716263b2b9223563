//! Paul Hsieh's SuperFastHash, started at 0 (not at the length).

use super::CharSign;

/// SuperFastHash. Only the third byte of a tail of three enters as a `char`.
#[inline]
pub(super) fn hsieh(sign: CharSign, bytes: &[u8]) -> u32 {
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash: u32 = 0;
    for &[a, b, c, d] in blocks {
        hash = hash.wrapping_add(pair(a, b));
        hash = (hash << 16) ^ (pair(c, d) << 11) ^ hash;
        hash = hash.wrapping_add(hash >> 11);
    }
    match *tail {
        [a, b, c] => {
            hash = hash.wrapping_add(pair(a, b));
            hash ^= hash << 16;
            hash ^= sign.widen(c) << 18;
            hash = hash.wrapping_add(hash >> 11);
        }
        [a, b] => {
            hash = hash.wrapping_add(pair(a, b));
            hash ^= hash << 11;
            hash = hash.wrapping_add(hash >> 17);
        }
        [a] => {
            hash = hash.wrapping_add(u32::from(a));
            hash ^= hash << 10;
            hash = hash.wrapping_add(hash >> 1);
        }
        _ => {}
    }
    avalanche(hash)
}

#[inline(always)]
fn pair(low: u8, high: u8) -> u32 {
    u32::from(u16::from_le_bytes([low, high]))
}

#[inline(always)]
fn avalanche(mut hash: u32) -> u32 {
    hash ^= hash << 3;
    hash = hash.wrapping_add(hash >> 5);
    hash ^= hash << 4;
    hash = hash.wrapping_add(hash >> 17);
    hash ^= hash << 25;
    hash.wrapping_add(hash >> 6)
}
