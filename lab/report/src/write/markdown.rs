//! `report.md`: the report for an issue, a wiki, or a pull request.
//!
//! Text from files is escaped: it can't open a tag, a table cell, a link, or emphasis.

use std::fmt::Write as _;

use crate::Analysis;
use crate::format::{bound, count, figure, or_none, plain, ratio};
use crate::model::{Check, Comparison, Entry, Verdict};
use crate::write::differences::{control_lead, groups, lead, texts};
use crate::write::grids::{self, Grid, grids, spread};
use crate::write::rows::{level_rows, published_notes, published_step, published_text};
use crate::write::transfers::{LEGEND, transfers};
use crate::write::words::{
    outcome, pinning, service_note, setups, threshold_value, threshold_words, trial_notes, verdict,
};
use lab_analysis::load_line_figure;

/// The report as GitHub-flavoured Markdown.
#[must_use]
pub fn markdown(analysis: &Analysis) -> String {
    let mut text = String::new();
    head(&mut text, analysis);
    load_lines(&mut text, analysis);
    carried(&mut text, analysis);
    if !analysis.cells.is_empty() {
        two_factors(&mut text, analysis);
        levels(&mut text, analysis);
        comparisons(&mut text, analysis);
        steps(&mut text, analysis);
        published(&mut text, analysis);
    }
    thresholds(&mut text, analysis);
    checks(&mut text, analysis);
    environment(&mut text, analysis);
    text
}

pub(crate) fn line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

fn head(text: &mut String, analysis: &Analysis) {
    let study = &analysis.study;
    line(text, &format!("# {}\n", escape(&study.title)));
    line(
        text,
        &format!(
            "**{}**\n\n{}\n",
            escape(&verdict(analysis)),
            escape(&analysis.headline)
        ),
    );
    for finding in &analysis.findings {
        line(text, &format!("- {}", escape(finding)));
    }
    if let Some(note) = analysis.speed_note() {
        line(text, &format!("- Sped up: {}.", escape(&note)));
    }
}

/// Columns after the first stand to the right if they are `figures`.
pub(crate) fn table(text: &mut String, heads: &[String], rows: &[Vec<String>], figures: bool) {
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell)).collect();
        format!("| {} |", cells.join(" | "))
    };
    line(text, &row(heads));
    let rules: Vec<&str> = heads
        .iter()
        .enumerate()
        .map(|(at, _)| if at == 0 || !figures { "---" } else { "---:" })
        .collect();
    line(text, &format!("| {} |", rules.join(" | ")));
    for cells in rows {
        line(text, &row(cells));
    }
}

fn labels(analysis: &Analysis, first: &str) -> Vec<String> {
    let cells = analysis.cells.iter().map(|cell| match cell.valid_trials {
        0 => format!("{} (INVALID)", cell.label),
        valid if valid < cell.trials => {
            format!("{} ({valid} of {} valid)", cell.label, cell.trials)
        }
        _ => cell.label.clone(),
    });
    std::iter::once(first.to_owned()).chain(cells).collect()
}

fn beside(ours: &str, entry: Option<&Entry>) -> String {
    match entry {
        None => ours.to_owned(),
        Some(entry) => {
            let times = entry
                .ratio
                .map_or_else(String::new, |value| format!(", {}", ratio(value)));
            format!("{ours} ({}{times})", published_text(entry))
        }
    }
}

fn carried(text: &mut String, analysis: &Analysis) {
    let Some(carried) = transfers(analysis) else {
        return;
    };
    line(text, &format!("\n## {}\n", carried.title));
    line(text, &format!("{} {LEGEND}\n", carried.lead));
    let heads: Vec<String> = std::iter::once(String::new())
        .chain(carried.heads)
        .collect();
    let rows: Vec<Vec<String>> = carried
        .rows
        .into_iter()
        .map(|(name, texts)| std::iter::once(name.to_owned()).chain(texts).collect())
        .collect();
    table(text, &heads, &rows, true);
    if !carried.notes.is_empty() {
        line(text, "");
    }
    for note in &carried.notes {
        line(text, &format!("- {}", escape(note)));
    }
}

fn levels(text: &mut String, analysis: &Analysis) {
    line(text, "\n## Per level\n");
    line(
        text,
        "Transactions, errors, and skipped steps count the whole trial, ramp included; all \
                else counts the hold after its warm-up.",
    );
    if let Some(note) = service_note(analysis) {
        line(text, &note);
    }
    if analysis.has_published() {
        let speed = analysis
            .speed_note()
            .map_or_else(String::new, |note| format!("; {note}"));
        line(
            text,
            &format!("In brackets: the published figure and ours ÷ published{speed}."),
        );
    }
    line(text, "");
    let rows: Vec<Vec<String>> = level_rows(analysis)
        .into_iter()
        .map(|row| {
            let figures = row
                .ours
                .iter()
                .enumerate()
                .map(|(at, ours)| beside(ours, row.published.get(at).and_then(Option::as_ref)));
            std::iter::once(row.name.clone()).chain(figures).collect()
        })
        .collect();
    table(text, &labels(analysis, "figure"), &rows, true);
}

fn steps(text: &mut String, analysis: &Analysis) {
    line(text, "\n## Per step\n");
    line(text, "Mean response, ms; p95 after the slash.");
    if let Some(note) = analysis.speed_note().filter(|_| analysis.has_published()) {
        line(
            text,
            &format!("In brackets the published mean and ours ÷ published; {note}."),
        );
    }
    line(text, "");
    let rows: Vec<Vec<String>> = analysis
        .study
        .steps
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let published = published_step(analysis, name);
            let figures = analysis.cells.iter().enumerate().map(|(cell_at, cell)| {
                let step = cell.steps.get(at);
                let times = step.map(|step| step.response_ms).unwrap_or_default();
                let mean = or_none(times.mean.map(|mean| mean.mean), figure);
                let p95 = or_none(times.p95.map(|p95| p95.mean), figure);
                let known = step.and_then(|step| step.bound.as_ref()).map(bound);
                let ours = known.unwrap_or_else(|| format!("{mean} / {p95}"));
                beside(&ours, published.get(cell_at).and_then(Option::as_ref))
            });
            std::iter::once(name.clone()).chain(figures).collect()
        })
        .collect();
    table(text, &labels(analysis, "step"), &rows, true);
}

fn two_factors(text: &mut String, analysis: &Analysis) {
    let grids = grids(analysis);
    if grids.is_empty() {
        return;
    }
    let names = &analysis.study.factors;
    let title = format!("By {} and {}", names[0], names[1]);
    line(text, &format!("\n## {}\n", escape(&title)));
    line(
        text,
        "Means over valid trials, with their 95 % intervals; after a semicolon the published figure.",
    );
    line(text, &escape(&grids::lead(analysis)));
    for grid in grids {
        line(text, "");
        let heads: Vec<String> = std::iter::once(&grid.title)
            .chain(&grid.columns)
            .cloned()
            .collect();
        table(text, &heads, &grid_rows(&grid), true);
    }
}

fn grid_rows(grid: &Grid) -> Vec<Vec<String>> {
    let text = |row: usize, column: usize| {
        let one = grid.figures[row][column];
        let mean = or_none(one.map(|one| one.mean), figure);
        let mut text = match spread(one) {
            none if none.is_empty() => mean,
            spread => format!("{mean} ({spread})"),
        };
        let published = grid.published.get(row).and_then(|row| row.get(column));
        if let Some(published) = published.filter(|text| !text.is_empty()) {
            text.push_str(&format!("; {published}"));
        }
        text
    };
    let rows = grid.rows.iter().enumerate();
    rows.map(|(row, name)| {
        let texts = (0..grid.columns.len()).map(|column| text(row, column));
        std::iter::once(name.clone()).chain(texts).collect()
    })
    .collect()
}

/// The load line with what was tried.
fn load_lines(text: &mut String, analysis: &Analysis) {
    for load_line in &analysis.load_lines {
        let of = match analysis.load_lines.len() {
            1 => String::new(),
            _ => format!(" of {}", escape(&load_line.label)),
        };
        line(text, &format!("\n## Load line{of}\n"));
        let figure = escape(&load_line_figure(load_line));
        let thresholds = escape(&load_line.thresholds.join(", "));
        line(text, &format!("—⊖— **{figure}**, with {thresholds}.\n"));
        let heads = ["users", "carried", "not carried", "invalid"].map(str::to_owned);
        let rows: Vec<Vec<String>> = load_line
            .levels
            .iter()
            .map(|at| {
                let users = count(u64::from(at.users));
                let trials = [at.carried, at.not_carried, at.invalid];
                let trials = trials.map(|n| n.to_string());
                std::iter::once(users).chain(trials).collect()
            })
            .collect();
        table(text, &heads, &rows, true);
    }
}

fn comparisons(text: &mut String, analysis: &Analysis) {
    if !analysis.control.is_empty() {
        line(text, "\n## Control\n");
        line(text, &escape(&control_lead(analysis)));
        comparison_table(text, &analysis.control);
    }
    if !analysis.comparisons.is_empty() {
        line(text, "\n## Comparisons\n");
        line(text, &escape(&lead(analysis)));
        comparison_table(text, &analysis.comparisons);
    }
    if !analysis.main_effects.is_empty() && analysis.inference.judged > 0 {
        line(text, "\n## Over all cells\n");
        line(
            text,
            "Levels of a factor over all combinations of the others.",
        );
        comparison_table(text, &analysis.main_effects);
    }
}

fn comparison_table(text: &mut String, comparisons: &[Comparison]) {
    line(text, "");
    let heads = [
        "b beside a",
        "measure",
        "a",
        "b",
        "difference",
        "relative",
        "interval",
        "p",
        "verdict",
    ];
    let mut rows = Vec::new();
    for group in groups(comparisons) {
        for one in group.comparisons {
            let shown = texts(one);
            rows.push(vec![
                format!("{} ({})", group.title, group.blocks),
                shown.measure,
                shown.a,
                shown.b,
                shown.difference,
                shown.relative,
                shown.interval,
                shown.p,
                shown.verdict,
            ]);
        }
    }
    table(text, &heads.map(str::to_owned), &rows, false);
}

fn published(text: &mut String, analysis: &Analysis) {
    if analysis.published.is_empty() {
        return;
    }
    line(text, "\n## Published figures\n");
    for table in &analysis.published {
        let source = escape(&table.source.join(" "));
        line(text, &format!("- {}: {source}", escape(&table.file)));
    }
    if let Some(note) = analysis.speed_note() {
        line(text, &format!("- All comparisons: {}.", escape(&note)));
    }
    for note in published_notes(analysis) {
        line(text, &format!("- {}", escape(&note)));
    }
    for as_is in analysis.published.iter().filter_map(|it| it.as_is.as_ref()) {
        line(text, "");
        table(text, &as_is.heads, &as_is.rows, true);
    }
}

fn thresholds(text: &mut String, analysis: &Analysis) {
    if analysis
        .trials
        .iter()
        .all(|trial| trial.thresholds.is_empty())
    {
        return;
    }
    line(text, "\n## Thresholds\n");
    let heads = ["trial", "threshold", "measured", "outcome"].map(str::to_owned);
    let mut rows = Vec::new();
    for trial in &analysis.trials {
        for threshold in &trial.thresholds {
            let step = threshold
                .step
                .as_ref()
                .map_or_else(String::new, |s| format!(" in “{s}”"));
            let measured = threshold
                .reason
                .clone()
                .unwrap_or_else(|| threshold_value(threshold, threshold.value));
            let state = match (trial.verdict, threshold.holds) {
                (Verdict::Invalid, _) => "not judged",
                (Verdict::Valid, true) => "holds",
                (Verdict::Valid, false) => "FAILED",
            };
            rows.push(vec![
                format!("{}, {}", trial.id, trial.label),
                format!("{}{step}", threshold_words(threshold)),
                measured,
                state.to_owned(),
            ]);
        }
    }
    table(text, &heads, &rows, false);
}

fn checks(text: &mut String, analysis: &Analysis) {
    if analysis.trials.is_empty() {
        return;
    }
    line(text, "\n## Checks on the measurement\n");
    let heads = ["trial", "check", "outcome", "evidence", "advice"].map(str::to_owned);
    let row = |of: String, check: &Check| {
        vec![
            of,
            check.name.to_owned(),
            outcome(check.outcome).to_owned(),
            check.evidence.clone(),
            check.advice.clone().unwrap_or_default(),
        ]
    };
    let run = analysis.checks.iter();
    let mut rows: Vec<Vec<String>> = run.map(|check| row("the run".to_owned(), check)).collect();
    for trial in &analysis.trials {
        let state = match trial.verdict {
            Verdict::Valid => "valid",
            Verdict::Invalid => "INVALID",
        };
        for check in &trial.checks {
            let of = format!("{}, {} ({state})", trial.id, trial.label);
            rows.push(row(of, check));
        }
    }
    table(text, &heads, &rows, false);
    let notes = trial_notes(analysis);
    if !notes.is_empty() {
        line(text, "\n## Notes\n");
        for note in notes {
            line(text, &format!("- {}", escape(&note)));
        }
    }
}

fn environment(text: &mut String, analysis: &Analysis) {
    let (study, machine) = (&analysis.study, &analysis.environment);
    line(text, "\n## Environment\n");
    let mut facts = String::new();
    let _ = write!(
        facts,
        "{} × {}, {} MB, {}, Linux {}, data on {}; {}. Plimsoll {}. Study {}, workload {}, speed \
         {}, seed {}, begun {}.",
        machine.cores,
        machine.cpu,
        count(machine.memory_mb),
        machine.os,
        machine.kernel,
        machine.data_filesystem,
        pinning(analysis),
        machine.plimsoll_version,
        study.name,
        study.workload,
        study.speed,
        study.seed,
        study.started
    );
    line(text, &escape(&facts));
    for (at, setup) in setups(analysis).iter().enumerate() {
        let gap = if at == 0 { "\n" } else { "" };
        line(text, &format!("{gap}- {}", escape(setup)));
    }
}

/// Text that shows as it is: whatever Markdown or HTML would act on is escaped.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_does_not_survive() {
        let hostile = "<script>a|b</script> [x](y) `c`\n# d";
        let escaped = escape(hostile);
        assert!(!escaped.contains('<') && !escaped.contains('\n'));
        assert_eq!(escape("a|b"), "a\\|b");
    }
}
