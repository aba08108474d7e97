//! Users who wait for responses send less than a plan that can't know how long they wait.

use crate::support::{Shape, check};
use lab_trial::model::CheckOutcome::{Invalid, Pass, Warn};

#[test]
fn users_who_wait_a_little_for_answers_are_no_slow_server() {
    // A cycle of 6 s includes 1 + 2 × 2 + 3 times 40 ms of responses: 5.3 %.
    let waits = |delivered, overruns| Shape {
        delivered,
        overruns,
        response_us: 40_000,
        ..Shape::default()
    };
    let trial = check(waits(0.95, 0), "delivered load", Pass);
    assert_eq!(trial.part_of_load(), None);
    let judged = trial
        .checks
        .iter()
        .find(|c| c.id.title() == "requests")
        .unwrap();
    assert_eq!(judged.outcome, Pass, "{judged:#?}");
    // If a pace was missed, the server was too slow for it; and load not explained by waiting is lost.
    check(waits(0.95, 5), "delivered load", Warn);
    check(waits(0.9, 0), "delivered load", Invalid);
    // If users wait for most of their time, the server is slow.
    let slow = Shape {
        delivered: 0.85,
        response_us: 130_000,
        ..Shape::default()
    };
    check(slow, "delivered load", Warn);
}
