//! Loads of several populations: each with its figures and its thresholds.

use crate::support::{Made, STUDY, Shape};
use lab_analysis::model::{Check, CheckOutcome};
use lab_counts::Scope;
use lab_report::write::{html, terminal};

const MIX: &str = "load: { users: 200, ramp: 6s, hold: 24s, mix: [{ population: readers, share: 3 }, \
                   { population: writers, share: 1 }] }";

/// Two populations of one workload. The made-up server takes longer for every further step, so that the second
/// population's responses are slower.
pub(crate) fn made() -> Made {
    let line = STUDY.lines().find(|line| line.starts_with("load:"));
    Made {
        study: STUDY
            .replace("matrix: { users: [100, 200] }\n", "")
            .replace("published: [load.csv, steps.csv]\n", "")
            .replace(line.unwrap(), MIX)
            .replace(
                "  error_rate: [\"rate < 1%\"]\n",
                "  response_time{population:readers}: [\"p(95) < 20ms\"]\n  \
                 response_time{population:writers}: [\"p(95) < 20ms\"]\n  \
                 throughput{population:writers}: [\"rate > 10/s\"]\n  \
                 response_time{step:writers/Log in}: [\"p(50) < 1s\"]\n",
            ),
        shapes: vec![Shape::default()],
        ..Made::default()
    }
}

#[test]
fn each_population_has_its_figures_and_its_thresholds() {
    let analysis = made().analysis();
    let trial = &analysis.trials[0];
    let [readers, writers] = [0, 1].map(|at| &trial.populations[at]);
    assert_eq!((readers.plan.users, writers.plan.users), (150, 50));
    let of_both = readers.transactions + writers.transactions;
    assert_eq!(of_both, trial.transactions);
    let share = readers.transactions as f64 / trial.transactions as f64;
    assert!((share - 0.75).abs() < 0.02, "{share}");
    let of_plan = readers.delivered_per_s.unwrap() / readers.offered_per_s.unwrap();
    assert!((of_plan - 1.0).abs() < 0.05, "{of_plan}");
    let p95 = |at: usize| trial.populations[at].response_ms.p95.unwrap();
    assert!(p95(0) < p95(1), "{} {}", p95(0), p95(1));
    let holds = |text: &str, population: &str| {
        let named = |one: &&lab_analysis::model::ThresholdResult| {
            one.scope == Scope::Population(population.to_owned()) && one.text == text
        };
        trial.thresholds.iter().find(named).unwrap().holds
    };
    assert!(holds("p(95) < 20ms", "readers"));
    assert!(!holds("p(95) < 20ms", "writers"));
    assert!(holds("rate > 10/s", "writers"));
}

#[test]
fn what_holds_of_one_cycle_is_not_asked_of_several() {
    let trial = made().analysis().trials.remove(0);
    let named = |name: &str| trial.checks.iter().find(|check| check.id.title() == name);
    for name in ["delivered load", "requests", "mix of steps"] {
        let found = named(name).unwrap();
        assert_eq!(found.outcome, CheckOutcome::Pass, "{found:?}");
    }
}

/// The check on populations if the second one had this part of its planned load.
fn of_populations(made: Made, part: f64) -> Check {
    let shape = Shape {
        short_steps: Some((3..6, part)),
        ..Shape::default()
    };
    let made = Made {
        shapes: vec![shape],
        ..made
    };
    let trial = made.analysis().trials.remove(0);
    let mut found = trial.checks.into_iter();
    found
        .find(|check| check.id.title() == "populations")
        .unwrap()
}

#[test]
fn a_population_that_fell_short_is_named() {
    let all = of_populations(made(), 1.0);
    assert_eq!(all.outcome, CheckOutcome::Pass, "{all:?}");
    // Of all requests, less than 2 % is missing.
    let short = of_populations(made(), 0.925);
    assert_eq!(short.outcome, CheckOutcome::Invalid, "{short:?}");
    assert!(short.evidence.contains("`writers`, "), "{short:?}");
    assert!(!short.evidence.contains("`readers`"), "{short:?}");
    let a_little = of_populations(made(), 0.955);
    assert_eq!(a_little.outcome, CheckOutcome::Warn, "{a_little:?}");
    let alone = Made::default().analysis().trials.remove(0);
    assert!(
        alone
            .checks
            .iter()
            .all(|check| check.id.title() != "populations")
    );
}

#[test]
fn a_population_that_fell_short_is_named_with_the_stage() {
    let mut made = made();
    let stages =
        "load: { stages: [{ users: 100, for: 12s }, { stage: high, users: 200, for: 12s }],";
    made.study = made
        .study
        .replace("load: { users: 200, ramp: 6s, hold: 24s,", stages);
    let short = of_populations(made, 0.7);
    assert_eq!(short.outcome, CheckOutcome::Invalid, "{short:?}");
    assert!(short.evidence.contains(": `writers` in `"), "{short:?}");
    assert!(!short.evidence.contains("`readers`"), "{short:?}");
}

#[test]
fn a_report_shows_the_populations() {
    let analysis = made().analysis();
    let text = terminal(&analysis, 80);
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let (_, section) = text.split_once("Populations\n").expect("a section");
    let (section, _) = section.split_once("Per level").unwrap();
    insta::assert_snapshot!(section.trim_end());
    assert!(html(&analysis).contains(">Populations<"));
    assert!(!html(&Made::default().analysis()).contains(">Populations<"));
}
