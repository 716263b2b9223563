//! Plots as SVG. Colours and fonts are the page's: `--c0`…`--c7` for targets, `--ink` and `--grid`.

use super::{escaped, thousands};

/// Colours that differ; further lines begin anew.
pub(super) const COLOURS: usize = 8;
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
/// Room for the labels: left, right, above, below.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 44.0;

/// One target's points, ascending in x. Nothing is drawn between two pieces.
pub(super) struct Line {
    pub colour: usize,
    pub pieces: Vec<Vec<(f64, f64)>>,
}

/// A number and what is written beside it.
pub(super) struct Mark {
    pub at: f64,
    pub text: String,
}

/// A bar and what is written behind it.
pub(super) struct Bar {
    pub value: f64,
    pub colour: usize,
    pub text: String,
}

/// An axis: its marks, the first and last being its ends.
pub(super) struct Axis {
    pub marks: Vec<Mark>,
    pub label: &'static str,
}

/// Lines over two axes.
pub(super) fn lines(x: &Axis, y: &Axis, lines: &[Line]) -> String {
    let (place_x, place_y) = (place(x, LEFT, WIDTH - RIGHT), place(y, HEIGHT - BOTTOM, TOP));
    let mut body = String::new();
    for mark in &y.marks {
        let at = place_y(mark.at);
        body.push_str(&format!(
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            escaped(&mark.text)
        ));
    }
    for (i, mark) in x.marks.iter().enumerate() {
        let text = escaped(&mark.text);
        let anchor = if i + 1 == x.marks.len() { "end" } else { "middle" };
        let (at, bottom) = (place_x(mark.at), HEIGHT - BOTTOM + 16.0);
        body.push_str(&format!("<text x=\"{at:.1}\" y=\"{bottom}\" text-anchor=\"{anchor}\">{text}</text>"));
    }
    let pieces = lines.iter().flat_map(|line| line.pieces.iter().map(|piece| (line.colour % COLOURS, piece)));
    for (colour, piece) in pieces {
        let points: Vec<String> =
            piece.iter().map(|(x, y)| format!("{:.1},{:.1}", place_x(*x), place_y(*y))).collect();
        body.push_str(&format!(
            "<polyline style=\"stroke:var(--c{colour})\" points=\"{}\"/>",
            points.join(" ")
        ));
    }
    body.push_str(&format!(
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
        WIDTH - RIGHT,
        HEIGHT - 8.0,
        x.label
    ));
    body.push_str(&format!("<text x=\"4\" y=\"{}\">{}</text>", HEIGHT - 8.0, y.label));
    svg(HEIGHT, &body)
}

/// Horizontal bars, a named group for each test.
pub(super) fn bars(groups: &[(String, Vec<Bar>)]) -> String {
    const THICK: f64 = 16.0;
    const GAP: f64 = 14.0;
    const NAMES: f64 = 110.0;
    const FIGURES: f64 = 150.0;
    let most = groups.iter().flat_map(|(_, bars)| bars.iter().map(|bar| bar.value)).fold(1.0, f64::max);
    let (mut body, mut at) = (String::new(), 6.0);
    for (name, bars) in groups {
        let middle = at + THICK * bars.len() as f64 / 2.0 + 4.0;
        body.push_str(&format!(
            "<text x=\"{}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            NAMES - 8.0,
            escaped(name)
        ));
        for Bar { value, colour, text } in bars {
            let length = value / most * (WIDTH - NAMES - FIGURES);
            body.push_str(&format!(
                "<rect x=\"{NAMES}\" y=\"{:.1}\" width=\"{length:.1}\" height=\"{}\" style=\"fill:var(--c{})\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                at,
                THICK - 2.0,
                colour % COLOURS,
                NAMES + length + 6.0,
                at + THICK - 4.5,
                escaped(text)
            ));
            at += THICK;
        }
        at += GAP;
    }
    svg(at, &body)
}

/// An axis from 0 to somewhat more than `most`, with round marks.
pub(super) fn from_zero(most: f64, label: &'static str) -> Axis {
    let most = most.max(1e-9);
    let power = 10f64.powf(most.log10().floor());
    let step = [0.2, 0.5, 1.0, 2.0].into_iter().map(|part| part * power).find(|step| most / step <= 6.0);
    let step = step.unwrap_or(2.0 * power);
    let marks = (0..=(most / step).ceil() as u32).map(|i| {
        let at = f64::from(i) * step;
        let digits = (-step.log10().floor()).max(0.0) as usize;
        let text = if step >= 1.0 { thousands(at) } else { format!("{at:.digits$}") };
        Mark { at, text }
    });
    Axis { marks: marks.collect(), label }
}

/// Where a value lies between two ends in the drawing.
fn place(axis: &Axis, from: f64, to: f64) -> impl Fn(f64) -> f64 {
    let first = axis.marks.first().map_or(0.0, |mark| mark.at);
    let span = axis.marks.last().map_or(1.0, |mark| mark.at) - first;
    let span = if span > 0.0 { span } else { 1.0 };
    move |value| from + ((value - first) / span).clamp(0.0, 1.0) * (to - from)
}

fn svg(height: f64, body: &str) -> String {
    format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">{body}</svg>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_marks_and_reach_beyond_the_most() {
        for most in [0.003, 0.9, 1.0, 7.0, 123.0, 98_765.0] {
            let marks = from_zero(most, "").marks;
            assert!((3..=8).contains(&marks.len()), "{most}: {} marks", marks.len());
            assert!(marks[0].at == 0.0 && marks.last().unwrap().at >= most, "{most}");
        }
        assert_eq!(from_zero(98_765.0, "").marks[1].text, "20,000");
    }

    #[test]
    fn a_value_outside_stays_inside_the_drawing() {
        let axis = from_zero(10.0, "");
        let place = place(&axis, 0.0, 100.0);
        assert_eq!((place(-5.0), place(5.0), place(1e9)), (0.0, 50.0, 100.0));
    }
}
