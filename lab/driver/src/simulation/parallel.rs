//! Parallel requests: their send times, their response times, and the step's time.

use std::ops::Range;
use std::time::Duration;

use lab_client::ErrorClass;
use lab_counts::TransactionWindow;
use lab_workload::{LoadKind, Parallel, Retry, Round, Step, Transaction, Wait};

use super::drive::workload;
use super::{Answer, Observed, Received, drive, histogram, ms, simulate, step};
use crate::assignment::Assignment;

/// Returns one session of a page with `before` requests before its pictures, which `names` steps count.
fn page(before: usize, pictures: usize, names: usize, at_once: u32) -> Assignment {
    let page = Step {
        parallel: Some(Box::new(Parallel {
            first: before,
            at_once: Some(at_once),
            stops: false,
            counts_as: (0..pictures)
                .map(|n| if n < names { n + 1 } else { 0 })
                .collect(),
            each: None,
        })),
        ..step(Wait::None, before + pictures)
    };
    let named = (0..names).map(|_| step(Wait::None, 0));
    let mut steps = vec![page];
    steps.extend(named);
    steps.push(step(Wait::None, 1));
    let mut drive = drive(steps);
    drive.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    workload(&mut drive).session.transactions = vec![Transaction {
        name: "Page".to_owned(),
        steps: 0..1,
        each: Round::Step,
    }];
    drive
}

fn parallel(drive: &mut Assignment) -> &mut Parallel {
    let step = &mut workload(drive).session.steps[0];
    step.parallel.as_mut().unwrap()
}

/// Returns the page's transaction over all windows; the session is the first.
fn of_page(observed: &Observed) -> TransactionWindow {
    let mut sum = TransactionWindow::default();
    for one in observed
        .windows
        .iter()
        .filter_map(|window| window.transactions.get(1))
    {
        sum += one;
    }
    sum
}

/// Returns the send times of requests with these numbers.
fn sends(observed: &Observed, requests: Range<u32>) -> Vec<Duration> {
    let of = observed
        .sent
        .iter()
        .filter(|asked| requests.contains(&asked.request));
    of.map(|asked| asked.at).collect()
}

fn takes(each: u64) -> impl FnMut(Received) -> Answer {
    move |_| Answer::After(ms(each))
}

#[test]
fn six_answers_of_10_ms_take_10_ms() {
    let observed = simulate(page(0, 6, 0, 6), takes(10));
    assert_eq!(sends(&observed, 0..6), [ms(0); 6]);
    assert_eq!(observed.times(0), histogram([ms(10); 6]));
    assert_eq!(of_page(&observed).time, histogram([ms(10)]));
    assert_eq!(
        sends(&observed, 6..7),
        [ms(10)],
        "the next step follows the last of them"
    );
}

#[test]
fn six_are_under_way_at_once_unless_the_workload_says() {
    let mut unsaid = page(0, 8, 0, 1);
    parallel(&mut unsaid).at_once = None;
    let observed = simulate(unsaid, takes(10));
    assert_eq!(sends(&observed, 0..8), [0, 0, 0, 0, 0, 0, 10, 10].map(ms));
}

#[test]
fn who_waits_for_a_turn_has_its_time_from_when_all_were_due() {
    let observed = simulate(page(1, 6, 0, 2), takes(10));
    let turns = [10, 10, 20, 20, 30, 30].map(ms);
    assert_eq!(sends(&observed, 1..7), turns);
    // The page's own request, then two that don't wait, and four that do.
    let times = [10, 10, 10, 20, 20, 30, 30].map(ms);
    assert_eq!(observed.times(0), histogram(times));
    assert_eq!(of_page(&observed).time, histogram([ms(40)]));
    let blocked = observed.sum(0, |step| &step.times.phases[3]);
    let waited = blocked
        .iter_recorded()
        .map(|one| (one.value_iterated_to() + 500) / 1_000);
    assert_eq!(
        waited.collect::<Vec<_>>(),
        [10, 20],
        "and the wait for the turn is told"
    );
    assert_eq!(observed.lateness().max(), 1, "no turn is late");
    let service = observed.sum(0, |step| &step.times.service);
    assert!(
        service.is_empty(),
        "without a plan a response time is none beside a service time"
    );
}

#[test]
fn each_counts_as_the_step_of_its_name() {
    let observed = simulate(page(1, 3, 2, 6), |asked| {
        Answer::After(ms(1 + u64::from(asked.request)))
    });
    assert_eq!(observed.times(0), histogram([1, 4].map(ms)));
    assert_eq!(observed.times(1), histogram([ms(2)]));
    assert_eq!(observed.times(2), histogram([ms(3)]));
    assert_eq!(
        observed.times(3),
        histogram([ms(5)]),
        "the step behind them is the fourth"
    );
    assert_eq!(observed.summary.cycles, 1);
}

#[test]
fn the_others_go_on_after_a_failure_unless_it_stops_them() {
    let server = |asked: Received| match asked.request {
        1 => Answer::Fails(ErrorClass::Status, ms(5)),
        _ => Answer::After(ms(10)),
    };
    let observed = simulate(page(0, 6, 0, 2), server);
    assert_eq!(sends(&observed, 0..6).len(), 6);
    assert_eq!(
        observed.forgotten.len(),
        6,
        "what they captured before is none of this round's"
    );
    let page_counts = of_page(&observed).counts;
    assert_eq!(
        (page_counts.ok, page_counts.errors[ErrorClass::Status]),
        (0, 1)
    );

    let mut stopping = page(0, 6, 0, 2);
    parallel(&mut stopping).stops = true;
    let observed = simulate(stopping, server);
    assert_eq!(sends(&observed, 0..6), [ms(0), ms(0)]);
    assert_eq!(
        sends(&observed, 6..7),
        [ms(10)],
        "the one under way is awaited"
    );
}

#[test]
fn a_failed_one_is_sent_again_by_itself() {
    let mut retrying = page(0, 3, 0, 3);
    workload(&mut retrying).session.steps[0].retry = Some(Retry::new(2, Wait::Constant(ms(20))));
    let mut failures = 1;
    let observed = simulate(retrying, move |asked| match asked.request {
        1 if failures > 0 => {
            failures -= 1;
            Answer::Fails(ErrorClass::Status, ms(2))
        }
        _ => Answer::After(ms(2)),
    });
    assert_eq!(sends(&observed, 0..3), [0, 0, 0, 22].map(ms));
    assert_eq!(observed.times(0), histogram([2, 24, 2].map(ms)));
    assert_eq!(of_page(&observed).time, histogram([ms(24)]));
}

#[test]
fn those_that_nobody_answers_have_their_step_and_age_at_the_end() {
    let mut silent = page(0, 3, 2, 3);
    (silent.kind, silent.hold) = (LoadKind::Users, ms(100));
    let observed = simulate(silent, |asked| match asked.request {
        0 => Answer::After(ms(10)),
        _ => Answer::Never,
    });
    assert_eq!(observed.times(1), histogram([ms(10)]));
    assert_eq!(*observed.unanswered(2), histogram([ms(100)]));
    assert_eq!(*observed.unanswered(0), histogram([ms(100)]));
    assert_eq!(of_page(&observed).unfinished_time, histogram([ms(100)]));
}

#[test]
fn those_that_wait_for_a_turn_at_the_end_are_unanswered() {
    let mut silent = page(0, 6, 0, 2);
    (silent.kind, silent.hold) = (LoadKind::Users, ms(100));
    let observed = simulate(silent, |asked| match asked.request {
        0 => Answer::Fails(ErrorClass::Status, ms(10)),
        _ => Answer::Never,
    });
    // Two are in progress, and three have waited for a slot since all were due.
    assert_eq!(observed.unanswered(0).len(), 5);
    assert_eq!(observed.unanswered(0).max(), histogram([ms(100)]).max());
    let counts = of_page(&observed).counts;
    assert_eq!(
        (counts.errors[ErrorClass::Status], counts.unanswered),
        (1, 0)
    );
}

#[test]
fn a_user_who_leaves_awaits_those_under_way_and_begins_no_more() {
    let mut leaving = page(0, 6, 0, 2);
    (leaving.kind, leaving.hold) = (LoadKind::Users, ms(100));
    let stage = |level, length_ms| lab_workload::Stage {
        name: String::new(),
        from: level,
        to: level,
        length_ms,
    };
    leaving.stages = vec![stage(1.0, 15), stage(0.0, 85)];
    let observed = simulate(leaving, takes(10));
    assert_eq!(sends(&observed, 0..6), [0, 0, 10, 10].map(ms));
    assert_eq!(observed.count(|step| step.counts.ok), 4);
    assert_eq!(of_page(&observed).counts.unanswered, 1);
}

#[test]
fn what_has_nothing_to_be_sent_for_is_skipped_alone() {
    let observed = simulate(page(0, 3, 0, 3), |asked| match asked.request {
        1 => Answer::Skipped,
        _ => Answer::After(ms(10)),
    });
    assert_eq!(observed.times(0), histogram([ms(10), ms(10)]));
    assert_eq!(observed.count(|step| step.counts.skipped), 1);
    assert_eq!(of_page(&observed).counts.skipped, 1);
}

#[test]
fn sessions_that_arrive_count_from_their_plan() {
    let mut arriving = page(0, 2, 0, 2);
    arriving.kind = LoadKind::Arrival {
        rate_per_s: 20.0,
        spacing: lab_workload::Spacing::Constant,
    };
    // One connection for sessions of 50 + 50 ms, twice as many as it can serve.
    arriving.hold = ms(500);
    let observed = simulate(arriving, takes(50));
    let page = of_page(&observed);
    assert!(
        page.time.max() > 200_000,
        "the wait for a connection counts"
    );
    assert_eq!(page.time.max(), observed.times(0).max());
}
