//! What an operator has said of a server: it is out until RESUME (DRAIN), or for some time (BAN), whatever the probes say.
//!
//! Health and the operator judge independently: a server owns keys while neither keeps it out.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

/// What keeps a server out although it may be sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hold {
    /// DRAIN was said, and RESUME not yet.
    pub drained: bool,
    /// BAN was said; it ends then, or with UNBAN.
    pub banned_until: Option<Instant>,
}

/// What an operator says of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It gets no new requests; what is in flight ends.
    Drain,
    /// The end of DRAIN.
    Resume,
    /// It is out for so long.
    Ban(Duration),
    /// The end of BAN.
    Unban,
}

/// Why nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is the last live server of its pool: every request would fail.
    LastLive,
    /// RESUME of a server that isn't drained.
    NotDrained,
    /// UNBAN of a server that isn't banned.
    NotBanned,
    /// A reload has just removed it.
    Gone,
    /// The process is about to end.
    Ending,
}

/// A word on its way to the board.
#[derive(Debug)]
pub struct Said {
    /// The pool's name.
    pub pool: String,
    /// The server's name.
    pub server: String,
    /// What was said.
    pub word: Word,
    /// Gets the generation from which on it holds.
    pub answer: oneshot::Sender<Result<u64, Refusal>>,
}

/// Says words to the board, from any task of control's thread.
#[derive(Clone, Debug)]
pub struct Holds {
    say: mpsc::UnboundedSender<Said>,
}

// === impl Hold ===

impl Hold {
    /// Whether the server is out for it.
    pub fn is_out(&self) -> bool {
        self.drained || self.banned_until.is_some()
    }

    /// What holds after `word`. `is_last_live`: no other server of the pool owns keys.
    pub fn after(self, word: Word, is_last_live: bool, now: Instant) -> Result<Self, Refusal> {
        match word {
            Word::Drain | Word::Ban(_) if is_last_live => Err(Refusal::LastLive),
            Word::Drain => Ok(Self { drained: true, ..self }),
            Word::Ban(limit) => Ok(Self { banned_until: Some(now + limit), ..self }),
            Word::Resume if !self.drained => Err(Refusal::NotDrained),
            Word::Resume => Ok(Self { drained: false, ..self }),
            Word::Unban if self.banned_until.is_none() => Err(Refusal::NotBanned),
            Word::Unban => Ok(Self { banned_until: None, ..self }),
        }
    }

    /// Ends a ban whose time is over; whether it was.
    pub fn expire(&mut self, now: Instant) -> bool {
        let over = self.banned_until.is_some_and(|until| until <= now);
        if over {
            self.banned_until = None;
        }
        over
    }
}

// === impl Holds ===

impl Holds {
    /// The saying end, and the board's.
    pub fn channel() -> (Self, mpsc::UnboundedReceiver<Said>) {
        let (say, said) = mpsc::unbounded_channel();
        (Self { say }, said)
    }

    /// The generation from which on the word holds, or why it doesn't.
    pub async fn say(&self, pool: &str, server: &str, word: Word) -> Result<u64, Refusal> {
        let (answer, answered) = oneshot::channel();
        let said = Said { pool: pool.to_owned(), server: server.to_owned(), word, answer };
        self.say.send(said).map_err(|_| Refusal::Ending)?;
        answered.await.map_err(|_| Refusal::Ending)?
    }
}

// === impl Refusal ===

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::LastLive => "it is the last live server of its pool",
            Self::NotDrained => "it isn't drained",
            Self::NotBanned => "it isn't banned",
            Self::Gone => "it isn't in the configuration any more",
            Self::Ending => "the process is ending",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn drain_and_ban_end_each_by_its_own_word() {
        let now = Instant::now();
        let say = |hold: Hold, word| hold.after(word, false, now);
        let drained = say(Hold::default(), Word::Drain).unwrap();
        let both = say(drained, Word::Ban(MINUTE)).unwrap();
        assert!(drained.is_out() && both.is_out());
        assert_eq!(say(both, Word::Unban), Ok(drained));
        assert!(say(both, Word::Resume).unwrap().is_out(), "the ban goes on");
        assert_eq!(say(drained, Word::Resume), Ok(Hold::default()));
        assert_eq!(say(Hold::default(), Word::Resume), Err(Refusal::NotDrained));
        assert_eq!(say(drained, Word::Unban), Err(Refusal::NotBanned));
    }

    #[test]
    fn a_ban_ends_when_its_time_is_over() {
        let now = Instant::now();
        let mut hold = Hold::default().after(Word::Ban(MINUTE), false, now).unwrap();
        assert!(!hold.expire(now + MINUTE / 2) && hold.is_out());
        assert!(hold.expire(now + MINUTE) && !hold.is_out());
        assert!(!hold.expire(now + MINUTE), "once");
    }

    #[test]
    fn the_last_live_server_can_not_be_taken_out() {
        let now = Instant::now();
        for word in [Word::Drain, Word::Ban(MINUTE)] {
            assert_eq!(Hold::default().after(word, true, now), Err(Refusal::LastLive));
        }
    }
}
