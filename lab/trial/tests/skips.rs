//! Skipped steps: which, which lists were empty, and whether users were too few.

use crate::support::{Made, Shape, check};
use lab_plan::checks::Cause;
use lab_trial::model::{CheckOutcome, TrialAnalysis, Verdict};

use CheckOutcome::{Invalid, Warn};

/// Judges trials with the first 100 users, half of whose steps are skipped.
fn skipping(workload: &str) -> TrialAnalysis {
    let shape = Shape {
        skips_every: 2,
        ..Shape::default()
    };
    let made = Made {
        workload: workload.to_owned(),
        shapes: vec![shape],
        ..Made::default()
    };
    made.trials().remove(0)
}

#[test]
fn a_step_that_is_skipped_is_named_with_the_reason() {
    let fills = "request: POST /login\n      capture: { item: request.path }\n";
    let workload = crate::support::WORKLOAD
        .replace("request: POST /login\n", fills)
        .replace("[GET /a, GET /b]", "[\"GET {{ take(item) }}\", GET /b]");
    let told = |trial: &TrialAnalysis, name: &str| {
        let found = trial.checks.iter().find(|check| check.id.title() == name);
        let found = found.unwrap();
        let why = "above all “Read” (";
        assert!(found.evidence.contains(why), "{found:?}");
        let why = "): nothing was left in `item`, which “Log in” fills";
        assert!(found.evidence.contains(why), "{found:?}");
        found.advice.clone().unwrap()
    };
    let trial = skipping(&workload);
    for name in ["delivered load", "requests"] {
        assert!(told(&trial, name).contains("Captures found nothing"));
    }
    assert_eq!(trial.cause, Some(Cause::System));
    // Too few users are the study's fault, whatever the captures.
    let few = workload.replace("workload: tiny\n", "workload: tiny\nleast_users: 500\n");
    let trial = skipping(&few);
    for name in ["delivered load", "requests", "skipped steps"] {
        let advice = told(&trial, name);
        assert!(
            advice.contains("needs 500 users (`least_users`), and the load has 100 users"),
            "{advice}"
        );
    }
    assert_eq!(trial.cause, Some(Cause::Study));
}

#[test]
fn steps_that_want_what_a_slow_server_holds_up_are_its_own_doing() {
    // Like the slow server whose trial stays valid, with one step in thirty that finds nothing to take.
    let shape = Shape {
        delivered: 0.6,
        response_us: 960_000,
        overruns: 5,
        skips_every: 30,
        ..Shape::default()
    };
    let trial = check(shape.clone(), "delivered load", Warn);
    assert_eq!(trial.verdict, Verdict::Valid, "{:#?}", trial.checks);
    let found = trial
        .checks
        .iter()
        .find(|c| c.id.title() == "requests")
        .unwrap();
    let advice = found.advice.as_ref().unwrap();
    assert!(advice.contains("came late, or not at all"), "{found:?}");
    // If no cycle takes longer for it, the captures are reported.
    let in_time = Shape {
        overruns: 0,
        ..shape
    };
    let trial = check(in_time, "delivered load", Invalid);
    let found = trial
        .checks
        .iter()
        .find(|c| c.id.title() == "requests")
        .unwrap();
    let advice = found.advice.as_ref().unwrap();
    assert!(advice.contains("Captures found nothing"), "{found:?}");
}
