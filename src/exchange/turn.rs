//! What must be written before this turn of the loop ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::Waker;
use std::time::Instant;

use super::budget::Account;
use super::buffer_pool::BufferPool;
use super::moment::Moment;

/// Something with bytes to write at the end of the turn. Marking it twice in one turn is its own business to avoid.
pub trait Flush {
    /// Writes what is queued, as far as the socket takes it now.
    fn flush(&self);
}

/// The worker's list of dirty servers and ready clients, its spare buffers, and the time of this turn.
///
/// The first mark wakes the flusher, which runs behind every task that was ready already: what all of them queue
/// leaves in one write per socket.
#[derive(Default)]
pub struct Turn {
    servers: RefCell<Vec<Rc<dyn Flush>>>,
    clients: RefCell<Vec<Rc<dyn Flush>>>,
    flusher: RefCell<Option<Waker>>,
    now: Cell<Option<Moment>>,
    /// Seconds since the worker started, moved on by its sweep: cheap, coarse, and all that idle times need.
    pub tick: Cell<u32>,
    /// Its writes are under way.
    writing: Cell<bool>,
    /// When this turn's work began, as far as anybody asked.
    began: Cell<Option<Moment>>,
    /// Buffers for the queues of this worker.
    pub buffers: BufferPool,
}

impl Turn {
    /// Of a worker whose buffers are charged to `account`.
    pub fn new(account: Account) -> Self {
        Self { buffers: BufferPool::new(account), ..Self::default() }
    }

    /// Asks for `server` to be flushed at the end of the turn.
    #[inline]
    pub fn mark_server(&self, server: Rc<dyn Flush>) {
        mark(&self.servers, server, &self.flusher);
    }

    /// Asks for `client` to be flushed at the end of the turn.
    #[inline]
    pub fn mark_client(&self, client: Rc<dyn Flush>) {
        mark(&self.clients, client, &self.flusher);
    }

    /// Who drains this list.
    pub fn set_flusher(&self, waker: &Waker) {
        let mut flusher = self.flusher.borrow_mut();
        if !flusher.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *flusher = Some(waker.clone());
        }
    }

    /// Flushes servers, then clients. What they mark meanwhile is flushed too.
    pub fn drain(&self) {
        // The writes have a time of their own: what waited for them waited until now. What is alone has waited for nothing, and
        // isn't worth another look at the clock.
        if self.marks() > 1 {
            self.began.set(self.now.take());
        }
        self.writing.set(true);
        while drain(&self.servers) | drain(&self.clients) {}
        self.writing.set(false);
        self.now.set(None);
        self.began.set(None);
    }

    /// During the writes: the time of the turn's work before them, if anybody asked for it.
    #[inline]
    pub fn began(&self) -> Option<Moment> {
        self.began.get()
    }

    /// Servers and clients that wait for the end of the turn.
    pub fn marks(&self) -> usize {
        self.servers.borrow().len() + self.clients.borrow().len()
    }

    /// The time of this turn; `clock` is read at most once after the first mark.
    #[inline]
    pub fn now(&self, clock: impl FnOnce() -> Instant) -> Moment {
        self.now.get().unwrap_or_else(|| {
            let now = Moment::at(clock());
            // Without a mark nobody would end this turn, and the time would grow old.
            if self.writing.get() || self.is_marked() {
                self.now.set(Some(now));
            }
            now
        })
    }

    fn is_marked(&self) -> bool {
        self.marks() > 0
    }
}

#[inline]
fn mark(list: &RefCell<Vec<Rc<dyn Flush>>>, item: Rc<dyn Flush>, flusher: &RefCell<Option<Waker>>) {
    let mut list = list.borrow_mut();
    if list.is_empty()
        && let Some(waker) = flusher.borrow().as_ref()
    {
        waker.wake_by_ref();
    }
    list.push(item);
}

fn drain(list: &RefCell<Vec<Rc<dyn Flush>>>) -> bool {
    // Before the list is taken: an empty one has its capacity to lose.
    if list.borrow().is_empty() {
        return false;
    }
    let mut marked = std::mem::take(&mut *list.borrow_mut());
    marked.iter().for_each(|item| item.flush());
    marked.clear();
    // The vector goes back for its capacity, unless something new was marked meanwhile.
    let mut list = list.borrow_mut();
    if list.is_empty() {
        *list = marked;
    }
    true
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Nothing;

    impl Flush for Nothing {
        fn flush(&self) {}
    }

    #[test]
    fn the_time_is_kept_until_the_turn_ends_and_never_longer() {
        let turn = Turn::default();
        let start = Instant::now();
        let at = |seconds| move || start + Duration::from_secs(seconds);
        let moment = |seconds| Moment::at(at(seconds)());
        assert_eq!(turn.now(at(0)), moment(0));
        assert_eq!(turn.now(at(1)), moment(1), "nobody would have ended that turn");
        turn.mark_server(Rc::new(Nothing));
        assert_eq!(turn.now(at(2)), moment(2));
        assert_eq!(turn.now(at(3)), moment(2));
        turn.drain();
        assert_eq!(turn.now(at(4)), moment(4));
        assert_eq!(turn.began(), None);
    }
}
