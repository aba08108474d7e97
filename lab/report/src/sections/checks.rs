//! Checks on the measurement: the number of checks by outcome, each check that did not pass once over all trials, then
//! all checks for reference.

use super::unmeasured::reasons;
use super::void::is_void;
use super::words::{millis, outcome};
use crate::Analysis;
use crate::document::{
    Badge, Block, Cell, Column, Group, Heading, Kind, Row, Section, Table, Tone,
};
use crate::format::{count, duration, plural};
use crate::model::{Check, CheckOutcome, Reason, TrialAnalysis, Verdict};

/// The maximum number of warnings in full; more are counted.
const MOST_WARNINGS: usize = 8;

/// Judgements on the measurement: of the run, then of its trials.
pub(super) fn checks(analysis: &Analysis) -> Option<Section> {
    if analysis.trials.is_empty() {
        return None;
    }
    let warned = analysis.reasons.iter();
    let warned: Vec<&Reason> = warned
        .filter(|one| one.outcome == CheckOutcome::Warn)
        .collect();
    let mut blocks = vec![Block::Paragraph(counted(analysis))];
    if !warned.is_empty() {
        blocks.push(Block::List(reasons(&warned, MOST_WARNINGS, analysis)));
    }
    if !analysis.checks.is_empty() {
        let rows = analysis.checks.iter().map(|one| check(one, true));
        let run = Group {
            name: "the run".to_owned(),
            heading: Heading::None,
            rows: rows.collect(),
        };
        let table = table("Checks of the run", vec![run]);
        // If no trial is valid, statistics over all trials have no meaning.
        blocks.push(match is_void(analysis) {
            true => Block::Lookup(table),
            false => Block::Table(table),
        });
    }
    let of_trials = analysis.trials.iter().map(trial_checks).collect();
    blocks.push(Block::Lookup(table("Checks", of_trials)));
    Some(Section::new("Checks on the measurement", blocks))
}

fn table(name: &'static str, groups: Vec<Group>) -> Table {
    let columns = [
        ("check", Kind::Text),
        ("outcome", Kind::Text),
        ("evidence", Kind::Prose),
        ("advice", Kind::Prose),
    ];
    Table {
        name,
        row: "check",
        group: "trial",
        sorts: false,
        columns: columns.map(|(head, kind)| Column::new(head, kind)).to_vec(),
        groups,
    }
}

const OUTCOMES: [(CheckOutcome, &str); 4] = [
    (CheckOutcome::Pass, "passed"),
    (CheckOutcome::NotJudged, "not judged"),
    (CheckOutcome::Warn, "warned"),
    (CheckOutcome::Invalid, "failed"),
];

/// `18 passed, 5 not judged`.
fn outcomes<'a>(checks: impl Iterator<Item = &'a Check> + Clone) -> String {
    let parts = OUTCOMES.into_iter().filter_map(|(wanted, word)| {
        let n = checks.clone().filter(|check| check.outcome == wanted);
        let n = n.count();
        (n > 0 || wanted == CheckOutcome::Pass).then(|| format!("{} {word}", count(n as u64)))
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// All trials together.
fn counted(analysis: &Analysis) -> String {
    let summary = &analysis.summary;
    let checks = analysis.trials.iter().flat_map(|trial| &trial.checks);
    let valid = match summary.invalid {
        0 => "all valid".to_owned(),
        n => format!("{} valid, {n} INVALID", summary.valid),
    };
    let valid = if summary.complete == 1 && summary.invalid == 0 {
        "valid".to_owned()
    } else {
        valid
    };
    format!(
        "{}: {valid}. Of their checks {}.",
        plural(summary.complete, "trial"),
        outcomes(checks)
    )
}

fn trial_checks(trial: &TrialAnalysis) -> Group {
    let (state, tone) = match trial.verdict {
        Verdict::Valid => ("valid", Tone::Good),
        Verdict::Invalid => ("INVALID", Tone::Bad),
    };
    Group {
        name: format!("{}, {} ({state})", trial.name(), trial.label),
        heading: Heading::Summary(Badge {
            text: check_summary(trial),
            tone,
        }),
        rows: trial.checks.iter().map(|one| check(one, false)).collect(),
    }
}

fn check(check: &Check, is_told: bool) -> Row {
    let tone = match check.outcome {
        CheckOutcome::Pass => Tone::Good,
        CheckOutcome::NotJudged => Tone::Plain,
        CheckOutcome::Warn => Tone::Warn,
        CheckOutcome::Invalid => Tone::Bad,
    };
    let outcome = outcome(check.outcome);
    let advice = check.advice.as_deref().unwrap_or_default();
    let then = if advice.is_empty() { "" } else { " → " };
    let outcome_cell = Cell::outcome(outcome.to_lowercase(), tone);
    Row {
        struck: false,
        muted: false,
        sentence: is_told.then(|| {
            format!(
                "{}, {outcome}: {}.{then}{advice}",
                check.id.title(),
                check.evidence
            )
        }),
        cells: vec![
            Cell::text(check.id.title()),
            outcome_cell,
            Cell::text(&check.evidence),
            Cell::text(advice),
        ],
    }
}

fn check_summary(trial: &TrialAnalysis) -> String {
    let state = match trial.verdict {
        Verdict::Valid => "valid",
        Verdict::Invalid => "INVALID, not a measurement",
    };
    let length = duration(millis(trial.elapsed_ms));
    let (id, label) = (trial.name(), &trial.label);
    let outcomes = outcomes(trial.checks.iter());
    format!("trial {id}, {label}, {length}: {state} ({outcomes})")
}
