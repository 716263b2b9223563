//! The table for spreadsheets.

use super::Outcome;

/// A line of names, and one per test and target; RFC 4180's quoting. What isn't known is empty.
pub fn csv(outcome: &Outcome) -> String {
    let mut text = String::from(
        "test,target,requests_per_second,p50_ms,p99_ms,p999_ms,max_ms,errors,ratio,own_cpu_us,target_cpu_us\n",
    );
    for row in &outcome.rows {
        let known = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
        let fields = [
            quoted(&row.test),
            quoted(&row.target),
            format!("{:.1}", row.rate()),
            format!("{:.4}", row.latency_ms(0.5)),
            format!("{:.4}", row.latency_ms(0.99)),
            format!("{:.4}", row.latency_ms(0.999)),
            format!("{:.4}", row.latency_ms(1.0)),
            row.faults.total().to_string(),
            known(row.ratio),
            format!("{:.3}", row.own_cpu_us()),
            known(row.target_cpu_us()),
        ];
        text.push_str(&fields.join(","));
        text.push('\n');
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn names_may_contain_anything() {
        let text = csv(&sample::outcome());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[1].starts_with("get,redis,200.0,0.5"), "{text}");
        assert!(lines[2].starts_with("get,\"<proxy>, \"\"2\"\"\",200.0,"), "{text}");
        assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
    }
}
