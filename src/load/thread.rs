//! One thread of the generator: its runtime, its clients, and what they share.

use std::cell::{Cell, RefCell};
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval_at};

use super::client::Client;
use super::connect::Door;
use super::fault::Fault;
use super::pacer::Pacer;
use super::settings::Settings;
use super::tally::Tally;
use super::workload::Workload;

/// Bytes that one read can take.
const SCRATCH_BYTES: usize = 64 << 10;
/// Connections being opened at the same time before the start: fewer than the usual listening queue of 511.
const OPENING: usize = 128;

/// What all threads of a turn run.
#[derive(Debug)]
pub struct Load {
    /// The whole load; numbers of clients and requests per second are those of all threads together.
    pub settings: Settings,
    /// The test.
    pub workload: Workload,
    /// The target.
    pub door: Door,
    /// Zero of the turn's clock.
    pub zero: Instant,
    /// Keys come one after the other instead of at random: the next one.
    pub sequence: Option<Arc<AtomicU64>>,
}

/// How many requests are left, for all threads. One atomic addition per batch.
#[derive(Debug)]
pub struct Gate {
    total: u64,
    claimed: AtomicU64,
    closed: AtomicBool,
}

/// Where a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Clients connect.
    Connect,
    /// Clients send.
    Run,
    /// Everything is dropped.
    Abandon,
}

/// What a thread tells.
#[derive(Debug)]
pub enum Message {
    /// All its clients have connected, or tried to.
    Ready,
    /// What it counted since it last said so.
    Sample(Box<Tally>),
    /// It has ended; `Some`: because it could not run.
    Ended(Option<String>),
}

/// What the clients of one thread share.
#[derive(Debug)]
pub struct Thread {
    /// What is run.
    pub load: Arc<Load>,
    gate: Arc<Gate>,
    /// Where reads go; only an incomplete reply is kept by its client.
    pub scratch: RefCell<BytesMut>,
    /// Counts since the last sample.
    pub tally: RefCell<Tally>,
    /// Requests sent, or claimed, whose end is not known.
    pub outstanding: Cell<u64>,
    /// The schedule, with a rate.
    pub pacer: Option<Pacer>,
    /// Bounds how many connect at once.
    pub opening: Semaphore,
    /// Clients that have not yet tried to connect.
    untried: Cell<usize>,
    to_main: Sender<Message>,
}

// === impl Gate ===

impl Gate {
    /// For so many requests.
    pub fn new(total: u64) -> Self {
        Self { total, claimed: AtomicU64::new(0), closed: AtomicBool::new(false) }
    }

    /// No request more.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }

    /// Takes up to `most` requests; 0: none is left.
    pub fn claim(&self, most: u64) -> u64 {
        if self.closed.load(Ordering::Relaxed) {
            return 0;
        }
        let before = self.claimed.fetch_add(most, Ordering::Relaxed);
        self.total.saturating_sub(before).min(most)
    }

    fn is_over(&self) -> bool {
        self.closed.load(Ordering::Relaxed) || self.claimed.load(Ordering::Relaxed) >= self.total
    }
}

// === impl Thread ===

impl Thread {
    /// Runs these clients to the end of the turn, and tells `to_main` how it goes.
    pub fn run(
        load: Arc<Load>,
        gate: Arc<Gate>,
        clients: Range<usize>,
        phase: watch::Receiver<Phase>,
        to_main: Sender<Message>,
    ) {
        let share = clients.len() as f64 / load.settings.clients as f64;
        let pacer = load.settings.rate.map(|rate| Pacer::new(rate * share));
        let thread = Rc::new(Self {
            load,
            gate,
            scratch: RefCell::new(BytesMut::with_capacity(SCRATCH_BYTES)),
            tally: RefCell::default(),
            outstanding: Cell::new(0),
            pacer,
            opening: Semaphore::new(OPENING),
            untried: Cell::new(clients.len()),
            to_main,
        });
        let ended = thread.drive(clients, phase);
        if thread.outstanding.get() > 0 {
            thread.tally.borrow_mut().faults.add(&Fault::NoReply, thread.outstanding.get());
        }
        thread.hand_over();
        thread.tell(Message::Ended(ended.err().map(|error| error.to_string())));
    }

    fn drive(self: &Rc<Self>, clients: Range<usize>, phase: watch::Receiver<Phase>) -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build_local(Default::default())?;
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            for number in clients {
                tasks.spawn_local(Client::new(Rc::clone(self), number).run(phase.clone()));
            }
            let mut running = phase.clone();
            if running.wait_for(|phase| *phase != Phase::Connect).await.is_err() {
                return Ok(()); // main has gone
            }
            if let Some(pacer) = &self.pacer {
                pacer.begin(self.now());
            }
            let paced = async {
                match &self.pacer {
                    Some(pacer) => pacer.run(self).await,
                    None => Ok(()),
                }
            };
            tokio::try_join!(paced, async {
                self.watch(tasks, running).await;
                Ok(())
            })?;
            Ok(())
        })
    }

    /// Hands over samples until all clients have ended, or the turn is abandoned.
    async fn watch(&self, mut tasks: JoinSet<()>, mut phase: watch::Receiver<Phase>) {
        // Not at once: a sample without a reply would be a point of its own.
        let mut ticks = interval_at(tokio::time::Instant::now() + SAMPLE, SAMPLE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                ended = tasks.join_next() => if ended.is_none() { return },
                _ = ticks.tick() => self.hand_over(),
                _ = phase.wait_for(|phase| *phase == Phase::Abandon) => {
                    self.gate.close();
                    return;
                }
            }
        }
    }

    /// Nanoseconds of the turn's clock.
    #[inline]
    pub fn now(&self) -> u64 {
        self.load.zero.elapsed().as_nanos() as u64
    }

    /// Takes up to `most` requests, which are outstanding from now on; 0: none is left.
    #[inline]
    pub fn claim(&self, most: usize) -> usize {
        let claimed = self.gate.claim(most as u64);
        self.outstanding.set(self.outstanding.get() + claimed);
        claimed as usize
    }

    /// Whether no request is left to be claimed.
    pub fn is_over(&self) -> bool {
        self.gate.is_over()
    }

    /// Counts `count` outstanding requests as lost; an attempt that lost none counts as one.
    pub fn lost(&self, fault: &Fault, count: usize) {
        self.outstanding.set(self.outstanding.get() - count as u64);
        self.tally.borrow_mut().faults.add(fault, (count as u64).max(1));
    }

    /// One more client has tried to connect.
    pub fn tried(&self) {
        self.untried.set(self.untried.get() - 1);
        if self.untried.get() == 0 {
            self.tell(Message::Ready);
        }
    }

    fn hand_over(&self) {
        let sample = self.tally.replace(Tally::default());
        self.tell(Message::Sample(Box::new(sample)));
    }

    fn tell(&self, message: Message) {
        // Main that has gone needs no news.
        let _ = self.to_main.send(message);
    }
}

/// How often a thread tells what it counted.
pub const SAMPLE: Duration = Duration::from_millis(200);
