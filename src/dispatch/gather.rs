//! Waits for the parts of a split call.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;

use crate::exchange::{BackendError, Outcome, Recipient, Reply, Settle, Ticket, Took};
use crate::resp::ErrorReply;
use crate::router::{Fold, FoldError};

/// The replies of a split call, until all are there.
pub struct Gather {
    client: Rc<dyn Recipient>,
    fold: Fold,
    state: RefCell<State>,
}

struct State {
    /// The client's own ticket; taken when the last part is there.
    whole: Option<Ticket>,
    replies: Vec<Bytes>,
    /// Parts still to come.
    left: usize,
    /// The part that took longest so far.
    slowest: Option<Slowest>,
    /// The first failure; the parts that follow are still awaited, so that nothing is left behind.
    failed: Option<BackendError>,
}

struct Slowest {
    queue: u64,
    answer: u64,
    server: Rc<str>,
}

impl Gather {
    /// Waits for `parts` replies on behalf of `client`, whose request `whole` answers.
    pub fn new(client: Rc<dyn Recipient>, whole: Ticket, parts: usize, fold: Fold) -> Rc<Self> {
        let replies = vec![Bytes::new(); parts];
        let state = State { whole: Some(whole), replies, left: parts, slowest: None, failed: None };
        Rc::new(Self { client, fold, state: RefCell::new(state) })
    }

    fn finish(&self, whole: Ticket, replies: &[Bytes], failed: Option<BackendError>) {
        if let Some(error) = failed {
            return whole.settle(Outcome::Unknown(error));
        }
        let mut merged = Vec::new();
        let outcome = match self.fold.merge(replies, &mut merged) {
            Ok(()) => Reply::Shared(merged.into()),
            Err(FoldError::ErrorReply(part)) => Reply::Shared(replies[part].clone()),
            Err(FoldError::Unexpected(_)) => error(ErrorReply::unexpected_part()),
            Err(FoldError::CursorTooBig) => error(ErrorReply::scan_cursor_too_big()),
        };
        whole.settle(Outcome::Reply(outcome));
    }
}

fn error(error: ErrorReply) -> Reply<'static> {
    let mut text = Vec::new();
    error.encode(&mut text);
    Reply::Shared(text.into())
}

impl Settle for Gather {
    fn settle(&self, part: u32, outcome: Outcome<'_>) {
        let mut state = self.state.borrow_mut();
        debug_assert!(state.left > 0, "each part has one outcome");
        match outcome {
            Outcome::Reply(reply) => state.replies[part as usize] = reply.into_bytes(),
            Outcome::Unsent(failed) | Outcome::Unknown(failed) if self.fold.takes_failures() => {
                state.replies[part as usize] = error(failed.reply()).into_bytes();
            }
            Outcome::Unsent(error) | Outcome::Unknown(error) => {
                state.failed.get_or_insert(error);
            }
        }
        state.left = state.left.saturating_sub(1);
        if state.left == 0
            && let Some(whole) = state.whole.take()
        {
            let (replies, failed) = (std::mem::take(&mut state.replies), state.failed.take());
            let slowest = state.slowest.take();
            drop(state);
            if let Some(Slowest { queue, answer, server }) = &slowest {
                whole.note(&Took { queue: *queue, answer: *answer, server });
            }
            self.finish(whole, &replies, failed);
        }
    }

    fn took(&self, took: &Took<'_>) {
        let mut state = self.state.borrow_mut();
        let longest = state.slowest.as_ref().map_or(0, |slowest| slowest.queue + slowest.answer);
        if state.slowest.is_none() || took.queue + took.answer > longest {
            let server = Rc::clone(took.server);
            state.slowest = Some(Slowest { queue: took.queue, answer: took.answer, server });
        }
    }

    fn client(&self) -> &Rc<dyn Recipient> {
        &self.client
    }
}
