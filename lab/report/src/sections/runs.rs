//! Compares two runs: the result, other differences, every verdict.

use super::comparisons::{Pair, families, intervals, table};
use crate::document::{Badge, Block, Document, Section, Tone};
use crate::format::{plural, times};
use lab_analysis::line_difference_sentence;
use lab_comparison::{RunComparison, RunFacts, RunOutcome};

/// The maximum number of cells with a chart; the table has all.
const MOST_CHARTS: usize = 24;

/// The document on two runs.
#[must_use]
pub fn comparison(runs: &RunComparison) -> Document {
    let title = match runs.a.title == runs.b.title {
        true => runs.b.title.clone(),
        false => format!("{} and {}", runs.a.title, runs.b.title),
    };
    let lines = runs.load_lines.iter();
    let mut sections = Vec::new();
    let setup = setup(runs);
    if !setup.is_empty() {
        sections.push(Section::new("What else differs", vec![Block::List(setup)]));
    }
    if !runs.comparisons.is_empty() {
        sections.push(verdicts(runs));
    }
    Document {
        kind: "Plimsoll comparison",
        title: format!("{title}: two runs"),
        origin: origin(runs),
        verdict: verdict(runs.outcome),
        is_void: false,
        badges: Vec::new(),
        headline: runs.headline.clone(),
        load_lines: Vec::new(),
        findings: lines
            .map(line_difference_sentence)
            .chain(runs.pairing.clone())
            .chain(runs.between_runs.clone())
            .collect(),
        sections,
        made_by: format!(
            "Made by plimsoll {} from both archives.",
            runs.b.plimsoll_version
        ),
    }
}

/// Cell by cell, run b beside run a.
fn verdicts(runs: &RunComparison) -> Section {
    let cells = runs
        .comparisons
        .chunk_by(|one, next| one.factor == next.factor);
    let pair = cells.map(|comparisons| Pair {
        title: comparisons[0].factor.clone(),
        over: plural(comparisons[0].blocks, "trial"),
        comparisons,
    });
    let pairs: Vec<Pair<'_>> = pair.collect();
    let mut blocks = vec![Block::Paragraph(lead(runs))];
    blocks.extend(intervals(&pairs, runs.smallest_relevant, MOST_CHARTS).map(Block::Charts));
    blocks.push(Block::Table(table("cell", &pairs, runs.answer.as_ref())));
    Section::new("Run b beside run a", blocks)
}

/// The outcome in a sentence.
fn verdict(outcome: RunOutcome) -> Badge {
    let (text, tone) = match outcome {
        RunOutcome::TooFewValidTrials => (
            "Too few valid trials for a verdict in every cell.",
            Tone::Warn,
        ),
        RunOutcome::CouldNotTell => ("Could not tell.", Tone::Warn),
        RunOutcome::Regression => ("A regression is shown.", Tone::Bad),
        RunOutcome::Ok => (
            "No regression: better, or equal within what matters.",
            Tone::Good,
        ),
    };
    Badge {
        text: text.to_owned(),
        tone,
    }
}

/// The notes before the verdicts.
fn lead(runs: &RunComparison) -> String {
    let families = match runs.judged {
        0 => String::new(),
        judged => format!(" {}", families(runs.answer.as_ref(), runs.deciding, judged)),
    };
    format!(
        "Valid trials of run b beside those of run a, cell by cell. “Relative” is the mean of \
         ratios, on a logarithmic scale, so that it may be another than the ratio of the means beside it. Whatever else \
         changed between the runs counts as well, and what runs have to themselves is in the \
         intervals.{} A difference is called one only if it is beyond \
         noise (joint p ≤ {}) and larger than {} %{}; equal means shown to differ \
         by less, and where the noise leaves room for more, the words are: could not tell.",
        families,
        times(1.0 - runs.confidence),
        times(runs.smallest_relevant * 100.0),
        if runs.claims.is_empty() {
            ""
        } else {
            " and than what the runs' controls seem to differ from their cells"
        }
    )
}

/// Every run on a line of its own; earlier runs only show the spread, so their number is enough.
fn origin(runs: &RunComparison) -> Vec<String> {
    let side = |name: &'static str, first: &RunFacts, further: &[RunFacts]| {
        let all = std::iter::once(first).chain(further);
        all.map(|facts| run(name, facts)).collect::<Vec<_>>()
    };
    let mut all = side("a", &runs.a, &runs.further_a);
    all.extend(side("b", &runs.b, &runs.further_b));
    if let (Some(first), Some(last)) = (runs.earlier.first(), runs.earlier.last()) {
        all.push(format!(
            "{} of the same study, {} to {}: they tell how far runs spread",
            plural(runs.earlier.len(), "earlier run"),
            first.started,
            last.started
        ));
    }
    all
}

/// `calendar-load of 2026-01-05T10:00:00Z (24 of 24 trials valid, plimsoll 0.1.0)`.
fn run(name: &str, facts: &RunFacts) -> String {
    format!(
        "run {name}: {} of {} ({} of {} trials valid, plimsoll {})",
        facts.study, facts.started, facts.valid, facts.trials, facts.plimsoll_version
    )
}

/// The differences in the setup, in sentences.
fn setup(runs: &RunComparison) -> Vec<String> {
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
    all.extend(
        runs.missing
            .iter()
            .map(|why| format!("trials are missing {why}")),
    );
    all
}
