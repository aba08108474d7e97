//! Intervals of ratios: one row per comparison around the line of no difference, with the band of
//! differences that don't matter shaded. The axis is logarithmic, so that twice and half stand
//! equally far from 1.

use maud::Markup;

use super::drawing::{Anchor, Drawing, Ink, WIDTH};
use super::scale::nice_step;
use crate::chart::{Interval, Intervals};
use crate::format::{ratio, signed_percent};

const ROW: f64 = 24.0;
/// Where the plot begins, right of the names.
const LEFT: f64 = 132.0;
const RIGHT: f64 = WIDTH - 14.0;
/// Above this span (largest ÷ smallest ratio) ticks are ratios, below it they are per cents.
const RATIOS_FROM: f64 = 2.2;
/// Width of a tick's label at most, in letters of this width.
const LETTER: f64 = 6.8;
/// The label at 1.
const SAME: &str = "same";

pub(super) fn intervals(intervals: &Intervals) -> Markup {
    let scale = Scale::of(intervals);
    let bottom = intervals.rows.len() as f64 * ROW + 6.0;
    let mut drawing = Drawing::new("chart", &intervals.name, (WIDTH, bottom + 20.0));
    let most = 1.0 + intervals.relevant;
    let (from, to) = (scale.x(1.0 / most), scale.x(most));
    drawing.rectangle((from, 0.0), (to - from, bottom), Ink::Band);
    let mut free = f64::NEG_INFINITY;
    for (tick, label) in scale.ticks() {
        let x = scale.x(tick);
        let ink = if label == SAME { Ink::Axis } else { Ink::Grid };
        drawing.line(&[(x, 0.0), (x, bottom)], ink, 1.0, "");
        let half = label.chars().count() as f64 * LETTER / 2.0;
        if x - half > free {
            drawing.words(&label, (x, bottom + 11.0), Ink::Muted, Anchor::Middle);
            free = x + half;
        }
    }
    for (at, row) in intervals.rows.iter().enumerate() {
        let y = at as f64 * ROW + ROW / 2.0 + 3.0;
        row_of(&mut drawing, &scale, row, y);
    }
    drawing.finish()
}

fn row_of(drawing: &mut Drawing, scale: &Scale, row: &Interval, y: f64) {
    drawing.words(row.name, (2.0, y), Ink::Strong, Anchor::Start);
    let ink = if row.is_shown { Ink::First } else { Ink::Muted };
    if let Some((low, high)) = row.interval {
        let (from, to) = (scale.x(low), scale.x(high));
        drawing.line(&[(from, y), (to, y)], ink, 2.0, "");
        for end in [from, to] {
            drawing.line(&[(end, y - 4.0), (end, y + 4.0)], ink, 2.0, "");
        }
    }
    drawing.dot((scale.x(row.ratio), y), 4.0, ink);
}

/// Logarithms of the smallest and the largest ratio shown.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(intervals: &Intervals) -> Self {
        let band = intervals.relevant.max(0.001).ln_1p() * 1.5;
        let mut scale = Self {
            low: -band,
            high: band,
        };
        for row in &intervals.rows {
            let (low, high) = row.interval.unwrap_or((row.ratio, row.ratio));
            scale.low = scale.low.min(low.ln());
            scale.high = scale.high.max(high.ln());
        }
        let margin = (scale.high - scale.low) * 0.06;
        scale.low -= margin;
        scale.high += margin;
        scale
    }

    fn x(&self, ratio: f64) -> f64 {
        let part = (ratio.ln() - self.low) / (self.high - self.low);
        LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT)
    }

    fn shows(&self, ratio: f64) -> bool {
        (self.low..=self.high).contains(&ratio.ln())
    }

    /// Ratios with their labels.
    fn ticks(&self) -> Vec<(f64, String)> {
        let (least, most) = (self.low.exp(), self.high.exp());
        if most / least > RATIOS_FROM {
            return self.ratio_ticks();
        }
        let step = nice_step((most - least) * 100.0, 4.0);
        let first = ((least - 1.0) * 100.0 / step).ceil() as i32;
        let last = ((most - 1.0) * 100.0 / step).floor() as i32;
        let tick = |n: i32| {
            let percent = f64::from(n) * step;
            let label = match n {
                0 => SAME.to_owned(),
                _ => signed_percent(percent).replace(".0 %", " %"),
            };
            (1.0 + percent / 100.0, label)
        };
        (first..=last).map(tick).collect()
    }

    fn ratio_ticks(&self) -> Vec<(f64, String)> {
        let span = (self.high - self.low).exp();
        let steps: &[f64] = match span {
            _ if span > 100.0 => &[1.0],
            _ if span > 6.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 5.0, 7.0],
        };
        let first = (self.low / std::f64::consts::LN_10).floor() as i32;
        let last = (self.high / std::f64::consts::LN_10).ceil() as i32;
        let all = (first..=last).flat_map(|decade| {
            let decade = 10f64.powi(decade);
            steps.iter().map(move |step| step * decade)
        });
        let label = |tick: f64| {
            if (tick - 1.0).abs() < 1e-9 {
                return SAME.to_owned();
            }
            ratio(tick).replace(".00", "").replace(".0", "")
        };
        let shown = all.filter(|tick| self.shows(*tick));
        shown.map(|tick| (tick, label(tick))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64, interval: Option<(f64, f64)>) -> Interval {
        Interval {
            name: "mean response",
            ratio,
            interval,
            is_shown: true,
        }
    }

    fn of(rows: &[Interval]) -> Intervals {
        Intervals::new("a".to_owned(), rows, 0.02).unwrap()
    }

    #[test]
    fn small_differences_have_ticks_in_per_cent_large_ones_in_times() {
        let labels = |row: Interval| -> Vec<String> {
            let ticks = Scale::of(&of(&[row])).ticks();
            ticks.into_iter().map(|(_, label)| label).collect()
        };
        let small = labels(row(1.05, Some((1.02, 1.08))));
        assert!(
            small.contains(&SAME.to_owned()) && small.contains(&"+5 %".to_owned()),
            "{small:?}"
        );
        let large = labels(row(3.6, Some((3.2, 6.1))));
        assert_eq!(large, [SAME, "×2", "×5"]);
        let both_ways = labels(row(0.7, Some((0.6, 1.6))));
        assert_eq!(both_ways, ["×0.70", SAME, "×1.50"]);
        let huge = labels(row(900.0, Some((500.0, 1100.0))));
        assert_eq!(huge, [SAME, "×10", "×100", "×1000"]);
    }

    #[test]
    fn a_row_has_its_interval_and_what_is_no_ratio_is_left_out() {
        let made = of(&[row(1.1, Some((1.05, 1.2))), row(0.9, None), row(0.0, None)]);
        let svg = intervals(&made).into_string();
        assert_eq!(svg.matches("<circle").count(), 2, "{svg}");
        assert!(svg.contains("var(--band)"), "{svg}");
        assert!(Intervals::new("a".to_owned(), &[row(f64::NAN, None)], 0.02).is_none());
    }
}
