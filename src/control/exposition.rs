//! The numbers as Prometheus reads them: its text format, or OpenMetrics.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use super::process;
use super::report::{Number, Sources, summed};
use crate::stats::{Definition, ProxyBlock, Scope, Unit, WorkerBlock, families, time_families};

/// Which of the two text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

/// Labels and the numbers that they are of.
type Row = (String, Vec<Number>);

// === impl Format ===

impl Format {
    /// What an Accept header asks for. Qualities aren't weighed: whoever names OpenMetrics can read it.
    pub fn of_accept(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// For the answer's header.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// All metrics.
pub fn exposition(sources: &Sources, format: Format) -> String {
    let mut out = String::with_capacity(16 << 10);
    head(&mut out, format, "shardwise_build", "_info", ("info", "which version runs"));
    let _ = writeln!(out, "shardwise_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    for scope in Scope::ALL {
        let rows = rows(sources, scope);
        for definition in families(scope) {
            family(&mut out, format, scope, &definition, &rows);
        }
        for definition in time_families(scope) {
            histograms(&mut out, format, scope, definition, sources);
        }
    }
    if format == Format::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

/// HELP and TYPE. OpenMetrics names the family, Prometheus the sample.
fn head(out: &mut String, format: Format, family: &str, suffix: &str, (kind, help): (&str, &str)) {
    let (suffix, kind) = match (format, kind) {
        (Format::OpenMetrics, _) => ("", kind),
        (Format::Prometheus, "info") => (suffix, "gauge"),
        (Format::Prometheus, _) => (suffix, kind),
    };
    // Writing to a String does not fail.
    let _ = writeln!(out, "# HELP {family}{suffix} {}", Escaped(help));
    let _ = writeln!(out, "# TYPE {family}{suffix} {kind}");
}

fn family(out: &mut String, format: Format, scope: Scope, definition: &Definition, rows: &[Row]) {
    let (name, suffix) = (definition.family(scope), definition.suffix());
    head(out, format, &name, suffix, (definition.metric_type(), &definition.metric_help()));
    for (labels, numbers) in rows {
        let number = numbers.iter().find(|(name, _)| *name == definition.name);
        let (_, value) = number.expect("rows and families come from the same blocks");
        let _ = match definition.unit() {
            Unit::Plain => writeln!(out, "{name}{suffix}{labels} {value}"),
            Unit::Millionths => writeln!(out, "{name}{suffix}{labels} {}", seconds(*value)),
        };
    }
}

/// Powers of two of microseconds that have a bucket: 64 µs … 8.4 s.
const SHOWN_POWERS: std::ops::RangeInclusive<u32> = 6..=23;

fn histograms(out: &mut String, format: Format, scope: Scope, definition: &Definition, sources: &Sources) {
    let name = definition.family(scope);
    head(out, format, &name, "", (definition.metric_type(), &definition.metric_help()));
    for (values, snapshot) in sources.times(scope, definition.name) {
        let values: Vec<&str> = values.iter().map(String::as_str).collect();
        let labels = labels(scope, &values);
        let inside = labels.trim_matches(['{', '}']);
        for power in SHOWN_POWERS {
            let bound = seconds(1 << power);
            let _ = writeln!(out, "{name}_bucket{{{inside},le=\"{bound}\"}} {}", snapshot.below_power(power));
        }
        let count = snapshot.count();
        let _ = writeln!(out, "{name}_bucket{{{inside},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{labels} {}", seconds(snapshot.sum));
        let _ = writeln!(out, "{name}_count{labels} {count}");
    }
}

fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn rows(sources: &Sources, scope: Scope) -> Vec<Row> {
    let pools = || sources.config.pools.iter().enumerate();
    match scope {
        Scope::Process => {
            let block = process::block(sources.started_at);
            let definitions = families(scope);
            vec![(String::new(), summed(&definitions, std::iter::once(block.cells())))]
        }
        Scope::Proxy => vec![(String::new(), proxy_numbers(sources))],
        Scope::Worker => sources
            .workers
            .iter()
            .enumerate()
            .map(|(index, worker)| {
                let numbers = summed(WorkerBlock::DEFINITIONS, std::iter::once(worker.own.cells()));
                (labels(scope, &[&index.to_string()]), numbers)
            })
            .collect(),
        Scope::Group => Vec::new(),
        Scope::Pool => {
            pools().map(|(ix, pool)| (labels(scope, &[&pool.name]), sources.pool_numbers(ix))).collect()
        }
        Scope::Server => pools()
            .flat_map(|(ix, pool)| {
                pool.servers.iter().enumerate().map(move |(server, config)| {
                    (labels(scope, &[&pool.name, &config.name]), sources.server_numbers(ix, server))
                })
            })
            .collect(),
    }
}

fn proxy_numbers(sources: &Sources) -> Vec<Number> {
    let block = ProxyBlock::default();
    block.workers.set(sources.workers.len() as u64);
    block.generation.set(sources.generation().number);
    block.buffer_bytes.set(sources.budget.bytes());
    block.draining.set(u64::from(sources.draining.get()));
    block.log_suppressed.set(sources.suppressed.value());
    summed(ProxyBlock::DEFINITIONS, std::iter::once(block.cells()))
}

fn labels(scope: Scope, values: &[&str]) -> String {
    let pairs = scope.labels().iter().zip(values);
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name}=\"{}\"", Escaped(value))).collect();
    format!("{{{}}}", pairs.join(","))
}

/// A label's value, or a help text, with what would end it or its line escaped.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for char in self.0.chars() {
            match char {
                '\\' => f.write_str("\\\\")?,
                '"' => f.write_str("\\\"")?,
                '\n' => f.write_str("\\n")?,
                other => f.write_char(other)?,
            }
        }
        Ok(())
    }
}

/// Microseconds since 1970.
pub(super) fn micros(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_pools_cannot_break_out_of_their_label() {
        assert_eq!(labels(Scope::Pool, &["a\"b\\\nc"]), r#"{pool="a\"b\\\nc"}"#);
    }

    #[test]
    fn openmetrics_is_for_those_who_ask() {
        assert_eq!(Format::of_accept("text/html, */*"), Format::Prometheus);
        let scraper = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
        assert_eq!(Format::of_accept(scraper), Format::OpenMetrics);
    }
}
