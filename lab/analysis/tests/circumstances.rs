//! What surrounds a trial: each fact made to pass, warn, and invalidate; and the run as a whole.

use crate::support::{Made, Shape, check};
use lab_analysis::model::CheckOutcome::{self, Invalid, NotJudged, Pass, Warn};
use lab_analysis::model::{TrialAnalysis, Verdict};
use lab_archive::{
    Agent, Circumstances, Clocks, LimitsReached, OtherProgram, StartingState, SystemHost,
    SystemPart, Throttled, Used,
};
use lab_plan::checks::Cause;

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
        "they used 8.00 % of all cores: rustc 8.00 % (warns beyond 5 %)"
    );
    check(others(60.0), "other programs", Invalid);
}

/// A system on another machine, of eight cores, whose agent looked around.
fn far(change: impl FnOnce(&mut SystemHost)) -> Shape {
    with(|around| {
        around.system_agent = Some(Agent::default());
        let mut host = SystemHost {
            cores: 8,
            system_cores: 8,
            clocks: around.clocks.unwrap(),
            ..SystemHost::default()
        };
        change(&mut host);
        around.system_host = Some(host);
    })
}

fn evidence(trial: &TrialAnalysis, name: &str) -> String {
    let found = trial.checks.iter().find(|check| check.name == name);
    found.unwrap().evidence.clone()
}

#[test]
fn what_goes_on_at_the_systems_machine_counts_as_here() {
    let busy = |percent: f64| {
        far(|host| {
            host.others_during = vec![OtherProgram {
                name: "backup".to_owned(),
                cpu_percent: percent,
            }];
        })
    };
    let name = "other programs";
    check(busy(16.0), name, Pass);
    // 100 is one of eight cores.
    let trial = check(busy(64.0), name, Warn);
    assert_eq!(
        evidence(&trial, name),
        "they used 0 % of all cores; on the system's machine 8.00 % of all cores: backup 8.00 % (warns beyond 5 %)"
    );
    check(busy(400.0), name, Invalid);
    let slept = far(|host| host.clocks.wall_end_ms += 5_000);
    let trial = check(slept, "clock jumps", Invalid);
    let said = evidence(&trial, "clock jumps");
    assert!(
        said.contains("that of the system's machine 5,001 ms more"),
        "{said}"
    );
    let full = far(|host| host.limits.listen_overflows = Some(3));
    let trial = check(full, "limits", Warn);
    let said = evidence(&trial, "limits");
    assert!(
        said.contains("3 connections found a listener's queue full, on the system's machine"),
        "{said}"
    );
}

/// A system with a part on a machine of its own.
fn parted(change: impl FnOnce(&mut SystemPart)) -> Shape {
    with(|around| {
        let mut part = SystemPart {
            name: "db".to_owned(),
            agent: Some(Agent {
                name: "rack-7".to_owned(),
                bound_ms: Some(0.2),
                apart_ms: Some(0.0),
                ..Agent::default()
            }),
            host: Some(SystemHost {
                cores: 4,
                system_cores: 4,
                clocks: around.clocks.unwrap(),
                ..SystemHost::default()
            }),
            starting_state: None,
        };
        change(&mut part);
        around.parts = vec![part];
    })
}

#[test]
fn what_goes_on_at_the_machine_of_a_part_counts_as_here() {
    let name = "other programs";
    let busy = parted(|part| {
        let host = part.host.as_mut().unwrap();
        host.others_during = vec![OtherProgram {
            name: "backup".to_owned(),
            cpu_percent: 32.0,
        }];
    });
    let said = evidence(&check(busy, name, Warn), name);
    assert!(
        said.contains("; on the machine of db 8.00 % of all cores: backup 8.00 %"),
        "{said}"
    );
    let slept = parted(|part| part.host.as_mut().unwrap().clocks.wall_end_ms += 5_000);
    let said = evidence(&check(slept, "clock jumps", Invalid), "clock jumps");
    assert!(
        said.contains("that of the machine of db 5,001 ms more"),
        "{said}"
    );
    let full = parted(|part| part.host.as_mut().unwrap().limits.listen_overflows = Some(3));
    let said = evidence(&check(full, "limits", Warn), "limits");
    assert!(said.contains("queue full, on the machine of db"), "{said}");
    let unseen = parted(|part| part.host = None);
    let said = evidence(&check(unseen, name, Pass), name);
    assert!(
        said.ends_with("; the machine of db was not looked at"),
        "{said}"
    );
    let stood = parted(|part| part.agent.as_mut().unwrap().apart_ms = Some(60_000.0));
    let said = evidence(&check(stood, "agents' clocks", Invalid), "agents' clocks");
    assert!(said.starts_with("db run by rack-7; "), "{said}");
}

#[test]
fn a_server_that_its_machine_does_not_know_is_no_other_program() {
    let unknown = far(|host| {
        host.knows_system = false;
        host.others_during = vec![OtherProgram {
            name: "server".to_owned(),
            cpu_percent: 800.0,
        }];
    });
    let said = evidence(&check(unknown, "other programs", Pass), "other programs");
    let expected = "which programs there are the system's is not known";
    assert!(
        said.contains(expected) && !said.contains("server"),
        "{said}"
    );
}

#[test]
fn a_machine_that_nobody_looked_at_is_told() {
    let unseen = || with(|around| around.system_agent = Some(Agent::default()));
    for name in ["other programs", "clock jumps", "limits"] {
        let said = evidence(&check(unseen(), name, Pass), name);
        assert!(
            said.ends_with("; the system's machine was not looked at"),
            "{said}"
        );
        let said = evidence(&check(with(|_| ()), name, Pass), name);
        assert!(!said.contains("machine"), "{said}");
    }
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
        .find(|check| check.name == "other programs");
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

#[test]
fn a_stall_counts_once_however_many_windows_it_delays() {
    let name = "clock and windows";
    let held_up = |windows, late_ms| Shape {
        held_up: Some((windows, late_ms)),
        ..Shape::default()
    };
    let evidence = |trial: &TrialAnalysis| {
        let found = trial.checks.iter().find(|check| check.name == name);
        found.unwrap().evidence.clone()
    };
    // A trial of 30 s in windows of 50 ms. Windows that are late by 60 ms overlap but for the usual 50 ms.
    let usual = evidence(&check(held_up(20, 60.0), name, Pass));
    assert!(usual.contains("stood still for 200 ms in all"), "{usual}");
    check(held_up(1, 260.0), name, Warn);
    // The stall lasts from the end of the first of 28 windows until 1.35 s after the end of the last one.
    let stalled = evidence(&check(held_up(28, 1_400.0), name, Warn));
    assert!(stalled.contains("stood still for 3,942 ms"), "{stalled}");
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
    // A record of before: four processes, each of which had a limit of its own.
    check(files(4000), name, NotJudged);
    let all =
        |most| with(|around| around.limits.machine_open_files = Some(Used { most, limit: 1024 }));
    check(all(800), name, Pass);
    check(all(1000), name, Warn);
    check(all(1024), name, Invalid);
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
    assert_eq!(of(5).checks[0].name, "attempt");
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
