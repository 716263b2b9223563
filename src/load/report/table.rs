//! The table at the end of a run.

use super::{Outcome, STOPPED, load_in_words, milliseconds, thousands};
use crate::load::Row;

/// From this load of its own on, what is measured may be the generator.
const SATURATED: f64 = 0.9;

/// Requests per second, latencies in milliseconds, errors, ratio to the first target, and the CPU of both sides; then the errors
/// by kind and what else must be known to read it.
pub fn table(outcome: &Outcome) -> String {
    let with_cpu = outcome.rows.iter().any(|row| row.target_cpu_us().is_some());
    let mut lines = vec![heads(with_cpu)];
    lines.extend(outcome.rows.iter().map(|row| cells(row, outcome.settings.threads, with_cpu)));
    let mut text = format!("{}\n\n{}", load_in_words(&outcome.settings), aligned(&lines));
    text.push_str(&errors(outcome));
    text.push_str(&notes(outcome));
    text
}

fn heads(with_cpu: bool) -> Vec<String> {
    let mut heads =
        vec!["test", "target", "req/s", "p50 ms", "p99", "p99.9", "max", "errors", "ratio", "own CPU"];
    if with_cpu {
        heads.push("target's CPU");
    }
    heads.into_iter().map(str::to_owned).collect()
}

fn cells(row: &Row, threads: usize, with_cpu: bool) -> Vec<String> {
    let own = format!("{:.2} µs {:>3.0}%", row.own_cpu_us(), row.own_load(threads) * 100.0);
    let mut cells = vec![row.test.clone(), row.target.clone(), thousands(row.rate())];
    cells.extend([0.5, 0.99, 0.999, 1.0].map(|quantile| milliseconds(row.latency_ms(quantile))));
    cells.push(thousands(row.faults.total() as f64));
    cells.push(row.ratio.map_or("1".into(), |ratio| format!("{ratio:.2}")));
    cells.push(own);
    if with_cpu {
        cells.push(row.target_cpu_us().map_or("".into(), |us| format!("{us:.2} µs")));
    }
    cells
}

/// Names to the left, figures to the right.
fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if column < 2 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn errors(outcome: &Outcome) -> String {
    let mut text = String::new();
    for row in outcome.rows.iter().filter(|row| row.faults.total() > 0) {
        text.push_str(&format!("\nerrors of {} on {}:\n", row.test, row.target));
        for kind in row.faults.kinds() {
            text.push_str(&format!("  {:>9}  {}", thousands(kind.count as f64), kind.name));
            if !kind.example.is_empty() {
                text.push_str(&format!("  (first: {})", kind.example));
            }
            text.push('\n');
        }
    }
    text
}

fn notes(outcome: &Outcome) -> String {
    let mut text = String::new();
    if outcome.stopped {
        text.push_str(&format!("\n{STOPPED}"));
    }
    for row in &outcome.rows {
        if row.given_up() > 0 {
            let seconds = outcome.settings.give_up.as_secs_f64();
            text.push_str(&format!(
                "\n{} on {}: gave up after {seconds} s without a reply",
                row.test, row.target
            ));
        }
    }
    let busy = outcome.rows.iter().any(|row| row.own_load(outcome.settings.threads) >= SATURATED);
    if busy {
        text.push_str("\nthe generator's own threads were busy 90% of the time or more: it may be what is measured; try --threads");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn a_row_has_its_figures_and_errors_their_kind() {
        let text = table(&sample::outcome());
        let row = text.lines().find(|line| line.contains("<proxy>")).unwrap();
        let figures: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(figures[3..9], ["200", "0.500", "0.990", "1.00", "1.00", "7"], "{text}");
        assert!(row.contains("0.90"), "{text}");
        assert!(text.contains("7  connection closed"), "{text}");
        assert!(!text.contains("gave up"), "{text}");
    }
}
