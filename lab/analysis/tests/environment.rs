//! The environment of a trial: each fact made to pass, warn, and invalidate; and the run as a whole.

use crate::support::{Made, Shape, check};
use lab_analysis::model::CheckOutcome::{self, Pass, Warn};
use lab_analysis::model::Verdict;
use lab_archive::{Clocks, LimitsReached, OtherProgram, StartingState, TrialEnvironment, Used};
use lab_plan::checks::Cause;

fn quiet() -> TrialEnvironment {
    TrialEnvironment {
        starting_state: Some(StartingState {
            data_bytes: 10_000_000,
            kernel_hash: "blake3:k".to_owned(),
            configuration_hash: "blake3:c".to_owned(),
            ..StartingState::default()
        }),
        clocks: Some(Clocks {
            wall_start_ms: 1_000_000,
            wall_end_ms: 1_030_001,
            monotonic_ms: 30_000.4,
        }),
        limits: LimitsReached {
            generator_open_files: Some(Used {
                most: 120,
                limit: 1024,
            }),
            ..LimitsReached::default()
        },
        ..TrialEnvironment::default()
    }
}

fn with(change: impl FnOnce(&mut TrialEnvironment)) -> Shape {
    let mut circumstances = quiet();
    change(&mut circumstances);
    Shape {
        circumstances,
        ..Shape::default()
    }
}

fn others(percent: f64) -> Shape {
    with(|around| {
        around.others_during = vec![OtherProgram {
            name: "rustc".to_owned(),
            cpu_percent: percent,
        }];
    })
}

#[test]
fn a_study_sets_limits_and_the_report_says_so_first() {
    let made = |checks: &str| Made {
        overrides: vec![("checks".to_owned(), checks.to_owned())],
        ..Made::both(&others(60.0))
    };
    let usual = Made::both(&others(60.0)).analysis();
    let trial = &usual.trials[0];
    assert_eq!(
        (trial.verdict, trial.cause),
        (Verdict::Invalid, Some(Cause::Outside))
    );
    let found = trial
        .checks
        .iter()
        .find(|check| check.id.title() == "other programs");
    let found = found.unwrap();
    assert!(found.evidence.ends_with("(limit 20 %)"), "{found:?}");
    let figure = found.figures[0];
    assert_eq!((figure.key, figure.value), ("other_programs", 30.0));
    assert_eq!((figure.warn, figure.invalid), (Some(5.0), Some(20.0)));
    assert!(usual.study.limits_set.is_empty());

    let lenient = made("{ other_programs: 40% }").analysis();
    assert_eq!(
        (lenient.trials[0].verdict, lenient.trials[0].cause),
        (Verdict::Valid, None)
    );
    assert_eq!(
        lenient.findings[0],
        "The study sets limits of checks itself: `other_programs` is invalid beyond 40 % (usually 20 %)."
    );
    let strict = made("{ other_programs: { warn: 1%, invalid: 2% } }").analysis();
    let first = &strict.findings[0];
    let said =
        "`other_programs` warns beyond 1 % (usually 5 %) and is invalid beyond 2 % (usually 20 %)";
    assert!(first.contains(said), "{first}");
    check(others(3.0), "other programs", Pass);
    assert_eq!(
        made("{ lateness: 1h }").analysis().trials[0].verdict,
        Verdict::Invalid
    );
}

/// Seven trials of one cell.
fn seven(shapes: Vec<Shape>) -> Vec<(String, CheckOutcome, String)> {
    let made = Made {
        overrides: vec![
            ("matrix.users".to_owned(), "[20]".to_owned()),
            ("trials".to_owned(), "7".to_owned()),
        ],
        shapes,
        ..Made::default()
    };
    let checks = made.analysis().checks.into_iter();
    checks
        .map(|check| (check.id.title().to_owned(), check.outcome, check.evidence))
        .collect()
}

#[test]
fn trials_of_a_cell_begin_alike() {
    let alike = seven(vec![with(|_| ()); 3]);
    assert_eq!(alike[0].0, "same starting state");
    assert_eq!(alike[0].1, Pass, "{alike:?}");
    let grown = with(|around| {
        if let Some(state) = &mut around.starting_state {
            state.data_bytes = 14_000_000;
            state.kernel_hash = "blake3:other".to_owned();
        }
    });
    let found = seven(vec![with(|_| ()), grown]);
    assert_eq!(found[0].1, Warn);
    assert!(
        found[0].2.starts_with(
            "trial 2 beside trial 1: 14,000,000 of data for 10,000,000 bytes (+40.0 %)"
        ),
        "{found:?}"
    );
    assert!(found[0].2.contains("kernel settings"));
}

#[test]
fn an_order_that_matters_is_a_warning() {
    let shape = |at: u64, step: u64| Shape {
        // Noise of a few per cent, and the effect of the order.
        response_us: 20_000 + [3, 9, 1, 7, 5, 11, 2][at as usize] * 60 + at * step,
        ..Shape::default()
    };
    let even = seven((0..7).map(|at| shape(at, 0)).collect());
    assert_eq!(even[1].0, "order of trials");
    assert_eq!(even[1].1, Pass, "{even:?}");
    let slower = seven((0..7).map(|at| shape(at, 1_500)).collect());
    assert_eq!(slower[1].1, Warn, "{slower:?}");
    assert!(
        slower[1].2.contains("mean response changes by +"),
        "{slower:?}"
    );
}

fn again(shape: Shape, of: u32, started: &'static str) -> Shape {
    Shape {
        attempt_of: Some(of),
        started: Some(started),
        ..shape
    }
}

#[test]
fn of_several_attempts_the_first_measurement_counts_whatever_came_out() {
    let slow = Shape {
        response_us: 40_000,
        ..with(|_| ())
    };
    let made = Made {
        shapes: vec![
            others(90.0),
            with(|_| ()),
            again(others(80.0), 1, "2026-01-05T10:01:30Z"),
            again(slow, 1, "2026-01-05T10:01:40Z"),
            again(with(|_| ()), 1, "2026-01-05T10:01:50Z"),
        ],
        ..Made::default()
    };
    let analysis = made.analysis();
    let ran: Vec<u32> = analysis.trials.iter().map(|trial| trial.id).collect();
    assert_eq!(ran, [1, 3, 4, 5, 2], "in the order in which they ran");
    let of = |id: u32| analysis.trials.iter().find(|trial| trial.id == id).unwrap();
    assert_eq!(of(3).name(), "3 (1 again)");
    assert_eq!(
        (of(1).repeated_by, of(4).repeated_by, of(2).repeated_by),
        (Some(3), Some(5), None)
    );
    let verdicts: Vec<Verdict> = (1..=5).map(|id| of(id).verdict).collect();
    let (valid, invalid) = (Verdict::Valid, Verdict::Invalid);
    assert_eq!(verdicts, [invalid, valid, invalid, valid, invalid]);
    assert_eq!(of(5).checks[0].id.title(), "attempt");
    let sums = &analysis.summary;
    assert_eq!((sums.planned, sums.complete, sums.valid), (2, 2, 2));
    assert_eq!((sums.invalid, sums.repeats, sums.disturbed), (0, 3, 0));
    assert_eq!(sums.cells_without_valid_trial, 0);
    let cell = &analysis.cells[0];
    assert_eq!((cell.trials, cell.valid_trials), (1, 1));
    assert_eq!((of(4).block, &of(4).cell), (of(1).block, &of(1).cell));

    let never = Made {
        shapes: vec![
            others(90.0),
            with(|_| ()),
            again(others(80.0), 1, "2026-01-05T10:01:30Z"),
        ],
        ..Made::default()
    };
    let sums = never.analysis().summary;
    assert_eq!((sums.valid, sums.invalid, sums.disturbed), (1, 1, 1));
}
