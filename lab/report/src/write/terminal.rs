//! The report for a terminal: plain text, no colour, understandable as it is.
//!
//! Names and messages come from files and from servers: they are shown without control characters,
//! so that nothing in them can steer the terminal.

use lab_study::model::Metric;

use crate::Analysis;
use crate::analysis::part_of_load;
use crate::format::{NONE, count, duration, figure, list, or_none, plain, plural, ratio};
use crate::model::{Check, CheckOutcome, Entry, Outcome, ThresholdResult, TrialAnalysis, Verdict};
use crate::write::differences::{grids, groups, lead, spread, texts};
use crate::write::rows::{Row, level_rows, published_notes, published_step, published_text};

/// Narrower than this, columns would collide.
const LEAST_WIDTH: usize = 60;
/// More cells of one setting set than this are counted, not named.
const MOST_LABELS: usize = 4;
/// The width of one cell's column.
const CELL: usize = 17;

/// The report in `width` columns (80 suits most terminals).
#[must_use]
pub fn terminal(analysis: &Analysis, width: usize) -> String {
    let mut page = Page {
        width: width.max(LEAST_WIDTH),
        text: String::new(),
    };
    head(&mut page, analysis);
    if !analysis.cells.is_empty() {
        two_factors(&mut page, analysis);
        levels(&mut page, analysis);
        comparisons(&mut page, analysis);
        steps(&mut page, analysis);
        published(&mut page, analysis);
    }
    thresholds(&mut page, analysis);
    checks(&mut page, analysis);
    notes(&mut page, analysis);
    page.section("Verdict");
    page.paragraph(&verdict(analysis), 0);
    page.text
}

struct Page {
    width: usize,
    text: String,
}

impl Page {
    fn line(&mut self, text: &str) {
        self.text.push_str(plain(text).trim_end());
        self.text.push('\n');
    }

    fn section(&mut self, title: &str) {
        self.line("");
        self.line(title);
        self.line(&"─".repeat(self.width.min(title.chars().count())));
    }

    /// Words wrapped to the width; lines after the first are indented by `hang`.
    fn paragraph(&mut self, text: &str, hang: usize) {
        let mut line = String::new();
        let mut used = 0;
        let text = plain(text);
        for word in text.split_whitespace() {
            let length = word.chars().count();
            if used > 0 && used + 1 + length > self.width {
                self.text.push_str(line.trim_end());
                self.text.push('\n');
                line = " ".repeat(hang);
                used = hang;
                line.push_str(word);
            } else {
                if !line.trim().is_empty() {
                    line.push(' ');
                    used += 1;
                }
                line.push_str(word);
            }
            used += length;
        }
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }
}

fn head(page: &mut Page, analysis: &Analysis) {
    let study = &analysis.study;
    page.paragraph(&study.title, 0);
    page.paragraph(
        &format!(
            "study {} · workload {} · speed {} · seed {} · {}",
            study.name, study.workload, study.speed, study.seed, study.started
        ),
        0,
    );
    let machine = &analysis.environment;
    page.paragraph(
        &format!(
            "{} × {}, {} MB, {}, Linux {}; data on {}; {}",
            machine.cores,
            machine.cpu,
            count(machine.memory_mb),
            machine.os,
            machine.kernel,
            machine.data_filesystem,
            pinning(analysis)
        ),
        0,
    );
    for line in setups(analysis) {
        page.paragraph(&line, 2);
    }
    page.line("");
    page.paragraph(&analysis.headline, 0);
    for finding in &analysis.findings {
        page.paragraph(&format!("- {finding}"), 2);
    }
}

/// Which cores each side had, in words.
pub(crate) fn pinning(analysis: &Analysis) -> String {
    let pinning = &analysis.environment.pinning;
    let cores = |cores: &[u32]| {
        let names: Vec<String> = cores.iter().map(u32::to_string).collect();
        if names.is_empty() {
            "any core".to_owned()
        } else {
            format!("core {}", list(&names))
        }
    };
    let shared = if pinning.shared { " (shared)" } else { "" };
    format!(
        "generator on {}, system on {}{shared}",
        cores(&pinning.generator),
        cores(&pinning.system)
    )
}

/// How the system was set up, a line per distinct set of settings, and what `--set` changed.
pub(crate) fn setups(analysis: &Analysis) -> Vec<String> {
    let mut sets: Vec<(String, Vec<String>)> = Vec::new();
    for trial in &analysis.trials {
        let settings: Vec<String> = trial
            .system_settings
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let settings = match settings.join(", ") {
            none if none.is_empty() => "nothing recorded".to_owned(),
            some => some,
        };
        match sets.iter_mut().find(|(set, _)| *set == settings) {
            Some((_, labels)) if labels.contains(&trial.label) => {}
            Some((_, labels)) => labels.push(trial.label.clone()),
            None => sets.push((settings, vec![trial.label.clone()])),
        }
    }
    let one = sets.len() == 1;
    let mut lines: Vec<String> = sets
        .into_iter()
        .map(|(set, labels)| match labels.len() {
            _ if one => format!("system set up with: {set}"),
            1..=MOST_LABELS => format!("system set up with: {set} (at {})", list(&labels)),
            n => format!("system set up with: {set} (at {})", plural(n, "cell")),
        })
        .collect();
    let overrides: Vec<String> = analysis
        .study
        .overrides
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    lines.extend(
        (!overrides.is_empty()).then(|| format!("changed by --set: {}", overrides.join(", "))),
    );
    lines
}

/// How many cells fit beside the names.
fn cells_across(page: &Page) -> usize {
    ((page.width.saturating_sub(26)) / CELL).max(1)
}

fn levels(page: &mut Page, analysis: &Analysis) {
    page.section("Per level");
    page.paragraph(
        "Transactions, errors, and skipped steps count the whole trial, ramp included; all else \
         counts the hold after its warm-up.",
        0,
    );
    if !analysis.published.is_empty() {
        page.paragraph(&published_legend(analysis), 0);
    }
    let rows = level_rows(analysis);
    let across = cells_across(page);
    for from in (0..analysis.cells.len()).step_by(across) {
        let to = (from + across).min(analysis.cells.len());
        page.line("");
        column_heads(page, analysis, from, to);
        for row in &rows {
            level_row(page, row, from, to);
        }
    }
}

fn published_legend(analysis: &Analysis) -> String {
    let speed = analysis
        .speed_note()
        .map_or_else(String::new, |note| format!("; {note}"));
    format!("A line below a figure has the published one and ours ÷ published (×){speed}.")
}

fn column_heads(page: &mut Page, analysis: &Analysis, from: usize, to: usize) {
    let mut heads = " ".repeat(name_width(page));
    let mut states = heads.clone();
    let mut any_invalid = false;
    for cell in &analysis.cells[from..to] {
        heads.push_str(&right(&clip(&cell.label, CELL - 1), CELL));
        any_invalid |= cell.valid_trials < cell.trials;
        let state = match (cell.valid_trials, cell.trials) {
            (0, _) => "INVALID".to_owned(),
            (valid, all) => format!("{valid} of {all} valid"),
        };
        states.push_str(&right(&state, CELL));
    }
    page.line(&heads);
    if any_invalid {
        page.line(&states);
    }
}

fn name_width(page: &Page) -> usize {
    page.width.saturating_sub(cells_across(page) * CELL)
}

fn level_row(page: &mut Page, row: &Row, from: usize, to: usize) {
    let width = name_width(page);
    let figures: String = row.ours[from..to]
        .iter()
        .map(|text| right(text, CELL))
        .collect();
    named_line(page, &row.name, width, &figures);
    if let Some(entries) = row.published.get(from..to) {
        published_line(page, entries, width);
    }
}

/// A name that is too long for its column stands on a line of its own.
fn named_line(page: &mut Page, name: &str, width: usize, figures: &str) {
    if name.chars().count() < width {
        page.line(&format!("{}{figures}", left(name, width)));
    } else {
        page.line(name);
        page.line(&format!("{}{figures}", " ".repeat(width)));
    }
}

fn published_line(page: &mut Page, entries: &[Option<Entry>], width: usize) {
    let cells: String = entries
        .iter()
        .map(|entry| match entry {
            None => right("", CELL),
            Some(entry) => {
                let times = entry.ratio.map_or_else(String::new, ratio);
                format!(
                    "{}{}",
                    right(&clip(&published_text(entry), 9), CELL - 7),
                    right(&times, 7)
                )
            }
        })
        .collect();
    page.line(&format!("{}{cells}", left("  published", width)));
}

fn steps(page: &mut Page, analysis: &Analysis) {
    page.section("Per step: mean and p95 response, ms");
    if let Some(note) = analysis
        .speed_note()
        .filter(|_| !analysis.published.is_empty())
    {
        page.paragraph(&format!("Published means: {note}."), 0);
    }
    let across = cells_across(page);
    let width = name_width(page);
    for from in (0..analysis.cells.len()).step_by(across) {
        let to = (from + across).min(analysis.cells.len());
        page.line("");
        column_heads(page, analysis, from, to);
        let kinds = format!("{}{}", right("mean", CELL - 8), right("p95", 8)).repeat(to - from);
        page.line(&format!("{}{kinds}", " ".repeat(width)));
        for (at, name) in analysis.study.steps.iter().enumerate() {
            let figures: String = analysis.cells[from..to]
                .iter()
                .map(|cell| {
                    let times = cell.steps.get(at).map(|step| step.response_ms);
                    let mean = times.and_then(|times| times.mean).map(|mean| mean.mean);
                    let p95 = times.and_then(|times| times.p95).map(|p95| p95.mean);
                    let (mean, p95) = (or_none(mean, figure), or_none(p95, figure));
                    format!("{}{}", right(&mean, CELL - 8), right(&p95, 8))
                })
                .collect();
            named_line(page, name, width, &figures);
            if let Some(entries) = published_step(analysis, name).get(from..to) {
                published_line(page, entries, width);
            }
        }
    }
}

/// One table per measure, the first factor down, the second across; intervals below their means.
fn two_factors(page: &mut Page, analysis: &Analysis) {
    let grids = grids(analysis);
    if grids.is_empty() {
        return;
    }
    let names = &analysis.study.factors;
    page.section(&format!("By {} and {}", names[0], names[1]));
    page.paragraph(
        "Means over valid trials; below them their 95 % intervals.",
        0,
    );
    let (across, width) = (cells_across(page), name_width(page));
    for grid in grids {
        for from in (0..grid.columns.len()).step_by(across) {
            let to = (from + across).min(grid.columns.len());
            let heads: String = grid.columns[from..to]
                .iter()
                .map(|name| right(&clip(name, CELL - 1), CELL))
                .collect();
            page.line("");
            named_line(page, &grid.title, width, &heads);
            for (name, figures) in grid.rows.iter().zip(&grid.figures) {
                let figures = &figures[from..to];
                let means = figures
                    .iter()
                    .map(|one| right(&or_none(one.map(|one| one.mean), figure), CELL));
                named_line(page, name, width, &means.collect::<String>());
                let spreads: String = figures
                    .iter()
                    .map(|one| right(&clip(&spread(*one), CELL - 1), CELL))
                    .collect();
                if !spreads.trim().is_empty() {
                    page.line(&format!("{}{spreads}", " ".repeat(width)));
                }
            }
        }
    }
}

/// One line per comparison, those of a pair together.
fn comparisons(page: &mut Page, analysis: &Analysis) {
    if analysis.comparisons.is_empty() {
        return;
    }
    page.section("Comparisons");
    page.paragraph(&lead(analysis), 0);
    for group in groups(&analysis.comparisons) {
        page.line("");
        page.paragraph(&format!("{} ({})", group.title, group.blocks), 0);
        for one in group.comparisons {
            let shown = texts(one);
            let interval = one
                .interval
                .map_or_else(String::new, |_| format!(", {}", shown.interval));
            let line = format!(
                "- {}: {}; {} → {} ({}), {}{interval}",
                shown.measure, shown.verdict, shown.a, shown.b, shown.difference, shown.relative,
            );
            page.paragraph(&line, 2);
        }
    }
}

fn published(page: &mut Page, analysis: &Analysis) {
    let notes = published_notes(analysis);
    if analysis.published.is_empty() {
        return;
    }
    page.section("Published figures");
    for table in &analysis.published {
        page.paragraph(&format!("{}: {}", table.file, table.source.join(" ")), 2);
    }
    if let Some(note) = analysis.speed_note() {
        page.paragraph(&format!("- All comparisons: {note}."), 2);
    }
    for note in notes {
        page.paragraph(&format!("- {note}"), 2);
    }
}

fn thresholds(page: &mut Page, analysis: &Analysis) {
    if analysis
        .trials
        .iter()
        .all(|trial| trial.thresholds.is_empty())
    {
        return;
    }
    page.section("Thresholds");
    for trial in &analysis.trials {
        for threshold in &trial.thresholds {
            let step = threshold
                .step
                .as_ref()
                .map_or_else(String::new, |step| format!(" in “{step}”"));
            let measured = match (&threshold.reason, threshold.value) {
                (Some(reason), _) => reason.clone(),
                (None, value) => format!("measured {}", threshold_value(threshold, value)),
            };
            let state = match (trial.verdict, threshold.holds) {
                (Verdict::Invalid, _) => "not judged, the trial is invalid",
                (Verdict::Valid, true) => "holds",
                (Verdict::Valid, false) => "FAILED",
            };
            let line = format!(
                "trial {}, {}: {}{step}: {state} ({measured})",
                trial.id,
                trial.label,
                threshold_words(threshold)
            );
            page.paragraph(&line, 2);
        }
    }
}

/// The measured value in the unit that a reader expects.
pub(crate) fn threshold_value(threshold: &ThresholdResult, value: Option<f64>) -> String {
    match threshold.metric {
        Metric::ResponseTime | Metric::ServiceTime => {
            or_none(value, |ms| format!("{} ms", figure(ms)))
        }
        Metric::ErrorRate => or_none(value, |rate| crate::format::percent(rate * 100.0)),
        Metric::Throughput => or_none(value, |rate| format!("{} per s", figure(rate))),
    }
}

/// A threshold in words: `response time p(95) < 300ms`, `error rate < 0.1%`.
pub(crate) fn threshold_words(threshold: &ThresholdResult) -> String {
    let metric = match threshold.metric {
        Metric::ResponseTime => "response time",
        Metric::ServiceTime => "service time",
        Metric::ErrorRate => "error rate",
        Metric::Throughput => "throughput",
    };
    let text = threshold.text.trim();
    format!(
        "{metric} {}",
        text.strip_prefix("rate").unwrap_or(text).trim_start()
    )
}

fn checks(page: &mut Page, analysis: &Analysis) {
    if analysis.trials.is_empty() {
        return;
    }
    page.section("Checks on the measurement");
    for trial in &analysis.trials {
        page.paragraph(&check_summary(trial), 2);
        for check in trial
            .checks
            .iter()
            .filter(|check| check.outcome != CheckOutcome::Pass)
        {
            page.paragraph(&check_line(check), 4);
        }
    }
}

fn check_summary(trial: &TrialAnalysis) -> String {
    let of = |outcome| {
        trial
            .checks
            .iter()
            .filter(|check| check.outcome == outcome)
            .count()
    };
    let (passed, warned, failed) = (
        of(CheckOutcome::Pass),
        of(CheckOutcome::Warn),
        of(CheckOutcome::Invalid),
    );
    let mut parts = vec![format!("{passed} passed")];
    if warned > 0 {
        parts.push(format!("{warned} warned"));
    }
    if failed > 0 {
        parts.push(format!("{failed} failed"));
    }
    let state = match trial.verdict {
        Verdict::Valid => "valid",
        Verdict::Invalid => "INVALID, not a measurement",
    };
    let length = duration(millis(trial.elapsed_ms));
    format!(
        "trial {}, {}, {length}: {state} ({})",
        trial.id,
        trial.label,
        parts.join(", ")
    )
}

fn check_line(check: &Check) -> String {
    let advice = check
        .advice
        .as_ref()
        .map_or_else(String::new, |advice| format!(" → {advice}"));
    format!(
        "- {}, {}: {}.{advice}",
        check.name,
        outcome(check.outcome),
        check.evidence
    )
}

/// The outcome of a check in a word.
pub(crate) fn outcome(outcome: CheckOutcome) -> &'static str {
    match outcome {
        CheckOutcome::Pass => "pass",
        CheckOutcome::Warn => "warning",
        CheckOutcome::Invalid => "INVALID",
    }
}

fn notes(page: &mut Page, analysis: &Analysis) {
    let notes = trial_notes(analysis);
    if notes.is_empty() {
        return;
    }
    page.section("Notes");
    for note in notes {
        page.paragraph(&format!("- {note}"), 2);
    }
}

/// What was cut off the holds; more trials than this are told by their number.
fn warm_up(analysis: &Analysis) -> Option<String> {
    const MOST: usize = 12;
    let cut: Vec<String> = analysis
        .trials
        .iter()
        .filter(|trial| trial.warmup_cut_ms > 0.0)
        .map(|trial| {
            let (cut, hold) = (
                duration(trial.warmup_cut_ms),
                duration(millis(trial.hold_ms)),
            );
            format!("{cut} of {hold} in trial {}", trial.id)
        })
        .collect();
    let shown = &cut[..cut.len().min(MOST)];
    let more = match cut.len() - shown.len() {
        0 => String::new(),
        more => format!("; and in {}", plural(more, "further trial")),
    };
    (!cut.is_empty()).then(|| {
        format!(
            "Warm-up, cut off the hold by MSER-5 and counted in no figure: {}{more}.",
            shown.join(", ")
        )
    })
}

/// Notes of the trials, each once; figures of invalid ones; failed requests.
pub(crate) fn trial_notes(analysis: &Analysis) -> Vec<String> {
    let mut notes: Vec<String> = warm_up(analysis).into_iter().collect();
    for trial in &analysis.trials {
        for note in &trial.notes {
            if !notes.contains(note) {
                notes.push(note.clone());
            }
        }
        if let Some(failure) = &trial.system_failure {
            notes.push(format!(
                "trial {}: the system under test failed: {failure}",
                trial.id
            ));
        }
        if trial.verdict == Verdict::Invalid && trial.response_ms.count > 0 {
            notes.push(struck(trial));
        }
        for example in trial.error_examples.iter().take(3) {
            notes.push(format!(
                "trial {}, {}: “{}” failed: {}",
                trial.id,
                duration(millis(example.t_ms)),
                example.step,
                example.detail
            ));
        }
    }
    notes
}

/// The figures of an invalid trial, for whoever looks for what went wrong.
fn struck(trial: &TrialAnalysis) -> String {
    let times = &trial.response_ms;
    format!(
        "trial {} is invalid and counts nowhere; it had {} transactions, {} errors, {} per s, mean \
         {} ms, p95 {} ms, max {} ms",
        trial.id,
        count(trial.transactions),
        count(trial.errors),
        or_none(trial.throughput_per_s, figure),
        or_none(times.mean, figure),
        or_none(times.p95, figure),
        or_none(times.max, figure),
    )
}

/// What the run comes to, in a sentence or two.
pub(crate) fn verdict(analysis: &Analysis) -> String {
    let summary = &analysis.summary;
    let trials = format!(
        "{} of {} valid",
        summary.valid,
        plural(summary.complete, "trial")
    );
    let warnings = match summary.warnings {
        0 => String::new(),
        n => format!(", {}", plural(n, "warning")),
    };
    let thresholds = match (summary.thresholds, summary.thresholds_failed) {
        (0, _) => String::new(),
        (all, 0) => format!(
            "; {} hold",
            if all == 1 {
                "the threshold".into()
            } else {
                format!("all {all} thresholds")
            }
        ),
        (all, failed) => format!("; {failed} of {} failed", plural(all, "threshold")),
    };
    let missing = match summary.planned.saturating_sub(summary.complete) {
        0 => String::new(),
        n => format!(
            "; {} of {} not run",
            n,
            plural(summary.planned, "planned trial")
        ),
    };
    let took = summary
        .least_part_of_load
        .map(|part| format!("took {} of the planned load", part_of_load(part)));
    let comes_to = match (summary.outcome, took) {
        (Outcome::Ok, None) => "A valid measurement".to_owned(),
        (Outcome::Ok, Some(took)) => format!("A valid measurement, but the server {took}"),
        (Outcome::ThresholdFailed, None) => {
            "A valid measurement, but the server missed a threshold".to_owned()
        }
        (Outcome::ThresholdFailed, Some(took)) => {
            format!("A valid measurement, but the server missed a threshold and {took}")
        }
        (Outcome::TooFewValidTrials, _) => "Too few valid trials".to_owned(),
        (Outcome::SystemFailed, _) => "The system under test failed".to_owned(),
    };
    format!("{comes_to}. {trials}{warnings}{thresholds}{missing}.")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds of a trial stay far below 2^52"
)]
fn millis(ms: u64) -> f64 {
    ms as f64
}

fn right(text: &str, width: usize) -> String {
    format!(
        "{}{text}",
        " ".repeat(width.saturating_sub(text.chars().count()))
    )
}

fn left(text: &str, width: usize) -> String {
    format!(
        "{text}{}",
        " ".repeat(width.saturating_sub(text.chars().count()))
    )
}

/// At most `width` characters, the last one `…` if some are missing.
fn clip(text: &str, width: usize) -> String {
    let text = if text.is_empty() { NONE } else { text };
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}
