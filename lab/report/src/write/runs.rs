//! Two runs beside each other as text: terminal, Markdown, HTML, JSON, CSV. The rows are the same
//! everywhere.

use crate::format::{list, times};
use crate::model::{Comparison, RunComparison, RunFacts, RunOutcome};
use crate::write::differences::{Texts, texts};
use crate::write::markdown::{escape, line, table};
use crate::write::text_page::Page;
use lab_analysis::line_difference_sentence;

/// What a reader must know before the verdicts.
pub(crate) fn lead(runs: &RunComparison) -> String {
    format!(
        "Valid trials of run b beside those of run a, cell by cell. Nothing is paired: whatever else \
         changed between the runs counts as well. A difference is called one only if it is beyond \
         noise (joint p ≤ {} over {} comparisons) and larger than {} %{}; where the noise is larger \
         than that, the word is unstable.",
        times(1.0 - runs.confidence),
        runs.judged,
        times(runs.smallest_relevant * 100.0),
        if runs.claims.is_empty() {
            ""
        } else {
            " and than what the runs' controls seem to differ from their cells"
        }
    )
}

/// `calendar-load of 2026-01-05T10:00:00Z (24 of 24 trials valid, plimsoll 0.1.0)`.
pub(crate) fn run(name: &str, facts: &RunFacts) -> String {
    format!(
        "run {name}: {} of {} ({} of {} trials valid, plimsoll {})",
        facts.study, facts.started, facts.valid, facts.trials, facts.plimsoll_version
    )
}

/// Cells with their comparisons.
pub(crate) fn cells(runs: &RunComparison) -> impl Iterator<Item = (&str, &[Comparison])> {
    let same = |one: &Comparison, next: &Comparison| one.factor == next.factor;
    let cells = runs.comparisons.chunk_by(same);
    cells.map(|cell| (cell[0].factor.as_str(), cell))
}

/// What differs in the setup, in sentences.
pub(crate) fn setup(runs: &RunComparison) -> Vec<String> {
    let some = |text: &str| {
        if text.is_empty() {
            "none".to_owned()
        } else {
            text.to_owned()
        }
    };
    let mut all: Vec<String> = runs
        .differences
        .iter()
        .map(|one| {
            let matters = if one.matters {
                " (the results can't be told from it)"
            } else {
                ""
            };
            format!("{}: {} → {}{matters}", one.what, some(&one.a), some(&one.b))
        })
        .collect();
    all.extend(runs.unmatched.iter().cloned());
    all
}

/// The comparison for a terminal, in `width` columns.
#[must_use]
pub fn runs_terminal(runs: &RunComparison, width: usize) -> String {
    let mut page = Page::new(width);
    page.paragraph(&run("a", &runs.a), 2);
    page.paragraph(&run("b", &runs.b), 2);
    page.line("");
    page.paragraph(&runs.headline, 0);
    for one in &runs.load_lines {
        page.paragraph(&format!("- {}", line_difference_sentence(one)), 2);
    }
    let setup = setup(runs);
    if !setup.is_empty() {
        page.section("What else differs");
        for one in setup {
            page.paragraph(&format!("- {one}"), 2);
        }
    }
    if !runs.comparisons.is_empty() {
        page.section("Run b beside run a");
        page.paragraph(&lead(runs), 0);
    }
    for (cell, comparisons) in cells(runs) {
        page.line("");
        page.paragraph(&format!("{cell} ({} trials)", comparisons[0].blocks), 0);
        for one in comparisons {
            let Texts {
                measure,
                a,
                b,
                difference,
                relative,
                interval,
                verdict,
                ..
            } = texts(one);
            let interval = one
                .interval
                .map_or_else(String::new, |_| format!(", {interval}"));
            let text =
                format!("- {measure}: {verdict}; {a} → {b} ({difference}), {relative}{interval}");
            page.paragraph(&text, 2);
        }
    }
    page.section("Verdict");
    page.paragraph(verdict(runs.outcome), 0);
    page.finish()
}

/// The outcome in a sentence.
pub(crate) fn verdict(outcome: RunOutcome) -> &'static str {
    match outcome {
        RunOutcome::TooFewValidTrials => "Too few valid trials for a verdict in every cell.",
        RunOutcome::Regression => "A regression is shown.",
        RunOutcome::Ok => "No regression is shown.",
    }
}

/// The comparison as Markdown.
#[must_use]
pub fn runs_markdown(runs: &RunComparison) -> String {
    let mut text = String::new();
    let title = list(&[runs.a.title.clone(), runs.b.title.clone()]);
    let title = if runs.a.title == runs.b.title {
        &runs.a.title
    } else {
        &title
    };
    line(&mut text, &format!("# {}: two runs\n", escape(title)));
    line(
        &mut text,
        &format!("**{}** {}\n", verdict(runs.outcome), escape(&runs.headline)),
    );
    for (name, facts) in [("a", &runs.a), ("b", &runs.b)] {
        line(&mut text, &format!("- {}", escape(&run(name, facts))));
    }
    for one in &runs.load_lines {
        line(
            &mut text,
            &format!("- {}", escape(&line_difference_sentence(one))),
        );
    }
    let setup = setup(runs);
    if !setup.is_empty() {
        line(&mut text, "\n## What else differs\n");
        for one in setup {
            line(&mut text, &format!("- {}", escape(&one)));
        }
    }
    if runs.comparisons.is_empty() {
        return text;
    }
    line(&mut text, "\n## Run b beside run a\n");
    line(&mut text, &escape(&lead(runs)));
    line(&mut text, "");
    let heads = HEADS.map(str::to_owned);
    let rows: Vec<Vec<String>> = runs.comparisons.iter().map(row).collect();
    table(&mut text, &heads, &rows, false);
    text
}

/// Heads of the columns of [`row`].
pub(crate) const HEADS: [&str; 9] = [
    "cell",
    "measure",
    "a",
    "b",
    "difference",
    "relative",
    "interval",
    "p",
    "verdict",
];

/// A comparison as a row.
pub(crate) fn row(one: &Comparison) -> Vec<String> {
    let shown = texts(one);
    vec![
        one.factor.clone(),
        shown.measure,
        shown.a,
        shown.b,
        shown.difference,
        shown.relative,
        shown.interval,
        shown.p,
        shown.verdict,
    ]
}

/// The comparison as JSON, schema `plimsoll.comparison/1`.
///
/// # Errors
/// None in practice: every value has a JSON form.
pub fn runs_json(runs: &RunComparison) -> serde_json::Result<String> {
    let mut text = serde_json::to_string_pretty(runs)?;
    text.push('\n');
    Ok(text)
}
