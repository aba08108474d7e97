//! The end of a trial is exclusive: requests due then are not sent, as in the plan.

use lab_prediction::predict;
use lab_workload::{LoadKind, LoadSpec, Retry, Spacing, Wait};
use proptest::prelude::*;

use super::drive::{probe, workload};
use super::{Answer, Observed, drive, histogram, ms, simulate, step};
use crate::assignment::Assignment;
use lab_client::ErrorClass;

/// Returns sessions of one wait and this number of requests.
fn waiting(wait: u64, requests: usize) -> Assignment {
    drive(vec![step(Wait::Constant(ms(wait)), requests)])
}

fn load(drive: &Assignment) -> LoadSpec {
    LoadSpec {
        kind: drive.kind,
        ..LoadSpec::of_users(drive.users, drive.hold.as_millis() as u64, 10)
    }
}

/// Returns the planned number of requests to a server that responds at once.
fn planned(drive: &Assignment) -> f64 {
    let plan = predict(
        &drive.workload,
        drive.seed,
        drive.block,
        &load(drive),
        1_000_000,
    );
    plan.expect("it can be foretold").transactions
}

/// Returns true if no request was sent at the end or later, and each sent request is reported once.
fn is_told_of(observed: &Observed, hold: std::time::Duration) -> bool {
    let left = observed.last().unanswered().0;
    let sum = &observed.summary;
    let in_time = observed.sent.iter().all(|asked| asked.at < hold);
    in_time && observed.sent.len() as u64 == sum.transactions + sum.errors + left
}

#[test]
fn nothing_that_is_due_at_the_end_is_sent() {
    // Requests follow each other without a wait; each response takes a tenth of the trial.
    let alone = || Assignment {
        hold: ms(100),
        ..drive(vec![step(Wait::None, 1)])
    };
    let observed = simulate(alone(), |_| Answer::After(ms(10)));
    assert_eq!(observed.sends_of(0).last(), Some(&ms(90)));
    assert!(is_told_of(&observed, ms(100)));
    // A failed request is due again at the end.
    let mut trying = alone();
    workload(&mut trying).session.steps[0].retry = Some(Retry::new(50, Wait::Constant(ms(10))));
    let observed = simulate(trying, |_| Answer::Fails(ErrorClass::Status, ms(0)));
    assert_eq!(observed.sends_of(0).last(), Some(&ms(90)));
    // All its attempts belong to one request, which has no outcome at the end.
    assert_eq!((observed.sent.len(), observed.summary.errors), (10, 0));
    assert_eq!(*observed.unanswered(0), histogram([ms(100)]));
    // The probe is due at the end.
    let mut probed = waiting(7, 1);
    (probed.hold, workload(&mut probed).probe) = (ms(100), probe(ms(20)));
    let observed = simulate(probed, |_| Answer::After(ms(0)));
    assert_eq!(observed.summary.probe_transactions, 4);
    assert!(observed.sent.iter().all(|asked| asked.at < ms(100)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn users_who_are_due_at_the_end_send_what_the_plan_says(
        (wait, rounds) in (1u64..20, 1u64..12),
        requests in 1usize..3,
        users in 1u32..5,
        pace in proptest::option::of(1u64..40),
        past in prop_oneof![Just(0u64), Just(1)],
        workers in 1usize..3,
    ) {
        let mut drive = waiting(wait, requests);
        workload(&mut drive).session.pace = pace.map(ms);
        let cycle = pace.map_or(wait, |pace| pace.max(wait));
        // The last request is due exactly at the end, or 1 ms before.
        drive.hold = ms((rounds - 1) * cycle + wait + past);
        (drive.users, drive.cores) = (users, (0..workers).collect());
        let (plan, hold) = (planned(&drive), drive.hold);
        let observed = simulate(drive, |_| Answer::After(ms(0)));
        prop_assert_eq!(observed.sent.len() as f64, plan);
        prop_assert_eq!(observed.summary.transactions as f64, plan);
        prop_assert!(is_told_of(&observed, hold));
    }

    #[test]
    fn sessions_that_are_due_at_the_end_do_not_arrive(
        apart in prop_oneof![Just(2u64), Just(4), Just(5), Just(10), Just(20)],
        count in 1u64..20,
        wait in 0u64..12,
        workers in 1usize..3,
    ) {
        let mut drive = waiting(wait, 1);
        drive.kind = LoadKind::Arrival {
            rate_per_s: 1000.0 / apart as f64,
            spacing: Spacing::Constant,
        };
        (drive.hold, drive.users) = (ms(apart * count), 40);
        drive.cores = (0..workers).collect();
        let (plan, hold) = (planned(&drive), drive.hold);
        let observed = simulate(drive, |_| Answer::After(ms(0)));
        prop_assert_eq!(observed.summary.arrived, count);
        prop_assert_eq!(observed.sent.len() as f64, plan);
        prop_assert!(is_told_of(&observed, hold));
    }

    #[test]
    fn what_is_answered_at_the_end_is_told_of_as_unanswered(
        (wait, took) in (1u64..20, 1u64..30),
        rounds in 1u64..8,
        users in 1u32..5,
    ) {
        let mut drive = waiting(wait, 1);
        (drive.users, drive.hold) = (users, ms(rounds * (wait + took)));
        let hold = drive.hold;
        let observed = simulate(drive, move |_| Answer::After(ms(took)));
        prop_assert_eq!(observed.summary.transactions, (rounds - 1) * u64::from(users));
        prop_assert_eq!(observed.last().unanswered().0, u64::from(users));
        prop_assert!(is_told_of(&observed, hold));
    }
}
