//! Unknown results of a trial: requests without a response, a generator without the kernel's times.

use crate::support::{Made, Shape, check, trial};
use lab_trial::model::CheckOutcome::{Invalid, NotJudged, Pass, Warn};
use lab_trial::model::Verdict;

#[test]
fn unanswered_requests() {
    let name = "unanswered at the end";
    let left = |unanswered| Shape {
        unanswered,
        ..Shape::default()
    };
    check(left(None), name, NotJudged);
    check(left(Some((0, 0.0))), name, Pass);
    check(left(Some((40, 900.0))), name, Pass);
    let stuck = check(left(Some((20, 31_200.0))), name, Warn);
    let found = stuck.checks.iter().find(|c| c.id.title() == name).unwrap();
    assert_eq!(
        found.evidence,
        "20 requests were still unanswered, the oldest for 31.2 s: response times leave them out (warns beyond 1000 ms)"
    );
    // 20 are fewer than the 5 % that p(95) allows, also of the rest after the warm-up.
    assert!(stuck.thresholds[0].holds, "{:?}", stuck.thresholds);
    // For a slow server, two seconds are normal.
    let slow = Shape {
        response_us: 80_000,
        ..left(Some((40, 2_000.0)))
    };
    check(slow, name, Pass);
}

#[test]
fn unanswered_requests_count_as_slower_than_a_limit_they_outlast() {
    let left = |count, oldest_ms| {
        trial(Shape {
            unanswered: Some((count, oldest_ms)),
            ..Shape::default()
        })
    };
    let stuck = left(200, 31_200.0);
    let threshold = &stuck.thresholds[0];
    assert!(!threshold.holds && threshold.beyond);
    let reason = threshold.reason.as_ref().unwrap();
    assert!(reason.contains("200 have no response"), "{threshold:?}");
    assert!(stuck.thresholds[1].holds, "an error rate is no time");
    let usual = left(200, 10.0);
    assert!(
        usual.thresholds[0].holds,
        "as old as usual: {:?}",
        usual.thresholds[0]
    );
    assert!(left(20, 31_200.0).thresholds[0].holds, "fewer than 5 %");
}

#[test]
fn unanswered_requests_count_in_an_average_as_long_as_they_took() {
    let left = |count, oldest_ms| {
        let made = Made {
            shapes: vec![Shape {
                unanswered: Some((count, oldest_ms)),
                ..Shape::default()
            }],
            overrides: vec![(
                "thresholds.response_time".to_owned(),
                "[\"avg < 100ms\"]".to_owned(),
            )],
            ..Made::default()
        };
        let trial = made.trials().remove(0);
        let threshold = &trial.thresholds[0];
        assert_eq!(threshold.holds, threshold.value.unwrap() < 100.0);
        threshold.holds
    };
    assert!(left(40, 90.0), "younger than 100 ms");
    assert!(left(1, 31_200.0), "one of some thousands");
    assert!(!left(100, 31_200.0));
}

#[test]
fn an_unknown_generator_is_no_healthy_one() {
    let unknown = Shape {
        scheduling: false,
        ..Shape::default()
    };
    for name in ["run-queue delay", "generator CPU"] {
        let trial = check(unknown.clone(), name, Warn);
        let found = trial.checks.iter().find(|c| c.id.title() == name).unwrap();
        assert!(found.evidence.starts_with("not judged: "), "{found:?}");
        assert_eq!(trial.verdict, Verdict::Valid);
    }
    let slow = Shape {
        delivered: 0.6,
        response_us: 500_000,
        ..unknown
    };
    check(slow, "delivered load", Invalid);
}
