//! Byte sizes: `4096`, `64kb`, `1mb`, `1MiB`, with the units of redis.conf.

use super::whole_number;

/// Suffix in lower case, and bytes. As in redis.conf `k` is 1000 and `kb` is 1024; `kib` is unmistakable.
const UNITS: [(&str, u64); 10] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1 << 10),
    ("mb", 1 << 20),
    ("gb", 1 << 30),
    ("k", 1_000),
    ("m", 1_000_000),
    ("g", 1_000_000_000),
    ("b", 1),
];

/// Reads a whole number of bytes, or of the unit that follows it, in upper or lower case.
///
/// `None` if it is something else, or more than 64 bits hold.
pub fn parse(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (number, unit) = UNITS
        .iter()
        .find_map(|&(name, unit)| lower.strip_suffix(name).map(|number| (number, unit)))
        .unwrap_or((&lower, 1));
    whole_number(number)?.checked_mul(unit)
}

/// Writes `bytes` in the largest of `gb`, `mb` and `kb` that needs no fraction; [`parse`] reads it back.
pub fn show(bytes: u64) -> String {
    let fitting = [("gb", 30), ("mb", 20), ("kb", 10)]
        .into_iter()
        .find(|&(_, shift)| bytes != 0 && bytes.is_multiple_of(1 << shift));
    match fitting {
        Some((name, shift)) => format!("{}{name}", bytes >> shift),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_redis_conf() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("12b", 12),
            ("1k", 1_000),
            ("64kb", 65_536),
            ("64KB", 65_536),
            ("1MiB", 1 << 20),
            ("1m", 1_000_000),
            ("512mb", 512 << 20),
            ("2Gb", 2 << 30),
        ] {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for refused in ["", "kb", "1.5mb", "-1", "1 mb", "1tb", "1bb", "0x10", "18446744073709551615kb"] {
            assert_eq!(parse(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for (bytes, text) in [(0, "0"), (1_000, "1000"), (65_536, "64kb"), (1 << 30, "1gb"), (1537, "1537")] {
            assert_eq!(show(bytes), text);
            assert_eq!(parse(text), Some(bytes));
        }
    }
}
