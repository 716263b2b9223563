//! The end of a client's connection: what is due to it is delivered before its socket closes.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use super::{ClientConn, Closed, Phase, READS_PER_TURN};

/// How long a client that has got its last reply may take to close its side.
const LINGER: Duration = Duration::from_secs(2);

impl ClientConn {
    /// Over when nothing is due any more; until then the flush wakes the task.
    pub(super) fn poll_delivered(&self, closed: Closed) -> Poll<Closed> {
        if self.outbox.is_delivered() { Poll::Ready(closed) } else { Poll::Pending }
    }

    /// Reads and drops what the client still sends. A socket that is closed with unread bytes in it is reset, and the
    /// client would lose the replies that it hasn't taken yet.
    pub(super) async fn linger(&self) {
        if self.stream.borrow().finish().is_ok() {
            let end = poll_fn(|cx| self.poll_discard(cx));
            // Whoever doesn't close by then doesn't wait for replies either.
            let _ = tokio::time::timeout(LINGER, end).await;
        }
    }

    /// Ready when the client has closed its side, or the proxy is in a hurry.
    pub(super) fn poll_discard(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.remember_task(cx);
        let buffers = &self.pool.turn.buffers;
        for _ in 0..READS_PER_TURN {
            if matches!(self.phase.get(), Phase::Over(_)) {
                return Poll::Ready(());
            }
            let mut buffer = buffers.take_scratch();
            let polled = self.stream.borrow_mut().poll_read_into(cx, &mut buffer);
            buffer.clear();
            buffers.give_scratch(buffer);
            match polled {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
