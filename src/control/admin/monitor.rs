//! MONITOR on the admin port: requests of all pools' clients as they come, one in so many.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, timeout};

use super::times::whole;
use super::{Admin, Answered, Visit, WRITE_LIMIT};
use crate::control::visitors::Duplex;
use crate::resp::{Args, ErrorReply, encode};
use crate::stats::Cell;
use crate::worker::{Ask, Monitor, Order};

/// Lines, of some 4 KB at most, that wait for a monitor; more are dropped.
const QUEUE: usize = 1024;

/// Lines that are written at once.
const BATCH: usize = 256;

/// How often it is said that lines were dropped.
const SAY_DROPS: Duration = Duration::from_secs(1);

/// What a connection that monitors hears.
pub(super) struct Monitoring {
    lines: mpsc::Receiver<String>,
    /// By worker.
    dropped: Vec<Arc<Cell>>,
    /// Of those, so many have been said.
    said: u64,
    look: Interval,
}

impl Admin {
    /// MONITOR.
    pub(super) fn monitor(&self, visit: &mut Visit, args: Args<'_>, out: &mut Vec<u8>) -> Answered {
        let every = args.get(1).map_or(Ok(1), whole)?;
        if every == 0 {
            return Err(ErrorReply::not_an_integer());
        }
        let (send, lines) = mpsc::channel(QUEUE);
        let dropped: Vec<Arc<Cell>> = self.workers.iter().map(|_| Arc::default()).collect();
        for (worker, dropped) in self.workers.iter().zip(&dropped) {
            let monitor = Monitor::new(send.clone(), every, Arc::clone(dropped));
            // One that has ended has no clients.
            let _ = worker.send(Order::Ask(Ask::Monitor(monitor)));
        }
        let mut look = tokio::time::interval(SAY_DROPS);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        visit.monitoring = Some(Monitoring { lines, dropped, said: 0, look });
        encode::simple(out, "OK");
        Ok(())
    }
}

// === impl Monitoring ===

impl Monitoring {
    /// Writes what comes, until the visitor says something: so many bytes of it are in `buffer`; 0: it has gone.
    pub(super) async fn watch(
        &mut self,
        stream: &mut impl Duplex,
        buffer: &mut BytesMut,
    ) -> std::io::Result<usize> {
        loop {
            let mut out = Vec::new();
            tokio::select! {
                read = stream.read_buf(buffer) => return read,
                () = self.gather(&mut out) => {}
            }
            timeout(WRITE_LIMIT, stream.write_all(&out)).await??;
        }
    }

    /// Cancelling this loses nothing.
    async fn gather(&mut self, out: &mut Vec<u8>) {
        let mut lines = Vec::new();
        tokio::select! {
            count = self.lines.recv_many(&mut lines, BATCH) => {
                if count == 0 {
                    // Every worker has ended: the process is about to.
                    std::future::pending::<()>().await;
                }
                lines.iter().for_each(|line| encode::simple(out, line));
            }
            _ = self.look.tick() => self.say_drops(out),
        }
    }

    /// In the form of a request, so that what reads the others reads this.
    fn say_drops(&mut self, out: &mut Vec<u8>) {
        let dropped: u64 = self.dropped.iter().map(|dropped| dropped.value()).sum();
        let news = dropped - std::mem::replace(&mut self.said, dropped);
        if news > 0 {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let (secs, micros) = (since.as_secs(), since.subsec_micros());
            encode::simple(out, &format!("{secs}.{micros:06} [0 shardwise] \"DROPPED\" \"{news}\""));
        }
    }
}
