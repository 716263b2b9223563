//! Which commands were sent, how often, and how often they met no error.

use std::collections::BTreeMap;

use shardwise::command::{CommandTable, Handling, Origin, Row};

use crate::history::author::Step;
use crate::support::Value;

/// Counts by the name of the row.
#[derive(Debug, Default)]
pub struct Coverage(BTreeMap<&'static str, Count>);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sent: u64,
    succeeded: u64,
}

impl Coverage {
    /// Counts one answer.
    pub fn note(&mut self, step: &Step, reply: &Value) {
        let Some(row) = row_of(&step.args) else { return };
        let count = self.0.entry(row.name).or_default();
        count.sent += 1;
        count.succeeded += u64::from(!matches!(reply, Value::Error(_)));
    }

    /// Adds what another client counted.
    pub fn add(&mut self, other: &Self) {
        for (name, more) in &other.0 {
            let count = self.0.entry(name).or_default();
            count.sent += more.sent;
            count.succeeded += more.succeeded;
        }
    }

    /// How many commands were sent.
    pub fn total(&self) -> u64 {
        self.0.values().map(|count| count.sent).sum()
    }

    /// How many rows were met.
    pub fn rows(&self) -> usize {
        self.0.len()
    }

    /// Commands on keys that were sent fewer than `least` times, or (where the servers know them) never with success.
    pub fn gaps(&self, least: u64) -> Vec<String> {
        let rows = CommandTable::builtin().rows().map(|(_, row)| row);
        let on_keys = rows.filter(|row| matches!(row.usual_handling(), Handling::Keyed | Handling::Split(_)));
        let mut gaps = Vec::new();
        for row in on_keys {
            let count = self.0.get(row.name).copied().unwrap_or_default();
            let must_succeed = row.origin == Origin::Redis70;
            if count.sent < least || (must_succeed && count.succeeded == 0) {
                gaps.push(format!("{} ({} sent, {} without error)", row.name, count.sent, count.succeeded));
            }
        }
        gaps
    }
}

/// The row of a command by its words, whatever their number; `None` if there is none.
pub fn row_of(args: &[Vec<u8>]) -> Option<&'static Row> {
    let is = |row: &Row, name: &[u8]| row.name.as_bytes().eq_ignore_ascii_case(name);
    let row = CommandTable::builtin().rows().map(|(_, row)| row).find(|row| is(row, &args[0]))?;
    let name = [&args[0][..], b"|", args.get(1).map_or(&[][..], Vec::as_slice)].concat();
    Some(row.subs.iter().find(|sub| is(sub, &name)).unwrap_or(row))
}
