//! Bytes that came from a socket and are not consumed yet.

use bytes::BytesMut;

use super::budget::Charge;
use super::buffer_pool::BufferPool;

/// The incomplete head of a message, between two reads. Owns nothing while every message so far was complete.
///
/// A read goes into a scratch buffer of the worker with the kept bytes copied in front. When much is missing, the
/// buffer itself is kept and grown instead, so that a large message is not copied in user space.
#[derive(Debug, Default)]
pub struct Inbox {
    kept: BytesMut,
    charge: Charge,
}

/// From so many bytes (kept and missing) on, a message gets a buffer of its own.
const OWN_BUFFER: usize = 16 << 10;

/// Room behind what is missing, so that a read of all of it is a short one: the socket is then known to be empty
/// without asking again.
const SLACK: usize = 1 << 10;

/// Memory follows what has come, never what was announced: a buffer at most doubles.
const LEAST_GROWTH: usize = 64 << 10;

impl Inbox {
    /// The buffer for the next read: what is kept, and free capacity behind it.
    ///
    /// `missing` bytes are known to be lacking (0: unknown). Give the buffer back to [`Inbox::keep`].
    #[inline]
    pub fn buffer(&mut self, missing: usize, pool: &BufferPool) -> BytesMut {
        if self.kept.is_empty() {
            return pool.take_scratch();
        }
        if self.kept.len() + missing < OWN_BUFFER {
            let mut scratch = pool.take_scratch();
            scratch.extend_from_slice(&self.kept);
            self.kept = BytesMut::new();
            return scratch;
        }
        let mut own = std::mem::take(&mut self.kept);
        let wanted = (missing + SLACK).min(own.len().max(LEAST_GROWTH)).max(SLACK);
        own.reserve(wanted);
        own
    }

    /// Keeps what was not consumed.
    #[inline]
    pub fn keep(&mut self, rest: BytesMut, missing: usize, pool: &BufferPool) {
        self.charge.set(&pool.account, rest.len());
        if rest.len() + missing >= OWN_BUFFER && !rest.is_empty() {
            self.kept = rest;
            return;
        }
        if !rest.is_empty() {
            self.kept = BytesMut::from(&rest[..]);
        }
        pool.give_scratch(rest);
    }

    /// Takes what is kept, to be looked at again.
    pub fn take(&mut self) -> BytesMut {
        self.charge.clear();
        std::mem::take(&mut self.kept)
    }

    /// Bytes kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Forgets what is kept.
    pub fn clear(&mut self) {
        self.charge.clear();
        self.kept = BytesMut::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_kept_when_all_is_consumed() {
        let (pool, mut inbox) = (BufferPool::default(), Inbox::default());
        let mut buffer = inbox.buffer(0, &pool);
        buffer.extend_from_slice(b"abc");
        inbox.keep(buffer.split_off(3), 0, &pool);
        assert!(inbox.is_empty());
        let mut buffer = inbox.buffer(0, &pool);
        assert!(buffer.is_empty());
        buffer.extend_from_slice(b"abcd");
        inbox.keep(buffer.split_off(3), 5, &pool);
        assert_eq!(inbox.len(), 1);
        assert_eq!(&inbox.buffer(5, &pool)[..], b"d");
    }

    #[test]
    fn memory_follows_what_came_not_what_was_announced() {
        let (pool, mut inbox) = (BufferPool::default(), Inbox::default());
        let announced = 512 << 20;
        let mut buffer = inbox.buffer(0, &pool);
        buffer.extend_from_slice(b"*1\r\n$536870912\r\n");
        inbox.keep(buffer, announced, &pool);
        let buffer = inbox.buffer(announced, &pool);
        assert!(buffer.capacity() <= 512 << 10, "{} bytes for an announcement", buffer.capacity());
    }
}
