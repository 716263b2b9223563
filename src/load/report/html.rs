//! One page that needs nothing else.

use super::json::QUANTILES;
use super::svg::{self, Axis, Bar, COLOURS, Line, Mark};
use super::{Outcome, STOPPED, escaped, load_in_words, milliseconds, thousands};
use crate::load::Row;
use crate::load::rounds::STEP;

const STYLE: &str = "\
:root{--ink:#1c2430;--soft:#5b6675;--back:#fff;--grid:#e3e7ec;--c0:#2563eb;--c1:#ea7317;--c2:#1a936f;--c3:#b5179e;\
--c4:#7c5cff;--c5:#c1121f;--c6:#0891b2;--c7:#8d6e0f}\
@media(prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa5b4;--back:#12161c;--grid:#2a323d;--c0:#6ea8fe;\
--c1:#ffa94d;--c2:#51cf9a;--c3:#f06ad8;--c4:#a594ff;--c5:#ff6b6b;--c6:#4dd0e1;--c7:#d9b84a}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--back);max-width:1340px;margin:2em auto;padding:0 1.5em}\
h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.15em;margin:2em 0 .5em}p{color:var(--soft);margin:.2em 0 1em}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}th,td{padding:.3em .7em;text-align:right;\
border-bottom:1px solid var(--grid);white-space:nowrap}th{color:var(--soft);font-weight:600}\
td:first-child,td:nth-child(2),th:first-child,th:nth-child(2){text-align:left}.wide{overflow-x:auto}\
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(360px,100%),1fr));gap:1em 2em}figure{margin:0}\
figcaption{color:var(--soft);font-size:.9em}svg{width:100%;height:auto;max-width:760px}\
svg text{font:12px system-ui,sans-serif;fill:var(--soft)}.grid{stroke:var(--grid)}\
polyline{fill:none;stroke-width:2;stroke-linejoin:round}i{display:inline-block;width:.8em;height:.8em;border-radius:2px;\
margin-right:.4em}.bad{color:var(--c5);font-weight:600}";

/// Table, throughput of all tests, and for each test its latencies and its course, as one HTML page with inline SVG. `title` and
/// `machine` are text.
pub fn html(outcome: &Outcome, title: &str, machine: &str) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n<p>{load}<br>{machine}</p>\n",
        title = escaped(title),
        load = escaped(&load_in_words(&outcome.settings)),
        machine = escaped(machine),
    );
    if outcome.stopped {
        page.push_str(&format!("<p class=\"bad\">{STOPPED}</p>\n"));
    }
    page.push_str(&table(outcome));
    page.push_str(&errors(outcome));
    page.push_str(&format!("<h2>Requests per second</h2>\n{}{}\n", legend(outcome), throughput(outcome)));
    for test in &outcome.tests {
        let rows: Vec<(usize, &Row)> = outcome
            .rows
            .iter()
            .filter(|row| row.test == *test)
            .map(|row| (colour(outcome, row), row))
            .collect();
        page.push_str(&format!(
            "<h2>{}</h2>\n{}<div class=\"plots\"><figure>{}<figcaption>Latency in ms by percentile</figcaption></figure>\
             <figure>{}<figcaption>Requests per second, all rounds one after the other</figcaption></figure>\
             <figure>{}<figcaption>p99 in ms meanwhile</figcaption></figure></div>\n",
            escaped(test),
            legend(outcome),
            latencies(&rows),
            course(&rows, |point| point.0),
            course(&rows, |point| point.1),
        ));
    }
    page.push_str("</body></html>\n");
    page
}

fn table(outcome: &Outcome) -> String {
    let heads = [
        "test",
        "target",
        "req/s",
        "ratio",
        "p50 ms",
        "p99",
        "p99.9",
        "max",
        "errors",
        "own CPU",
        "target's CPU",
    ];
    let heads: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
    let mut text = format!("<div class=\"wide\"><table><thead><tr>{heads}</tr></thead><tbody>\n");
    for row in &outcome.rows {
        let errors = thousands(row.faults.total() as f64);
        let errors =
            if row.faults.total() > 0 { format!("<span class=\"bad\">{errors}</span>") } else { errors };
        let mut cells = vec![
            escaped(&row.test),
            format!("<i style=\"background:var(--c{})\"></i>{}", colour(outcome, row), escaped(&row.target)),
            thousands(row.rate()),
            row.ratio.map_or("1".into(), |ratio| format!("{ratio:.2}")),
        ];
        cells.extend([0.5, 0.99, 0.999, 1.0].map(|quantile| milliseconds(row.latency_ms(quantile))));
        cells.push(errors);
        cells.push(format!(
            "{:.2} µs ({:.0}%)",
            row.own_cpu_us(),
            row.own_load(outcome.settings.threads) * 100.0
        ));
        cells.push(row.target_cpu_us().map_or("–".into(), |us| format!("{us:.2} µs")));
        let cells: String = cells.iter().map(|cell| format!("<td>{cell}</td>")).collect();
        text.push_str(&format!("<tr>{cells}</tr>\n"));
    }
    text + "</tbody></table></div>\n"
}

fn errors(outcome: &Outcome) -> String {
    let mut text = String::new();
    for row in outcome.rows.iter().filter(|row| row.faults.total() > 0) {
        for kind in row.faults.kinds() {
            text.push_str(&format!(
                "<li>{} on {}: {} × {} {}</li>",
                escaped(&row.test),
                escaped(&row.target),
                thousands(kind.count as f64),
                escaped(&kind.name),
                escaped(&kind.example)
            ));
        }
    }
    if text.is_empty() { text } else { format!("<h2>Errors</h2>\n<ul>{text}</ul>\n") }
}

fn legend(outcome: &Outcome) -> String {
    let item = |(i, name): (usize, &String)| {
        format!("<i style=\"background:var(--c{})\"></i>{} &nbsp; ", i % COLOURS, escaped(name))
    };
    format!("<p>{}</p>", outcome.targets.iter().enumerate().map(item).collect::<String>())
}

fn colour(outcome: &Outcome, row: &Row) -> usize {
    outcome.targets.iter().position(|name| *name == row.target).unwrap_or(0) % COLOURS
}

fn throughput(outcome: &Outcome) -> String {
    let group = |test: &String| {
        let rows = outcome.rows.iter().filter(|row| row.test == *test);
        let bars = rows.map(|row| {
            let ratio = row.ratio.map_or(String::new(), |ratio| format!("  ×{ratio:.2}"));
            Bar { value: row.rate(), colour: colour(outcome, row), text: thousands(row.rate()) + &ratio }
        });
        (test.clone(), bars.collect())
    };
    svg::bars(&outcome.tests.iter().map(group).collect::<Vec<_>>())
}

/// Each decimal place of the percentile is as wide as the one before it; latencies are logarithmic.
fn latencies(rows: &[(usize, &Row)]) -> String {
    let last = QUANTILES[QUANTILES.len() - 2];
    let stretch = |quantile: f64| -(1.0 - quantile.min(last)).log10();
    let seen = |row: &Row| QUANTILES.map(|quantile| row.latency_ms(quantile).max(0.001));
    let all = || rows.iter().filter(|(_, row)| !row.latency.is_empty());
    let least = all().map(|(_, row)| seen(row)[0]).fold(f64::MAX, f64::min);
    let most = all().map(|(_, row)| seen(row)[QUANTILES.len() - 1]).fold(0.01, f64::max);
    let least = if least > most { most / 10.0 } else { least };
    let x = [(0.0, "0"), (0.5, "50"), (0.9, "90"), (0.99, "99"), (0.999, "99.9"), (last, "99.99, max")];
    let x = Axis {
        marks: x.into_iter().map(|(at, text)| Mark { at: stretch(at), text: text.into() }).collect(),
        label: "percentile",
    };
    let decades = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let y = Axis {
        marks: decades
            .map(|decade| Mark { at: f64::from(decade), text: milliseconds(10f64.powi(decade)) })
            .collect(),
        label: "ms",
    };
    let line = |(colour, row): &(usize, &Row)| Line {
        colour: *colour,
        pieces: vec![QUANTILES.iter().zip(seen(row)).map(|(q, ms)| (stretch(*q), ms.log10())).collect()],
    };
    svg::lines(&x, &y, &all().map(line).collect::<Vec<_>>())
}

/// One value over time; each round is a piece of its own.
fn course(rows: &[(usize, &Row)], value: impl Fn(&(f64, f64)) -> f64) -> String {
    let step = STEP.as_secs_f64();
    let line = |(colour, row): &(usize, &Row)| {
        let mut at = 0..;
        let mut piece = |points: &Vec<(f64, f64)>| -> Vec<(f64, f64)> {
            points.iter().zip(&mut at).map(|(point, i)| (f64::from(i) * step, value(point))).collect()
        };
        Line { colour: *colour, pieces: row.turns.iter().map(|turn| piece(&turn.course)).collect() }
    };
    let lines: Vec<Line> = rows.iter().map(line).collect();
    let most = |pick: fn(&(f64, f64)) -> f64| {
        lines.iter().flat_map(|line| line.pieces.iter().flatten().map(pick)).fold(0.0, f64::max)
    };
    svg::lines(
        &svg::from_zero(most(|point| point.0), "seconds"),
        &svg::from_zero(most(|point| point.1), ""),
        &lines,
    )
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn the_page_needs_nothing_else_and_names_are_text() {
        let page = html(&sample::outcome(), "a <title>", "machine & co");
        assert!(page.contains("&lt;proxy&gt;, &quot;2&quot;") && !page.contains("<proxy>"));
        assert!(page.contains("a &lt;title&gt;") && page.contains("machine &amp; co"));
        for outside in ["http:", "https:", "<script", "<link", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"));
        assert_eq!(page.matches("<svg").count(), 4);
    }

    #[test]
    fn a_target_without_a_single_reply_is_shown_all_the_same() {
        let mut outcome = sample::outcome();
        for row in &mut outcome.rows {
            row.latency.reset();
            row.turns.clear();
        }
        let page = html(&outcome, "", "");
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
    }
}
