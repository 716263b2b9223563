//! Latencies drawn in the terminal.

use super::{Outcome, milliseconds};
use crate::load::Row;

/// Width of the longest bar, in characters.
const BAR: usize = 40;
/// Most lines of one drawing.
const LINES: usize = 16;

/// For each test and target, how many replies took how long: a line for each range, bars relative to the fullest one. Ranges
/// grow by a constant factor, the same for all targets of a test.
pub fn histogram(outcome: &Outcome) -> String {
    let mut text = String::new();
    for test in &outcome.tests {
        let rows: Vec<&Row> =
            outcome.rows.iter().filter(|row| row.test == *test && !row.latency.is_empty()).collect();
        let bounds = bounds(&rows);
        for row in rows {
            text.push_str(&format!("\n{test} on {}, latency in ms\n", row.target));
            text.push_str(&drawing(row, &bounds));
        }
    }
    text
}

/// Bounds of the ranges in nanoseconds, ascending: powers of a factor that gives few enough lines.
fn bounds(rows: &[&Row]) -> Vec<u64> {
    let least = rows.iter().map(|row| row.latency.min()).min().unwrap_or(1).max(1) as f64;
    let most = rows.iter().map(|row| row.latency.max()).max().unwrap_or(1) as f64;
    let factors = [2f64.powf(0.25), 2f64.sqrt(), 2.0, 4.0, 10.0];
    let lines = |factor: f64| (most.log(factor).floor() - least.log(factor).floor()) as usize + 1;
    let factor = factors.into_iter().find(|factor| lines(*factor) <= LINES).unwrap_or(10.0);
    let first = least.log(factor).floor();
    (0..=lines(factor)).map(|i| factor.powf(first + i as f64) as u64).collect()
}

fn drawing(row: &Row, bounds: &[u64]) -> String {
    let below = |bound: u64| if bound == 0 { 0 } else { row.latency.count_between(0, bound - 1) };
    let counts: Vec<u64> =
        bounds.windows(2).map(|pair| below(pair[1]).saturating_sub(below(pair[0]))).collect();
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let total = counts.iter().sum::<u64>().max(1);
    let mut text = String::new();
    for (pair, count) in bounds.windows(2).zip(&counts) {
        let range =
            format!("{:>6} – {:>6}", milliseconds(pair[0] as f64 / 1e6), milliseconds(pair[1] as f64 / 1e6));
        let share = 100.0 * *count as f64 / total as f64;
        text.push_str(format!("  {range} {share:>6.2}% {}", bar(*count, most)).trim_end());
        text.push('\n');
    }
    text
}

/// A bar to an eighth of a character; whatever is there at all can be seen.
fn bar(count: u64, most: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let length = (count as f64 / most as f64 * (BAR * 8) as f64).round() as usize;
    let length = length.max(usize::from(count > 0));
    "█".repeat(length / 8) + EIGHTHS[length % 8]
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_reply_is_in_one_range() {
        let outcome = sample::outcome();
        let text = histogram(&outcome);
        let lines: Vec<&str> = text.lines().filter(|line| line.contains('%')).collect();
        assert!(lines.len() <= 2 * LINES, "{text}");
        let shares = |lines: &[&str]| -> f64 {
            lines
                .iter()
                .filter_map(|line| line.split('%').next()?.split_whitespace().last()?.parse::<f64>().ok())
                .sum()
        };
        let of_one = shares(&lines[..lines.len() / 2]);
        assert!((99.0..101.0).contains(&of_one), "{text}");
    }

    #[test]
    fn little_is_more_than_nothing() {
        assert_eq!(bar(0, 1000), "");
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(5, 5).chars().count(), BAR);
    }
}
