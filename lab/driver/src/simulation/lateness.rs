//! Lateness: the delay that the generator's own thread causes, to the nanosecond, and nothing else.

use lab_workload::Wait;
use lab_workload::{LoadKind, Spacing};

use super::drive::workload;
use super::{Answer, drive, histogram, hold_up, ms, simulate, step};

#[test]
fn what_the_generator_is_held_up_by_is_lateness() {
    // Two users start at 0 and at 10 ms; rendering the first request takes the worker 30 ms.
    let mut drive = drive(vec![step(Wait::None, 1)]);
    workload(&mut drive).session.pace = Some(ms(60_000));
    (drive.users, drive.ramp, drive.hold) = (2, ms(20), ms(100));
    let observed = simulate(drive, |asked| {
        if asked.user == 0 {
            hold_up(ms(30));
        }
        Answer::After(ms(1))
    });
    // The second was due at 10 and was sent at 30.
    assert_eq!(observed.sends_of(1), [ms(30)]);
    assert_eq!(observed.lateness(), histogram([ms(0), ms(20)]));
    assert_eq!(observed.summary.transactions, 2);
}

#[test]
fn a_held_up_generator_makes_response_times_of_arrivals_longer_and_no_service_times() {
    let mut drive = drive(vec![step(Wait::None, 1)]);
    drive.kind = LoadKind::Arrival {
        rate_per_s: 100.0,
        spacing: Spacing::Constant,
    };
    (drive.users, drive.hold) = (50, ms(300));
    let mut first = true;
    let observed = simulate(drive, move |_| {
        if std::mem::take(&mut first) {
            hold_up(ms(95));
        }
        Answer::After(ms(2))
    });
    // The nine sessions that should have begun in those 95 ms begin late, the last by 5 ms.
    let late: Vec<u64> = (1..10).map(|n| 95 - 10 * n).collect();
    let on_time = observed.times(0).len() - 10;
    let lateness = late.iter().copied().chain(vec![0; 1 + on_time as usize]);
    assert_eq!(observed.lateness(), histogram(lateness.map(ms)));
    let response = late.iter().map(|late| ms(late + 2));
    let quick = vec![ms(2); on_time as usize];
    assert_eq!(
        observed.times(0),
        histogram(response.chain([ms(95)]).chain(quick.clone()))
    );
    let service = observed.sum(0, |step| &step.times.service);
    assert_eq!(
        service,
        histogram(vec![ms(2); 9].into_iter().chain([ms(95)]).chain(quick))
    );
}

#[test]
fn a_window_that_is_handed_over_late_says_so_and_keeps_its_end() {
    let mut drive = drive(vec![step(Wait::Constant(ms(15)), 1)]);
    workload(&mut drive).session.pace = Some(ms(60_000));
    (drive.hold, drive.window) = (ms(50), ms(10));
    // From 15 on the worker is blocked for 17 ms.
    let observed = simulate(drive, |_| {
        hold_up(ms(17));
        Answer::After(ms(20))
    });
    let ends = |of: fn(&lab_recorder::event::Window) -> std::time::Duration| {
        observed.windows.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(ends(|window| window.end), [10, 20, 30, 40, 50].map(ms));
    assert_eq!(
        ends(|window| window.handed_over),
        [10, 32, 32, 40, 50].map(ms)
    );
}

#[test]
fn an_answer_that_a_late_worker_sees_after_the_end_is_none() {
    let mut drive = drive(vec![step(Wait::Constant(ms(10)), 1), step(Wait::None, 1)]);
    (drive.users, drive.hold) = (2, ms(40));
    // User 1's first response is due at 30; the worker reads it only at 60.
    let observed = simulate(drive, |asked| {
        if asked.user == 0 {
            hold_up(ms(50));
        }
        Answer::After(ms(20))
    });
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (0, 0)
    );
    assert_eq!(observed.summary.elapsed, ms(40));
}
