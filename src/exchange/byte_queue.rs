//! Bytes on their way to a socket: small ones gathered in one buffer, large ones passed on without a copy.

use std::collections::VecDeque;
use std::io::{self, IoSlice};

use bytes::{Buf, Bytes};

use super::buffer_pool::BufferPool;

/// Most pieces handed to one vectored write; Linux takes up to 1,024.
const MAX_PARTS: usize = 64;

/// An ordered queue of bytes. An empty one owns no memory once [`ByteQueue::release`] was called.
#[derive(Debug, Default)]
pub struct ByteQueue {
    /// Closed pieces, in front of `open`.
    sealed: VecDeque<Bytes>,
    /// How many at the front of `sealed` hold no memory but their own.
    owned: usize,
    /// Where small pieces are appended.
    open: Vec<u8>,
    /// Bytes of `open` that are gone already; not 0 only while `sealed` is empty.
    gone: usize,
    /// Bytes in all.
    len: usize,
}

/// How a write to a socket ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// The queue is empty.
    All,
    /// The socket is full.
    Blocked,
}

impl ByteQueue {
    /// Appends a copy of `bytes`.
    #[inline]
    pub fn push_slice(&mut self, bytes: &[u8], pool: &BufferPool) {
        self.append_with(pool, |open| open.extend_from_slice(bytes));
    }

    /// Appends `bytes` as they are, without a copy.
    pub fn push_bytes(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.seal();
        self.len += bytes.len();
        self.sealed.push_back(bytes);
    }

    /// Lets `write` append to the open buffer; returns how many bytes it appended.
    #[inline]
    pub fn append_with(&mut self, pool: &BufferPool, write: impl FnOnce(&mut Vec<u8>)) -> usize {
        if self.open.capacity() == 0 {
            self.open = pool.take();
        }
        let before = self.open.len();
        write(&mut self.open);
        let added = self.open.len() - before;
        self.len += added;
        added
    }

    /// Drops the first `n` bytes.
    pub fn advance(&mut self, mut n: usize) {
        debug_assert!(n <= self.len);
        self.len -= n;
        while let Some(front) = self.sealed.front_mut() {
            if n < front.len() {
                front.advance(n);
                return;
            }
            n -= front.len();
            self.sealed.pop_front();
            self.owned = self.owned.saturating_sub(1);
        }
        self.gone += n;
        if self.gone == self.open.len() {
            self.open.clear();
            self.gone = 0;
        }
    }

    /// Writes until nothing is left or the socket is full.
    pub fn write_to(
        &mut self,
        mut write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> io::Result<Written> {
        while self.len > 0 {
            let result = if self.sealed.is_empty() {
                write(&[IoSlice::new(&self.open[self.gone..])])
            } else {
                self.write_parts(&mut write)
            };
            match result {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => self.advance(n),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Written::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Written::All)
    }

    /// Copies what is shared with a much larger buffer. Pieces that leave at once are not worth it; those that wait would
    /// hold more memory than [`ByteQueue::len`] says.
    pub fn own_what_waits(&mut self) {
        for piece in self.sealed.iter_mut().skip(self.owned) {
            *piece = owned(std::mem::take(piece));
        }
        self.owned = self.sealed.len();
    }

    /// Gives the buffer of an empty queue back.
    #[inline]
    pub fn release(&mut self, pool: &BufferPool) {
        debug_assert_eq!(self.len, 0);
        if self.open.capacity() > 0 {
            pool.give(std::mem::take(&mut self.open));
        }
        if self.sealed.capacity() > 0 {
            self.sealed = VecDeque::new();
        }
    }

    /// Forgets everything in it.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes waiting.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn write_parts(&self, write: &mut impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>) -> io::Result<usize> {
        let mut parts = [IoSlice::new(&[]); MAX_PARTS];
        let mut count = 0;
        let open = (!self.open.is_empty()).then_some(self.open.as_slice());
        for (part, bytes) in parts.iter_mut().zip(self.sealed.iter().map(Bytes::as_ref).chain(open)) {
            *part = IoSlice::new(bytes);
            count += 1;
        }
        write(&parts[..count])
    }

    /// Closes the open buffer, so that something can be queued behind it.
    fn seal(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let mut piece = Bytes::from(std::mem::take(&mut self.open));
        piece.advance(std::mem::take(&mut self.gone));
        self.sealed.push_back(piece);
    }
}

/// Pieces up to this size are copied when they have to wait: half of the buffers that connections are read into.
const SMALL_PIECE: usize = 64 << 10;

/// The same bytes, in memory of about their own size.
pub(super) fn owned(bytes: Bytes) -> Bytes {
    if bytes.len() < SMALL_PIECE { Bytes::copy_from_slice(&bytes) } else { bytes }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Slice(Vec<u8>),
        Shared(Vec<u8>),
        Write(usize),
        Advance(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let bytes = || proptest::collection::vec(any::<u8>(), 0..20);
        proptest::collection::vec(
            prop_oneof![
                bytes().prop_map(Step::Slice),
                bytes().prop_map(Step::Shared),
                (0..30usize).prop_map(Step::Write),
                (0..30usize).prop_map(Step::Advance),
            ],
            0..40,
        )
    }

    /// 16 KB replies kept the 128 KB that they had been read into, and a client that did not read held eight times what its
    /// bound counted.
    #[test]
    fn what_waits_holds_no_more_than_its_length() {
        let mut queue = ByteQueue::default();
        let read = Bytes::from(vec![7; 128 << 10]);
        let (small, large) = (read.slice(100..16_100), read.slice(0..100 << 10));
        queue.push_bytes(small);
        queue.push_bytes(large);
        queue.own_what_waits();
        assert!(!read.is_unique(), "a large piece is not worth a copy");
        queue.advance(16_000);
        queue.push_bytes(read.slice(5..6));
        queue.advance(100 << 10);
        queue.own_what_waits();
        assert!(read.is_unique());
        assert_eq!(queue.len(), 1);
    }

    proptest! {
        #[test]
        fn bytes_leave_in_the_order_they_came(steps in steps()) {
            let (pool, mut queue) = (BufferPool::default(), ByteQueue::default());
            let (mut model, mut left) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Slice(bytes) => {
                        model.extend_from_slice(&bytes);
                        queue.push_slice(&bytes, &pool);
                    }
                    Step::Shared(bytes) => {
                        model.extend_from_slice(&bytes);
                        queue.push_bytes(bytes.into());
                    }
                    Step::Write(room) => {
                        let mut room = room;
                        let written = queue.write_to(|parts| {
                            if room == 0 {
                                return Err(io::ErrorKind::WouldBlock.into());
                            }
                            let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                            let n = all.len().min(room);
                            left.extend_from_slice(&all[..n]);
                            room -= n;
                            Ok(n)
                        }).unwrap();
                        prop_assert_eq!(written == Written::All, queue.is_empty());
                    }
                    Step::Advance(n) => {
                        let n = n.min(queue.len());
                        left.extend_from_slice(&model[left.len()..left.len() + n]);
                        queue.advance(n);
                    }
                }
                prop_assert_eq!(queue.len(), model.len() - left.len());
                if queue.is_empty() {
                    queue.release(&pool);
                }
            }
            prop_assert_eq!(&left[..], &model[..left.len()]);
        }
    }
}
