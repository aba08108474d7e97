//! Which checks detect which fault: each fault is injected into a simulated generator, or its environment, and all
//! checks judge the result. A check that is never the only one to detect a fault would be redundant.

mod generator;
mod profile;

use std::collections::{BTreeMap, BTreeSet};

use lab_archive::{
    Agent, Clocks, OtherProgram, PreparationCause, Run, RunWriter, Throttled, TrialEnd,
    TrialEnvironment, TrialRecord, Used,
};
use lab_plan::checks::CheckId;
use lab_trial::model::{CheckOutcome, TrialAnalysis};

use crate::support::{Made, STUDY, Shape, WORKLOAD, judged};
use generator::{Faults, study, write};

/// A trial with a fault, judged.
struct Row {
    fault: &'static str,
    trial: TrialAnalysis,
}

impl Row {
    fn of(&self, outcome: CheckOutcome) -> Vec<CheckId> {
        let checks = self.trial.checks.iter();
        // The steady state depends on the system: the artificial server of other loads never settles.
        let found =
            checks.filter(|check| check.outcome == outcome && check.id != CheckId::SteadyState);
        found.map(|check| check.id).collect()
    }
}

/// Judges a trial of the simulated generator.
fn simulated(made: &Made, pace: Option<f64>, faults: &Faults) -> TrialAnalysis {
    let folder = tempfile::tempdir().unwrap();
    let (loaded, planned) = made.load();
    let dir = folder.path().join("run");
    let json = serde_json::to_value(&planned).unwrap();
    let manifest = crate::support::manifest(&planned, &[]);
    let writer = RunWriter::create(&dir, &manifest, &json, &loaded.files).unwrap();
    write(&writer, &planned.trials[0], pace, faults);
    judged(&Run::open(&dir).unwrap()).remove(0)
}

fn paced(faults: &Faults) -> TrialAnalysis {
    simulated(&study("  pace: 6s\n"), Some(6000.0), faults)
}

fn unpaced(faults: &Faults) -> TrialAnalysis {
    simulated(&study(""), None, faults)
}

fn with(change: impl Fn(&mut TrialRecord) + 'static) -> Faults {
    Faults {
        record: Box::new(change),
        ..Faults::default()
    }
}

fn ended(end: TrialEnd) -> Faults {
    with(move |record| record.end = end.clone())
}

fn counters(name: &'static str, value: f64) -> Faults {
    Faults {
        counters: BTreeMap::from([(name, value)]),
        ..Faults::default()
    }
}

fn others(percent_of_a_core: f64) -> impl Fn(&mut TrialRecord) {
    move |record| {
        record.environment.others_during = vec![OtherProgram {
            name: "make".to_owned(),
            cpu_percent: percent_of_a_core,
        }];
    }
}

/// Returns faults of the generator.
fn of_generator() -> Vec<(&'static str, Faults)> {
    let faults = Faults::default;
    vec![
        (
            "sends 150 ms late",
            Faults {
                late: 150.0,
                ..faults()
            },
        ),
        (
            "reads 20 ms late",
            Faults {
                read_late: 20.0,
                ..faults()
            },
        ),
        (
            "loop stalled for 1.4 s and 0.7 s",
            Faults {
                stalls: vec![(9_000.0, 10_400.0), (20_000.0, 20_700.0)],
                ..faults()
            },
        ),
        (
            "loop stalled 120 ms each 2 s",
            Faults {
                stalls: (0..15)
                    .map(|n| f64::from(n) * 2000.0 + 500.0)
                    .map(|at| (at, at + 120.0))
                    .collect(),
                ..faults()
            },
        ),
        (
            "threads starved",
            with(|record| record.generator.run_queue_delay_fraction = Some(0.3)),
        ),
        (
            "CPU used up",
            with(|record| record.generator.cpu_fraction_max = Some(0.95)),
        ),
        (
            "CPU quota used up",
            with(|record| {
                record.environment.limits.generator_throttled = Some(Throttled {
                    periods: 40,
                    ms: 900,
                });
            }),
        ),
        (
            "files used up",
            with(|record| {
                record.environment.limits.generator_open_files = Some(Used {
                    most: 1024,
                    limit: 1024,
                });
            }),
        ),
        (
            "every 10th request dropped",
            Faults {
                drops_every: 10,
                ..faults()
            },
        ),
        (
            "every 20th request doubled",
            Faults {
                doubles_every: 20,
                ..faults()
            },
        ),
        (
            "every 2nd request of the ramp dropped",
            Faults {
                drops_every: 2,
                drops_until: 6_000.0,
                ..faults()
            },
        ),
        (
            "every 5th request goes to another step",
            Faults {
                swaps_every: 5,
                ..faults()
            },
        ),
        (
            "a step left out in every 3rd cycle",
            Faults {
                omits_every: 3,
                ..faults()
            },
        ),
        (
            "waits 10 % too short",
            Faults {
                waits: 0.9,
                ..faults()
            },
        ),
        (
            "waits 10 % too long",
            Faults {
                waits: 1.1,
                ..faults()
            },
        ),
        (
            "a second of windows lost",
            Faults {
                loses: Some((14_000.0, 15_000.0)),
                ..faults()
            },
        ),
        (
            "a second of histograms lost",
            Faults {
                loses_times: Some((14_000.0, 15_000.0)),
                ..faults()
            },
        ),
        (
            "times recorded a hundredfold",
            Faults {
                times: 100.0,
                ..faults()
            },
        ),
        (
            "trial 3 % too long",
            with(|record| record.elapsed_ms += 900),
        ),
        (
            "process of the generator died",
            ended(TrialEnd::GeneratorFailed {
                message: "killed".to_owned(),
            }),
        ),
        (
            "conductor stalled, generator in time",
            stalled_conductor(0.1),
        ),
        (
            "conductor stalled, sends 12 ms late",
            stalled_conductor(12.0),
        ),
    ]
}

/// Stops counters and scheduling times soon after the hold began.
fn stalled_conductor(late: f64) -> Faults {
    Faults {
        late,
        sampled_to: 7_000.0,
        record: Box::new(|record| {
            record.generator.cpu_fraction = None;
            record.generator.cpu_fraction_max = None;
            record.generator.run_queue_delay_fraction = None;
        }),
        ..Faults::default()
    }
}

/// Returns faults of the machines around it.
fn of_environment() -> Vec<(&'static str, Faults)> {
    vec![
        ("neighbour with 60 % of all cores", with(others(120.0))),
        (
            "hypervisor takes 15 %",
            counters("host.cpu_steal_percent", 15.0),
        ),
        (
            "memory pressure",
            counters("host.pressure_memory_some_percent", 8.0),
        ),
        (
            "clock set by 2 s",
            with(|record| {
                record.environment.clocks = Some(Clocks {
                    wall_end_ms: 1_032_000,
                    wall_start_ms: 1_000_000,
                    monotonic_ms: 30_000.0,
                });
            }),
        ),
        (
            "an agent's clock steps by 80 ms",
            with(|record| {
                record.environment.agents = vec![Agent {
                    bound_ms: Some(0.3),
                    apart_ms: Some(80.0),
                    ..Agent::default()
                }];
            }),
        ),
        (
            "an agent lost",
            ended(TrialEnd::AgentLost {
                message: "no word of it".to_owned(),
            }),
        ),
        (
            "counters of a third of the hold missing",
            Faults {
                sampled_to: 22_000.0,
                ..Faults::default()
            },
        ),
    ]
}

/// Returns faults of the system, which make no trial invalid unless they end it, and of the study.
fn of_system() -> Vec<(&'static str, Faults)> {
    let faults = Faults::default;
    vec![
        (
            "server takes 2 s",
            Faults {
                answer: 2_000.0,
                ..faults()
            },
        ),
        (
            "server hangs from 20 s on",
            Faults {
                hangs_from: 20_000.0,
                ..faults()
            },
        ),
        (
            "one request never answered",
            Faults {
                hangs_from: 25_000.0,
                hangs_users: 1,
                ..faults()
            },
        ),
        (
            "every 50th request fails",
            Faults {
                fails_every: 50,
                ..faults()
            },
        ),
        (
            "every 100th step finds nothing",
            Faults {
                skips_every: 100,
                ..faults()
            },
        ),
        (
            "a loop ends by its bound",
            Faults {
                cut_off: 3,
                ..faults()
            },
        ),
        (
            "idle connections closed",
            Faults {
                resent: 40,
                ..faults()
            },
        ),
        ("setup with errors", with(|record| record.setup_errors = 2)),
        (
            "system died",
            ended(TrialEnd::SystemFailed {
                message: "exit status: 1".to_owned(),
            }),
        ),
        (
            "sign-in of the users refused",
            ended(TrialEnd::PreparationFailed {
                message: "user 1: POST /login: 401".to_owned(),
                cause: PreparationCause::Study,
            }),
        ),
        (
            "abort_on passed",
            ended(TrialEnd::Aborted {
                message: "errors over 50 %".to_owned(),
            }),
        ),
    ]
}

const ARRIVALS: &str = "load: { arrival: { rate: 40/s, connections: 300 }, ramp: 6s, hold: 24s }";
const SEQUENCE: &str = "load: { sequence: { sessions: 40 }, hold: 24s }";
const STAGES: &str = "load: { stages: [{ stage: cold, users: 100, for: 12s }, { users: 100, for: 6s }, \
                      { stage: down, users: 0, over: 6s }] }";
const MIX: &str = "load: { users: 200, ramp: 6s, hold: 24s, mix: [{ population: readers, share: 3 }, \
                   { population: writers, share: 1 }] }";
const FEW: &str = "load: { users: 2, ramp: 6s, hold: 24s }";

/// Judges an artificial trial of a load that the simulated generator doesn't support.
fn made_up(fault: &'static str, load: &str, shape: Shape) -> Row {
    let line = STUDY.lines().find(|line| line.starts_with("load:"));
    let is_paced = matches!(load, MIX | FEW | STAGES);
    let made = Made {
        study: STUDY
            .replace("matrix: { users: [100, 200] }\n", "")
            .replace("published: [load.csv, steps.csv]\n", "")
            .replace(line.unwrap(), load),
        workload: match is_paced {
            true => WORKLOAD.to_owned(),
            false => WORKLOAD.replace("  pace: 6s\n", ""),
        },
        shapes: vec![shape],
        ..Made::default()
    };
    let trial = made.trials().remove(0);
    Row { fault, trial }
}

fn of_other_loads() -> Vec<Row> {
    let shape = || Shape {
        circumstances: TrialEnvironment {
            clocks: Some(Clocks::default()),
            ..TrialEnvironment::default()
        },
        ..Shape::default()
    };
    let hung = Shape {
        unanswered: Some((1, 5_000.0)),
        ..shape()
    };
    vec![
        made_up("arrivals: none", ARRIVALS, shape()),
        made_up(
            "arrivals: 3 % too few",
            ARRIVALS,
            Shape {
                began: 0.97,
                ..shape()
            },
        ),
        made_up(
            "arrivals: sessions turned away",
            ARRIVALS,
            Shape {
                turned_away: 12,
                ..shape()
            },
        ),
        made_up("sequence: cut off by its end", SEQUENCE, hung),
        made_up(
            "stages: 6 % missing in one",
            STAGES,
            Shape {
                short_stage: Some((1, 0.94)),
                ..shape()
            },
        ),
        made_up(
            "populations: 7 % missing of one",
            MIX,
            Shape {
                short_steps: Some((3..6, 0.925)),
                ..shape()
            },
        ),
        made_up("two users", FEW, shape()),
    ]
}

fn rows() -> Vec<Row> {
    let all = of_generator()
        .into_iter()
        .chain(of_environment())
        .chain(of_system());
    let mut rows = vec![Row {
        fault: "none",
        trial: paced(&Faults::default()),
    }];
    rows.extend(all.map(|(fault, faults)| Row {
        fault,
        trial: paced(&faults),
    }));
    let without_pace = [
        ("no pace: none", Faults::default()),
        (
            "no pace: server takes 500 ms",
            Faults {
                answer: 500.0,
                ..Faults::default()
            },
        ),
        (
            "no pace: every 10th request dropped",
            Faults {
                drops_every: 10,
                ..Faults::default()
            },
        ),
        (
            "no pace: waits 10 % too long",
            Faults {
                waits: 1.1,
                ..Faults::default()
            },
        ),
    ];
    rows.extend(without_pace.map(|(fault, faults)| Row {
        fault,
        trial: unpaced(&faults),
    }));
    rows.extend(of_other_loads());
    rows
}

/// Returns a line for each fault: the checks that fail, then those that warn.
fn matrix(rows: &[Row]) -> String {
    let names = |ids: Vec<CheckId>| {
        let titles: Vec<&str> = ids.into_iter().map(CheckId::title).collect();
        if titles.is_empty() {
            "–".to_owned()
        } else {
            titles.join(", ")
        }
    };
    let line = |row: &Row| {
        format!(
            "{:42} | {:60} | {}\n",
            row.fault,
            names(row.of(CheckOutcome::Invalid)),
            names(row.of(CheckOutcome::Warn))
        )
    };
    let head = format!("{:42} | {:60} | warns\n", "fault", "invalid");
    head + &rows.iter().map(line).collect::<String>()
}

#[test]
fn every_fault_is_seen_and_every_check_is_the_only_one_to_see_some_fault() {
    let rows = rows();
    let matrix = matrix(&rows);
    println!("{matrix}");
    insta::assert_snapshot!("matrix", matrix);
    let seen = |row: &Row| {
        [CheckOutcome::Invalid, CheckOutcome::Warn]
            .map(|outcome| row.of(outcome))
            .concat()
    };
    for row in &rows {
        let is_healthy = row.fault.ends_with("none") || row.fault == "no pace: server takes 500 ms";
        assert_eq!(seen(row).is_empty(), is_healthy, "{}", row.fault);
    }
    let alone: BTreeSet<CheckId> = rows
        .iter()
        .filter_map(
            |row| match (&row.of(CheckOutcome::Invalid)[..], &seen(row)[..]) {
                ([only], _) | ([], [only]) => Some(*only),
                _ => None,
            },
        )
        .collect();
    let never: Vec<&str> = CheckId::ALL
        .iter()
        .filter(|id| !alone.contains(id) && !ELSEWHERE.contains(id))
        .map(|id| id.title())
        .collect();
    assert!(never.is_empty(), "never alone: {never:?}\n{matrix}");
}

/// Checks whose faults are injected by other tests: those over several trials, that of the probe, and those of
/// a profile.
const ELSEWHERE: [CheckId; 10] = [
    CheckId::Attempt,
    CheckId::Partner,
    CheckId::SameStartingState,
    CheckId::OrderOfTrials,
    CheckId::SteadyState,
    CheckId::Probe,
    CheckId::ProfileSamples,
    CheckId::ProfileStacks,
    CheckId::ProfileNames,
    CheckId::SamplingCost,
];
