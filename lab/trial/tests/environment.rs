//! The environment of a trial: each fact made to pass, warn, and invalidate; and the run as a whole.

use crate::support::{Shape, check};
use lab_archive::{
    Agent, Clocks, LimitsReached, OtherProgram, StartingState, SystemHost, SystemPart, Throttled,
    TrialEnvironment, Used,
};
use lab_trial::model::CheckOutcome::{Invalid, NotJudged, Pass, Warn};
use lab_trial::model::TrialAnalysis;

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
fn other_programs_are_named() {
    check(Shape::default(), "other programs", NotJudged);
    check(with(|_| ()), "other programs", Pass);
    // 100 is one of two cores.
    let trial = check(others(16.0), "other programs", Warn);
    let found = trial
        .checks
        .iter()
        .find(|check| check.id.title() == "other programs");
    assert_eq!(
        found.unwrap().evidence,
        "they used 8.00 % of all cores: rustc 8.00 % (warns beyond 5 %)"
    );
    check(others(60.0), "other programs", Invalid);
}

/// Returns a system on another machine, of eight cores, which its agent inspected.
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
    let found = trial.checks.iter().find(|check| check.id.title() == name);
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

/// Returns a system with a part on its own machine.
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
fn a_stall_counts_once_however_many_windows_it_delays() {
    let name = "clock and windows";
    let held_up = |windows, late_ms| Shape {
        held_up: Some((windows, late_ms)),
        ..Shape::default()
    };
    let evidence = |trial: &TrialAnalysis| {
        let found = trial.checks.iter().find(|check| check.id.title() == name);
        found.unwrap().evidence.clone()
    };
    // A trial of 30 s in windows of 50 ms. Windows that are late by 60 ms overlap but for the usual 50 ms.
    let usual = evidence(&check(held_up(20, 60.0), name, Pass));
    assert!(usual.contains("stood still for 200 ms in all"), "{usual}");
    check(held_up(1, 400.0), name, Warn);
    // A trial of 30 s in windows of 96 ms: 28 of them wait for the end of one stall or the next.
    let stalled = evidence(&check(held_up(28, 1_400.0), name, Warn));
    assert!(stalled.contains("stood still for 3,942 ms"), "{stalled}");
    // Counted once for each window, this would be more than the trial.
    check(held_up(100, 1_400.0), name, Invalid);
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
    // An earlier record: four processes, each with its own limit.
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
