//! Memory that the connections of one worker lend and give back.

use std::cell::RefCell;
use std::collections::VecDeque;

use bytes::BytesMut;

use super::outbox::Slot;
use crate::resp::ArgSpan;

/// Buffers that queues of one worker lend and give back, so that the common path does not allocate and an idle
/// queue owns nothing.
#[derive(Debug, Default)]
pub struct BufferPool {
    free: RefCell<Vec<Vec<u8>>>,
    scratch: RefCell<Vec<BytesMut>>,
    spans: RefCell<Vec<ArgSpan>>,
    slots: RefCell<Vec<VecDeque<Slot>>>,
}

/// Capacity of a buffer for one read. Only what is read into it becomes resident.
const SCRATCH_CAPACITY: usize = 128 << 10;
/// Most of them kept: one is in use at a time, the others come back from large messages.
const KEPT_SCRATCH: usize = 8;
const FIRST_SLOTS: usize = 4;
/// Longest queue of slots kept.
const KEPT_SLOTS: usize = 256;
/// Most spans whose memory is kept.
const KEPT_SPANS: usize = 4 << 10;

/// Most buffers kept, and the largest one kept: 2 MiB per worker at most. What a burst took beyond goes back.
const KEPT_BUFFERS: usize = 64;
const KEPT_CAPACITY: usize = 32 << 10;
const FIRST_CAPACITY: usize = 256;

impl BufferPool {
    /// An empty buffer, of any capacity but 0.
    #[inline]
    pub fn take(&self) -> Vec<u8> {
        self.free.borrow_mut().pop().unwrap_or_else(|| Vec::with_capacity(FIRST_CAPACITY))
    }

    /// Takes a buffer back.
    #[inline]
    pub fn give(&self, mut buffer: Vec<u8>) {
        let mut free = self.free.borrow_mut();
        if free.len() < KEPT_BUFFERS && buffer.capacity() <= KEPT_CAPACITY {
            buffer.clear();
            free.push(buffer);
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
        self.slots.borrow_mut().pop().unwrap_or_else(|| VecDeque::with_capacity(FIRST_SLOTS))
    }

    /// Takes the slots of a client back that has nothing on its way any more.
    #[inline]
    pub(super) fn give_slots(&self, slots: VecDeque<Slot>) {
        debug_assert!(slots.is_empty());
        let mut kept = self.slots.borrow_mut();
        if kept.len() < KEPT_BUFFERS && slots.capacity() <= KEPT_SLOTS {
            kept.push(slots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client whose packet ended behind `*4` got its vector in the middle of its request, when the scanner no longer
    /// clears it: the arguments of another client's request stood before its own.
    #[test]
    fn no_request_sees_the_spans_of_another() {
        let pool = BufferPool::default();
        pool.give_spans(vec![ArgSpan { start: 4, len: 3 }]);
        let spans = pool.take_spans();
        assert!(spans.is_empty() && spans.capacity() > 0);
    }
}
