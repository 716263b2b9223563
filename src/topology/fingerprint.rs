//! One number for a whole ring.

use super::ServerIx;

const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

/// FNV-1a-64 over the little-endian bytes of each point's value and index, as two 32-bit words.
pub(super) fn of(points: impl IntoIterator<Item = (u32, ServerIx)>) -> u64 {
    points.into_iter().fold(OFFSET, |sum, (value, server)| {
        let bytes = value.to_le_bytes().into_iter().chain(u32::from(server.0).to_le_bytes());
        bytes.fold(sum, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(PRIME))
    })
}
