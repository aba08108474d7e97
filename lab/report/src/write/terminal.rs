//! The report for a terminal: plain text, no colour, understandable as it is.
//!
//! Names and messages come from files and from servers: they are shown without control characters,
//! so that nothing in them can steer the terminal.

use crate::Analysis;
use crate::format::{bound, count, duration, figure, or_none, ratio};
use crate::model::{Check, CheckOutcome, Comparison, Entry, LoadLine, TrialAnalysis, Verdict};
use crate::write::differences::{control_lead, groups, lead, texts};
use crate::write::rows::{Row, level_rows, published_notes, published_step, published_text};
use crate::write::text_page::{Page, clip, column_head, left, right};
use crate::write::text_tables::{published_as_is, two_factors};
use crate::write::transfers::{LEGEND, transfers};
use crate::write::words::{
    millis, outcome, pinning, service_note, setups, threshold_value, threshold_words, trial_notes,
    verdict,
};
use lab_analysis::load_line_figure;

/// The width of one cell's column.
const CELL: usize = 17;
/// The same in the table of what sessions carried.
const CARRIED: usize = 14;

/// The report in `width` columns (80 suits most terminals).
#[must_use]
pub fn terminal(analysis: &Analysis, width: usize) -> String {
    let mut page = Page::new(width);
    head(&mut page, analysis);
    load_lines(&mut page, analysis);
    carried(&mut page, analysis);
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
    page.finish()
}

/// What the sessions carried, in columns narrow enough for two cells and two published rows.
fn carried(page: &mut Page, analysis: &Analysis) {
    let Some(table) = transfers(analysis) else {
        return;
    };
    page.section(table.title);
    page.paragraph(&table.lead, 0);
    page.paragraph(LEGEND, 0);
    let names = 22;
    let across = ((page.width - names) / CARRIED).max(1);
    for from in (0..table.heads.len()).step_by(across) {
        let to = (from + across).min(table.heads.len());
        let line = |name: &str, texts: &[String]| {
            let texts = texts.iter().map(|text| {
                let text = if text.is_empty() {
                    String::new()
                } else {
                    clip(&column_head(text, CARRIED - 1), CARRIED - 1)
                };
                right(&text, CARRIED)
            });
            format!("{}{}", left(name, names), texts.collect::<String>())
        };
        page.line("");
        page.line(&line("", &table.heads[from..to]));
        for (name, texts) in &table.rows {
            page.line(&line(name, &texts[from..to]));
        }
    }
    for note in &table.notes {
        page.paragraph(&format!("- {note}"), 2);
    }
}

/// The ship's mark: the ring, the line through it, and how many users it stands for; then what was
/// tried, from the most down, as a hull stands in the water.
fn load_lines(page: &mut Page, analysis: &Analysis) {
    for line in &analysis.load_lines {
        let title = match analysis.load_lines.len() {
            1 => "Load line".to_owned(),
            _ => format!("Load line · {}", line.label),
        };
        page.section(&title);
        page.paragraph(&format!("──⊖──  {}", load_line_figure(line)), 6);
        page.paragraph(&format!("with {}", line.thresholds.join(", ")), 6);
        page.line("");
        for at in line.levels.iter().rev() {
            let users = format!("{} users", count(u64::from(at.users)));
            page.line(&format!("{}  {}", right(&users, 16), marks(line, at)));
        }
    }
}

/// A mark per trial at a level: `●` carried, `○` not carried, `×` no measurement.
fn marks(line: &LoadLine, at: &crate::model::LineLevel) -> String {
    let trials: String = [("●", at.carried), ("○", at.not_carried), ("×", at.invalid)]
        .into_iter()
        .map(|(mark, n)| mark.repeat(n.min(20) as usize))
        .collect();
    let words = [
        ("carried", at.carried),
        ("not carried", at.not_carried),
        ("invalid", at.invalid),
    ];
    let words: Vec<String> = words
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    let here = if line.users == Some(at.users) {
        " ── the line"
    } else {
        ""
    };
    format!("{}  {}{here}", left(&trials, 8), words.join(", "))
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
    if let Some(note) = service_note(analysis) {
        page.paragraph(&note, 0);
    }
    if analysis.has_published() {
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
        heads.push_str(&right(
            &clip(&column_head(&cell.label, CELL - 1), CELL - 1),
            CELL,
        ));
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
    if let Some(note) = analysis.speed_note().filter(|_| analysis.has_published()) {
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
                    let step = cell.steps.get(at);
                    if let Some(known) = step.and_then(|step| step.bound.as_ref()) {
                        return right(&bound(known), CELL);
                    }
                    let times = step.map(|step| step.response_ms);
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

/// One line per comparison, those of a pair together; the control's go first.
fn comparisons(page: &mut Page, analysis: &Analysis) {
    if !analysis.control.is_empty() {
        page.section("Control");
        page.paragraph(&control_lead(analysis), 0);
        comparison_lines(page, &analysis.control);
    }
    if !analysis.comparisons.is_empty() {
        page.section("Comparisons");
        page.paragraph(&lead(analysis), 0);
        comparison_lines(page, &analysis.comparisons);
    }
    if !analysis.main_effects.is_empty() && analysis.inference.judged > 0 {
        page.section("Over all cells");
        page.paragraph("Levels of a factor over all combinations of the others.", 0);
        comparison_lines(page, &analysis.main_effects);
    }
}

fn comparison_lines(page: &mut Page, comparisons: &[Comparison]) {
    for group in groups(comparisons) {
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
    published_as_is(page, analysis);
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

fn checks(page: &mut Page, analysis: &Analysis) {
    if analysis.trials.is_empty() {
        return;
    }
    page.section("Checks on the measurement");
    for check in &analysis.checks {
        page.paragraph(&check_line(check), 4);
    }
    for trial in &analysis.trials {
        page.paragraph(&check_summary(trial), 2);
        for check in trial
            .checks
            .iter()
            .filter(|check| check.outcome >= CheckOutcome::Warn)
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
    let not_judged = of(CheckOutcome::NotJudged);
    if not_judged > 0 {
        parts.push(format!("{not_judged} not judged"));
    }
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
