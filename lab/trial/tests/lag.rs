//! The generator's own delay, compared with the service time that it measures.

use crate::support::{Made, STUDY, Shape, WORKLOAD};
use lab_trial::model::{Check, CheckOutcome, TrialAnalysis};

fn check<'a>(trial: &'a TrialAnalysis, name: &str) -> Option<&'a Check> {
    trial.checks.iter().find(|check| check.id.title() == name)
}

/// Responses take 40 ms in the first step, and two and three times as long in the others.
fn lagging(loop_lag_us: Option<u64>) -> TrialAnalysis {
    let shape = Shape {
        response_us: 40_000,
        loop_lag_us,
        ..Shape::default()
    };
    Made::both(&shape).trials()[0].clone()
}

#[test]
fn what_reading_late_adds_to_service_times_is_judged() {
    assert_eq!(
        check(&lagging(None), "loop lag"),
        None,
        "archives without it"
    );
    for (lag_us, outcome) in [
        (200, CheckOutcome::Pass),
        (1_000, CheckOutcome::Pass),
        (7_000, CheckOutcome::Pass),
        (12_000, CheckOutcome::Warn),
        (130_000, CheckOutcome::Invalid),
    ] {
        let trial = lagging(Some(lag_us));
        let found = check(&trial, "loop lag").unwrap();
        assert_eq!(found.outcome, outcome, "{lag_us} us: {found:?}");
        let told = trial.loop_lag_ms.unwrap();
        assert!((told.p99.unwrap() * 1000.0 - lag_us as f64).abs() <= lag_us as f64 / 500.0);
    }
}

#[test]
fn what_any_loop_needs_to_wake_up_is_not_held_against_it() {
    let quick = |lag_us| {
        let shape = Shape {
            response_us: 100,
            loop_lag_us: Some(lag_us),
            ..Shape::default()
        };
        let trial = Made::both(&shape).trials()[0].clone();
        check(&trial, "loop lag").unwrap().clone()
    };
    assert_eq!(quick(100).outcome, CheckOutcome::Pass);
    assert_eq!(quick(500).outcome, CheckOutcome::Warn);
    let longest = quick(9_000);
    assert_eq!(longest.outcome, CheckOutcome::Invalid);
    let told = "which made up 100 % of the mean, 100 % of the p50";
    assert!(longest.evidence.contains(told), "{}", longest.evidence);
}

/// Changes the load to arriving sessions.
fn arriving(made: Made) -> Made {
    let study = STUDY
        .replace(
            "users: \"{{ users }}\", ramp: 6s, hold: 4 cycles",
            "arrival: { rate: 20/s, connections: \"{{ users }}\" }, ramp: 6s, hold: 24s",
        )
        .replace("published: [load.csv, steps.csv]\n", "");
    Made {
        study,
        workload: WORKLOAD.replace("  pace: 6s\n", ""),
        ..made
    }
}

/// With think times, a late send is in no response time; with arrivals it is in every one.
#[test]
fn lateness_of_arrivals_is_judged_by_the_service_time() {
    let late = |late_us, arrives: bool| {
        let shape = Shape {
            response_us: 2_000,
            service: arrives.then_some(0.9),
            late_us,
            ..Shape::default()
        };
        let mut made = Made::both(&shape);
        if arrives {
            made = arriving(made);
        }
        let trial = made.trials()[0].clone();
        check(&trial, "lateness of sends").unwrap().outcome
    };
    assert_eq!(late(900, true), CheckOutcome::Pass);
    assert_eq!(late(2_000, true), CheckOutcome::Warn);
    assert_eq!(late(6_000, true), CheckOutcome::Invalid);
    assert_eq!(late(6_000, false), CheckOutcome::Pass);
}
