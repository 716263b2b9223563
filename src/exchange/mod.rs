//! One request, one outcome, in order: the neutral ground between clients and servers, without any socket.
//!
//! Two clients, A and B, and one server connection:
//!
//! ```text
//!   A: GET x, GET y      B: GET z            the server's FIFO          replies come as X Y Z
//!   Outbox A [0][1]      Outbox B [0]        (A,0) (A,1) (B,0)
//!
//!   X settles ticket (A,0): slot 0 is the head, its bytes go to A's ready queue, A is marked ready
//!   Y settles (A,1), Z settles (B,0) likewise; at the end of the turn A is written once, B once
//! ```
//!
//! If y lives on another server that answers first, Y is parked in slot 1 until X has filled slot 0.
//! If A goes away, its outbox closes: X and Y are still taken off the FIFO by their tickets, and dropped.

mod backend_error;
mod budget;
mod buffer_pool;
mod byte_queue;
mod inbox;
mod moment;
mod outbox;
mod ticket;
mod turn;

pub use backend_error::{BackendError, Cause};
pub use budget::{Account, Budget, Charge};
pub use buffer_pool::BufferPool;
pub use byte_queue::{ByteQueue, Written};
pub use inbox::Inbox;
pub use moment::Moment;
pub use outbox::{Outbox, Replies};
pub use ticket::{Outcome, Recipient, Reply, Settle, Ticket, Took};
pub use turn::{Flush, Turn};
