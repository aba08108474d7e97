//! Cost against a number that varies: of a study whose one factor is a number other than users, a
//! chart per step. It knows no SVG.

use lab_study::model::Level;

use super::Page;
use super::charts::{self, Ink, Line};
use super::escape::escape;
use super::figures::key;
use crate::Analysis;
use crate::model::{Estimate, StepSummary};
use crate::write::grids::FEW_STEPS;

/// Fewer levels than this make no curve.
const LEAST_LEVELS: usize = 3;

/// One card per step: its mean and p95 at each level.
pub(super) fn against_level(page: &mut Page, analysis: &Analysis) {
    let [factor] = analysis.study.factors.as_slice() else {
        return;
    };
    let steps = &analysis.study.steps;
    if factor == "users" || steps.len() > FEW_STEPS || numbers(analysis, factor) < LEAST_LEVELS {
        return;
    }
    let words = "Mean and p95 response of each step. Less is better.";
    page.section(&format!("Against {factor}"), words);
    key(page, &[("", "mean"), ("second", "p95")], None);
    page.raw("<div class=\"grid\">\n");
    for (at, step) in steps.iter().enumerate() {
        let line = |ink, of: fn(&StepSummary) -> Option<Estimate>| Line {
            ink,
            points: points(analysis, factor, at, of),
        };
        let lines = [
            line(Ink::Second, |step| step.response_ms.p95),
            line(Ink::First, |step| step.response_ms.mean),
        ];
        let title = format!("{step} against {factor}");
        let Some(drawn) = charts::against_levels(&title, &lines) else {
            continue;
        };
        page.raw("<section class=\"card\"><h3>");
        page.raw(&escape(step));
        page.element("span", "class=\"unit\"", &format!("ms{}", drawn.scales()));
        page.raw("</h3>\n");
        page.raw(&drawn.svg);
        page.raw("</section>\n");
    }
    page.raw("</div>\n");
}

/// How many levels of the factor ran; none if any is no number.
fn numbers(analysis: &Analysis, factor: &str) -> usize {
    let levels: Option<Vec<f64>> = analysis
        .cells
        .iter()
        .map(|cell| cell.cell.get(factor).and_then(number))
        .collect();
    let mut levels = levels.unwrap_or_default();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    levels.len()
}

#[expect(clippy::cast_precision_loss, reason = "levels stay far below 2^52")]
fn number(level: &Level) -> Option<f64> {
    match level {
        Level::Int(value) => Some(*value as f64),
        Level::Float(value) => Some(*value),
        Level::Text(_) | Level::Bool(_) => None,
    }
}

fn points(
    analysis: &Analysis,
    factor: &str,
    at: usize,
    of: fn(&StepSummary) -> Option<Estimate>,
) -> Vec<(f64, Option<f64>)> {
    let point = |cell: &crate::model::CellSummary| {
        let x = number(cell.cell.get(factor)?)?;
        let y = cell.steps.get(at).and_then(of);
        Some((x, y.map(|estimate| estimate.mean)))
    };
    let mut points: Vec<_> = analysis.cells.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}
