//! Every test on every target, round after round, and what they gave.

use std::time::Duration;

use hdrhistogram::Histogram;

use super::fault::Faults;
use super::settings::{Length, Settings, Target};
use super::tally::latencies;
use super::template::Template;
use super::turn::{self, Figures, Watcher};
use super::workload::Workload;

pub use super::turn::Figures as TurnFigures;

/// Connections and pipeline with which all keys are written before the first round.
const FILL_CLIENTS: usize = 16;
const FILL_PIPELINE: usize = 32;

/// What a whole run gave.
#[derive(Debug)]
pub struct Outcome {
    /// What was run.
    pub settings: Settings,
    /// Names of the targets, in the order in which they were given. The first is the one that others are compared with.
    pub targets: Vec<String>,
    /// Names of the tests.
    pub tests: Vec<String>,
    /// One per test and target that had a turn: all targets of the first test, then those of the next.
    pub rows: Vec<Row>,
    /// It was ended before all rounds were over: the last turn is a part of one, and a row has fewer turns, or there is none.
    pub stopped: bool,
}

/// One test on one target.
#[derive(Debug)]
pub struct Row {
    /// The test.
    pub test: String,
    /// The target.
    pub target: String,
    /// One per round.
    pub turns: Vec<Figures>,
    /// Latencies of all rounds, in nanoseconds.
    pub latency: Histogram<u64>,
    /// Errors of all rounds.
    pub faults: Faults,
    /// Requests per second relative to the first target: the median of the rounds' ratios; `None` for the first target itself
    /// and where there is nothing to compare with.
    pub ratio: Option<f64>,
}

/// Runs all. `Err`: something that is not the targets' fault.
pub fn run(
    settings: &Settings,
    targets: &[Target],
    tests: &[Workload],
    watcher: &mut dyn Watcher,
) -> Result<Outcome, String> {
    if settings.fill {
        for target in targets {
            fill(settings, target, watcher)?;
        }
    }
    let mut turns: Vec<Vec<Figures>> = (0..tests.len() * targets.len()).map(|_| Vec::new()).collect();
    'rounds: for round in 0..settings.rounds {
        for (i, test) in tests.iter().enumerate() {
            // The order rotates, so that none always follows the same one.
            for k in 0..targets.len() {
                if watcher.is_stopped() {
                    break 'rounds;
                }
                let j = (k + round) % targets.len();
                let what = format!("{}/{} {} on {}", round + 1, settings.rounds, test.name, targets[j].name);
                turns[i * targets.len() + j].push(turn(settings, &targets[j], test, round, &what, watcher)?);
            }
        }
    }
    Ok(outcome(settings, targets, tests, turns, watcher.is_stopped()))
}

fn turn(
    settings: &Settings,
    target: &Target,
    test: &Workload,
    round: usize,
    what: &str,
    watcher: &mut dyn Watcher,
) -> Result<Figures, String> {
    for (load, requests) in &test.before {
        let alone = Settings { clients: 1, threads: 1, rate: None, keep_alive: true, ..settings.clone() };
        turn::run(&alone, target, load, Length::Requests(*requests), false, &mut Silent)?;
    }
    // Other keys in each round, but the same for every target.
    let seed = settings.seed.wrapping_add(round as u64 * 1_000_000_007);
    let settings = Settings { seed, ..settings.clone() };
    let length = settings.length_of_round(round);
    watcher.begins(what, length);
    let figures = turn::run(&settings, target, test, length, false, watcher);
    watcher.ends();
    figures
}

/// Writes all keys, with the values that are expected of them.
fn fill(settings: &Settings, target: &Target, watcher: &mut dyn Watcher) -> Result<(), String> {
    let clients = FILL_CLIENTS.min(usize::try_from(settings.keys).unwrap_or(usize::MAX));
    let filling = Settings {
        clients,
        threads: settings.threads.min(clients),
        pipeline: FILL_PIPELINE,
        rate: None,
        keep_alive: true,
        ..settings.clone()
    };
    let set = [&b"SET"[..], b"key:__rand_int__", b"__data__"].map(<[u8]>::to_vec);
    let load = Workload::one("fill", Template::new(&set, settings.value_bytes, settings.verify));
    let length = Length::Requests(settings.keys);
    watcher.begins(&format!("filling {}", target.name), length);
    let figures = turn::run(&filling, target, &load, length, true, watcher);
    watcher.ends();
    let faults = figures?.faults;
    match faults.kinds().first() {
        None => Ok(()),
        Some(kind) => Err(format!(
            "filling {}: {} of {} keys not written ({} {})",
            target.name,
            faults.total(),
            settings.keys,
            kind.name,
            kind.example
        )),
    }
}

fn outcome(
    settings: &Settings,
    targets: &[Target],
    tests: &[Workload],
    turns: Vec<Vec<Figures>>,
    stopped: bool,
) -> Outcome {
    let first: Vec<Vec<f64>> =
        turns.iter().step_by(targets.len()).map(|turns| turns.iter().map(Figures::rate).collect()).collect();
    let rows = turns.into_iter().enumerate().filter(|(_, turns)| !turns.is_empty()).map(|(at, turns)| {
        let (test, target) = (at / targets.len(), at % targets.len());
        let (mut latency, mut faults) = (latencies(), Faults::default());
        for turn in &turns {
            let _ = latency.add(&turn.latency); // the same bounds
            faults.merge(&turn.faults);
        }
        let ratio = if target == 0 { None } else { ratio(&turns, &first[test]) };
        let (test, target) = (tests[test].name.clone(), targets[target].name.clone());
        Row { test, target, turns, latency, faults, ratio }
    });
    let rows = rows.collect();
    Outcome {
        settings: settings.clone(),
        targets: targets.iter().map(|target| target.name.clone()).collect(),
        tests: tests.iter().map(|test| test.name.clone()).collect(),
        rows,
        stopped,
    }
}

fn ratio(turns: &[Figures], first: &[f64]) -> Option<f64> {
    let pairs = turns.iter().zip(first).filter(|(_, first)| **first > 0.0);
    median(pairs.map(|(turn, first)| turn.rate() / first).collect())
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

// === impl Row ===

impl Row {
    /// Seconds of all rounds.
    pub fn seconds(&self) -> f64 {
        self.turns.iter().map(|turn| turn.seconds).sum()
    }

    /// Proper replies per second, over all rounds.
    pub fn rate(&self) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { self.latency.len() as f64 / seconds } else { 0.0 }
    }

    /// A latency in milliseconds: `quantile` 0.5 for the median, 1 for the longest.
    pub fn latency_ms(&self, quantile: f64) -> f64 {
        if quantile >= 1.0 {
            self.latency.max() as f64 / 1e6
        } else {
            self.latency.value_at_quantile(quantile) as f64 / 1e6
        }
    }

    /// The generator's own CPU, in microseconds per request.
    pub fn own_cpu_us(&self) -> f64 {
        self.per_request(self.turns.iter().map(|turn| turn.own_cpu).sum())
    }

    /// The target's CPU, in microseconds per request, where its processes are known.
    pub fn target_cpu_us(&self) -> Option<f64> {
        let seconds: Option<f64> = self.turns.iter().map(|turn| turn.target_cpu).sum();
        seconds.map(|seconds| self.per_request(seconds))
    }

    /// How much of the time its threads had the generator was busy, 0 to 1; near 1 it is the generator that is measured.
    pub fn own_load(&self, threads: usize) -> f64 {
        let own: f64 = self.turns.iter().map(|turn| turn.own_cpu).sum();
        let available = self.seconds() * threads as f64;
        if available > 0.0 { own / available } else { 0.0 }
    }

    /// Rounds that ended because no reply came.
    pub fn given_up(&self) -> usize {
        self.turns.iter().filter(|turn| turn.gave_up).count()
    }

    fn per_request(&self, seconds: f64) -> f64 {
        let requests = self.latency.len() + self.faults.total();
        if requests > 0 { seconds * 1e6 / requests as f64 } else { 0.0 }
    }
}

struct Silent;

impl Watcher for Silent {
    fn begins(&mut self, _: &str, _: Length) {}
    fn progress(&mut self, _: &turn::Progress) {}
    fn ends(&mut self) {}
    fn is_stopped(&self) -> bool {
        false
    }
}

/// How far apart the points of a turn's course are.
pub const STEP: Duration = super::thread::SAMPLE;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_the_rounds_is_taken() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }
}
