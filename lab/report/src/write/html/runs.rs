//! Two runs beside each other as one page: what it comes to, what else differs, every verdict.

use super::escape::escape;
use super::intervals::{Row, intervals};
use super::{Page, begin, differences, end};
use crate::format::plural;
use crate::model::{RunComparison, RunOutcome};
use crate::write::runs::{cells, lead, run, setup, verdict};
use lab_analysis::line_difference_sentence;

/// Cells with a chart; the table has all.
const MOST_CHARTS: usize = 24;

/// The comparison of runs as one HTML file.
#[must_use]
pub fn runs_html(runs: &RunComparison) -> String {
    let mut page = Page::default();
    begin(&mut page, &format!("{}: two runs", runs.b.title));
    head(&mut page, runs);
    page.raw("<main>\n");
    let setup = setup(runs);
    if !setup.is_empty() {
        page.section("What else differs", "");
        page.list("notes", &setup);
    }
    if !runs.comparisons.is_empty() {
        page.section("Run b beside run a", &lead(runs));
        charts(&mut page, runs);
        differences::run_table(&mut page, runs);
    }
    page.raw("</main>\n<footer>");
    page.raw(&escape(&format!(
        "Made by plimsoll {} from both archives.",
        runs.b.plimsoll_version
    )));
    page.raw("</footer>\n");
    end(&mut page);
    page.text
}

fn head(page: &mut Page, runs: &RunComparison) {
    page.raw("<header>\n");
    page.brand("Plimsoll comparison");
    page.element("h1", "", &runs.b.title);
    page.element("p", "class=\"meta\"", &run("a", &runs.a));
    page.element("p", "class=\"meta\"", &run("b", &runs.b));
    let class = match runs.outcome {
        RunOutcome::Ok => "good",
        RunOutcome::Regression => "bad",
        RunOutcome::TooFewValidTrials => "warn",
    };
    page.raw("<div class=\"pills\">\n");
    let text = verdict(runs.outcome).trim_end_matches('.');
    page.element("span", &format!("class=\"pill {class}\""), text);
    page.raw("</div>\n");
    page.element("p", "class=\"headline\"", &runs.headline);
    let lines: Vec<String> = runs
        .load_lines
        .iter()
        .map(line_difference_sentence)
        .collect();
    page.list("findings", &lines);
    page.raw("</header>\n");
}

fn charts(page: &mut Page, runs: &RunComparison) {
    differences::interval_key(page);
    page.raw("<div class=\"grid\">\n");
    for (cell, comparisons) in cells(runs).take(MOST_CHARTS) {
        let rows: Vec<Row> = comparisons.iter().map(differences::row).collect();
        let name = format!("Ratios with intervals, {cell}");
        if let Some(svg) = intervals(&name, &rows, runs.smallest_relevant) {
            page.raw("<section class=\"card\"><h3>");
            page.raw(&escape(cell));
            let trials = plural(comparisons[0].blocks, "trial");
            page.element("span", "class=\"unit\"", &trials);
            page.raw("</h3>\n");
            page.raw(&svg);
            page.raw("</section>\n");
        }
    }
    page.raw("</div>\n");
}
