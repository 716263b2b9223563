//! Durations, byte sizes, addresses and secrets as the configuration writes them.

mod address;
pub mod duration;
mod limit;
mod quoted;
mod secret;
pub mod size;

pub use address::{AddressError, Endpoint, Listen, UNIX_PATH_BYTES};
pub use limit::{Limit, Mode};
pub use quoted::Quoted;
pub use secret::Secret;

/// A number as twemproxy writes them: decimal digits only, so no sign, no `0x`, no `_`, no unit.
///
/// Leading zeros mean nothing. `None` for anything else, and for what needs more than 64 bits.
pub fn whole_number(text: &str) -> Option<u64> {
    // Parsing alone would take a leading plus.
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_are_numbers() {
        assert_eq!(whole_number("0"), Some(0));
        assert_eq!(whole_number("0400"), Some(400));
        assert_eq!(whole_number("18446744073709551615"), Some(u64::MAX));
        for refused in
            ["", "+1", "-1", "0x10", "1_000", "1.0", " 4", "4 ", "1e3", "18446744073709551616", "٣"]
        {
            assert_eq!(whole_number(refused), None, "{refused:?}");
        }
    }
}
