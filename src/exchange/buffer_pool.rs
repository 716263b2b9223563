//! Memory that the connections of one worker lend and give back.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use bytes::BytesMut;

use super::budget::Account;
use super::outbox::Slot;
use crate::resp::ArgSpan;

/// Buffers that queues of one worker lend and give back, so that the common path does not allocate and an idle
/// queue owns nothing.
#[derive(Debug, Default)]
pub struct BufferPool {
    buffers: RefCell<Shelf<Vec<u8>>>,
    scratch: RefCell<Vec<BytesMut>>,
    spans: RefCell<Vec<ArgSpan>>,
    slots: RefCell<Shelf<VecDeque<Slot>>>,
    /// What waits in this worker's buffers, as a part of what the process allows.
    pub account: Rc<Account>,
}

/// Things kept for whoever needs one next, and their weight.
#[derive(Debug, Default)]
struct Shelf<T> {
    kept: Vec<T>,
    weight: usize,
}

/// Capacity of a buffer for one read. Only what is read into it becomes resident.
const SCRATCH_CAPACITY: usize = 128 << 10;
/// Most of them kept: one is in use at a time, the others come back from large messages.
const KEPT_SCRATCH: usize = 8;
/// Most spans whose memory is kept.
const KEPT_SPANS: usize = 4 << 10;

const FIRST_CAPACITY: usize = 256;
/// Bytes of buffers kept per worker, and the largest buffer kept: enough for two thousand clients that are
/// answered in one turn. What a burst took beyond goes back.
const KEPT_BYTES: usize = 512 << 10;
const KEPT_CAPACITY: usize = 32 << 10;

const FIRST_SLOTS: usize = 4;
/// Slots kept per worker (32 bytes each), and the longest queue of them kept.
const KEPT_SLOTS: usize = 16 << 10;
const KEPT_QUEUE: usize = 256;

impl BufferPool {
    /// An empty one, whose buffers are charged to `account`.
    pub fn new(account: Account) -> Self {
        Self { account: Rc::new(account), ..Self::default() }
    }

    /// An empty buffer, of any capacity but 0.
    #[inline]
    pub fn take(&self) -> Vec<u8> {
        let kept = self.buffers.borrow_mut().take(Vec::capacity);
        kept.unwrap_or_else(|| Vec::with_capacity(FIRST_CAPACITY))
    }

    /// Takes a buffer back.
    #[inline]
    pub fn give(&self, mut buffer: Vec<u8>) {
        if buffer.capacity() <= KEPT_CAPACITY {
            buffer.clear();
            self.buffers.borrow_mut().give(buffer, Vec::capacity, KEPT_BYTES);
        }
    }

    /// An empty buffer for one read.
    #[inline]
    pub fn take_scratch(&self) -> BytesMut {
        let mut scratch = self.scratch.borrow_mut().pop().unwrap_or_default();
        // Free of cost while nobody else holds a part of it; otherwise this makes a new one.
        scratch.reserve(SCRATCH_CAPACITY);
        scratch
    }

    /// An empty vector for the spans of the requests in one read.
    #[inline]
    pub fn take_spans(&self) -> Vec<ArgSpan> {
        self.spans.take()
    }

    /// Takes the vector back.
    #[inline]
    pub fn give_spans(&self, mut spans: Vec<ArgSpan>) {
        if spans.capacity() <= KEPT_SPANS {
            spans.clear();
            self.spans.replace(spans);
        }
    }

    /// Takes a read buffer back; messages may still share parts of it.
    #[inline]
    pub fn give_scratch(&self, mut buffer: BytesMut) {
        let mut scratch = self.scratch.borrow_mut();
        // One that grew with a large message is not for keeping.
        if scratch.len() < KEPT_SCRATCH && buffer.capacity() <= 2 * SCRATCH_CAPACITY {
            buffer.clear();
            scratch.push(buffer);
        }
    }

    /// An empty queue of slots for a client that has its first request on its way.
    #[inline]
    pub(super) fn take_slots(&self) -> VecDeque<Slot> {
        let kept = self.slots.borrow_mut().take(VecDeque::capacity);
        kept.unwrap_or_else(|| VecDeque::with_capacity(FIRST_SLOTS))
    }

    /// Takes the slots of a client back that has nothing on its way any more.
    #[inline]
    pub(super) fn give_slots(&self, slots: VecDeque<Slot>) {
        debug_assert!(slots.is_empty());
        if slots.capacity() <= KEPT_QUEUE {
            self.slots.borrow_mut().give(slots, VecDeque::capacity, KEPT_SLOTS);
        }
    }
}

impl<T> Shelf<T> {
    #[inline]
    fn take(&mut self, weigh: fn(&T) -> usize) -> Option<T> {
        let item = self.kept.pop()?;
        self.weight -= weigh(&item);
        Some(item)
    }

    /// Keeps `item` unless all would then weigh more than `most`.
    #[inline]
    fn give(&mut self, item: T, weigh: fn(&T) -> usize, most: usize) {
        let weight = weigh(&item);
        if self.weight + weight <= most {
            self.weight += weight;
            self.kept.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_in_bytes() {
        let pool = BufferPool::default();
        for capacity in [KEPT_CAPACITY, FIRST_CAPACITY, KEPT_CAPACITY + 1] {
            (0..10_000).for_each(|_| pool.give(Vec::with_capacity(capacity)));
        }
        let shelf = pool.buffers.take();
        assert_eq!(shelf.weight, shelf.kept.iter().map(Vec::capacity).sum::<usize>());
        assert!(shelf.weight <= KEPT_BYTES && shelf.weight > KEPT_BYTES - KEPT_CAPACITY, "{}", shelf.weight);
    }

    #[test]
    fn a_kept_buffer_comes_back_empty() {
        let pool = BufferPool::default();
        pool.give(vec![1; 100]);
        let buffer = pool.take();
        assert_eq!((buffer.len(), buffer.capacity()), (0, 100));
        assert_eq!(pool.buffers.take().weight, 0);
    }
}
