//! Durations: `500`, `500us`, `500ms`, `2s`, `10m`, `1h`.

use std::time::Duration;

use super::whole_number;

/// In microseconds; longest first among those that end alike.
const UNITS: [(&str, u64); 5] =
    [("us", 1), ("ms", MILLISECOND), ("s", 1_000_000), ("m", 60_000_000), ("h", 3_600_000_000)];

/// In microseconds.
const MILLISECOND: u64 = 1_000;

/// Reads a whole number of milliseconds, or of the unit that follows it: `us`, `ms`, `s`, `m` or `h`.
///
/// `None` if it is something else, or more microseconds than 64 bits hold.
pub fn parse(text: &str) -> Option<Duration> {
    let (number, unit) = UNITS
        .iter()
        .find_map(|&(name, unit)| text.strip_suffix(name).map(|number| (number, unit)))
        .unwrap_or((text, MILLISECOND));
    Some(Duration::from_micros(whole_number(number)?.checked_mul(unit)?))
}

/// Writes `duration` in the largest unit that needs no fraction, cut to microseconds; [`parse`] reads it back.
pub fn show(duration: Duration) -> String {
    let micros = duration.as_micros();
    let (name, unit) = UNITS
        .into_iter()
        .rev()
        .find(|&(_, unit)| micros != 0 && micros.is_multiple_of(u128::from(unit)))
        .unwrap_or(UNITS[1]);
    format!("{}{name}", micros / u128::from(unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_milliseconds_unless_a_unit_follows() {
        for (text, millis) in
            [("0", 0), ("400", 400), ("500ms", 500), ("2s", 2_000), ("10m", 600_000), ("1h", 3_600_000)]
        {
            assert_eq!(parse(text), Some(Duration::from_millis(millis)), "{text}");
        }
        assert_eq!(parse("250us"), Some(Duration::from_micros(250)));
        assert_eq!(show(Duration::from_micros(1_250)), "1250us");
        for refused in ["", "s", "ms", "1.5s", "-1s", "2 s", "2S", "2d", "1s500ms", "99999999999999999h"] {
            assert_eq!(parse(refused), None, "{refused:?}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for (millis, text) in [(0, "0ms"), (1, "1ms"), (1_500, "1500ms"), (30_000, "30s"), (7_200_000, "2h")]
        {
            let duration = Duration::from_millis(millis);
            assert_eq!(show(duration), text);
            assert_eq!(parse(text), Some(duration));
        }
    }
}
