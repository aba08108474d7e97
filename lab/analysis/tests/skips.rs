//! Steps that were skipped: which, for want of what, and for want of users.

use crate::support::{Made, Shape};
use lab_analysis::model::TrialAnalysis;
use lab_plan::checks::Cause;

/// Of trials with the first 100 users, half of whose steps are skipped.
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
    made.analysis().trials.remove(0)
}

#[test]
fn a_step_that_is_skipped_is_named_with_the_reason() {
    let fills = "request: POST /login\n      capture: { item: request.path }\n";
    let workload = crate::support::WORKLOAD
        .replace("request: POST /login\n", fills)
        .replace("[GET /a, GET /b]", "[\"GET {{ take(item) }}\", GET /b]");
    let told = |trial: &TrialAnalysis, name: &str| {
        let found = trial.checks.iter().find(|check| check.name == name);
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
    // Too few users are the study's fault, whatever the captures found.
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
