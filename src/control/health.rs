//! When a server is ejected and when it comes back. Pure: readings and times come in as arguments.
//!
//! ```text
//!            limit reached, nobody succeeded since            server_retry_timeout over
//!   Live ───────────────────────────────────────▶ Out ───────────────────────────────▶ Probing
//!    ▲                                             ▲                                    │  │
//!    │                                             └──────────── no good answer ────────┘  │
//!    └───────────────────────────────────────────────── +PONG ─────────────────────────────┘
//! ```
//!
//! With `readmit: optimistic` the way back skips `Probing`.

use std::time::{Duration, Instant};

use crate::config::{Pool, Readmit};
use crate::topology::ServerIx;

/// What one worker's cells say of one server. Times are microseconds since 1970; 0: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Consecutive failures.
    pub failed_attempts: u64,
    /// When the first of them happened.
    pub failing_since: u64,
    /// A time after which there certainly was a success; the last success may be up to [`SUCCESS_LAG`] later.
    pub last_success: u64,
}

/// How far `last_success` may lag behind the last success: that many seconds are two looks at the workers' counts.
pub const SUCCESS_LAG: Duration = Duration::from_secs(2);

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// For deadlines.
    pub instant: Instant,
    /// Microseconds since 1970, as the workers' cells have it.
    pub micros: u64,
}

/// What became of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing changes.
    Unchanged,
    /// It is out; the live mask has changed.
    Ejected,
    /// It would be out, but it is the last one. Said once until the pool has another live server again.
    Spared,
}

/// What to do with a server whose time out is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Ask it, and tell [`PoolHealth::probed`]. Until then nothing is due for it.
    Probe(ServerIx),
    /// Give it to [`PoolHealth::readmit`].
    Readmit(ServerIx),
}

/// A pool's settings about health.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `server_failure_limit`: consecutive failures of one worker that eject a server.
    pub limit: u64,
    /// `server_retry_timeout`: how long it stays out at least.
    pub out_for: Duration,
    /// `readmit`: how it comes back.
    pub way_back: Readmit,
    /// `probe_interval`: time between two probes.
    pub probe_again: Duration,
    /// `probe_rise`: answered probes in a row that bring it back.
    pub rise: u32,
    /// `max_ejected`: most of the pool's servers that are out at once, in percent. The last one never is.
    pub most_out: u32,
}

/// The health of one pool's servers. Only pools with `auto_eject_hosts` have one.
#[derive(Debug)]
pub struct PoolHealth {
    rules: Rules,
    servers: Vec<State>,
    /// By `ServerIx`: the operator keeps it out, see [`Hold`](super::hold::Hold). Such a server is not judged.
    held: Vec<bool>,
    spared_noted: bool,
}

#[derive(Debug)]
enum State {
    /// Owns keys.
    Live(Since),
    /// Owns none until then at least. So many probes in a row were answered.
    Out(Instant, u32),
    /// A probe is on its way; so many before it were answered.
    Probing(u32),
}

/// What was known of a server when it came (back); only what is newer counts against it.
#[derive(Debug, Default)]
struct Since {
    micros: u64,
    /// By worker; empty at the start.
    readings: Vec<Reading>,
}

/// How a server looks over all workers.
#[derive(Debug, PartialEq, Eq)]
enum Looks {
    Sound,
    /// Another worker may have had a success that is not noted yet: look again.
    Unclear,
    Failing,
}

impl Rules {
    /// `None` without `auto_eject_hosts`.
    pub fn of(pool: &Pool) -> Option<Self> {
        pool.auto_eject_hosts.then(|| Self {
            limit: u64::from(pool.server_failure_limit.get()),
            out_for: pool.server_retry_timeout,
            way_back: pool.readmit,
            probe_again: pool.probe_interval,
            rise: pool.probe_rise.get(),
            most_out: pool.max_ejected,
        })
    }
}

impl PoolHealth {
    /// So many servers, all live.
    pub fn new(rules: Rules, servers: usize) -> Self {
        let held = vec![false; servers];
        let servers = (0..servers).map(|_| State::Live(Since::default())).collect();
        Self { rules, servers, held, spared_noted: false }
    }

    /// The health of a pool after a reload, from that of the same pool before: `before` says, for each of its servers
    /// now, which one it was, if it is the same. What is out stays out; where that would be all, all come back. What the
    /// operator keeps out must be told anew.
    pub fn carried(rules: Rules, before: Option<Self>, kept: &[Option<usize>], now: Instant) -> Self {
        let mut before = before.map(|health| health.servers).unwrap_or_default();
        let servers = kept.iter().map(|was| {
            let state = was.and_then(|was| before.get_mut(was));
            match state.map(|state| std::mem::replace(state, State::Probing(0))) {
                // The answer to a probe that is on its way will not be known any more.
                Some(State::Probing(answered)) => State::Out(now, answered),
                Some(state) => state,
                None => State::Live(Since::default()),
            }
        });
        let held = vec![false; kept.len()];
        let mut health = Self { rules, servers: servers.collect(), held, spared_noted: false };
        if health.live_servers() == 0 {
            health.servers.iter_mut().for_each(|state| *state = State::Live(Since::default()));
        }
        health
    }

    /// Judges a server by every worker's reading of it.
    pub fn examine(&mut self, server: ServerIx, readings: &[Reading], now: Now) -> Verdict {
        let State::Live(since) = &self.servers[usize::from(server.0)] else {
            return Verdict::Unchanged;
        };
        if self.held[server.index()] {
            return Verdict::Unchanged;
        }
        if since.looks(readings, self.rules.limit, now.micros) != Looks::Failing {
            return Verdict::Unchanged;
        }
        if !self.may_eject() {
            return if std::mem::replace(&mut self.spared_noted, true) {
                Verdict::Unchanged
            } else {
                Verdict::Spared
            };
        }
        self.servers[usize::from(server.0)] = State::Out(now.instant + self.rules.out_for, 0);
        Verdict::Ejected
    }

    /// The servers whose time is over.
    pub fn due(&mut self, now: Instant) -> Vec<Due> {
        let mut due = Vec::new();
        for (index, state) in self.servers.iter_mut().enumerate() {
            let answered = match state {
                State::Out(until, answered) if *until <= now => *answered,
                _ => continue,
            };
            let server = ServerIx(u16::try_from(index).expect("servers are counted in 16 bits"));
            match self.rules.way_back {
                Readmit::Optimistic => due.push(Due::Readmit(server)),
                Readmit::Probe => {
                    *state = State::Probing(answered);
                    due.push(Due::Probe(server));
                }
            }
        }
        due
    }

    /// Takes the outcome of a failed probe: the server stays out, and is asked again later.
    pub fn probe_failed(&mut self, server: ServerIx, now: Instant) {
        self.servers[usize::from(server.0)] = State::Out(now + self.rules.probe_again, 0);
    }

    /// Takes the outcome of an answered probe: whether the server is to be readmitted, since enough of them were
    /// answered in a row. Else it is asked again later.
    pub fn probe_answered(&mut self, server: ServerIx, now: Instant) -> bool {
        let state = &mut self.servers[usize::from(server.0)];
        let State::Probing(before) = state else { return false };
        let answered = *before + 1;
        if answered >= self.rules.rise {
            return true;
        }
        *state = State::Out(now + self.rules.probe_again, answered);
        false
    }

    /// Puts a server back. What the workers counted against it until now is forgiven.
    pub fn readmit(&mut self, server: ServerIx, readings: Vec<Reading>, now: Now) {
        self.servers[usize::from(server.0)] = State::Live(Since { micros: now.micros, readings });
        self.spared_noted = false;
    }

    /// The operator keeps a server out from now on.
    pub fn hold(&mut self, server: ServerIx) {
        self.held[server.index()] = true;
    }

    /// The operator keeps it out no longer. If it isn't out for another reason, it begins anew: what was counted against it
    /// is forgiven.
    pub fn let_go(&mut self, server: ServerIx, readings: Vec<Reading>, now: Now) {
        self.held[server.index()] = false;
        if let State::Live(since) = &mut self.servers[server.index()] {
            *since = Since { micros: now.micros, readings };
            self.spared_noted = false;
        }
    }

    /// When [`Self::due`] will next have something.
    pub fn next_due(&self) -> Option<Instant> {
        self.servers.iter().filter_map(State::out_until).min()
    }

    /// By `ServerIx`: whether it owns keys.
    pub fn live(&self) -> Vec<bool> {
        self.servers.iter().zip(&self.held).map(|(state, held)| state.is_live() && !held).collect()
    }

    /// The last live server stays, and so do those beyond the share that may be out.
    fn may_eject(&self) -> bool {
        let out = self.servers.iter().filter(|state| !state.is_live()).count();
        let most = self.servers.len() * self.rules.most_out as usize / 100;
        self.live_servers() > 1 && out < most
    }

    fn live_servers(&self) -> usize {
        self.live().iter().filter(|live| **live).count()
    }
}

impl State {
    fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    fn out_until(&self) -> Option<Instant> {
        match self {
            Self::Out(until, _) => Some(*until),
            Self::Live(_) | Self::Probing(_) => None,
        }
    }
}

impl Since {
    /// Failing: one worker reached the limit, and none succeeded since that run of failures began.
    fn looks(&self, readings: &[Reading], limit: u64, now: u64) -> Looks {
        let mut looks = Looks::Sound;
        for (worker, reading) in readings.iter().enumerate() {
            if self.newer_failures(worker, reading) < limit {
                continue;
            }
            let began = reading.failing_since.max(self.micros);
            if readings.iter().any(|other| other.last_success > began) {
                continue;
            }
            if readings.iter().any(|other| may_have_succeeded(other, began, now)) {
                looks = Looks::Unclear;
                continue;
            }
            return Looks::Failing;
        }
        looks
    }

    /// Failures of the current run that happened after the server came back.
    fn newer_failures(&self, worker: usize, reading: &Reading) -> u64 {
        match self.readings.get(worker) {
            Some(then) if then.failing_since == reading.failing_since => {
                reading.failed_attempts.saturating_sub(then.failed_attempts)
            }
            _ => reading.failed_attempts,
        }
    }
}

/// Whether a worker without failures had a success so shortly before `began` that a later one may not be known yet.
fn may_have_succeeded(other: &Reading, began: u64, now: u64) -> bool {
    let lag = u64::try_from(SUCCESS_LAG.as_micros()).expect("two seconds fit");
    let recent = other.last_success != 0 && other.last_success.saturating_add(lag) >= began;
    // Past that time it would be known; before `began`, the wall clock was set back.
    let too_early = (began..began.saturating_add(lag + lag / 10)).contains(&now);
    other.failed_attempts == 0 && recent && too_early
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000;
    const A: ServerIx = ServerIx(0);
    const B: ServerIx = ServerIx(1);

    /// Virtual time: both clocks go together.
    struct Clock {
        origin: Instant,
        micros: u64,
    }

    impl Clock {
        fn new() -> Self {
            Self { origin: Instant::now(), micros: 1000 * SECOND }
        }

        fn advance(&mut self, seconds: u64) {
            self.micros += seconds * SECOND;
        }

        fn now(&self) -> Now {
            Now { instant: self.origin + Duration::from_micros(self.micros), micros: self.micros }
        }
    }

    fn rules(way_back: Readmit) -> Rules {
        let probe_again = Duration::from_secs(1);
        Rules { limit: 2, out_for: Duration::from_secs(30), way_back, probe_again, rise: 1, most_out: 100 }
    }

    fn fresh(servers: usize, way_back: Readmit) -> PoolHealth {
        PoolHealth::new(rules(way_back), servers)
    }

    fn failed(attempts: u64, since: u64) -> Reading {
        Reading { failed_attempts: attempts, failing_since: since, last_success: 0 }
    }

    fn fine(last_success: u64) -> Reading {
        Reading { last_success, ..Reading::default() }
    }

    #[test]
    fn a_server_at_the_limit_is_out_until_it_answers_a_probe() {
        let mut clock = Clock::new();
        let mut health = fresh(3, Readmit::Probe);
        let since = clock.micros;
        assert_eq!(health.examine(A, &[failed(1, since)], clock.now()), Verdict::Unchanged);
        assert_eq!(health.examine(A, &[failed(2, since)], clock.now()), Verdict::Ejected);
        assert_eq!(health.live(), [false, true, true]);
        assert_eq!(health.examine(A, &[failed(9, since)], clock.now()), Verdict::Unchanged);

        clock.advance(29);
        assert_eq!(health.due(clock.now().instant), []);
        clock.advance(1);
        assert_eq!(health.next_due(), Some(clock.now().instant));
        assert_eq!(health.due(clock.now().instant), [Due::Probe(A)]);
        assert_eq!(health.due(clock.now().instant), [], "one probe at a time");

        health.probe_failed(A, clock.now().instant);
        assert_eq!(health.live(), [false, true, true]);
        clock.advance(1);
        assert_eq!(health.due(clock.now().instant), [Due::Probe(A)]);
        health.readmit(A, vec![failed(9, since)], clock.now());
        assert_eq!(health.live(), [true, true, true]);
    }

    #[test]
    fn what_was_counted_before_the_return_is_forgiven() {
        let mut clock = Clock::new();
        let mut health = fresh(2, Readmit::Optimistic);
        let since = clock.micros;
        health.examine(A, &[failed(2, since)], clock.now());
        clock.advance(30);
        assert_eq!(health.due(clock.now().instant), [Due::Readmit(A)]);
        health.readmit(A, vec![failed(5, since)], clock.now());
        assert_eq!(health.examine(A, &[failed(5, since)], clock.now()), Verdict::Unchanged);
        assert_eq!(health.examine(A, &[failed(6, since)], clock.now()), Verdict::Unchanged);
        assert_eq!(health.examine(A, &[failed(7, since)], clock.now()), Verdict::Ejected);
    }

    #[test]
    fn a_new_run_after_the_return_counts_from_its_start() {
        let mut clock = Clock::new();
        let mut health = fresh(2, Readmit::Probe);
        let since = clock.micros;
        health.readmit(A, vec![failed(5, since)], clock.now());
        clock.advance(60);
        assert_eq!(health.examine(A, &[failed(1, clock.micros)], clock.now()), Verdict::Unchanged);
        assert_eq!(health.examine(A, &[failed(2, clock.micros)], clock.now()), Verdict::Ejected);
    }

    #[test]
    fn a_success_of_any_worker_since_the_run_began_saves_the_server() {
        let clock = Clock::new();
        let mut health = fresh(2, Readmit::Probe);
        let began = clock.micros - 10 * SECOND;
        let readings = [failed(7, began), fine(began + SECOND)];
        assert_eq!(health.examine(A, &readings, clock.now()), Verdict::Unchanged);
        let readings = [failed(7, began), fine(began - 5 * SECOND)];
        assert_eq!(health.examine(A, &readings, clock.now()), Verdict::Ejected);
    }

    /// Successes become known about once a second: one just before the run began may hide a later one.
    #[test]
    fn a_success_that_may_not_be_known_yet_is_waited_for() {
        let mut clock = Clock::new();
        let mut health = fresh(2, Readmit::Probe);
        let began = clock.micros;
        let readings = [failed(2, began), fine(began - SECOND / 2)];
        assert_eq!(health.examine(A, &readings, clock.now()), Verdict::Unchanged);
        clock.advance(3);
        assert_eq!(health.examine(A, &readings, clock.now()), Verdict::Ejected);

        // The other worker fails as well: nothing to wait for.
        let mut other = fine(clock.micros - SECOND / 2);
        (other.failed_attempts, other.failing_since) = (1, clock.micros);
        let mut health = fresh(2, Readmit::Probe);
        assert_eq!(health.examine(A, &[failed(2, clock.micros), other], clock.now()), Verdict::Ejected);
    }

    #[test]
    fn failures_of_two_workers_are_not_added_up() {
        let clock = Clock::new();
        let mut health = fresh(2, Readmit::Probe);
        let readings = [failed(1, clock.micros), failed(1, clock.micros)];
        assert_eq!(health.examine(A, &readings, clock.now()), Verdict::Unchanged);
    }

    #[test]
    fn the_last_live_server_stays_and_that_is_said_once() {
        let mut clock = Clock::new();
        let mut health = fresh(2, Readmit::Probe);
        let bad = [failed(3, clock.micros)];
        assert_eq!(health.examine(A, &bad, clock.now()), Verdict::Ejected);
        assert_eq!(health.examine(B, &bad, clock.now()), Verdict::Spared);
        assert_eq!(health.examine(B, &bad, clock.now()), Verdict::Unchanged);
        assert_eq!(health.live(), [false, true]);

        clock.advance(30);
        assert_eq!(health.due(clock.now().instant), [Due::Probe(A)]);
        health.readmit(A, vec![bad[0]], clock.now());
        assert_eq!(health.examine(B, &bad, clock.now()), Verdict::Ejected, "now there is another");
        assert_eq!(health.live(), [true, false]);
    }

    /// A server that comes and goes is not let in by one lucky answer.
    #[test]
    fn so_many_probes_in_a_row_bring_it_back() {
        let mut clock = Clock::new();
        let mut health = PoolHealth::new(Rules { rise: 3, ..rules(Readmit::Probe) }, 2);
        assert_eq!(health.examine(A, &[failed(2, clock.micros)], clock.now()), Verdict::Ejected);
        clock.advance(30);
        let mut probe = |health: &mut PoolHealth, answered: bool| {
            assert_eq!(health.due(clock.now().instant), [Due::Probe(A)]);
            let back = if answered {
                health.probe_answered(A, clock.now().instant)
            } else {
                health.probe_failed(A, clock.now().instant);
                false
            };
            clock.advance(1);
            back
        };
        let outcomes = [true, true, false, true, true, true].map(|answered| probe(&mut health, answered));
        assert_eq!(outcomes, [false, false, false, false, false, true]);
    }

    /// B22: with trouble of our own every server looks bad; most of them must go on.
    #[test]
    fn no_more_than_the_share_is_out_at_once() {
        let clock = Clock::new();
        let mut health = PoolHealth::new(Rules { most_out: 50, ..rules(Readmit::Probe) }, 5);
        let bad = [failed(3, clock.micros)];
        let verdicts: Vec<_> =
            (0..5).map(|server| health.examine(ServerIx(server), &bad, clock.now())).collect();
        use Verdict::{Ejected, Spared, Unchanged};
        assert_eq!(verdicts, [Ejected, Ejected, Spared, Unchanged, Unchanged], "half of five is two");
    }

    /// What the operator has taken out is no server that may fail.
    #[test]
    fn what_is_held_is_not_judged_and_does_not_count_as_live() {
        let mut clock = Clock::new();
        let mut health = fresh(3, Readmit::Probe);
        let bad = [failed(3, clock.micros)];
        health.hold(A);
        assert_eq!(health.live(), [false, true, true]);
        assert_eq!(health.examine(A, &bad, clock.now()), Verdict::Unchanged);
        assert_eq!(health.examine(B, &bad, clock.now()), Verdict::Ejected);
        assert_eq!(health.examine(ServerIx(2), &bad, clock.now()), Verdict::Spared, "the last live one");

        health.let_go(A, vec![bad[0]], clock.now());
        assert_eq!(health.live(), [true, false, true]);
        assert_eq!(health.examine(A, &bad, clock.now()), Verdict::Unchanged, "forgiven");
        clock.advance(30);
        health.hold(B);
        assert_eq!(health.due(clock.now().instant), [Due::Probe(B)], "probes go on");
        health.readmit(B, vec![bad[0]], clock.now());
        assert_eq!(health.live(), [true, false, true], "whatever they say");
    }

    #[test]
    fn a_wall_clock_that_was_set_back_does_not_hold_up_an_ejection() {
        let clock = Clock::new();
        let mut health = fresh(2, Readmit::Probe);
        let future = clock.micros + 3600 * SECOND;
        let readings = [failed(2, future), fine(future - 1)];
        assert_eq!(health.examine(A, &readings, clock.now()), Verdict::Ejected);
    }
}
