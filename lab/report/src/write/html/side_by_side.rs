//! Steps of a study of two factors as bars: the levels of the second beside each other, a card per
//! level of the first and step. It knows no SVG.

use lab_study::model::{Level, VARIANT};

use super::charts::{self, Bar};
use super::escape::escape;
use super::figures::{bar_of, bars_key};
use super::{MOST_CELLS, Page};
use crate::Analysis;
use crate::format::{bare_level, figure};
use crate::model::CellSummary;
use crate::write::grids::{FEW_STEPS, levels_of_two};

/// Whether the study is one of them: two factors, and few steps.
pub(super) fn fits(analysis: &Analysis) -> bool {
    sides(analysis).is_some()
}

/// What goes down the page, and what is compared within a card: a factor each, with its levels.
type Sides<'a> = [(&'a str, Vec<&'a Level>); 2];

fn sides(analysis: &Analysis) -> Option<Sides<'_>> {
    let (first, second) = levels_of_two(analysis)?;
    let [down, across] = analysis.study.factors.as_slice() else {
        return None;
    };
    let (first, second) = ((down.as_str(), first), (across.as_str(), second));
    // Variants are what is compared.
    let sides = match first.0 == VARIANT {
        true => [second, first],
        false => [first, second],
    };
    let steps = analysis.study.steps.len();
    (steps <= FEW_STEPS && sides[0].1.len() * steps <= MOST_CELLS).then_some(sides)
}

/// Writes the cards, if it is.
pub(super) fn steps(page: &mut Page, analysis: &Analysis, lead: &str) -> bool {
    let Some([(down, rows), (across, columns)]) = sides(analysis) else {
        return false;
    };
    let names = &analysis.study.steps;
    page.section("Per step", lead);
    bars_key(page, analysis);
    page.raw("<div class=\"grid\">\n");
    for row in &rows {
        for (at, step) in names.iter().enumerate() {
            let bars: Vec<Bar> = columns
                .iter()
                .filter_map(|column| {
                    let is_of = |cell: &CellSummary| {
                        cell.cell.get(down) == Some(*row) && cell.cell.get(across) == Some(*column)
                    };
                    let place = analysis.cells.iter().position(is_of)?;
                    let bar = bar_of(analysis, place, analysis.cells[place].steps.get(at)?);
                    Some(Bar {
                        name: bare_level(across, column),
                        ..bar
                    })
                })
                .collect();
            let title = format!("{step} · {}", bare_level(down, row));
            card(page, &title, &bars);
        }
    }
    page.raw("</div>\n");
    true
}

fn card(page: &mut Page, title: &str, bars: &[Bar]) {
    let most_ms = charts::scale(bars);
    page.raw("<section class=\"card\"><h3>");
    page.raw(&escape(title));
    let unit = format!("ms; bar: 0 to {}", figure(most_ms));
    page.element("span", "class=\"unit\"", &unit);
    page.raw("</h3>\n");
    match charts::bars(&format!("Response: {title}"), bars, most_ms) {
        Some(svg) => page.raw(&svg),
        None => page.element("p", "class=\"none\"", "no responses"),
    }
    page.raw("</section>\n");
}
