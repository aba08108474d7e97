//! Loads of stages: each with its figures and its thresholds, none of them taken for a steady state.

use lab_plan::checks::CheckId;

use crate::support::{Made, STUDY, Shape};
use lab_analysis::model::{Check, CheckOutcome};
use lab_counts::Scope;
use lab_report::write::{html, terminal};

/// A load of 24 s of which the first 12 are ten times as slow.
pub(crate) fn made(load: &str) -> Made {
    let line = STUDY.lines().find(|line| line.starts_with("load:"));
    let shape = Shape {
        slow_start_ms: 12_000,
        ..Shape::default()
    };
    Made {
        study: STUDY
            .replace("matrix: { users: [100, 200] }\n", "")
            .replace("published: [load.csv, steps.csv]\n", "")
            .replace(line.unwrap(), load)
            .replace(
                "  error_rate: [\"rate < 1%\"]\n",
                "  response_time{stage:cold}: [\"p(95) < 60ms\"]\n  \
                 response_time{stage:2}: [\"p(95) < 60ms\"]\n  \
                 throughput{stage:2}: [\"rate > 10/s\"]\n",
            ),
        shapes: vec![shape],
        ..Made::default()
    }
}

pub(crate) const STEPS: &str = "load: { stages: [{ stage: cold, users: 100, for: 12s }, { users: 100, for: 6s }, \
                     { stage: down, users: 0, over: 6s }] }";

#[test]
fn each_stage_has_its_figures_and_its_thresholds() {
    let analysis = made(STEPS).analysis();
    let trial = &analysis.trials[0];
    let [cold, warm, down] = [0, 1, 2].map(|at| &trial.stages[at]);
    let p95 = |at: usize| trial.stages[at].response_ms.p95.unwrap();
    assert!(p95(0) > 60.0 && p95(1) < 20.0, "{} {}", p95(0), p95(1));
    assert!(!cold.plan.ramps && !warm.plan.ramps && down.plan.ramps);
    assert_eq!((warm.plan.start_ms, down.plan.start_ms), (12_000, 18_000));
    let of_all: u64 = trial.stages.iter().map(|stage| stage.transactions).sum();
    assert_eq!(of_all, trial.transactions, "windows end where stages do");
    let holds: Vec<_> = trial
        .thresholds
        .iter()
        .filter_map(|one| match &one.scope {
            Scope::Stage(stage) => Some((stage.clone(), one.holds)),
            _ => None,
        })
        .collect();
    let expected = [("cold", false), ("2", true), ("2", true)];
    assert_eq!(
        holds,
        expected.map(|(name, holds)| (name.to_owned(), holds))
    );
}

#[test]
fn no_stage_is_taken_for_a_steady_state() {
    let trial = made(STEPS).analysis().trials.remove(0);
    // A hold like this has 12 s of warm-up.
    assert!(trial.warmup_cut_ms.abs() < 1e-9);
    let mut checks = trial.checks.iter();
    let steady = checks.find(|check| check.id == CheckId::SteadyState);
    assert_eq!(steady.unwrap().outcome, CheckOutcome::NotJudged);
}

/// The check on stages if the stage at this index had this part of its planned load.
fn of_stages(at: usize, part: f64) -> Check {
    let shape = Shape {
        short_stage: Some((at, part)),
        ..Shape::default()
    };
    let made = Made {
        shapes: vec![shape],
        ..made(STEPS)
    };
    let trial = made.analysis().trials.remove(0);
    let named = |name: &str| {
        let mut found = trial.checks.iter().filter(|check| check.id.title() == name);
        found.next().unwrap().clone()
    };
    // Over the whole hold, hardly anything is missing.
    assert_eq!(named("delivered load").outcome, CheckOutcome::Pass);
    named("stages")
}

#[test]
fn a_stage_that_fell_short_is_named() {
    let all = of_stages(1, 1.0);
    assert_eq!(all.outcome, CheckOutcome::Pass, "{all:?}");
    let short = of_stages(1, 0.94);
    assert_eq!(short.outcome, CheckOutcome::Invalid, "{short:?}");
    assert!(short.evidence.contains("`2`, "), "{short:?}");
    assert!(!short.evidence.contains("`cold`"), "{short:?}");
    let a_little = of_stages(2, 0.96);
    assert_eq!(a_little.outcome, CheckOutcome::Warn, "{a_little:?}");
    assert!(a_little.evidence.contains("`down`, "), "{a_little:?}");
    let steady = Made::default().analysis().trials.remove(0);
    assert!(
        steady
            .checks
            .iter()
            .all(|check| check.id.title() != "stages")
    );
}

#[test]
fn a_report_shows_the_stages() {
    let analysis = made(STEPS).analysis();
    let text = terminal(&analysis, 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let (_, section) = text.split_once("Stages\n").expect("a section");
    let (section, _) = section.split_once("Per level").unwrap();
    insta::assert_snapshot!(section.trim_end());
    let page = html(&analysis);
    assert!(page.contains("100 → 0 users") && page.contains("a stage that ramps"));
    assert!(!page.contains("ramp and warm-up, not counted"));
    let steady = html(&Made::default().analysis());
    assert!(!steady.contains("a stage that ramps") && !steady.contains(">Stages<"));
}

#[test]
fn rates_have_stages_too() {
    let load = "load: { stages: [{ stage: cold, rate: 40/s, for: 12s }, { rate: 40/s, for: 6s }, \
                { rate: 0/s, over: 6s }], arrival: { spacing: constant, connections: 300 } }";
    let mut made = made(load);
    made.workload = crate::support::WORKLOAD.replace("  pace: 6s\n", "");
    let trial = made.analysis().trials.remove(0);
    let arrivals = trial.arrivals.unwrap();
    // 720 whole sessions, and half of 240.
    assert!((arrivals.planned_per_s - 35.0).abs() < 0.1, "{arrivals:?}");
    assert!(trial.stages.iter().all(|stage| stage.plan.arrives));
    assert!((trial.stages[1].plan.to - 40.0).abs() < 1e-9);
}
