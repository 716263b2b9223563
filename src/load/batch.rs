//! The bytes that a client has to write.

use super::template::{Numbers, Template};

/// Requests encoded for the socket, and how much of them has left.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    written: usize,
    /// The bytes are so many copies of one template, which can be renewed in place.
    copies: usize,
}

impl Batch {
    /// `count` requests of the only command, in place of all that has been written: its bytes are there already, but for
    /// the first time.
    pub fn repeat(
        &mut self,
        template: &Template,
        count: usize,
        numbers: &mut Numbers,
        mut drawn: impl FnMut(u64),
    ) {
        if self.copies != count {
            self.bytes.clear();
            (0..count).for_each(|_| self.bytes.extend_from_slice(&template.bytes));
            self.copies = count;
        }
        self.written = 0;
        for request in self.bytes.chunks_exact_mut(template.bytes.len().max(1)) {
            template.renew(request, numbers, &mut drawn);
        }
    }

    /// One more request. What has been written makes room first.
    pub fn append(&mut self, template: &Template, numbers: &mut Numbers, drawn: impl FnMut(u64)) {
        if self.written == self.bytes.len() {
            self.clear();
        }
        self.copies = 0;
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&template.bytes);
        template.renew(&mut self.bytes[at..], numbers, drawn);
    }

    /// What has not been written.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// So many more bytes have left.
    pub fn wrote(&mut self, len: usize) {
        self.written += len;
    }

    /// Forgets all: the connection is gone.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.written = 0;
        self.copies = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn template() -> Template {
        Template::new(&[b"GET".to_vec(), b"__rand_int__".to_vec()], 0, false)
    }

    #[test]
    fn a_repeated_batch_is_what_appending_would_give() {
        let numbers = || Numbers::Sequence(Arc::new(3.into()), 100);
        let (mut repeated, mut appended) = (Batch::default(), Batch::default());
        let mut from = numbers();
        for _ in 0..2 {
            repeated.repeat(&template(), 4, &mut from, |_| ());
            repeated.wrote(10);
        }
        let mut from = numbers();
        (0..8).for_each(|_| appended.append(&template(), &mut from, |_| ()));
        let half = appended.rest().len() / 2;
        assert_eq!(repeated.rest(), &appended.rest()[half + 10..]);
    }

    #[test]
    fn what_is_written_makes_room() {
        let mut batch = Batch::default();
        let mut numbers = Numbers::Sequence(Arc::new(0.into()), 1);
        batch.append(&template(), &mut numbers, |_| ());
        let len = batch.rest().len();
        batch.wrote(len);
        batch.append(&template(), &mut numbers, |_| ());
        assert_eq!((batch.rest().len(), batch.bytes.len()), (len, len));
    }
}
