//! The cyclic redundancy checks, one table look-up per byte.

const CRC16: [u32; 256] = crc16_table();
const CRC32: [u32; 256] = crc32_table();

/// CRC-16/XMODEM whose accumulator keeps the bits that are shifted out above the 16th, up to 32.
#[inline]
pub(super) fn crc16_uncut(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |crc, &byte| (crc << 8) ^ CRC16[usize::from((crc >> 8) as u8 ^ byte)])
}

/// CRC-32 as in zlib.
#[inline]
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| (crc >> 8) ^ CRC32[usize::from(crc as u8 ^ byte)])
}

/// Polynomial 0x1021, most significant bit first.
const fn crc16_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = (index as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x8000 != 0 { 0x1021 } else { 0 };
            bit += 1;
        }
        table[index] = crc as u32;
        index += 1;
    }
    table
}

/// Polynomial 0x04c11db7 reflected, least significant bit first.
const fn crc32_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 != 0 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The check values of the catalogue of CRCs.
    #[test]
    fn check_values() {
        assert_eq!(crc16_uncut(b"123456789") as u16, 0x31c3);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }
}
