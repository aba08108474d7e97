//! Intervals of ratios as SVG: one row per comparison around the line of no difference, with the
//! band of differences that don't matter shaded. The axis is logarithmic, so that twice and half
//! stand equally far from 1.

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::charts::{Area, Drawn, Ink, SCALE, nice_step, svg, text};
use crate::format::{ratio, signed_percent};

const ROW: i32 = 24;
/// Where the plot begins, right of the names.
const LEFT: f64 = 138.0;
const RIGHT: f64 = 386.0;
/// Above this span (largest ÷ smallest ratio) ticks are ratios, below it they are per cents.
const RATIOS_FROM: f64 = 2.2;

/// One comparison.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) ratio: f64,
    pub(super) interval: Option<(f64, f64)>,
    pub(super) is_shown: bool,
}

/// The plot; `None` without any row that has a positive ratio.
pub(super) fn intervals(name: &str, rows: &[Row], relevant: f64) -> Option<String> {
    let rows: Vec<Row> = rows
        .iter()
        .copied()
        .filter(|row| row.ratio.is_finite() && row.ratio > 0.0)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let scale = Scale::of(&rows, relevant);
    let bottom = rows.len() as i32 * ROW + 6;
    Some(svg(name, bottom + 20, |area| {
        let (from, to) = (1.0 / (1.0 + relevant), 1.0 + relevant);
        let band = [(scale.x(from), 0), (scale.x(to), bottom * SCALE)];
        area.draw(&Rectangle::new(band, Ink::Band.marker().filled()))?;
        axis(area, &scale, bottom * SCALE)?;
        for (at, row) in rows.iter().enumerate() {
            row_of(area, &scale, row, (at as i32 * ROW + ROW / 2 + 3) * SCALE)?;
        }
        Ok(())
    }))
}

/// Logarithms of the least and the largest ratio shown.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn of(rows: &[Row], relevant: f64) -> Self {
        let band = relevant.max(0.001).ln_1p() * 1.5;
        let mut scale = Self {
            low: -band,
            high: band,
        };
        for row in rows {
            let (low, high) = row.interval.unwrap_or((row.ratio, row.ratio));
            scale.low = scale.low.min(low.ln());
            scale.high = scale.high.max(high.ln());
        }
        let margin = (scale.high - scale.low) * 0.06;
        scale.low -= margin;
        scale.high += margin;
        scale
    }

    fn x(&self, ratio: f64) -> i32 {
        let part = (ratio.ln() - self.low) / (self.high - self.low);
        ((LEFT + part.clamp(0.0, 1.0) * (RIGHT - LEFT)) * f64::from(SCALE)) as i32
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
        (first..=last)
            .map(|n| (f64::from(n) * step, n))
            .map(|(percent, n)| {
                let label = match n {
                    0 => "same".to_owned(),
                    _ => signed_percent(percent).replace(".0 %", " %"),
                };
                (1.0 + percent / 100.0, label)
            })
            .collect()
    }

    fn ratio_ticks(&self) -> Vec<(f64, String)> {
        let wide = self.high - self.low > 100f64.ln();
        let steps: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let first = (self.low / std::f64::consts::LN_10).floor() as i32;
        let last = (self.high / std::f64::consts::LN_10).ceil() as i32;
        let all = (first..=last).flat_map(|decade| {
            let decade = 10f64.powi(decade);
            steps.iter().map(move |step| step * decade)
        });
        all.filter(|tick| self.shows(*tick))
            .map(|tick| {
                let label = if (tick - 1.0).abs() < 1e-9 {
                    "same".to_owned()
                } else {
                    ratio(tick).replace(".00", "").replace(".0", "")
                };
                (tick, label)
            })
            .collect()
    }
}

fn axis(area: &Area<'_>, scale: &Scale, bottom: i32) -> Drawn {
    for (tick, label) in scale.ticks() {
        let x = scale.x(tick);
        let ink = if label == "same" {
            Ink::Axis
        } else {
            Ink::Grid
        };
        let style = ink.marker().stroke_width(SCALE as u32);
        area.draw(&PathElement::new(vec![(x, 0), (x, bottom)], style))?;
        text(
            area,
            &label,
            x,
            bottom + 11 * SCALE,
            Ink::Text,
            HPos::Center,
        )?;
    }
    Ok(())
}

fn row_of(area: &Area<'_>, scale: &Scale, row: &Row, y: i32) -> Drawn {
    text(area, row.name, 2 * SCALE, y, Ink::Strong, HPos::Left)?;
    let ink = if row.is_shown { Ink::First } else { Ink::Text };
    if let Some((low, high)) = row.interval {
        let style = ink.marker().stroke_width(2 * SCALE as u32);
        let (from, to) = (scale.x(low), scale.x(high));
        area.draw(&PathElement::new(vec![(from, y), (to, y)], style))?;
        for end in [from, to] {
            let tip = vec![(end, y - 4 * SCALE), (end, y + 4 * SCALE)];
            area.draw(&PathElement::new(tip, style))?;
        }
    }
    let at = (scale.x(row.ratio), y);
    area.draw(&Circle::new(at, 4 * SCALE, ink.marker().filled()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64, interval: Option<(f64, f64)>) -> Row {
        Row {
            name: "mean response",
            ratio,
            interval,
            is_shown: true,
        }
    }

    #[test]
    fn small_differences_have_ticks_in_per_cent_large_ones_in_times() {
        let labels = |rows: &[Row]| -> Vec<String> {
            let ticks = Scale::of(rows, 0.02).ticks();
            ticks.into_iter().map(|(_, label)| label).collect()
        };
        let small = labels(&[row(1.05, Some((1.02, 1.08)))]);
        assert!(
            small.contains(&"same".to_owned()) && small.contains(&"+5 %".to_owned()),
            "{small:?}"
        );
        let large = labels(&[row(3.6, Some((3.2, 6.1)))]);
        assert_eq!(large, ["same", "×2", "×5"]);
        let huge = labels(&[row(900.0, Some((500.0, 1100.0)))]);
        assert_eq!(huge, ["same", "×10", "×100", "×1000"]);
    }

    #[test]
    fn no_marker_colour_reaches_the_page() {
        let svg = intervals("a", &[row(1.1, Some((1.05, 1.2))), row(0.9, None)], 0.02).unwrap();
        assert!(!svg.contains("#0102"), "{svg}");
        assert!(svg.contains("var(--band)") && svg.contains("var(--first)"));
        assert!(intervals("a", &[row(f64::NAN, None)], 0.02).is_none());
    }
}
