//! Lines that say again what has just been said: counted, not written.
//!
//! ```text
//!   WARN cannot connect; trying on pool="alpha" server="r1" …          the first lines of a window are written
//!   WARN cannot connect; trying on pool="alpha" server="r1" …
//!   …                                                                    the others are counted
//!   WARN repeated: cannot connect; trying on pool="alpha" server="r1" suppressed=41
//! ```
//!
//! Two lines are the same if they come from one place in the source with the same message, pool, server and reason; the client, the
//! address and the system's own words may differ. Lines without fields, and what operators do, are never left out: they
//! answer somebody. Nor is debug, which somebody has asked for.

// As the file, it is shared by all threads; nothing on the path of a request writes to the log.
#![allow(clippy::disallowed_types)]

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, error, info, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use crate::stats::Cell;

/// Equal lines that are written within a window.
const SHOWN: u64 = 3;

/// How long lines are compared with the first of them; then it begins anew.
const WINDOW: Duration = Duration::from_secs(10);

/// Different lines that are remembered. Past that the oldest is forgotten, and written again when it comes again.
const REMEMBERED: usize = 512;

/// Most bytes of a message that its summary repeats.
const QUOTED: usize = 200;

/// What the summaries call themselves; they are not looked at.
const SUMMARY: &str = "shardwise::log::repeats";

/// Where what operators do is said: an audit has no gaps.
const AUDIT: &str = "shardwise::control::admin";

/// Leaves repeated lines out. Clones share what they remember.
#[derive(Clone, Debug, Default)]
pub struct Repeats {
    table: Arc<Mutex<Table>>,
    suppressed: Arc<Cell>,
}

/// The lines of their windows, by what makes them equal.
#[derive(Debug, Default)]
struct Table {
    keys: RandomState,
    lines: HashMap<u64, Line>,
}

#[derive(Debug)]
struct Line {
    since: Instant,
    seen: u64,
    about: About,
}

/// What a summary says of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct About {
    level: Level,
    message: String,
    pool: Option<String>,
    server: Option<String>,
    reason: Option<String>,
}

/// Lines that were left out.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    about: About,
    suppressed: u64,
}

impl Repeats {
    /// Lines left out since the start.
    pub fn suppressed(&self) -> &Arc<Cell> {
        &self.suppressed
    }

    /// Says what was left out in windows that are over; with `all` in those that aren't, too.
    pub fn sum_up(&self, all: bool) {
        let summaries = self.table().ended(Instant::now(), all);
        summaries.iter().for_each(Summary::say);
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Subscriber> Layer<S> for Repeats {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        if !is_limited(event.metadata()) {
            return true;
        }
        let mut about = About::new(*event.metadata().level());
        event.record(&mut about);
        let (shown, ended) = {
            let mut table = self.table();
            let key = table.key(event.metadata(), &about);
            let (shown, ended) = table.see(key, about, Instant::now());
            if !shown {
                self.suppressed.add(1); // under the lock: one writer at a time
            }
            (shown, ended)
        };
        // The lock is free again: a summary is a line as well.
        ended.iter().for_each(Summary::say);
        shown
    }
}

fn is_limited(line: &Metadata<'_>) -> bool {
    *line.level() <= Level::INFO
        && line.target() != SUMMARY
        && !(line.target() == AUDIT && *line.level() == Level::INFO)
        && line.fields().iter().any(|field| field.name() != "message")
}

// === impl Table ===

impl Table {
    fn key(&self, line: &Metadata<'_>, about: &About) -> u64 {
        let About { message, pool, server, reason, .. } = about;
        self.keys.hash_one((line.callsite(), message, pool, server, reason))
    }

    /// Whether the line is to be written, and what has to be said before it.
    fn see(&mut self, key: u64, about: About, now: Instant) -> (bool, Option<Summary>) {
        let mut ended = None;
        let is_current = |line: &Line| now.duration_since(line.since) < WINDOW;
        if let Some(line) = self.lines.get_mut(&key).filter(|line| is_current(line)) {
            line.seen += 1;
            return (line.seen <= SHOWN, None);
        }
        if let Some(line) = self.lines.remove(&key) {
            ended = line.summary();
        } else if self.lines.len() >= REMEMBERED {
            let oldest = self.lines.iter().min_by_key(|(_, line)| line.since).map(|(key, _)| *key);
            ended = oldest.and_then(|key| self.lines.remove(&key)).and_then(Line::summary);
        }
        self.lines.insert(key, Line { since: now, seen: 1, about });
        (true, ended)
    }

    /// Forgets what is over.
    fn ended(&mut self, now: Instant, all: bool) -> Vec<Summary> {
        let over = self.lines.extract_if(|_, line| all || now.duration_since(line.since) >= WINDOW);
        over.filter_map(|(_, line)| line.summary()).collect()
    }
}

// === impl Line ===

impl Line {
    fn summary(self) -> Option<Summary> {
        let suppressed = self.seen.saturating_sub(SHOWN);
        (suppressed > 0).then_some(Summary { about: self.about, suppressed })
    }
}

// === impl Summary ===

impl Summary {
    fn say(&self) {
        let Self { about: About { level, message, pool, server, reason }, suppressed } = self;
        let (pool, server, reason) = (pool.as_deref(), server.as_deref(), reason.as_deref());
        match *level {
            Level::ERROR => {
                error!(target: SUMMARY, pool, server, reason, suppressed, "repeated: {message}");
            }
            Level::WARN => warn!(target: SUMMARY, pool, server, reason, suppressed, "repeated: {message}"),
            _ => info!(target: SUMMARY, pool, server, reason, suppressed, "repeated: {message}"),
        }
    }
}

// === impl About ===

impl About {
    fn new(level: Level) -> Self {
        Self { level, message: String::new(), pool: None, server: None, reason: None }
    }
}

impl Visit for About {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let place = match field.name() {
            "message" => &mut self.message,
            "pool" => self.pool.get_or_insert_default(),
            "server" => self.server.get_or_insert_default(),
            "reason" => self.reason.get_or_insert_default(),
            _ => return,
        };
        // Writing to a String does not fail.
        let _ = write!(place, "{value:?}");
        let end = (0..=QUOTED).rev().find(|end| place.is_char_boundary(*end));
        place.truncate(end.unwrap_or(0));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(message: &str) -> About {
        About { message: message.into(), ..About::new(Level::WARN) }
    }

    #[test]
    fn repeats_of_a_window_are_counted_and_told_when_it_is_over() {
        let (mut table, start) = (Table::default(), Instant::now());
        let shown = (0..10).filter(|_| table.see(1, about("again"), start).0).count();
        assert_eq!(shown as u64, SHOWN);
        assert!(table.see(2, about("another"), start).0, "each line has its own count");
        assert_eq!(table.ended(start + WINDOW / 2, false), []);

        let (shown, ended) = table.see(1, about("again"), start + WINDOW);
        let told = Summary { about: about("again"), suppressed: 10 - SHOWN };
        assert_eq!((shown, ended), (true, Some(told)), "the next window begins with the sum of the last");
        assert_eq!(table.ended(start + 3 * WINDOW, false), [], "what was shown needs no summary");
        assert!(table.lines.is_empty());
    }

    #[test]
    fn at_the_end_everything_is_told() {
        let (mut table, now) = (Table::default(), Instant::now());
        (0..=SHOWN).for_each(|_| drop(table.see(1, about("again"), now)));
        assert_eq!(table.ended(now, true), [Summary { about: about("again"), suppressed: 1 }]);
    }

    #[test]
    fn a_flood_of_different_lines_takes_no_more_memory_and_loses_no_count() {
        let (mut table, start) = (Table::default(), Instant::now());
        (0..SHOWN + 5).for_each(|_| drop(table.see(0, about("first"), start)));
        let mut told = Vec::new();
        for key in 1..10 * REMEMBERED as u64 {
            told.extend(table.see(key, about("other"), start + Duration::from_micros(key)).1);
            assert!(table.lines.len() <= REMEMBERED);
        }
        assert_eq!(told, [Summary { about: about("first"), suppressed: 5 }]);
    }
}
