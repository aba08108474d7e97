//! What surrounds a trial: each fact made to pass, warn, and invalidate; and the run as a whole.

mod support;

use lab_analysis::model::CheckOutcome::{self, Invalid, NotJudged, Pass, Warn};
use lab_archive::{
    Circumstances, Clocks, LimitsReached, OtherProgram, StartingState, Throttled, Used,
};
use support::{Made, Shape, check};

fn quiet() -> Circumstances {
    Circumstances {
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
        ..Circumstances::default()
    }
}

fn with(change: impl FnOnce(&mut Circumstances)) -> Shape {
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
fn other_programs_are_named() {
    check(Shape::default(), "other programs", NotJudged);
    check(with(|_| ()), "other programs", Pass);
    // 100 is one of two cores.
    let trial = check(others(16.0), "other programs", Warn);
    let found = trial
        .checks
        .iter()
        .find(|check| check.name == "other programs");
    assert_eq!(
        found.unwrap().evidence,
        "they used 8.00 % of all cores: rustc 8.00 %"
    );
    check(others(60.0), "other programs", Invalid);
}

#[test]
fn a_clock_that_jumps() {
    let ends = |wall_end_ms| {
        with(|around| {
            around.clocks = around.clocks.map(|clocks| Clocks {
                wall_end_ms,
                ..clocks
            });
        })
    };
    check(Shape::default(), "clock jumps", NotJudged);
    check(ends(1_030_010), "clock jumps", Pass);
    check(ends(1_030_300), "clock jumps", Warn);
    check(ends(1_029_700), "clock jumps", Warn);
    check(ends(1_090_000), "clock jumps", Invalid);
}

#[test]
fn limits_that_are_near_or_reached() {
    let name = "limits";
    let files =
        |most| with(|around| around.limits.generator_open_files = Some(Used { most, limit: 1024 }));
    check(files(800), name, Pass);
    check(files(1000), name, Warn);
    check(files(1024), name, Invalid);
    check(
        with(|around| around.limits.listen_overflows = Some(3)),
        name,
        Warn,
    );
    let throttled =
        |ms| with(|around| around.limits.generator_throttled = Some(Throttled { periods: 4, ms }));
    check(throttled(20), name, Warn);
    check(throttled(900), name, Invalid);
    let system = with(|around| {
        around.limits.system_throttled = Some(Throttled {
            periods: 90,
            ms: 9_000,
        });
    });
    check(system, name, Warn);
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
        .map(|check| (check.name.to_owned(), check.outcome, check.evidence))
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
        // Noise of a few per cent, and what the order adds.
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
