//! The outcome for programs.

use serde_json::{Value, json};

use super::Outcome;
use crate::load::rounds::STEP;
use crate::load::{Length, Row, TurnFigures};

/// Quantiles of the latency curve: enough to draw it.
pub(super) const QUANTILES: [f64; 14] =
    [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0];

/// Settings, and a result per test and target with its rounds. Latencies are in milliseconds, CPU times in microseconds per request.
pub fn json(outcome: &Outcome) -> Value {
    let settings = &outcome.settings;
    let (requests, seconds) = match settings.length {
        Length::Requests(n) => (Some(n), None),
        Length::Time(time) => (None, Some(time.as_secs_f64())),
    };
    json!({
        "shardwise": env!("CARGO_PKG_VERSION"),
        "settings": {
            "clients": settings.clients, "threads": settings.threads, "pipeline": settings.pipeline,
            "value_bytes": settings.value_bytes, "keys": settings.keys, "requests": requests, "seconds": seconds,
            "rounds": settings.rounds, "keep_alive": settings.keep_alive, "resp": if settings.resp3 { 3 } else { 2 },
            "rate": settings.rate, "verify": settings.verify, "fill": settings.fill, "seed": settings.seed,
        },
        "stopped": outcome.stopped,
        "results": outcome.rows.iter().map(|row| result(row, settings.threads)).collect::<Vec<_>>(),
    })
}

fn result(row: &Row, threads: usize) -> Value {
    let errors: serde_json::Map<String, Value> =
        row.faults.kinds().iter().map(|kind| (kind.name.clone(), kind.count.into())).collect();
    let curve: Vec<Value> =
        QUANTILES.iter().map(|quantile| json!([quantile, row.latency_ms(*quantile)])).collect();
    json!({
        "test": row.test,
        "target": row.target,
        "replies": row.latency.len(),
        "seconds": row.seconds(),
        "requests_per_second": row.rate(),
        "ratio": row.ratio,
        "p50_ms": row.latency_ms(0.5),
        "p99_ms": row.latency_ms(0.99),
        "p999_ms": row.latency_ms(0.999),
        "max_ms": row.latency_ms(1.0),
        "errors": row.faults.total(),
        "errors_by_kind": errors,
        "own_cpu_us": row.own_cpu_us(),
        "own_load": row.own_load(threads),
        "target_cpu_us": row.target_cpu_us(),
        "given_up": row.given_up(),
        "latency_ms": curve,
        "rounds": row.turns.iter().map(round).collect::<Vec<_>>(),
    })
}

fn round(turn: &TurnFigures) -> Value {
    json!({
        "replies": turn.latency.len(),
        "seconds": turn.seconds,
        "requests_per_second": turn.rate(),
        "p99_ms": turn.latency.value_at_quantile(0.99) as f64 / 1e6,
        "errors": turn.faults.total(),
        "step_seconds": STEP.as_secs_f64(),
        "course": turn.course.iter().map(|(rate, p99)| json!({"requests_per_second": rate, "p99_ms": p99})).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn each_result_says_what_it_is_of() {
        let value = json(&sample::outcome());
        let second = &value["results"][1];
        assert_eq!(
            (second["test"].as_str(), second["target"].as_str()),
            (Some("get"), Some("<proxy>, \"2\""))
        );
        assert_eq!(second["requests_per_second"], 200.0);
        assert_eq!(second["errors_by_kind"]["connection closed"], 7);
        assert_eq!(value["results"][0]["ratio"], Value::Null);
    }
}
