//! `report.html`: one file that needs no network, follows light and dark, and prints.
//!
//! Everything that comes from a study, a server, or a machine is escaped; the page's own policy
//! forbids any load. The script only sorts and copies tables: without it nothing is missing.

mod charts;
mod differences;
mod escape;
mod figures;
mod growth;
mod intervals;
mod line;
mod runs;
mod side_by_side;
mod tables;

pub use runs::runs_html;

use crate::Analysis;
use crate::format::{count, plural};
use crate::model::Outcome;
use crate::write::rows::published_notes;
use crate::write::words::{pinning, setups, trial_notes, verdict};
use escape::escape;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// A ship's load-line mark: the ring and the line that runs through it.
const MARK: &str = "<svg viewBox=\"0 0 34 26\" aria-hidden=\"true\"><g fill=\"none\" \
stroke=\"currentColor\" stroke-width=\"2.6\"><circle cx=\"17\" cy=\"13\" r=\"9\"/>\
<path d=\"M1 13H33\"/></g></svg>";

/// Columns, charts, and folds per page: more would outgrow a page that people can read.
const MOST_CELLS: usize = 24;
/// Rows of a table, likewise.
const MOST_ROWS: usize = 300;

/// The report as one HTML file, under 1 MB however many trials there are.
#[must_use]
pub fn html(analysis: &Analysis) -> String {
    let (shown, left_out) = shortened(analysis);
    let analysis = &shown;
    let mut page = Page::default();
    begin(&mut page, &analysis.study.title);
    head(&mut page, analysis, &left_out);
    page.raw("<main>\n");
    figures::tiles(&mut page, analysis);
    // Where steps are compared with each other, they are the answer.
    let steps_first = side_by_side::fits(analysis);
    if steps_first {
        figures::steps(&mut page, analysis);
    }
    figures::against_users(&mut page, analysis);
    growth::against_level(&mut page, analysis);
    line::scaling(&mut page, analysis);
    line::arrivals(&mut page, analysis);
    differences::two_factors(&mut page, analysis);
    tables::carried(&mut page, analysis);
    tables::levels(&mut page, analysis);
    differences::comparisons(&mut page, analysis);
    if !steps_first {
        figures::steps(&mut page, analysis);
    }
    tables::steps(&mut page, analysis);
    figures::through_trials(&mut page, analysis);
    tables::trials(&mut page, analysis);
    tables::published(&mut page, analysis);
    published_facts(&mut page, analysis);
    tables::thresholds(&mut page, analysis);
    tables::checks(&mut page, analysis);
    notes(&mut page, analysis);
    environment(&mut page, analysis);
    how_to_read(&mut page, analysis);
    page.raw("</main>\n");
    foot(&mut page, analysis);
    end(&mut page);
    page.text
}

/// Everything before the page's own text.
fn begin(page: &mut Page, title: &str) {
    page.raw("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    page.raw(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src \
         'unsafe-inline'; script-src 'unsafe-inline'\">\n",
    );
    page.raw("<meta name=\"color-scheme\" content=\"light dark\">\n");
    page.element("title", "", &format!("{} · Plimsoll", title));
    page.raw(&format!("<style>{STYLE}</style>\n</head>\n<body>\n"));
}

fn end(page: &mut Page) {
    page.raw(&format!("<script>{SCRIPT}</script>\n</body>\n</html>\n"));
}

/// The page as it is written. Only [`Page::raw`] takes markup; all else escapes.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    /// Markup of our own.
    fn raw(&mut self, markup: &str) {
        self.text.push_str(markup);
    }

    /// `<tag attributes>text</tag>`; attributes are markup of our own.
    fn element(&mut self, tag: &str, attributes: &str, text: &str) {
        let space = if attributes.is_empty() { "" } else { " " };
        self.text.push_str(&format!(
            "<{tag}{space}{attributes}>{}</{tag}>\n",
            escape(text)
        ));
    }

    /// The mark and what kind of page this is.
    fn brand(&mut self, name: &str) {
        self.raw(&format!("<div class=\"brand\">{MARK}"));
        self.element("span", "", name);
        self.raw("</div>\n");
    }

    fn section(&mut self, title: &str, lead: &str) {
        self.element("h2", "", title);
        if !lead.is_empty() {
            self.element("p", "class=\"lead\"", lead);
        }
    }

    fn list(&mut self, class: &str, items: &[String]) {
        if items.is_empty() {
            return;
        }
        self.raw(&format!("<ul class=\"{class}\">\n"));
        for item in items {
            self.element("li", "", item);
        }
        self.raw("</ul>\n");
    }

    fn facts(&mut self, facts: &[(&str, String)]) {
        self.raw("<dl class=\"facts\">\n");
        for (name, value) in facts.iter().filter(|(_, value)| !value.is_empty()) {
            self.element("dt", "", name);
            self.element("dd", "", value);
        }
        self.raw("</dl>\n");
    }
}

/// What the page has room for, and what it leaves out, in sentences.
fn shortened(analysis: &Analysis) -> (Analysis, Vec<String>) {
    let mut shown = analysis.clone();
    let mut left_out = Vec::new();
    let mut say = |all: usize, most: usize, noun: &str| {
        if all > most {
            left_out.push(format!(
                "This page shows {most} of {}; result.json and steps.csv have all.",
                plural(all, noun)
            ));
        }
    };
    say(shown.cells.len(), MOST_CELLS, "cell");
    say(shown.trials.len(), MOST_ROWS, "trial");
    say(shown.comparisons.len(), MOST_ROWS, "comparison");
    shown.cells.truncate(MOST_CELLS);
    shown.trials.truncate(MOST_ROWS);
    shown.comparisons.truncate(MOST_ROWS);
    for table in &mut shown.published {
        say(table.entries.len(), MOST_ROWS, "published figure");
        table.entries.truncate(MOST_ROWS);
    }
    (shown, left_out)
}

fn head(page: &mut Page, analysis: &Analysis, left_out: &[String]) {
    let study = &analysis.study;
    page.raw("<header>\n");
    page.brand("Plimsoll report");
    page.element("h1", "", &study.title);
    page.element(
        "p",
        "class=\"meta\"",
        &format!(
            "study {} · workload {} · begun {}",
            study.name, study.workload, study.started
        ),
    );
    page.raw("<div class=\"pills\">\n");
    let class = match analysis.summary.outcome {
        Outcome::Ok if analysis.summary.least_part_of_load.is_some() => "warn",
        Outcome::Ok => "good",
        Outcome::ThresholdFailed => "warn",
        Outcome::TooFewValidTrials | Outcome::SystemFailed => "bad",
    };
    page.element(
        "span",
        &format!("class=\"pill {class}\""),
        verdict(analysis).trim_end_matches('.'),
    );
    if analysis.summary.invalid > 0 {
        let invalid = format!("✕ {} invalid", plural(analysis.summary.invalid, "trial"));
        page.element("span", "class=\"pill bad\"", &invalid);
    }
    if let Some(note) = analysis.speed_note() {
        page.element("span", "class=\"pill info\"", &note);
    }
    page.raw("</div>\n");
    page.element("p", "class=\"headline\"", &analysis.headline);
    line::marks(page, analysis);
    page.list("findings", &analysis.findings);
    page.list("findings", left_out);
    page.raw("</header>\n");
}

fn published_facts(page: &mut Page, analysis: &Analysis) {
    if analysis.published.is_empty() {
        return;
    }
    let mut lines: Vec<String> = analysis
        .published
        .iter()
        .map(|table| format!("{}: {}", table.file, table.source.join(" ")))
        .collect();
    lines.extend(published_notes(analysis));
    page.list("notes", &lines);
}

fn notes(page: &mut Page, analysis: &Analysis) {
    let notes = trial_notes(analysis);
    if !notes.is_empty() {
        page.section("Notes", "");
        page.list("notes", &notes);
    }
}

fn environment(page: &mut Page, analysis: &Analysis) {
    let (study, machine) = (&analysis.study, &analysis.environment);
    page.section("Environment", "");
    page.facts(&[
        ("processor", format!("{} × {}", machine.cores, machine.cpu)),
        ("memory", format!("{} MB", count(machine.memory_mb))),
        (
            "system",
            format!("{}, Linux {}", machine.os, machine.kernel),
        ),
        ("data on", machine.data_filesystem.clone()),
        ("cores", pinning(analysis)),
        ("plimsoll", machine.plimsoll_version.clone()),
        ("speed", study.speed.to_string()),
        ("seed", study.seed.to_string()),
        (
            "study file",
            study
                .file_sha256
                .as_ref()
                .map_or_else(String::new, |h| format!("SHA-256 {h}")),
        ),
    ]);
    page.list("notes", &setups(analysis));
}

fn how_to_read(page: &mut Page, analysis: &Analysis) {
    page.section("How to read this", "");
    let mut lines = vec![
        "A trial is one run at one level. Transactions, errors, and skipped steps count the whole \
         trial, ramp included. Response times, throughput, CPU, and all counters count the hold \
         only, after its warm-up: what MSER-5 cuts off its beginning, as the check on the steady \
         state says for each trial."
            .to_owned(),
        "Response time runs from the moment at which a request was due, or, where nothing says when, \
         from its sending, to the last byte of its answer. A timeout is an \
         error, not a transaction. p95: 95 % of the responses were no slower. A dash stands where \
         too few responses were measured to tell, or nothing was sampled."
            .to_owned(),
        "A check judges the measurement, a threshold judges the server. A trial that fails a check \
         is invalid: it is struck out here and counts in no average. A slow server is no reason \
         for that; a generator that could not keep its plan is."
            .to_owned(),
        "× is our figure divided by the published one.".to_owned(),
        "A comparison pairs the trials of each block: what a block does to both sides cancels. p is \
         the sign-flip permutation test's, over all comparisons together; the interval holds every \
         ratio that the test doesn't reject. Six blocks are the fewest that can show anything."
            .to_owned(),
    ];
    lines.extend(crate::write::words::service_note(analysis));
    if let Some(note) = analysis.speed_note() {
        lines.push(format!(
            "This run was sped up ({note}): waits, pace, ramp, and hold are shorter by that \
             factor, and rates, CPU, disk, and network are higher for it."
        ));
    }
    page.list("notes", &lines);
    if !analysis.study.about.is_empty() {
        page.section("About the study", "");
        page.element("p", "", &analysis.study.about);
    }
}

fn foot(page: &mut Page, analysis: &Analysis) {
    page.raw("<footer>");
    page.raw(&escape(&format!(
        "Made by plimsoll {} from the run's archive; result.json and steps.csv beside this file \
         hold the same figures.",
        analysis.environment.plimsoll_version
    )));
    page.raw("</footer>\n");
}
