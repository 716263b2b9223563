//! Austin Appleby's MurmurHash2, 32 bits, seeded from the length.

const M: u32 = 0x5bd1_e995;

/// MurmurHash2 with seed `0xdeadbeef · length`.
#[inline]
pub(super) fn murmur2(bytes: &[u8]) -> u32 {
    // A key is at most 512 MiB, so its length fits.
    let length = bytes.len() as u32;
    let (blocks, tail) = bytes.as_chunks::<4>();
    let mut hash = 0xdead_beef_u32.wrapping_mul(length) ^ length;
    for &block in blocks {
        let mut word = u32::from_le_bytes(block).wrapping_mul(M);
        word ^= word >> 24;
        hash = hash.wrapping_mul(M) ^ word.wrapping_mul(M);
    }
    if !tail.is_empty() {
        let mut last = [0; 4];
        last[..tail.len()].copy_from_slice(tail);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    hash ^ (hash >> 15)
}
