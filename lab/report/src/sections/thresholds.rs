//! Judgements on the server: each failed one, and a line over all trials for the passed ones.

use super::void::is_void;
use super::words::{threshold_value, threshold_words};
use crate::Analysis;
use crate::document::{Block, Cell, Column, Kind, Row, Section, Table, Tone};
use crate::format::plural;
use crate::model::{ThresholdResult, TrialAnalysis, Verdict};

/// A threshold in a trial.
type Judged<'a> = (&'a TrialAnalysis, &'a ThresholdResult);

/// The result of a threshold.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Holds,
    Failed,
    NotJudged,
}

impl Outcome {
    fn of((trial, threshold): &Judged) -> Self {
        match (trial.verdict, threshold.holds) {
            (Verdict::Invalid, _) => Self::NotJudged,
            (Verdict::Valid, true) => Self::Holds,
            (Verdict::Valid, false) => Self::Failed,
        }
    }

    fn cell(self) -> Cell {
        match self {
            Self::Holds => Cell::outcome("holds", Tone::Good),
            Self::Failed => Cell::outcome("failed", Tone::Bad),
            Self::NotJudged => Cell::text("not judged"),
        }
    }

    fn words(self, trials: usize) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Failed => "FAILED",
            Self::NotJudged if trials == 1 => "not judged, the trial is invalid",
            Self::NotJudged => "not judged, the trials are invalid",
        }
    }
}

pub(super) fn thresholds(analysis: &Analysis) -> Option<Section> {
    let mut by_words: Vec<(String, Vec<Judged>)> = Vec::new();
    for trial in &analysis.trials {
        // A passed threshold that the study doesn't set is no news.
        let told = |one: &&ThresholdResult| !(one.implied && one.holds);
        for threshold in trial.thresholds.iter().filter(told) {
            let words = threshold_words(threshold);
            match by_words.iter_mut().find(|(known, _)| *known == words) {
                Some((_, judged)) => judged.push((trial, threshold)),
                None => by_words.push((words, vec![(trial, threshold)])),
            }
        }
    }
    if by_words.is_empty() || is_void(analysis) {
        return None;
    }
    let rows = by_words
        .iter()
        .flat_map(|(words, judged)| rows(words, judged));
    let columns = ["trial", "threshold", "measured", "outcome"];
    let columns = columns.map(|head| Column::new(head, Kind::Text));
    let table = Table::new("Thresholds", "threshold", columns.to_vec(), rows.collect());
    Some(Section::new("Thresholds", vec![Block::Table(table)]))
}

/// Failed and unmeasured thresholds, trial by trial; then the others together.
fn rows(words: &str, judged: &[Judged]) -> Vec<Row> {
    let (together, alone): (Vec<Judged>, Vec<Judged>) = judged
        .iter()
        .copied()
        .partition(|one| Outcome::of(one) != Outcome::Failed && one.1.reason.is_none());
    let mut rows: Vec<Row> = alone
        .iter()
        .map(|one| row(words, std::slice::from_ref(one), judged.len()))
        .collect();
    for outcome in [Outcome::Holds, Outcome::NotJudged] {
        let alike = together.iter().filter(|one| Outcome::of(one) == outcome);
        let alike: Vec<Judged> = alike.copied().collect();
        rows.extend((!alike.is_empty()).then(|| row(words, &alike, judged.len())));
    }
    rows
}

/// Part of all trials with this threshold, with the same result.
fn row(words: &str, alike: &[Judged], all: usize) -> Row {
    let (trial, threshold) = alike[0];
    let outcome = Outcome::of(&alike[0]);
    let measured = measured(alike);
    let said = match &threshold.reason {
        Some(reason) => reason.clone(),
        None => format!("measured {measured}"),
    };
    let (of, whose) = match alike.len() {
        1 => {
            let one = format!("{}, {}", trial.id, trial.label);
            (one.clone(), format!("trial {one}"))
        }
        some => {
            let some = match some == all {
                true => format!("all {}", plural(all, "trial")),
                false => format!("{some} of {}", plural(all, "trial")),
            };
            (some.clone(), some)
        }
    };
    let how = outcome.words(alike.len());
    let cells = vec![
        Cell::text(of),
        Cell::text(words),
        Cell::text(measured),
        outcome.cell(),
    ];
    Row {
        sentence: Some(format!("{whose}: {words}: {how} ({said})")),
        ..Row::new(cells)
    }
}

/// The value, or the lowest and the highest.
fn measured(alike: &[Judged]) -> String {
    let mut by_value: Vec<&ThresholdResult> = alike.iter().map(|(_, one)| *one).collect();
    let value = |one: &ThresholdResult| one.value.unwrap_or_default();
    by_value.sort_by(|one, other| value(one).total_cmp(&value(other)));
    let [low, high] = [by_value[0], by_value[by_value.len() - 1]].map(threshold_value);
    match low == high {
        true => low,
        false => format!("{low} to {high}"),
    }
}
