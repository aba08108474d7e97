//! The page's tables. Each number carries its value in `data-v`, so that sorting sorts numbers.

use super::escape::escape;
use super::{MOST_CELLS, Page};
use crate::Analysis;
use crate::format::{bound, count, figure, or_none, plural, ratio};
use crate::model::{AsIs, Check, CheckOutcome, Entry, PublishedTable, TrialAnalysis, Verdict};
use crate::write::rows::{level_rows, published_step, published_text, whole as mean_count};
use crate::write::transfers::{LEGEND, transfers};
use crate::write::words::{outcome, threshold_value, threshold_words};

/// A cell of a table.
struct Cell {
    class: &'static str,
    text: String,
    value: Option<f64>,
}

fn text(words: &str) -> Cell {
    Cell {
        class: "text",
        text: words.to_owned(),
        value: None,
    }
}

fn plain(words: String) -> Cell {
    Cell {
        class: "",
        text: words,
        value: None,
    }
}

fn number(value: Option<f64>) -> Cell {
    Cell {
        class: "",
        text: or_none(value, figure),
        value,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn whole(n: u64) -> Cell {
    Cell {
        class: "",
        text: count(n),
        value: Some(n as f64),
    }
}

impl Cell {
    fn class(mut self, class: &'static str) -> Self {
        self.class = class;
        self
    }
}

pub(super) fn open(page: &mut Page, class: &str, name: &str) {
    page.raw(&format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\
         <table class=\"{class}\">\n",
        escape(name)
    ));
}

pub(super) fn close(page: &mut Page) {
    page.raw("</tbody></table></div>\n");
}

pub(super) fn heads(page: &mut Page, heads: &[(&str, &str)]) {
    page.raw("<thead><tr>");
    for (class, head) in heads {
        page.element("th", &format!("scope=\"col\" class=\"{class}\""), head);
    }
    page.raw("</tr></thead>\n<tbody>\n");
}

fn row(page: &mut Page, class: &str, name: &str, cells: &[Cell]) {
    page.raw(&format!("<tr class=\"{class}\">"));
    page.element("th", "scope=\"row\"", name);
    for cell in cells {
        let value = cell
            .value
            .map_or_else(String::new, |value| format!(" data-v=\"{value}\""));
        page.element(
            "td",
            &format!("class=\"{}\"{value}", cell.class),
            &cell.text,
        );
    }
    page.raw("</tr>\n");
}

/// What stands beside ours: the published figure and the ratio.
fn beside(entry: Option<&Entry>) -> [Cell; 2] {
    let published = entry.map_or_else(String::new, published_text);
    let times = entry.and_then(|entry| entry.ratio);
    let value = entry.and_then(|entry| entry.published);
    [
        Cell {
            class: "pub",
            text: published,
            value,
        },
        Cell {
            class: "ratio",
            text: times.map_or_else(String::new, ratio),
            value: times,
        },
    ]
}

/// The cells' names over their columns.
fn groups(page: &mut Page, analysis: &Analysis, columns: usize, first: &str, under: &[&str]) {
    page.raw("<thead><tr><th></th>");
    for cell in &analysis.cells {
        let state = match (cell.valid_trials, cell.trials) {
            (0, _) => " ✕ invalid".to_owned(),
            (valid, all) if valid < all => format!(" ({valid} of {all} valid)"),
            _ => String::new(),
        };
        let attributes = format!("class=\"group edge\" scope=\"colgroup\" colspan=\"{columns}\"");
        page.element("th", &attributes, &format!("{}{state}", cell.label));
    }
    page.raw("</tr>\n<tr>");
    page.element("th", "scope=\"col\"", first);
    for _ in &analysis.cells {
        for (at, head) in under.iter().enumerate() {
            let class = if at == 0 { "edge" } else { "" };
            page.element("th", &format!("scope=\"col\" class=\"{class}\""), head);
        }
    }
    page.raw("</tr></thead>\n<tbody>\n");
}

/// Measures down, cells across, published figures beside.
pub(super) fn levels(page: &mut Page, analysis: &Analysis) {
    if analysis.cells.is_empty() {
        return;
    }
    page.section(
        "Per level",
        &lead(analysis, "Means over the valid trials of each level."),
    );
    open(page, "", "Figures per level");
    let mut published = analysis.published.iter().flat_map(|table| &table.entries);
    let with_published = published.any(|entry| entry.step.is_none());
    if with_published {
        groups(page, analysis, 3, "", &["here", "published", "×"]);
    } else {
        groups(page, analysis, 1, "", &[""]);
    }
    for line in level_rows(analysis) {
        let mut cells = Vec::new();
        for (at, ours) in line.ours.iter().enumerate() {
            cells.push(plain(ours.clone()).class("edge"));
            if with_published {
                cells.extend(beside(line.published.get(at).and_then(Option::as_ref)));
            }
        }
        row(page, "", &line.name, &cells);
    }
    close(page);
}

/// What the sessions carried: figures down, cells and published rows across.
pub(super) fn carried(page: &mut Page, analysis: &Analysis) {
    let Some(table) = transfers(analysis) else {
        return;
    };
    page.section(table.title, &format!("{} {LEGEND}", table.lead));
    open(page, "", table.title);
    let columns = table.heads.iter().map(|head| ("", head.as_str()));
    let names: Vec<(&str, &str)> = std::iter::once(("", "")).chain(columns).collect();
    heads(page, &names);
    for (name, texts) in table.rows {
        let cells: Vec<Cell> = texts.into_iter().map(plain).collect();
        row(page, "", name, &cells);
    }
    close(page);
    page.list("notes", &table.notes);
}

fn lead(analysis: &Analysis, words: &str) -> String {
    match analysis.speed_note().filter(|_| analysis.has_published()) {
        Some(note) => format!("{words} Published figures: {note}."),
        None => words.to_owned(),
    }
}

/// Steps down, cells across.
pub(super) fn steps(page: &mut Page, analysis: &Analysis) {
    if analysis.cells.is_empty() || analysis.study.steps.is_empty() {
        return;
    }
    let published: Vec<Vec<Option<Entry>>> = analysis
        .study
        .steps
        .iter()
        .map(|step| published_step(analysis, step))
        .collect();
    let with_published = published.iter().any(|entries| !entries.is_empty());
    let with_errors = analysis.cells.iter().any(|cell| cell.errors > 0);
    let mut under = vec!["n", "mean", "p95"];
    if with_errors {
        under.push("errors");
    }
    if with_published {
        under.extend(["published", "×"]);
    }
    open(page, "sorts", "Figures per step");
    groups(page, analysis, under.len(), "step, ms", &under);
    for (at, name) in analysis.study.steps.iter().enumerate() {
        let mut cells = Vec::new();
        for (cell_at, cell) in analysis.cells.iter().enumerate() {
            let Some(step) = cell.steps.get(at) else {
                continue;
            };
            let done = Cell {
                class: "edge",
                ..number(step.transactions)
            };

            let mean = number(step.response_ms.mean.map(|mean| mean.mean));
            let mean = match &step.bound {
                None => mean,
                Some(known) => Cell {
                    class: "",
                    text: bound(known),
                    value: Some(known.time_limit_ms),
                },
            };
            cells.extend([done, mean, number(step.response_ms.p95.map(|p95| p95.mean))]);
            if with_errors {
                cells.push(Cell {
                    class: "",
                    text: or_none(step.errors_per_trial, mean_count),
                    value: step.errors_per_trial,
                });
            }
            if with_published {
                cells.extend(beside(published[at].get(cell_at).and_then(Option::as_ref)));
            }
        }
        row(page, "", name, &cells);
    }
    close(page);
}

/// One row per trial; invalid ones are struck.
pub(super) fn trials(page: &mut Page, analysis: &Analysis) {
    if analysis.trials.is_empty() {
        return;
    }
    page.section(
        "Trials",
        "Times in ms. late: p99 of lateness; CPU: of the host; CPU/tx: of the system per transaction; MB: peak memory of the system. Invalid trials are struck out and count nowhere else.",
    );
    open(page, "sorts", "Trials");
    let names = [
        ("", "trial"),
        ("text", "cell"),
        ("text", "verdict"),
        ("", "tx"),
        ("", "errors"),
        ("", "skipped"),
        ("", "tx/s"),
        ("", "mean"),
        ("", "p50"),
        ("", "p95"),
        ("", "p99"),
        ("", "p99.9"),
        ("", "max"),
        ("", "late"),
        ("", "CPU, %"),
        ("", "CPU/tx"),
        ("", "MB"),
    ];
    heads(page, &names);
    for trial in &analysis.trials {
        let (class, verdict) = match trial.verdict {
            Verdict::Valid => ("", text("✓ valid").class("text keep good")),
            Verdict::Invalid => ("invalid", text("✕ invalid").class("text keep bad")),
        };
        let mut cells = vec![text(&trial.label), verdict];
        cells.extend(trial_figures(trial));
        row(page, class, &trial.id.to_string(), &cells);
    }
    close(page);
}

fn trial_figures(trial: &TrialAnalysis) -> Vec<Cell> {
    let times = &trial.response_ms;
    let counter = |counters: &crate::model::Counters, name: &str| {
        number(counters.get(name).copied().flatten())
    };
    vec![
        whole(trial.transactions),
        whole(trial.errors),
        whole(trial.skipped),
        number(trial.throughput_per_s),
        number(times.mean),
        number(times.p50),
        number(times.p95),
        number(times.p99),
        number(times.p999),
        number(times.max),
        number(trial.lateness_ms.p99),
        counter(&trial.host, "cpu_percent"),
        counter(&trial.system, "cpu_ms_per_transaction"),
        counter(&trial.system, "rss_mb_max"),
    ]
}

/// Published figures that belong to no level of this run, as they are.
fn published_as_is(page: &mut Page, as_is: &AsIs) {
    open(page, "sorts", "Published figures");
    let names: Vec<(&str, &str)> = as_is.heads.iter().map(|head| ("", &**head)).collect();
    heads(page, &names);
    for line in &as_is.rows {
        let (name, texts) = line
            .split_first()
            .map_or(("", &[][..]), |(name, rest)| (name, rest));
        let cells: Vec<Cell> = texts.iter().map(|text| plain(text.clone())).collect();
        row(page, "", name, &cells);
    }
    close(page);
}

/// Every published figure with ours, sortable by ratio.
pub(super) fn published(page: &mut Page, analysis: &Analysis) {
    let any = |table: &PublishedTable| table.as_is.is_some() || !table.entries.is_empty();
    if !analysis.published.iter().any(any) {
        return;
    }
    let words = "Every published figure that belongs to a level of this run.";
    page.section("Published figures", &lead(analysis, words));
    for as_is in analysis.published.iter().filter_map(|it| it.as_is.as_ref()) {
        published_as_is(page, as_is);
    }
    let figures = analysis
        .published
        .iter()
        .map(|table| table.entries.len())
        .sum::<usize>();
    if figures == 0 {
        return;
    }
    page.raw("<details><summary>");
    page.raw(&escape(&format!(
        "All {}, with notes",
        plural(figures, "figure")
    )));
    page.raw("</summary>\n");
    open(page, "sorts", "Published figures");
    let names = [
        ("", "figure"),
        ("text", "cell"),
        ("", "here"),
        ("", "published"),
        ("", "×"),
        ("text", "note"),
    ];
    heads(page, &names);
    for entry in analysis.published.iter().flat_map(|table| &table.entries) {
        let name = match &entry.step {
            Some(step) => format!("{}: {step}", entry.name),
            None => entry.name.clone(),
        };
        let [published, times] = beside(Some(entry));
        let note = text(entry.note.as_deref().unwrap_or_default()).class("wrap");
        row(
            page,
            "",
            &name,
            &[
                text(&entry.label),
                number(entry.ours),
                published,
                times,
                note,
            ],
        );
    }
    close(page);
    page.raw("</details>\n");
}

/// Thresholds of all trials.
pub(super) fn thresholds(page: &mut Page, analysis: &Analysis) {
    if analysis
        .trials
        .iter()
        .all(|trial| trial.thresholds.is_empty())
    {
        return;
    }
    page.section(
        "Thresholds",
        "Judgements on the server, per trial. An empty figure fails.",
    );
    open(page, "sorts", "Thresholds");
    heads(
        page,
        &[
            ("", "threshold"),
            ("text", "trial"),
            ("", "measured"),
            ("text", "outcome"),
        ],
    );
    for trial in &analysis.trials {
        for threshold in &trial.thresholds {
            let step = threshold
                .step
                .as_ref()
                .map_or_else(String::new, |s| format!(" in “{s}”"));
            let name = format!("{}{step}", threshold_words(threshold));
            let measured = match &threshold.reason {
                Some(reason) => reason.clone(),
                None => threshold_value(threshold, threshold.value),
            };
            let state = match (trial.verdict, threshold.holds) {
                (Verdict::Invalid, _) => text("not judged"),
                (Verdict::Valid, true) => text("✓ holds").class("text good"),
                (Verdict::Valid, false) => text("✕ failed").class("text bad"),
            };
            let of = text(&format!("{} · {}", trial.id, trial.label));
            row(page, "", &name, &[of, plain(measured), state]);
        }
    }
    close(page);
}

/// Checks, one fold per trial; those with something to say are open and go first where there are
/// many.
pub(super) fn checks(page: &mut Page, analysis: &Analysis) {
    if analysis.trials.is_empty() {
        return;
    }
    page.section(
        "Checks on the measurement",
        "Is each trial a measurement at all?",
    );
    if !analysis.checks.is_empty() {
        check_table(page, "Checks of the run", &analysis.checks);
    }
    let mut trials: Vec<&TrialAnalysis> = analysis.trials.iter().collect();
    let left_out = trials.len().saturating_sub(MOST_CELLS);
    if left_out > 0 {
        trials.sort_by_key(|trial| (std::cmp::Reverse(worst(trial)), trial.id));
        trials.truncate(MOST_CELLS);
    }
    for trial in trials {
        check_fold(page, trial);
    }
    if left_out > 0 {
        let words = format!(
            "{}: see report.md or result.json.",
            plural(left_out, "further trial")
        );
        page.element("p", "class=\"lead\"", &words);
    }
}

fn worst(trial: &TrialAnalysis) -> Option<CheckOutcome> {
    trial.checks.iter().map(|check| check.outcome).max()
}

fn check_fold(page: &mut Page, trial: &TrialAnalysis) {
    let of = |wanted| {
        trial
            .checks
            .iter()
            .filter(|check| check.outcome == wanted)
            .count()
    };
    let open_it = if worst(trial) < Some(CheckOutcome::Warn) {
        ""
    } else {
        " open"
    };
    page.raw(&format!("<details{open_it}><summary>"));
    page.raw(&escape(&format!("Trial {} · {} ", trial.id, trial.label)));
    match trial.verdict {
        Verdict::Valid => page.element("span", "class=\"good\"", "✓ valid"),
        Verdict::Invalid => page.element("span", "class=\"bad\"", "✕ invalid"),
    }
    let mut counts = format!(" {} passed", of(CheckOutcome::Pass));
    if of(CheckOutcome::NotJudged) > 0 {
        counts.push_str(&format!(", {} not judged", of(CheckOutcome::NotJudged)));
    }
    for (wanted, word) in [
        (CheckOutcome::Warn, "warning"),
        (CheckOutcome::Invalid, "failure"),
    ] {
        if of(wanted) > 0 {
            counts.push_str(&format!(", {}", plural(of(wanted), word)));
        }
    }
    page.element("span", "class=\"unit\"", &counts);
    page.raw("</summary>\n");
    check_table(
        page,
        &format!("Checks of trial {}", trial.id),
        &trial.checks,
    );
    page.raw("</details>\n");
}

fn check_table(page: &mut Page, name: &str, checks: &[Check]) {
    open(page, "", name);
    heads(
        page,
        &[
            ("", "check"),
            ("text", "outcome"),
            ("text", "evidence"),
            ("text", "advice"),
        ],
    );
    for check in checks {
        let state = match check.outcome {
            CheckOutcome::Pass => text("✓ pass").class("text good"),
            CheckOutcome::NotJudged => text(outcome(check.outcome)),
            CheckOutcome::Warn => text(&format!("! {}", outcome(check.outcome))).class("text warn"),
            CheckOutcome::Invalid => text("✕ invalid").class("text bad"),
        };
        let advice = text(check.advice.as_deref().unwrap_or_default()).class("wrap");
        row(
            page,
            "",
            check.name,
            &[state, text(&check.evidence).class("wrap"), advice],
        );
    }
    close(page);
}
