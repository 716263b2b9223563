//! A bound, and what happens at it.

/// What happens at a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Nothing: there is no limit.
    #[default]
    Off,
    /// It is counted, and nothing else: to learn what would be refused.
    Observe,
    /// It is counted, and what is beyond it is refused or waits.
    Enforce,
}

/// A bound in whatever unit, with its mode: `100`, `100 observe`, `off`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit<T> {
    /// The bound; without a meaning when the mode is off.
    pub at: T,
    /// What happens there.
    pub mode: Mode,
}

impl<T: Copy + PartialOrd + Default> Limit<T> {
    /// No limit.
    pub fn off() -> Self {
        Self { at: T::default(), mode: Mode::Off }
    }

    /// What lies beyond `at` is refused.
    pub fn enforced(at: T) -> Self {
        Self { at, mode: Mode::Enforce }
    }

    /// Whether there is one, and `value` reaches it.
    #[inline]
    pub fn is_met(&self, value: T) -> bool {
        self.mode != Mode::Off && value >= self.at
    }

    /// The bound, where there is one.
    pub fn bound(&self) -> Option<T> {
        (self.mode != Mode::Off).then_some(self.at)
    }
}

impl<T> Limit<T> {
    /// Whether what is beyond it is only counted.
    #[inline]
    pub fn only_counts(&self) -> bool {
        self.mode == Mode::Observe
    }
}

impl Mode {
    /// Takes the mode off the end of a limit's text: what is left is its bound, empty for `off`.
    pub fn split_from(text: &str) -> (&str, Self) {
        match text.rsplit_once(char::is_whitespace) {
            None if text == "off" => ("", Self::Off),
            Some((bound, "observe")) => (bound.trim_end(), Self::Observe),
            Some((bound, "enforce")) => (bound.trim_end(), Self::Enforce),
            _ => (text, Self::Enforce),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_stands_behind_the_bound() {
        for (text, bound, mode) in [
            ("off", "", Mode::Off),
            ("10", "10", Mode::Enforce),
            ("10 observe", "10", Mode::Observe),
            ("1mb  enforce", "1mb", Mode::Enforce),
            ("10 off", "10 off", Mode::Enforce),
            ("observe", "observe", Mode::Enforce),
        ] {
            assert_eq!(Mode::split_from(text), (bound, mode), "{text:?}");
        }
    }

    #[test]
    fn only_a_limit_that_is_on_is_met() {
        let mut limit = Limit::enforced(3);
        assert_eq!([2, 3, 4].map(|n| limit.is_met(n)), [false, true, true]);
        limit.mode = Mode::Observe;
        assert!(limit.is_met(3) && limit.only_counts());
        assert!(!Limit::off().is_met(u32::MAX));
        assert_eq!((Limit::<u32>::off().bound(), limit.bound()), (None, Some(3)));
    }
}
