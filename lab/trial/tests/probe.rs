//! The probe's times don't include requests without a response.

use crate::support::{Made, Shape, WORKLOAD};
use lab_trial::model::{Check, CheckOutcome::Warn};

/// Returns the check of a probe with responses until `until_ms`, except for every n-th request.
fn told(until_ms: u64, fails_every: u64) -> Option<Check> {
    told_of("1s", until_ms, fails_every)
}

fn told_of(every: &str, until_ms: u64, fails_every: u64) -> Option<Check> {
    let made = Made {
        workload: format!("{WORKLOAD}probe: {{ every: {every}, request: GET /health }}\n"),
        shapes: vec![Shape {
            probe: Some((until_ms, fails_every)),
            ..Shape::default()
        }],
        ..Made::default()
    };
    let mut trial = made.trials().remove(0);
    let at = trial
        .checks
        .iter()
        .position(|one| one.id.title() == "probe")?;
    Some(trial.checks.remove(at))
}

#[test]
fn a_probe_that_is_answered_to_the_end_is_not_spoken_of() {
    assert_eq!(told(u64::MAX, 0), None);
    // The next response may take a little.
    assert_eq!(told(29_000, 0), None);
    // The trial ends before it is sent.
    assert_eq!(told_of("1m", 0, 0), None);
}

#[test]
fn a_probe_that_fails_or_hangs_is_a_warning() {
    let said = |until_ms, fails_every| {
        let check = told(until_ms, fails_every).expect("a check");
        assert_eq!(check.outcome, Warn, "{check:#?}");
        check.evidence
    };
    assert_eq!(said(u64::MAX, 10), "31 of 313 requests failed (9.90 %)");
    assert_eq!(said(20_000, 0), "no answer in the last 10.1 s");
    assert_eq!(
        said(20_000, 10),
        "20 of 208 requests failed (9.62 %); no answer in the last 10.1 s"
    );
    assert_eq!(said(0, 0), "it was never answered");
}
