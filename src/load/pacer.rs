//! Open loop: when the next request of a thread is due, whatever the replies.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::Waker;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

use super::thread::Thread;

/// Shortest sleep: above 20,000 requests per second and thread, several become due together.
const SHORTEST: Duration = Duration::from_micros(50);

/// The schedule of one thread.
#[derive(Debug)]
pub struct Pacer {
    /// Nanoseconds between two requests.
    interval: f64,
    /// When the first one is due, in nanoseconds of the turn's clock.
    start: Cell<u64>,
    /// How many have been taken.
    taken: Cell<u64>,
    /// Clients with room, longest waiting first; each has its flag set while it is here.
    idle: RefCell<VecDeque<(Rc<Cell<bool>>, Waker)>>,
}

/// What a client that has room should do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send the request that was due then.
    Due(u64),
    /// Wait.
    Later,
    /// Nothing more comes.
    Over,
}

impl Pacer {
    /// `rate`: requests per second, above 0.
    pub fn new(rate: f64) -> Self {
        Self {
            interval: 1e9 / rate,
            start: Cell::default(),
            taken: Cell::default(),
            idle: RefCell::default(),
        }
    }

    /// The schedule begins now.
    pub fn begin(&self, now: u64) {
        self.start.set(now);
    }

    /// The next request, if it is due. `claim` says whether there is any left.
    pub fn take(&self, now: u64, claim: impl FnOnce() -> bool) -> Next {
        let due = self.time_of(self.taken.get());
        if due > now {
            return Next::Later;
        }
        if !claim() {
            return Next::Over;
        }
        self.taken.set(self.taken.get() + 1);
        Next::Due(due)
    }

    /// Wakes the client when a request is due, unless it waits already.
    pub fn wait(&self, waiting: &Rc<Cell<bool>>, waker: &Waker) {
        if !waiting.replace(true) {
            self.idle.borrow_mut().push_back((Rc::clone(waiting), waker.clone()));
        }
    }

    /// Wakes clients as requests become due, until the turn is over.
    pub async fn run(&self, thread: &Thread) -> io::Result<()> {
        // Deprecated for what it allows with borrowed descriptors; its successor is unsafe. This one is owned.
        #[allow(deprecated)]
        let timer = AsyncFd::new(timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?)?;
        loop {
            let now = thread.now();
            if thread.is_over() {
                self.wake(usize::MAX);
                return Ok(());
            }
            let due = self.number_due(now);
            self.wake(usize::try_from(due.saturating_sub(self.taken.get())).unwrap_or(usize::MAX));
            let wait = Duration::from_nanos(self.time_of(due).saturating_sub(now)).max(SHORTEST);
            sleep(&timer, wait).await?;
        }
    }

    fn time_of(&self, index: u64) -> u64 {
        self.start.get() + (index as f64 * self.interval) as u64
    }

    /// How many were due by now, taken or not.
    fn number_due(&self, now: u64) -> u64 {
        (now.saturating_sub(self.start.get()) as f64 / self.interval) as u64 + 1
    }

    fn wake(&self, most: usize) {
        let mut idle = self.idle.borrow_mut();
        let count = most.min(idle.len());
        for (waiting, waker) in idle.drain(..count) {
            waiting.set(false);
            waker.wake();
        }
    }
}

/// tokio's timers tick in milliseconds: too coarse for latencies of tens of microseconds.
async fn sleep(timer: &AsyncFd<OwnedFd>, time: Duration) -> io::Result<()> {
    let time = time.min(Duration::from_millis(100)); // the end of the turn is to be noticed
    let once = Itimerspec {
        it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
        it_value: Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) },
    };
    timerfd_settime(timer, TimerfdTimerFlags::empty(), &once)?;
    let mut ready = timer.readable().await?;
    let mut expirations = [0; 8];
    let _read = rustix::io::read(timer, &mut expirations);
    ready.clear_ready();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_due_at_the_rate_however_late_they_are_taken() {
        let pacer = Pacer::new(1000.0);
        pacer.begin(5_000_000);
        assert_eq!(pacer.take(4_999_999, || true), Next::Later);
        let late = 8_500_000;
        let taken: Vec<Next> = (0..5).map(|_| pacer.take(late, || true)).collect();
        let due = |ms: u64| Next::Due(ms * 1_000_000);
        assert_eq!(taken, [due(5), due(6), due(7), due(8), Next::Later]);
        assert_eq!(pacer.number_due(late), 4);
        assert_eq!(pacer.take(9_000_000, || false), Next::Over);
    }

    #[test]
    fn a_client_waits_once_and_is_woken_in_turn() {
        let pacer = Pacer::new(1000.0);
        let (first, second) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        pacer.wait(&first, Waker::noop());
        pacer.wait(&first, Waker::noop());
        pacer.wait(&second, Waker::noop());
        assert_eq!(pacer.idle.borrow().len(), 2);
        pacer.wake(1);
        assert!(!first.get() && second.get());
    }
}
