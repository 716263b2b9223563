//! What a run gave, for people, programs and browsers.

mod csv;
mod histogram;
mod html;
mod json;
mod svg;
mod table;

pub use csv::csv;
pub use histogram::histogram;
pub use html::html;
pub use json::json;
pub use table::table;

use super::settings::Length;
use super::{Outcome, Settings};

/// The load in words, as reports put it above their figures.
fn load_in_words(settings: &Settings) -> String {
    let length = match settings.length {
        Length::Requests(n) => format!("{n} requests"),
        Length::Time(time) => format!("{:.1} s", time.as_secs_f64()),
    };
    let mut words = vec![
        format!("{} clients", settings.clients),
        format!("pipeline {}", settings.pipeline),
        format!("values of {} bytes", settings.value_bytes),
        format!("{} keys", settings.keys),
        format!("{length} per test and target in {} rounds", settings.rounds),
        format!("{} generator threads", settings.threads),
    ];
    let extras = [
        (
            settings.rate.is_some(),
            format!("open loop at {} requests per second", settings.rate.unwrap_or_default()),
        ),
        (!settings.keep_alive, "a connection per batch".to_owned()),
        (settings.resp3, "RESP3".to_owned()),
        (settings.verify, "values verified".to_owned()),
    ];
    words.extend(extras.into_iter().filter(|(is, _)| *is).map(|(_, text)| text));
    words.join(", ")
}

/// What every report says of a run that was ended early.
const STOPPED: &str = "stopped before all rounds were over: these figures are of what was done until then";

/// Text as HTML and SVG take it.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Milliseconds with as many digits as they deserve.
fn milliseconds(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.3}"),
    }
}

/// 1234567 as 1,234,567.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.max(0.0));
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
pub(super) mod sample {
    //! An outcome to be reported, made without a run.

    use std::time::Duration;

    use super::super::fault::{Fault, Faults};
    use super::super::rounds::{Outcome, Row, TurnFigures};
    use super::super::settings::{Length, Settings};
    use super::super::tally::latencies;

    pub fn settings() -> Settings {
        Settings {
            clients: 4,
            threads: 1,
            pipeline: 1,
            value_bytes: 3,
            keys: 10,
            length: Length::Requests(200),
            rounds: 1,
            keep_alive: true,
            resp3: false,
            database: None,
            rate: None,
            verify: false,
            fill: false,
            give_up: Duration::from_secs(1),
            seed: 0,
        }
    }

    pub fn outcome() -> Outcome {
        let row = |test: &str, target: &str, ratio, errors| {
            let mut latency = latencies();
            (1..=100).for_each(|i| latency.record(i * 10_000).unwrap());
            let mut faults = Faults::default();
            if errors > 0 {
                faults.add(&Fault::Closed, errors);
            }
            let turn = TurnFigures {
                seconds: 0.5,
                latency: latency.clone(),
                faults: faults.clone(),
                course: vec![(100.0, 0.9), (300.0, 1.1), (200.0, 1.0)],
                own_cpu: 0.25,
                target_cpu: None,
                gave_up: false,
            };
            Row { test: test.into(), target: target.into(), turns: vec![turn], latency, faults, ratio }
        };
        Outcome {
            settings: settings(),
            targets: vec!["redis".into(), "<proxy>, \"2\"".into()],
            tests: vec!["get".into()],
            rows: vec![row("get", "redis", None, 0), row("get", "<proxy>, \"2\"", Some(0.9), 7)],
            stopped: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        assert_eq!(["1,234,567", "999", "0"], [thousands(1_234_567.4), thousands(999.0), thousands(-1.0)]);
        assert_eq!(
            ["0.123", "1.23", "12.3", "123"].map(str::to_owned),
            [0.1234, 1.234, 12.34, 123.4].map(milliseconds)
        );
    }
}
