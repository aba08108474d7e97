//! Transactions: their times, their failures, and those that don't end.

use std::ops::Range;
use std::time::Duration;

use lab_client::ErrorClass;
use lab_counts::TransactionWindow;
use lab_workload::{LoadKind, Retry, Round, Transaction, Wait};

use super::drive::workload;
use super::{Answer, Observed, drive, histogram, ms, simulate, step};
use crate::assignment::Assignment;

const THINKS: Wait = Wait::Constant(Duration::from_millis(10));

fn transaction(drive: &mut Assignment, name: &str, steps: Range<usize>) {
    let name = name.to_owned();
    let all = &mut workload(drive).session.transactions;
    all.push(Transaction {
        name,
        steps,
        each: Round::Session,
    });
}

/// Returns a transaction over all windows; the session is the first.
fn sum(observed: &Observed, place: usize) -> TransactionWindow {
    let mut sum = TransactionWindow::default();
    for window in &observed.windows {
        if let Some(one) = window.transactions.get(place) {
            sum += one;
        }
    }
    sum
}

/// Returns four steps with 10 ms of think time before each, the two in the middle a transaction.
fn shop() -> Assignment {
    let mut drive = drive((0..4).map(|_| step(THINKS, 1)).collect());
    transaction(&mut drive, "Checkout", 1..3);
    drive
}

#[test]
fn times_are_exact_and_leave_think_times_out() {
    let mut shop = shop();
    shop.kind = LoadKind::Sequence {
        sessions: 5,
        shared: false,
    };
    let observed = simulate(shop, |_| Answer::After(ms(3)));
    let (session, checkout) = (sum(&observed, 0), sum(&observed, 1));
    assert_eq!((session.counts.ok, checkout.counts.ok), (5, 5));
    assert_eq!(session.time, histogram([ms(12); 5]));
    assert_eq!(session.elapsed, histogram([ms(42); 5]));
    assert_eq!(checkout.time, histogram([ms(6); 5]));
    assert_eq!(checkout.elapsed, histogram([ms(16); 5]));
}

#[test]
fn inner_transactions_are_parts_of_outer_ones() {
    let mut shop = shop();
    shop.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    workload(&mut shop).session.transactions.clear();
    transaction(&mut shop, "Visit", 0..3);
    transaction(&mut shop, "Checkout", 1..3);
    transaction(&mut shop, "Pay", 2..3);
    let observed = simulate(shop, |asked| {
        Answer::After(ms(1 + u64::from(asked.request)))
    });
    let times = [0, 1, 2, 3].map(|place| sum(&observed, place).time);
    let expected = [1 + 2 + 3 + 4, 1 + 2 + 3, 2 + 3, 3];
    assert_eq!(times, expected.map(|took| histogram([ms(took)])));
}

#[test]
fn a_failed_request_fails_what_it_is_a_part_of_and_nothing_else() {
    let mut shop = shop();
    shop.kind = LoadKind::Sequence {
        sessions: 3,
        shared: false,
    };
    let observed = simulate(shop, |asked| match asked.request {
        3 => Answer::Fails(ErrorClass::Status, ms(1)),
        _ => Answer::After(ms(1)),
    });
    let (session, checkout) = (sum(&observed, 0), sum(&observed, 1));
    assert_eq!((checkout.counts.ok, checkout.counts.failed()), (3, 0));
    assert_eq!(session.counts.errors[ErrorClass::Status], 3);
    assert!(session.time.is_empty() && session.elapsed.is_empty());
}

#[test]
fn waits_for_a_retry_are_a_part_of_the_time() {
    let mut shop = shop();
    shop.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    workload(&mut shop).session.steps[1].retry = Some(Retry::new(1, Wait::Constant(ms(20))));
    let mut failures = 1;
    let observed = simulate(shop, move |asked| match asked.request {
        1 if failures > 0 => {
            failures -= 1;
            Answer::Fails(ErrorClass::Status, ms(2))
        }
        _ => Answer::After(ms(2)),
    });
    let checkout = sum(&observed, 1);
    assert_eq!(checkout.time, histogram([ms(2 + 20 + 2 + 2)]));
    assert_eq!(checkout.counts.failed(), 0);
}

#[test]
fn what_is_under_way_at_the_end_has_its_time_so_far() {
    let mut shop = shop();
    // 10 ms of think time and 3 ms each: the second request of the checkout is sent at 36 and gets no response.
    shop.hold = ms(100);
    let observed = simulate(shop, |asked| match asked.request {
        2 => Answer::Never,
        _ => Answer::After(ms(3)),
    });
    let (session, checkout) = (sum(&observed, 0), sum(&observed, 1));
    assert_eq!((checkout.counts.ok, checkout.counts.unanswered), (0, 1));
    // From 23 to 100, of which 10 were think time.
    assert_eq!(checkout.unfinished_time, histogram([ms(67)]));
    assert_eq!(checkout.unfinished_elapsed, histogram([ms(77)]));
    assert_eq!(session.unfinished_time, histogram([ms(90 - 20)]));
}

#[test]
fn a_user_who_thinks_at_the_end_has_an_unfinished_one() {
    let mut shop = shop();
    shop.hold = ms(30);
    let observed = simulate(shop, |_| Answer::After(ms(3)));
    let checkout = sum(&observed, 1);
    assert_eq!(checkout.counts.unanswered, 1);
    assert_eq!(checkout.unfinished_time, histogram([ms(3)]));
    assert_eq!(checkout.unfinished_elapsed, histogram([ms(7)]));
}

#[test]
fn arrived_sessions_count_from_their_planned_send() {
    let mut shop = shop();
    shop.kind = LoadKind::Arrival {
        rate_per_s: 10.0,
        spacing: lab_workload::Spacing::Constant,
    };
    // One connection: sessions of 40 + 4 × 40 ms arrive every 100 ms and wait for it.
    (shop.users, shop.hold) = (1, ms(1000));
    let observed = simulate(shop, |_| Answer::After(ms(40)));
    let session = sum(&observed, 0);
    let quickest = Duration::from_micros(session.time.min());
    let slowest = Duration::from_micros(session.time.max());
    assert!(quickest >= ms(159) && quickest < ms(161), "{quickest:?}");
    assert!(slowest > ms(500), "{slowest:?}");
    // Ten arrived; those that were not completed wait or are in progress.
    assert_eq!(session.counts.ok + session.counts.unanswered, 10);
    assert!(Duration::from_micros(session.unfinished_time.max()) > ms(400));
}

#[test]
fn sessions_that_are_turned_away_are_failed_ones() {
    let mut shop = shop();
    shop.kind = LoadKind::Arrival {
        rate_per_s: 100.0,
        spacing: lab_workload::Spacing::Constant,
    };
    (shop.users, shop.limits.max_waiting) = (1, 1);
    let observed = simulate(shop, |_| Answer::After(ms(40)));
    let (session, checkout) = (sum(&observed, 0), sum(&observed, 1));
    assert_eq!(session.counts.turned_away, observed.summary.dropped);
    assert!(session.counts.turned_away > 50);
    assert_eq!(checkout.counts.turned_away, 0);
}

#[test]
fn a_transaction_with_nothing_to_send_a_request_for_is_skipped() {
    let mut shop = shop();
    shop.kind = LoadKind::Sequence {
        sessions: 2,
        shared: false,
    };
    let observed = simulate(shop, |asked| match asked.request {
        2 => Answer::Skipped,
        _ => Answer::After(ms(1)),
    });
    let (session, checkout) = (sum(&observed, 0), sum(&observed, 1));
    assert_eq!((checkout.counts.ok, checkout.counts.skipped), (0, 2));
    assert_eq!((session.counts.ok, session.counts.skipped), (0, 2));
    assert!(checkout.time.is_empty() && session.elapsed.is_empty());
}

#[test]
fn a_session_of_one_request_is_no_transaction() {
    let observed = simulate(drive(vec![step(THINKS, 1)]), |_| Answer::After(ms(1)));
    assert!(
        observed
            .windows
            .iter()
            .all(|window| window.transactions.is_empty())
    );
}
