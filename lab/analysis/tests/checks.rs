//! Effects of a verdict on the figures of a run.

use crate::support::{Made, Shape, check, trial};
use lab_analysis::model::{CheckOutcome, Outcome, Verdict};
use lab_archive::TrialEnd;

use CheckOutcome::{Invalid, Pass};

#[test]
fn a_warm_up_is_cut() {
    let warm = check(
        Shape {
            slow_start_ms: 4_000,
            ..Shape::default()
        },
        "steady state",
        Pass,
    );
    let always = trial(Shape::default());
    assert!(
        (4_000.0..12_000.0).contains(&warm.warmup_cut_ms),
        "{} ms",
        warm.warmup_cut_ms
    );
    // The remaining figures equal those of a trial without a slow start; the excluded time is not in the rate either.
    let (mean, usual) = (warm.response_ms.mean, always.response_ms.mean);
    assert!(
        (mean.unwrap() / usual.unwrap() - 1.0).abs() < 0.01,
        "{mean:?} {usual:?}"
    );
    let (rate, usual) = (warm.throughput_per_s, always.throughput_per_s);
    assert!(
        (rate.unwrap() / usual.unwrap() - 1.0).abs() < 0.02,
        "{rate:?} {usual:?}"
    );
    let evidence = &warm
        .checks
        .iter()
        .find(|c| c.id.title() == "steady state")
        .unwrap()
        .evidence;
    assert!(
        evidence.contains("are warm-up and count in no figure"),
        "{evidence}"
    );
}

/// Otherwise, effects of a cell's start would be in the figures of one and not of the other.
#[test]
fn cells_that_are_compared_lose_the_same_warm_up() {
    let slow = Shape {
        slow_start_ms: 4_000,
        ..Shape::default()
    };
    let made = Made {
        shapes: vec![slow, Shape::default()],
        ..Made::default()
    };
    let trials = made.analysis().trials;
    let cuts: Vec<f64> = trials.iter().map(|trial| trial.warmup_cut_ms).collect();
    assert!(cuts[0] >= 4_000.0 && cuts[1] == cuts[0], "{cuts:?}");
    let mut checks = trials[1].checks.iter();
    let steady = checks
        .find(|check| check.id.title() == "steady state")
        .unwrap();
    assert!(steady.evidence.contains("another cell"), "{steady:?}");
}

#[test]
fn a_failed_system_has_one_check() {
    let message = "exited with status 1\nlast words".to_owned();
    let failed = Shape {
        end: TrialEnd::SystemFailed { message },
        empty: true,
        ..Shape::default()
    };
    let mut made = Made::default();
    made.shapes[1] = failed;
    let analysis = made.analysis();
    let trial = &analysis.trials[1];
    assert_eq!(trial.checks.len(), 1);
    assert_eq!(trial.checks[0].outcome, Invalid);
    assert!(trial.checks[0].evidence.contains("exited with status 1"));
    assert_eq!(analysis.summary.outcome, Outcome::SystemFailed);
    assert_eq!(analysis.summary.system_failures, 1);
    assert_eq!(
        analysis.headline,
        "The system under test failed at 200 users, in 1 of 2 trials: exited with status 1."
    );
}

#[test]
fn invalid_trials_count_in_no_figure() {
    let mut made = Made::default();
    made.study.push_str("trials: 2\n");
    let slow = Shape {
        response_us: 50_000,
        delivered: 0.5,
        ..Shape::default()
    };
    made.shapes = vec![
        Shape::default(),
        Shape::default(),
        slow.clone(),
        Shape::default(),
    ];
    let analysis = made.analysis();
    assert_eq!(analysis.trials[2].verdict, Verdict::Invalid);
    let cell = &analysis.cells[0];
    assert_eq!((cell.trials, cell.valid_trials), (2, 1));
    let alone = analysis.trials[0].response_ms.mean;
    assert_eq!(cell.response_ms.mean.map(|mean| mean.mean), alone);
    assert_eq!(
        analysis.summary.outcome,
        Outcome::Ok,
        "every cell has a valid trial"
    );
    assert!(
        analysis
            .reasons
            .iter()
            .any(|reason| reason.outcome == CheckOutcome::Invalid && reason.trials == [3])
    );

    made.shapes[0] = slow;
    let analysis = made.analysis();
    assert_eq!(analysis.summary.outcome, Outcome::TooFewValidTrials);
    assert_eq!(analysis.summary.cells_without_valid_trial, 1);
    assert_eq!(analysis.cells[0].response_ms.mean, None);
    let entry = &analysis.published[0].entries[0];
    assert_eq!(
        (entry.published, entry.ours, entry.ratio),
        (Some(1800.0), None, None)
    );
}
