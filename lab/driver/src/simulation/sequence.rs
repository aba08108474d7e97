//! A fixed number of sessions, one after the other: the end of the load, and the sessions' times.

use lab_workload::LoadKind;
use lab_workload::Wait;

use super::drive::{probe, workload};
use super::{Answer, Observed, drive, histogram, ms, simulate, step};
use crate::assignment::Assignment;
use lab_client::ErrorClass;
use lab_counts::Hist;

fn sequence(mut drive: Assignment, sessions: u32) -> Assignment {
    drive.kind = LoadKind::Sequence {
        sessions,
        shared: false,
    };
    drive
}

fn sessions(observed: &Observed) -> Hist {
    let mut sum = Hist::default();
    for window in &observed.windows {
        sum.add(&window.sessions).unwrap();
    }
    sum
}

#[test]
fn a_sequence_ends_with_its_last_session() {
    let steps = vec![step(Wait::None, 1), step(Wait::Constant(ms(1)), 1)];
    let mut drive = sequence(drive(steps), 7);
    workload(&mut drive).probe = probe(ms(10));
    drive.cores = vec![0, 1];
    let observed = simulate(drive, |_| Answer::After(ms(2)));
    let sum = &observed.summary;
    assert_eq!(
        (sum.cycles, sum.transactions, sum.stopped_early),
        (7, 14, false)
    );
    // Each session takes 2 + 1 + 2 ms.
    assert_eq!(sum.elapsed, ms(35));
    assert_eq!(sessions(&observed), histogram([ms(5); 7]));
    let service = observed.sum(0, |step| &step.times.service).len();
    assert_eq!(service, 0, "in a closed loop both times are the same");
    // At 10, 20, and 30.
    assert_eq!((sum.probe_transactions, observed.times(2).len()), (3, 3));
}

#[test]
fn each_user_of_a_sequence_has_its_sessions() {
    let mut drive = sequence(drive(vec![step(Wait::None, 1)]), 4);
    drive.users = 3;
    drive.cores = vec![0, 1];
    // The second user's requests take three times as long.
    let observed = simulate(drive, |asked| match asked.user {
        1 => Answer::After(ms(6)),
        _ => Answer::After(ms(2)),
    });
    let sum = &observed.summary;
    assert_eq!((sum.cycles, sum.transactions), (12, 12));
    assert_eq!(sum.elapsed, ms(24), "the load ends with the last user");
    let expected = [ms(2); 8].into_iter().chain([ms(6); 4]);
    assert_eq!(sessions(&observed), histogram(expected));
}

#[test]
fn users_share_the_sessions_of_a_sequence() {
    let mut drive = sequence(drive(vec![step(Wait::None, 1)]), 8);
    drive.kind = LoadKind::Sequence {
        sessions: 8,
        shared: true,
    };
    drive.users = 3;
    let observed = simulate(drive, |asked| match asked.user {
        1 => Answer::After(ms(6)),
        _ => Answer::After(ms(2)),
    });
    // By 6 ms the others have run three each, and the last one is the second user's own.
    let sum = &observed.summary;
    assert_eq!((sum.cycles, sum.transactions, sum.elapsed), (8, 8, ms(8)));
    let expected = [ms(2); 7].into_iter().chain([ms(6); 1]);
    assert_eq!(sessions(&observed), histogram(expected));
}

#[test]
fn a_session_in_which_a_request_failed_has_no_time() {
    let steps = vec![step(Wait::None, 1), step(Wait::None, 1)];
    let observed = simulate(sequence(drive(steps), 3), |asked| match asked.request {
        0 => Answer::Fails(ErrorClass::Status, ms(1)),
        _ => Answer::After(ms(1)),
    });
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (3, 3)
    );
    assert!(sessions(&observed).is_empty());
}

#[test]
fn the_pause_after_a_failure_is_in_no_sessions_time() {
    let mut drive = sequence(drive(vec![step(Wait::None, 1)]), 3);
    drive.hold = ms(60_000);
    drive.limits.failure_pause = ms(2_000);
    let observed = simulate(drive, |asked| match asked.at.is_zero() {
        true => Answer::Fails(ErrorClass::Reset, ms(4)),
        false => Answer::After(ms(3)),
    });
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (2, 1)
    );
    // A single failure causes no pause.
    assert_eq!(observed.sends_of(0), [0, 4, 7].map(ms));
    assert_eq!(sessions(&observed), histogram([ms(3); 2]));
}

#[test]
fn a_sequence_that_takes_too_long_is_cut() {
    let mut drive = sequence(drive(vec![step(Wait::None, 1)]), 1000);
    drive.hold = ms(210);
    let observed = simulate(drive, |_| Answer::After(ms(20)));
    let sum = &observed.summary;
    assert_eq!((sum.transactions, sum.stopped_early), (10, false));
    assert_eq!(sum.elapsed, ms(210));
}

#[test]
fn a_step_that_takes_too_long_is_not_repeated() {
    for (ends_step, asked) in [(true, 2), (false, 6)] {
        let steps = vec![step(Wait::None, 1), step(Wait::None, 1)];
        let mut drive = sequence(drive(steps), 2);
        for step in &mut workload(&mut drive).session.steps {
            step.repeat = 3;
        }
        drive.hold = ms(60_000);
        drive.limits.failure_pause = ms(5);
        drive.limits.timeout_ends_step = ends_step;
        let observed = simulate(drive, |asked| match asked.request {
            0 => Answer::After(ms(1)),
            _ => Answer::Fails(ErrorClass::Timeout, ms(50)),
        });
        assert_eq!(observed.summary.cycles, 2);
        assert_eq!(observed.summary.transactions, 6, "all of the first step");
        assert_eq!(
            (observed.summary.errors, observed.summary.skipped),
            (asked, 0)
        );
        // The third failure in a row causes a pause before the second session; none follows the last one.
        let pauses = u64::from(!ends_step);
        assert_eq!(observed.summary.elapsed, ms(6 + 50 * asked + 5 * pauses));
        assert_eq!(observed.count(|step| step.counts.pauses), pauses);
    }
}
