//! Charts as SVG: lines with a band around the first, and stacked bars.

use super::escaped;
use std::fmt::Write;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 240.0;
/// What is left free at the sides, for labels.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 28.0;
/// Labels below a chart, at most.
const LABELS: usize = 12;

/// How values are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Lines,
    Bars,
}

/// Values of one kind, batch by batch.
pub(super) struct Series {
    /// What they are, in HTML.
    pub(super) name: String,
    pub(super) values: Vec<Option<f64>>,
}

/// A chart over batches.
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) kind: Kind,
    /// The batches, by name.
    pub(super) names: Vec<String>,
    pub(super) series: Vec<Series>,
    /// Where the values of the first series lie with confidence; empty: not told.
    pub(super) band: Vec<Option<(f64, f64)>>,
    /// A value in words.
    pub(super) shown: fn(f64) -> String,
    /// The upper end of the scale, where it is known.
    pub(super) most: Option<f64>,
}

impl Chart {
    /// The chart, with its title and its legend.
    pub(super) fn svg(&self) -> String {
        let mut svg = format!("<figure>\n<figcaption>{}", escaped(&self.title));
        if self.series.len() > 1 {
            svg.push_str("<ul class=\"legend\">");
            for (at, series) in self.series.iter().enumerate() {
                let _ = write!(svg, "<li class=\"s{at}\">{}</li>", series.name);
            }
            svg.push_str("</ul>");
        }
        let _ = write!(
            svg,
            "</figcaption>\n<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n",
            escaped(&self.title)
        );
        let top = self.most.unwrap_or_else(|| self.highest());
        self.grid(&mut svg, top);
        match self.kind {
            Kind::Lines => self.lines(&mut svg, top),
            Kind::Bars => self.bars(&mut svg, top),
        }
        svg.push_str("</svg>\n</figure>\n");
        svg
    }

    /// The highest value, of stacked bars the sum.
    fn highest(&self) -> f64 {
        let at = |at: usize| {
            let values = self.series.iter().filter_map(|series| series.values.get(at).copied().flatten());
            match self.kind {
                Kind::Lines => values.fold(0.0, f64::max),
                Kind::Bars => values.sum(),
            }
        };
        (0..self.names.len()).map(at).fold(0.0, f64::max)
    }

    /// Lines at round values, and the batches below.
    fn grid(&self, svg: &mut String, top: f64) {
        let step = round_step(top);
        let mut value = 0.0;
        while value <= top * 1.0001 + f64::MIN_POSITIVE {
            let y = y_of(value, top);
            let _ = writeln!(
                svg,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text class=\"y\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 8.0,
                y + 4.0,
                escaped(&(self.shown)(value))
            );
            value += step;
        }
        let every = self.names.len().div_ceil(LABELS).max(1);
        for (at, name) in self.names.iter().enumerate().step_by(every) {
            let _ = writeln!(
                svg,
                "<text class=\"x\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                self.x_of(at),
                HEIGHT - 8.0,
                escaped(name)
            );
        }
    }

    /// The middle of a batch's place.
    fn x_of(&self, at: usize) -> f64 {
        LEFT + self.width() * (at as f64 + 0.5)
    }

    fn width(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.names.len().max(1) as f64
    }

    fn lines(&self, svg: &mut String, top: f64) {
        let known: Vec<(usize, f64, f64)> = self
            .band
            .iter()
            .enumerate()
            .filter_map(|(at, band)| band.map(|(low, high)| (at, low, high)))
            .collect();
        if !known.is_empty() {
            let upper = known.iter().map(|(at, _, high)| (*at, *high));
            let lower = known.iter().rev().map(|(at, low, _)| (*at, *low));
            let points: Vec<String> = upper
                .chain(lower)
                .map(|(at, value)| format!("{:.1},{:.1}", self.x_of(at), y_of(value, top)))
                .collect();
            let _ = writeln!(svg, "<polygon class=\"band s0\" points=\"{}\"/>", points.join(" "));
        }
        for (n, series) in self.series.iter().enumerate() {
            let known: Vec<(usize, f64)> =
                series.values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
            let points: Vec<String> = known
                .iter()
                .map(|(at, value)| format!("{:.1},{:.1}", self.x_of(*at), y_of(*value, top)))
                .collect();
            let _ = writeln!(svg, "<polyline class=\"line s{n}\" points=\"{}\"/>", points.join(" "));
            for (at, value) in known {
                let _ = writeln!(
                    svg,
                    "<circle class=\"s{n}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}</title></circle>",
                    self.x_of(at),
                    y_of(value, top),
                    self.told(at, series, value)
                );
            }
        }
    }

    fn bars(&self, svg: &mut String, top: f64) {
        let width = (self.width() * 0.7).min(36.0);
        for at in 0..self.names.len() {
            let mut below = 0.0;
            for (n, series) in self.series.iter().enumerate() {
                let Some(value) = series.values.get(at).copied().flatten().filter(|value| *value > 0.0)
                else {
                    continue;
                };
                let (low, high) = (y_of(below, top), y_of(below + value, top));
                let _ = writeln!(
                    svg,
                    "<rect class=\"s{n}\" x=\"{:.1}\" y=\"{high:.1}\" width=\"{width:.1}\" height=\"{:.1}\"><title>{}</title></rect>",
                    self.x_of(at) - width / 2.0,
                    (low - high - 1.0).max(0.5),
                    self.told(at, series, value)
                );
                below += value;
            }
        }
    }

    /// A value, for who points at it.
    fn told(&self, at: usize, series: &Series, value: f64) -> String {
        let name = self.names.get(at).map(|name| escaped(name)).unwrap_or_default();
        format!("batch {name}, {}: {}", series.name, escaped(&(self.shown)(value)))
    }
}

fn y_of(value: f64, top: f64) -> f64 {
    let share = if top > 0.0 { (value / top).clamp(0.0, 1.0) } else { 0.0 };
    HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
}

/// A step of 1, 2 or 5 times a power of ten, of which about four fit.
fn round_step(top: f64) -> f64 {
    if !(top.is_finite() && top > 0.0) {
        return 1.0;
    }
    let raw = top / 4.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= raw * 0.999);
    step.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        for (top, step) in [
            (1.0, 0.5),
            (10.0, 5.0),
            (7.0, 2.0),
            (0.03, 0.01),
            (0.0, 1.0),
            (f64::NAN, 1.0),
            (123_456.0, 50_000.0),
        ] {
            assert!((round_step(top) - step).abs() < step * 1e-9, "{top}: {}", round_step(top));
        }
    }
}
