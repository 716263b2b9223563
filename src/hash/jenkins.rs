//! Bob Jenkins's one-at-a-time and lookup3.

use super::CharSign;

/// One-at-a-time.
#[inline]
pub(super) fn one_at_a_time(sign: CharSign, bytes: &[u8]) -> u32 {
    let mut hash: u32 = 0;
    for &byte in bytes {
        hash = hash.wrapping_add(sign.widen(byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// lookup3's hashlittle with initial value 13. It reads no `char`.
#[inline]
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    // A key is at most 512 MiB, so its length fits.
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(13);
    let mut state = [start; 3];
    // The last block, even a full one, is added but not mixed: the final scramble does that.
    let mut rest = bytes;
    while let Some((block, behind)) = rest.split_first_chunk::<12>()
        && !behind.is_empty()
    {
        add(&mut state, block);
        mix(&mut state);
        rest = behind;
    }
    if rest.is_empty() {
        return start;
    }
    let mut last = [0; 12];
    last[..rest.len()].copy_from_slice(rest);
    add(&mut state, &last);
    scramble(state)
}

#[inline(always)]
fn add(state: &mut [u32; 3], block: &[u8; 12]) {
    for (word, bytes) in state.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = word.wrapping_add(u32::from_le_bytes(*bytes));
    }
}

#[inline(always)]
fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    *state = [a, b, c];
}

#[inline(always)]
fn scramble([mut a, mut b, mut c]: [u32; 3]) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}
