//! Which workers have had answers from a server lately. Pure.
//!
//! Workers don't note the time of each answer: that would be a clock read per reply. They count answers, and control,
//! which looks at the counts about once a second, knows that one that has grown did so since it last looked.

/// What is known of one worker's answers from one server. Times are microseconds since 1970; 0: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answers {
    counted: u64,
    looked_at: u64,
    success_after: u64,
}

impl Answers {
    /// None yet, when counting begins.
    pub fn none(now: u64) -> Self {
        Self { counted: 0, looked_at: now, success_after: 0 }
    }

    /// Takes a look: `counted` answers in all; `failing`: the latest of them was none, or a refusal.
    ///
    /// Returns a time after which there certainly was an answer, the latest that is known; 0: never.
    pub fn look(&mut self, counted: u64, failing: bool, now: u64) -> u64 {
        if counted != self.counted && !failing {
            self.success_after = self.looked_at;
        }
        self.counted = counted;
        self.looked_at = now;
        self.success_after
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_dates_an_answer_after_the_last_look() {
        let mut answers = Answers::none(50);
        assert_eq!(answers.look(0, false, 100), 0);
        assert_eq!(answers.look(7, false, 200), 100);
        assert_eq!(answers.look(7, false, 300), 100, "nothing new");
        assert_eq!(answers.look(8, false, 400), 300);
    }

    #[test]
    fn refusals_prove_nothing() {
        let mut answers = Answers::none(50);
        answers.look(5, false, 100); // one at an unknown time after 50
        assert_eq!(answers.look(6, true, 200), 50);
        assert_eq!(answers.look(6, false, 300), 50);
    }
}
