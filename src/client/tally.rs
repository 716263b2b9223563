//! Hot and big keys: one request in so many is looked at. Off, it is one comparison for each request and one for each reply.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use crate::command::Call;
use crate::exchange::Recipient;
use crate::stats::{Heavy, Top};

use super::conn::ClientConn;

/// The keys of one worker's sampled requests.
#[derive(Debug)]
pub struct Tally {
    /// One request in so many is looked at; 0: none is.
    one_in: Cell<u32>,
    /// Requests until the next one that is; 0 while none is.
    left: Cell<u32>,
    random: Cell<u64>,
    windows: RefCell<Windows>,
}

/// What a sampled request waits for.
#[derive(Debug)]
pub(super) struct Sampled {
    keys: Vec<Box<[u8]>>,
}

/// What a worker knows of hot and big keys.
#[derive(Clone, Debug, Default)]
pub struct KeySample {
    /// The time that it tells of.
    pub time: Duration,
    /// One request in so many was looked at; 0: none is.
    pub one_in: u32,
    /// By requests: the weight of all, and the heaviest with the name of their pool.
    pub requests: (u64, Vec<Heavy>),
    /// By bytes of requests and replies.
    pub bytes: (u64, Vec<Heavy>),
}

/// This window and the one before it, so that an answer is never of a moment only, and nothing old stays.
#[derive(Debug)]
struct Windows {
    since: Instant,
    now: Window,
    before: Option<Window>,
}

#[derive(Debug, Default)]
struct Window {
    requests: Top,
    bytes: Top,
}

/// How long a window is.
const WINDOW: Duration = Duration::from_secs(60);

/// Keys of one request that are looked at.
const MOST_KEYS: usize = 16;

impl Tally {
    /// One request in `one_in` will be looked at; 0: none.
    pub fn new(one_in: u32) -> Self {
        let windows = Windows { since: Instant::now(), now: Window::default(), before: None };
        let random = Cell::new(0x9e37_79b9_7f4a_7c15);
        let tally = Self { one_in: Cell::new(0), left: Cell::new(0), random, windows: RefCell::new(windows) };
        tally.set(one_in);
        tally
    }

    /// From now on one request in `one_in` is looked at. What another share has shown is forgotten.
    pub fn set(&self, one_in: u32) {
        if one_in != self.one_in.replace(one_in) {
            self.windows.replace(Windows { since: Instant::now(), now: Window::default(), before: None });
        }
        self.left.set(self.distance());
    }

    /// Whether this request is one to be looked at.
    #[inline]
    pub(super) fn is_due(&self) -> bool {
        self.left.get() != 0 && self.count_down()
    }

    fn count_down(&self) -> bool {
        let left = self.left.get() - 1;
        if left > 0 {
            self.left.set(left);
            return false;
        }
        self.left.set(self.distance());
        true
    }

    /// 1…2n−1, n on average: a rhythm of the clients' own must not hide a key. (xorshift.)
    fn distance(&self) -> u32 {
        let one_in = self.one_in.get();
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        let span = (2 * u64::from(one_in)).saturating_sub(1);
        if span == 0 { 0 } else { 1 + (random % span) as u32 }
    }

    fn request(&self, pool: u32, keys: &[Box<[u8]>], bytes: u64) {
        let mut windows = self.windows.borrow_mut();
        windows.turn(Instant::now());
        for key in keys {
            windows.now.requests.add(pool, key, 1);
            windows.now.bytes.add(pool, key, bytes / keys.len() as u64);
        }
    }

    fn reply(&self, pool: u32, keys: &[Box<[u8]>], bytes: u64) {
        let windows = &mut *self.windows.borrow_mut();
        keys.iter().for_each(|key| windows.now.bytes.add(pool, key, bytes / keys.len() as u64));
    }

    /// What is known now.
    pub fn sample(&self) -> KeySample {
        let mut windows = self.windows.borrow_mut();
        windows.turn(Instant::now());
        let of = |top: fn(&Window) -> &Top| {
            let parts = [Some(&windows.now), windows.before.as_ref()];
            let parts = parts.into_iter().flatten().map(top);
            let heavy = parts.clone().flat_map(|top| top.heavy().iter().cloned()).collect();
            (parts.map(Top::total).sum(), heavy)
        };
        let before = if windows.before.is_some() { WINDOW } else { Duration::ZERO };
        KeySample {
            time: windows.since.elapsed() + before,
            one_in: self.one_in.get(),
            requests: of(|window| &window.requests),
            bytes: of(|window| &window.bytes),
        }
    }
}

impl Windows {
    /// Begins the next window when this one is over.
    fn turn(&mut self, now: Instant) {
        let age = now.duration_since(self.since);
        if age >= WINDOW {
            let over = std::mem::take(&mut self.now);
            // After a silence there is nothing that was a moment ago.
            self.before = (age < 2 * WINDOW).then_some(over);
            self.since = if self.before.is_some() { self.since + WINDOW } else { now };
        }
    }
}

impl ClientConn {
    /// Notes the keys of a request, and waits for the size of its reply if that of no other is awaited.
    #[cold]
    pub(super) fn sample(&self, call: &Call<'_>) {
        let Ok(keys) = call.keys() else { return };
        let keys = keys.iter().take(MOST_KEYS).filter_map(|at| call.args.get(at));
        let keys: Vec<Box<[u8]>> = keys.map(Box::from).collect();
        if keys.is_empty() {
            return;
        }
        self.tally().request(self.pool().id().0, &keys, call.args.raw().len() as u64);
        if self.outbox().sample_next() {
            self.sampled.set(Some(Box::new(Sampled { keys })));
        }
    }

    /// The reply to the sampled request is there.
    #[cold]
    pub(super) fn sampled(&self, bytes: u64) {
        if let Some(sampled) = self.sampled.take() {
            self.tally().reply(self.pool().id().0, &sampled.keys, bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_in_so_many_is_due_and_none_when_it_is_off() {
        for one_in in [0, 1, 7, 1000] {
            let tally = Tally::new(one_in);
            let due = (0..100_000).filter(|_| tally.is_due()).count();
            let wanted = if one_in == 0 { 0 } else { 100_000 / one_in as usize };
            assert!(due.abs_diff(wanted) <= wanted / 4, "1 in {one_in}: {due} of 100,000");
        }
    }

    #[test]
    fn what_is_older_than_two_windows_is_forgotten() {
        let tally = Tally::new(1);
        let key: Vec<Box<[u8]>> = vec![(*b"key").into()];
        tally.request(1, &key, 10);
        tally.reply(1, &key, 90);
        let sample = tally.sample();
        assert_eq!((sample.requests.0, sample.bytes.0), (1, 100));
        assert_eq!((sample.bytes.1[0].weight, sample.bytes.1[0].largest), (100, 90));

        let began = tally.windows.borrow().since;
        tally.windows.borrow_mut().turn(began + WINDOW);
        assert!(tally.windows.borrow().before.is_some() && tally.windows.borrow().now.requests.total() == 0);
        tally.windows.borrow_mut().turn(began + 2 * WINDOW);
        assert!(tally.windows.borrow().before.as_ref().is_some_and(|window| window.requests.total() == 0));
        tally.set(2);
        assert_eq!(tally.sample().requests.0, 0, "another share begins anew");
    }
}
