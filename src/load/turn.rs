//! One turn: one test on one target, from the first connection to the last reply.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::watch;

use super::connect::{CONNECT_TIMEOUT, Door};
use super::cpu;
use super::fault::Faults;
use super::settings::{Length, Settings, Target};
use super::tally::{Tally, latencies};
use super::thread::{Gate, Load, Message, Phase, SAMPLE, Thread};
use super::workload::Workload;

/// How long connecting may take before the load begins with those that are there.
const GATHERING: Duration = Duration::from_secs(15);

/// How long a turn that is stopped waits for the replies that are due.
const LAST_REPLIES: Duration = Duration::from_secs(1);

/// Is told how a run goes, from the thread that runs it, and may end it.
pub trait Watcher {
    /// A turn begins; `what` is for people: round, test and target.
    fn begins(&mut self, what: &str, length: Length);
    /// Several times a second.
    fn progress(&mut self, progress: &Progress);
    /// The turn is over.
    fn ends(&mut self);
    /// Whether the run is to end now, with what is known so far. Asked several times a second.
    fn is_stopped(&self) -> bool;
}

/// Where a turn stands.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Requests that have ended, well or not.
    pub done: u64,
    /// Those that ended badly, and attempts to connect that failed.
    pub errors: u64,
    /// Since the start.
    pub elapsed: Duration,
    /// Replies per second in the last moment.
    pub rate: f64,
    /// 99th percentile of their latencies, in milliseconds.
    pub p99_ms: f64,
}

/// What a turn gave.
#[derive(Clone, Debug)]
pub struct Figures {
    /// From the start to the last reply, in seconds.
    pub seconds: f64,
    /// Latencies of all proper replies, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Everything else.
    pub faults: Faults,
    /// Replies per second, and p99 in milliseconds, one after the other, [`SAMPLE`] apart.
    pub course: Vec<(f64, f64)>,
    /// CPU seconds of this process.
    pub own_cpu: f64,
    /// CPU seconds of the target's processes, where they are known.
    pub target_cpu: Option<f64>,
    /// No reply came for too long, so the turn was ended.
    pub gave_up: bool,
}

impl Figures {
    /// Proper replies per second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 { self.latency.len() as f64 / self.seconds } else { 0.0 }
    }
}

/// Runs one turn. `Err`: nothing could be run at all; a target that is down is no such case.
pub fn run(
    settings: &Settings,
    target: &Target,
    workload: &Workload,
    length: Length,
    in_sequence: bool,
    watcher: &mut dyn Watcher,
) -> Result<Figures, String> {
    let zero = Instant::now();
    let door = Door::new(target, settings)?;
    let sequence = in_sequence.then(Arc::default);
    let load = Load { settings: settings.clone(), workload: workload.clone(), door, zero, sequence };
    let total = match length {
        Length::Requests(n) => n,
        Length::Time(_) => u64::MAX / 2,
    };
    let (load, gate) = (Arc::new(load), Arc::new(Gate::new(total)));
    let (phase, seen) = watch::channel(Phase::Connect);
    let (to_main, messages) = mpsc::channel();
    let threads: Vec<_> = (0..settings.threads)
        .map(|i| {
            let clients =
                settings.clients * i / settings.threads..settings.clients * (i + 1) / settings.threads;
            let (load, gate, seen, to_main) =
                (Arc::clone(&load), Arc::clone(&gate), seen.clone(), to_main.clone());
            std::thread::Builder::new()
                .name(format!("load-{i}"))
                .spawn(move || Thread::run(load, gate, clients, seen, to_main))
        })
        .collect::<Result<_, _>>()
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    drop(to_main);
    let mut turn = Turn::new(settings, &messages, threads.len());
    turn.gather(watcher);
    let cpu = (cpu::own_seconds(), cpu::seconds_of(&target.pids));
    let begun = zero.elapsed();
    turn.start = Instant::now();
    let _ = phase.send(Phase::Run); // nobody listens when no thread could run: their messages say why
    turn.collect(&gate, &phase, length, watcher);
    let own_cpu = cpu::own_seconds() - cpu.0;
    let target_cpu = cpu.1.and_then(|before| Some(cpu::seconds_of(&target.pids)? - before));
    for thread in threads {
        thread.join().map_err(|_| "a thread of the generator failed".to_owned())?;
    }
    match turn.failed {
        Some(why) => Err(why),
        None => Ok(turn.figures(begun, own_cpu, target_cpu)),
    }
}

/// What the thread that runs a turn keeps of it.
struct Turn<'a> {
    give_up: Duration,
    messages: &'a Receiver<Message>,
    /// Threads that have not ended.
    running: usize,
    start: Instant,
    total: Tally,
    /// What came since the last point of the course.
    moment: Histogram<u64>,
    course: Vec<(f64, f64)>,
    gave_up: bool,
    failed: Option<String>,
}

impl<'a> Turn<'a> {
    fn new(settings: &Settings, messages: &'a Receiver<Message>, running: usize) -> Self {
        Self {
            give_up: settings.give_up,
            messages,
            running,
            start: Instant::now(),
            total: Tally::default(),
            moment: latencies(),
            course: Vec::new(),
            gave_up: false,
            failed: None,
        }
    }

    /// Waits until every thread has tried to connect all its clients.
    fn gather(&mut self, watcher: &dyn Watcher) {
        let (mut missing, end) = (self.running, Instant::now() + GATHERING.max(CONNECT_TIMEOUT));
        while missing > 0 && !watcher.is_stopped() {
            let left = end.saturating_duration_since(Instant::now());
            match self.messages.recv_timeout(left.min(SAMPLE)) {
                Ok(Message::Ready) => missing -= 1,
                Ok(Message::Sample(sample)) => self.total.merge(&sample),
                Ok(Message::Ended(why)) => {
                    missing -= 1;
                    self.ended(why);
                }
                Err(RecvTimeoutError::Timeout) if left > SAMPLE => {}
                Err(_) => return,
            }
        }
    }

    fn collect(
        &mut self,
        gate: &Gate,
        phase: &watch::Sender<Phase>,
        length: Length,
        watcher: &mut dyn Watcher,
    ) {
        let (mut point, mut heard, mut samples) = (Instant::now(), Instant::now(), 0);
        let mut stopped = None;
        while self.running > 0 {
            match self.messages.recv_timeout(SAMPLE / 2) {
                Ok(Message::Ready) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Message::Sample(sample)) => {
                    if sample.last_reply > 0 {
                        heard = Instant::now();
                    }
                    samples += 1;
                    let _ = self.moment.add(&sample.latency); // the same bounds
                    self.total.merge(&sample);
                }
                Ok(Message::Ended(why)) => self.ended(why),
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if matches!(length, Length::Time(time) if self.start.elapsed() >= time) {
                gate.close();
            }
            if watcher.is_stopped() {
                gate.close();
                if stopped.get_or_insert_with(Instant::now).elapsed() >= LAST_REPLIES {
                    let _ = phase.send(Phase::Abandon); // those who have ended need not know
                }
            }
            if heard.elapsed() >= self.give_up && !self.gave_up {
                self.gave_up = true;
                let _ = phase.send(Phase::Abandon); // those who have ended need not know
            }
            // A point has one sample of every thread: at times of its own it would have none, or two.
            let since = point.elapsed();
            if (samples >= self.running && since >= SAMPLE / 2) || since >= SAMPLE * 3 {
                let (rate, p99_ms) = self.point(since);
                (point, samples) = (Instant::now(), 0);
                watcher.progress(&self.progress(rate, p99_ms));
            }
        }
    }

    fn point(&mut self, time: Duration) -> (f64, f64) {
        let rate = self.moment.len() as f64 / time.as_secs_f64();
        let p99_ms = self.moment.value_at_quantile(0.99) as f64 / 1e6;
        self.course.push((rate, p99_ms));
        self.moment.reset();
        (rate, p99_ms)
    }

    fn progress(&self, rate: f64, p99_ms: f64) -> Progress {
        let errors = self.total.faults.total();
        let elapsed = self.start.elapsed();
        Progress { done: self.total.latency.len() + errors, errors, elapsed, rate, p99_ms }
    }

    fn ended(&mut self, why: Option<String>) {
        self.running -= 1;
        self.failed = self.failed.take().or(why);
    }

    fn figures(self, begun: Duration, own_cpu: f64, target_cpu: Option<f64>) -> Figures {
        let last = Duration::from_nanos(self.total.last_reply);
        Figures {
            seconds: last.saturating_sub(begun).as_secs_f64(),
            latency: self.total.latency,
            faults: self.total.faults,
            course: self.course,
            own_cpu,
            target_cpu,
            gave_up: self.gave_up,
        }
    }
}
