//! Runs by study, oldest first: a line for each, and the series of comparable runs.

use lab_analysis::format::{figure, times};
use lab_analysis::model::{Decision, Estimate, Outcome};
use lab_comparison::{SetupDifference, machine_differences};
use serde::Serialize;

use crate::facts::{Facts, Recorded};
use crate::series::{LEVEL, SEED, Series, series};

/// The `schema` of a history.
pub const HISTORY_SCHEMA: &str = "plimsoll.history/1";

/// Runs over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// [`HISTORY_SCHEMA`].
    pub schema: &'static str,
    /// The chance of a false change in any series of a study.
    pub level: f64,
    /// Seed of the test's permutations.
    pub seed: u64,
    /// By name.
    pub studies: Vec<StudyHistory>,
}

/// The runs of a study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyHistory {
    /// Its name.
    pub study: String,
    /// Its title, as of the latest run.
    pub title: String,
    /// Oldest first.
    pub runs: Vec<RunLine>,
    /// Figures over comparable runs.
    pub series: Vec<Series>,
}

/// A run in a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunLine {
    /// The name of its archive.
    pub folder: String,
    /// Start time, RFC 3339.
    pub started: String,
    /// Valid trials of its plan.
    pub valid: usize,
    /// All trials of its plan.
    pub planned: usize,
    /// The verdict in about two words.
    pub verdict: &'static str,
    /// Its outcome.
    pub outcome: Outcome,
    /// True if trials of its plan are missing.
    pub is_unfinished: bool,
    /// In one sentence.
    pub headline: String,
    /// The first check that made trials invalid, and its evidence.
    pub why: Option<(String, String)>,
    /// The figure that decides; `None` without valid trials.
    pub decisive: Option<Decisive>,
    /// Differences in machine, program, and study from the run before.
    pub changed: Vec<SetupDifference>,
}

/// The figure that decides a run, or a difference as a ratio.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decisive {
    /// Its name.
    pub measure: &'static str,
    /// Its cell.
    pub of: String,
    /// A figure of the run, or a ratio to the baseline.
    pub value: Estimate,
    /// True if it is a ratio.
    pub is_ratio: bool,
    /// In words: `12.3 ms (12.0–12.6)`, `+2.1 % (−0.3 % to +4.5 %)`.
    pub words: String,
}

impl History {
    /// The history of these runs, in any order. Copies of a run are dropped.
    #[must_use]
    pub fn new(mut runs: Vec<Recorded>) -> Self {
        let key = |run: &Recorded| {
            let study = &run.result.study;
            (
                study.name.clone(),
                study.started.clone(),
                run.folder.clone(),
            )
        };
        runs.sort_by_key(key);
        runs.dedup_by(|one, before| {
            let (one, before) = (&one.result.study, &before.result.study);
            one.name == before.name && one.started == before.started
        });
        let studies = runs.chunk_by(|one, next| one.study() == next.study());
        Self {
            schema: HISTORY_SCHEMA,
            level: LEVEL,
            seed: SEED,
            studies: studies.map(of_study).collect(),
        }
    }
}

fn of_study(runs: &[Recorded]) -> StudyHistory {
    let before = std::iter::once(None).chain(runs.iter().map(Some));
    let latest = &runs[runs.len() - 1].result.study;
    StudyHistory {
        study: latest.name.clone(),
        title: latest.title.clone(),
        runs: runs
            .iter()
            .zip(before)
            .map(|(run, before)| line(run, before))
            .collect(),
        series: all_series(runs),
    }
}

/// The series of each setup, in the order in which they were first used.
fn all_series(runs: &[Recorded]) -> Vec<Series> {
    let mut setups: Vec<Vec<(usize, &Facts)>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        let known = |setup: &&mut Vec<(usize, &Facts)>| setup[0].1.is_same_setup(&run.result);
        match setups.iter_mut().find(known) {
            Some(setup) => setup.push((at, &run.result)),
            None => setups.push(vec![(at, &run.result)]),
        }
    }
    setups.iter().flat_map(|setup| series(setup)).collect()
}

fn line(run: &Recorded, before: Option<&Recorded>) -> RunLine {
    let result = &run.result;
    let summary = &result.summary;
    let is_unfinished = summary.complete < summary.planned;
    let invalid = result
        .reasons
        .iter()
        .find(|reason| reason.outcome == "invalid");
    RunLine {
        folder: run.folder.clone(),
        started: result.study.started.clone(),
        valid: summary.valid,
        planned: summary.planned,
        verdict: verdict(result, is_unfinished),
        outcome: summary.outcome,
        is_unfinished,
        headline: result.headline.clone(),
        why: invalid.map(|reason| (reason.check.clone(), reason.evidence.clone())),
        decisive: decisive(result),
        changed: before.map_or_else(Vec::new, |before| changed(&before.result, result)),
    }
}

fn verdict(result: &Facts, is_unfinished: bool) -> &'static str {
    let answer = result.answer.as_ref().map(|answer| answer.decision);
    match (result.summary.outcome, answer) {
        _ if is_unfinished => "unfinished",
        (Outcome::SystemFailed, _) => "system failed",
        (Outcome::PreparationFailed, _) => "preparation failed",
        (Outcome::TooFewValidTrials, _) => "invalid",
        (Outcome::SearchNotFinished, _) => "search not finished",
        (_, Some(Decision::Worse)) => "worse",
        (Outcome::ThresholdFailed, _) => "threshold failed",
        (_, Some(Decision::NotAnswered)) => "no verdict",
        (_, Some(Decision::CouldNotTell)) => "could not tell",
        (_, Some(Decision::Better)) => "better",
        (_, Some(Decision::Equal)) => "equal",
        (_, Some(Decision::NotWorse)) => "not worse",
        (Outcome::Regression, _) => "worse",
        (Outcome::CouldNotTell, _) => "could not tell",
        (Outcome::Ok, _) => "ok",
    }
}

/// The load line, or the deciding difference that is the least like noise, or the deciding figure under the highest
/// load.
fn decisive(result: &Facts) -> Option<Decisive> {
    if let Some(line) = result.load_lines.first() {
        let users = f64::from(line.users?);
        let bounds = line.low.zip(line.high);
        let bounds = bounds.map(|(low, high)| (f64::from(low), f64::from(high)));
        return Some(figure_of(
            "load line",
            &line.label,
            (users, bounds),
            "users",
            times,
        ));
    }
    let asked = result.answer.iter().flat_map(|_| &result.comparisons);
    let deciding = asked.filter(|one| one.decides);
    let least = deciding.min_by(|one, other| {
        let p = |p: Option<f64>| p.unwrap_or(f64::INFINITY);
        p(one.p).total_cmp(&p(other.p))
    });
    if let Some(one) = least {
        let change = |ratio: f64| one.metric.change(ratio);
        let ends = one.interval.map(|(low, high)| (change(low), change(high)));
        let ends = ends.map_or_else(String::new, |(low, high)| format!(" ({low} to {high})"));
        let value = Estimate {
            mean: one.ratio,
            low: one.interval.map(|(low, _)| low),
            high: one.interval.map(|(_, high)| high),
        };
        return Some(Decisive {
            measure: one.metric.name(),
            of: one.b.clone(),
            value,
            is_ratio: true,
            words: format!("{}{ends}", change(one.ratio)),
        });
    }
    let measured = result.measures();
    let cells = result.cells.iter().filter_map(|cell| {
        let value = |measure: &_| Some((cell, *measure, result.value(&cell.label, *measure)?));
        measured.iter().find_map(value)
    });
    let (cell, measure, value) = cells.max_by_key(|(cell, ..)| cell.users)?;
    let value = (value.mean, value.low.zip(value.high));
    Some(figure_of(
        measure.name(),
        &cell.label,
        value,
        measure.unit(),
        figure,
    ))
}

fn figure_of(
    measure: &'static str,
    of: &str,
    (mean, bounds): (f64, Option<(f64, f64)>),
    unit: &str,
    show: fn(f64) -> String,
) -> Decisive {
    let ends = bounds.map(|(low, high)| format!(" ({}–{})", show(low), show(high)));
    Decisive {
        measure,
        of: of.to_owned(),
        value: Estimate {
            mean,
            low: bounds.map(|(low, _)| low),
            high: bounds.map(|(_, high)| high),
        },
        is_ratio: false,
        words: format!("{} {unit}{}", show(mean), ends.unwrap_or_default()),
    }
}

/// Possible causes of a change besides the system.
fn changed(before: &Facts, now: &Facts) -> Vec<SetupDifference> {
    let mut all = machine_differences(&before.environment, &now.environment);
    let study = |what, of: fn(&Facts) -> String, matters| {
        let (a, b) = (of(before), of(now));
        (a != b).then_some(SetupDifference {
            what,
            a,
            b,
            matters,
        })
    };
    let file = |of: &Facts| {
        let hash = of.study.file_sha256.as_deref().unwrap_or_default();
        hash.chars().take(8).collect()
    };
    let overrides = |of: &Facts| {
        let all = of
            .study
            .overrides
            .iter()
            .map(|(key, value)| format!("{key}={value}"));
        all.collect::<Vec<_>>().join(", ")
    };
    all.extend(study("study file", file, true));
    all.extend(study("overrides", overrides, true));
    all.extend(study("speed", |of| of.study.speed.to_string(), true));
    all
}
