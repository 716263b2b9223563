//! Texts of a configuration in messages.

use std::fmt;

/// Characters that are shown; a longer text is cut.
const SHOWN_CHARS: usize = 60;

/// A text as a message shows it: in single quotes, control characters escaped, cut when it is long.
#[derive(Clone, Copy, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut chars = self.0.chars();
        f.write_str("'")?;
        for char in chars.by_ref().take(SHOWN_CHARS) {
            if char.is_control() { write!(f, "{}", char.escape_default())? } else { write!(f, "{char}")? }
        }
        f.write_str(if chars.next().is_some() { "…'" } else { "'" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_one_short_line() {
        assert_eq!(Quoted("a \"b\" é").to_string(), "'a \"b\" é'");
        assert_eq!(Quoted("a\n\u{1b}[31m").to_string(), "'a\\n\\u{1b}[31m'");
        assert_eq!(Quoted(&"é".repeat(61)).to_string(), format!("'{}…'", "é".repeat(60)));
    }
}
