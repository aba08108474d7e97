//! The page's differences: two factors as tables, comparisons as intervals and as a table.

use super::escape::escape;
use super::intervals::{Row, intervals};
use super::{Page, tables};
use crate::Analysis;
use crate::format::{figure, plural};
use crate::model::{Comparison, Difference, RunComparison};
use crate::write::differences::{Group, control_lead, groups, lead, texts};
use crate::write::grids::{self, grids, spread};
use crate::write::runs::cells;

/// A table with more columns has the page's whole width.
const COLUMNS_OF_HALF: usize = 3;
/// Pairs with a chart; the table has all.
const MOST_CHARTS: usize = 12;

/// One table per measure, the first factor down, the second across.
pub(super) fn two_factors(page: &mut Page, analysis: &Analysis) {
    let grids = grids(analysis);
    if grids.is_empty() {
        return;
    }
    let names = &analysis.study.factors;
    page.section(
        &format!("By {} and {}", names[0], names[1]),
        &format!(
            "{} down, {} across. Means over the valid trials of each cell, with their 95 % \
             intervals, and the published figures, where there are any. {}",
            names[0],
            names[1],
            grids::lead(analysis)
        ),
    );
    let is_wide = grids
        .iter()
        .any(|grid| grid.across().1.len() > COLUMNS_OF_HALF);
    let class = if is_wide { "panels wide" } else { "panels" };
    page.raw(&format!("<div class=\"{class}\">\n"));
    for grid in grids {
        page.raw("<div>");
        tables::open(page, "matrix", &grid.title);
        page.raw("<thead><tr>");
        page.element("th", "scope=\"col\"", &grid.title);
        for column in grid.across().1 {
            page.element("th", "scope=\"col\"", column);
        }
        page.raw("</tr></thead>\n<tbody>\n");
        for (row, (name, figures)) in grid.rows.iter().zip(&grid.figures).enumerate() {
            page.raw("<tr>");
            page.element("th", "scope=\"row\"", name);
            for (column, estimate) in figures.iter().enumerate() {
                let mean = estimate.map_or_else(
                    || crate::format::NONE.to_owned(),
                    |estimate| figure(estimate.mean),
                );
                page.raw("<td>");
                page.raw(&escape(&mean));
                page.element("small", "", &spread(*estimate));
                let published = grid.published.get(row).and_then(|row| row.get(column));
                if let Some(published) = published.filter(|text| !text.is_empty()) {
                    page.element("small", "class=\"pub\"", &format!("published {published}"));
                }
                page.raw("</td>\n");
            }
            page.raw("</tr>\n");
        }
        tables::close(page);
        page.raw("</div>\n");
    }
    page.raw("</div>\n");
}

/// The control, then comparisons: intervals where there are any, then the table; then main effects.
pub(super) fn comparisons(page: &mut Page, analysis: &Analysis) {
    if !analysis.control.is_empty() {
        page.section("Control", &control_lead(analysis));
        part(page, analysis, &analysis.control);
    }
    if !analysis.comparisons.is_empty() {
        page.section("Comparisons", &lead(analysis));
        part(page, analysis, &analysis.comparisons);
    }
    if !analysis.main_effects.is_empty() && analysis.inference.judged > 0 {
        let words = "Levels of a factor over all combinations of the others.";
        page.section("Over all cells", words);
        part(page, analysis, &analysis.main_effects);
    }
}

fn part(page: &mut Page, analysis: &Analysis, comparisons: &[Comparison]) {
    let relevant = analysis.inference.smallest_relevant;
    let groups = groups(comparisons);
    let bounded = |group: &&Group<'_>| group.comparisons.iter().any(|one| one.interval.is_some());
    if groups.iter().any(|group| bounded(&group)) {
        interval_key(page);
    }
    page.raw("<div class=\"grid\">\n");
    for group in groups.iter().filter(bounded).take(MOST_CHARTS) {
        let rows: Vec<Row> = group.comparisons.iter().map(row).collect();
        let name = format!("Ratios with intervals, {}", group.title);
        if let Some(svg) = intervals(&name, &rows, relevant) {
            page.raw("<section class=\"card\"><h3>");
            page.raw(&escape(&group.title));
            page.element("span", "class=\"unit\"", &group.blocks);
            page.raw("</h3>\n");
            page.raw(&svg);
            page.raw("</section>\n");
        }
    }
    page.raw("</div>\n");
    table(page, &groups);
}

/// What the marks of the interval charts mean.
pub(super) fn interval_key(page: &mut Page) {
    page.raw("<ul class=\"key\">\n<li><i class=\"interval\"></i>ratio and its interval</li>\n");
    page.raw("<li><i class=\"shown\"></i>a difference is shown</li>\n");
    page.raw("<li><i class=\"band\"></i>too small to matter</li>\n</ul>\n");
}

/// Cell by cell, run b beside run a.
pub(super) fn run_table(page: &mut Page, runs: &RunComparison) {
    let groups: Vec<Group<'_>> = cells(runs)
        .map(|(cell, comparisons)| Group {
            title: cell.to_owned(),
            blocks: plural(comparisons[0].blocks, "trial"),
            comparisons,
        })
        .collect();
    table(page, &groups);
}

pub(super) fn row(one: &Comparison) -> Row {
    Row {
        name: one.metric.name(),
        ratio: one.ratio,
        interval: one.interval,
        is_shown: one.is_shown(),
    }
}

fn table(page: &mut Page, groups: &[Group<'_>]) {
    tables::open(page, "", "Comparisons");
    tables::heads(
        page,
        &[
            ("", "b beside a"),
            ("", "a"),
            ("", "b"),
            ("", "difference"),
            ("", "relative"),
            ("", "interval"),
            ("", "p"),
            ("text", "verdict"),
        ],
    );
    for group in groups {
        page.raw("<tr class=\"section\">");
        let title = format!("{} · {}", group.title, group.blocks);
        page.element("th", "scope=\"rowgroup\" colspan=\"8\"", &title);
        page.raw("</tr>\n");
        for one in group.comparisons {
            table_row(page, one);
        }
    }
    tables::close(page);
}

fn table_row(page: &mut Page, one: &Comparison) {
    let shown = texts(one);
    page.raw("<tr>");
    page.element("th", "scope=\"row\"", &shown.measure);
    for figure in [
        &shown.a,
        &shown.b,
        &shown.difference,
        &shown.relative,
        &shown.interval,
        &shown.p,
    ] {
        page.element("td", "", figure);
    }
    let class = match one.verdict {
        Some(verdict) if verdict.is_better() => "text good",
        Some(verdict) if verdict.is_worse() => "text bad",
        Some(Difference::Unstable) => "text warn",
        _ => "text",
    };
    page.element("td", &format!("class=\"{class}\""), &shown.verdict);
    page.raw("</tr>\n");
}
