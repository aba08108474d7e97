//! Renewals that fail, that hang, and that several requests need at the same time.

use std::time::Duration;

use lab_client::{ErrorClass, RequestId};
use lab_counts::{Hist, TransactionWindow};
use lab_workload::auth::Per;
use lab_workload::{
    Credentials, LoadKind, Parallel, Request, Retry, Round, Slot, Step, Template, Transaction, Wait,
};

use super::drive::workload;
use super::tokens::{READ, SECOND, are_valid, shop};
use super::{Answer, Observed, Received, histogram, ms, simulate};
use crate::assignment::Assignment;

/// The token requests, which follow those of the session.
const OBTAIN: RequestId = READ + 1;
const REFRESH: RequestId = READ + 2;

/// The shop's workload, with refresh tokens.
fn refreshing(per: Per) -> Assignment {
    let mut drive = shop(per);
    let tokens = &mut workload(&mut drive).tokens;
    tokens.as_mut().unwrap().refreshes = true;
    drive
}

/// Returns a response with a refresh token and a token with this lifetime, whose text is its expiry (ms).
fn gives(asked: Received, lives: Duration, takes: Duration) -> Answer {
    let until = (asked.at + lives).as_millis();
    let texts = [(0, until.to_string()), (2, lives.as_secs().to_string())];
    let mut values: Vec<(Slot, String)> = texts.into();
    values.push((3, format!("to be shown after {until}")));
    Answer::Gives(values, takes)
}

/// The token requests that the trial sent.
fn asked(observed: &Observed) -> Vec<RequestId> {
    let all = observed.sent.iter().map(|asked| asked.request);
    all.filter(|request| *request > READ).collect()
}

/// Makes the session's first step a transaction.
fn with_transaction(mut drive: Assignment) -> Assignment {
    workload(&mut drive).session.transactions = vec![Transaction {
        name: "Visit".to_owned(),
        steps: 0..1,
        each: Round::Step,
    }];
    drive
}

/// That transaction over all windows.
fn visits(observed: &Observed) -> TransactionWindow {
    let mut sum = TransactionWindow::default();
    for window in &observed.windows {
        let visit = window.transactions.last();
        visit.into_iter().for_each(|visit| sum += visit);
    }
    sum
}

/// A request that sends a token.
fn shown() -> Request {
    Request {
        credentials: Some(Box::new(Credentials::Bearer(0))),
        ..Request::get(Template::literal("/"))
    }
}

/// Users of the shop whose step sends this many requests in parallel.
fn at_once(per: Per, requests: usize) -> Assignment {
    let mut drive = with_transaction(refreshing(per));
    let step = &mut workload(&mut drive).session.steps[0];
    *step = Step {
        wait: step.wait,
        parallel: Some(Box::new(Parallel {
            first: 0,
            at_once: None,
            stops: false,
            counts_as: vec![0; requests],
            each: None,
        })),
        ..Step::of("Read", vec![shown(); requests])
    };
    drive
}

#[test]
fn a_refused_refresh_token_is_forgotten_by_all_who_share_it() {
    for per in [Per::User, Per::Worker] {
        let observed = simulate(refreshing(per), |asked| match asked.request {
            READ => Answer::After(ms(0)),
            REFRESH => Answer::Status(400, ms(20)),
            _ => gives(asked, 3 * SECOND, ms(20)),
        });
        are_valid(&observed);
        assert_eq!(observed.count(|step| step.counts.skipped), 0, "{per:?}");
        let asked = asked(&observed);
        let refused = asked.iter().filter(|request| **request == REFRESH);
        let (refused, all) = (refused.count(), asked.len());
        // A request with the original grant follows each of them.
        assert!(refused > 10 && all - refused > 10, "{per:?}: {asked:?}");
        assert!(refused.abs_diff(all - refused) <= 3, "{per:?}: {asked:?}");
    }
}

#[test]
fn a_refresh_token_that_is_not_refused_is_shown_again() {
    let failures: [fn() -> Answer; 6] = [
        || Answer::Fails(ErrorClass::Timeout, ms(20)),
        || Answer::Fails(ErrorClass::Reset, ms(20)),
        || Answer::Fails(ErrorClass::Connect, ms(20)),
        || Answer::Status(503, ms(20)),
        || Answer::Status(429, ms(20)),
        // The response replaces the token's text, but its token type is unknown.
        || Answer::Gives(vec![(0, "0".to_owned()), (1, "mac".to_owned())], ms(20)),
    ];
    for (number, fails) in failures.into_iter().enumerate() {
        for per in [Per::User, Per::Worker] {
            let observed = simulate(refreshing(per), move |asked| match asked.request {
                READ => Answer::After(ms(0)),
                // The token endpoint is down until all tokens have expired.
                REFRESH if (5 * SECOND..15 * SECOND).contains(&asked.at) => fails(),
                _ => match gives(asked, 10 * SECOND, ms(20)) {
                    Answer::Gives(mut values, takes) => {
                        values.push((1, "Bearer".to_owned()));
                        Answer::Gives(values, takes)
                    }
                    other => other,
                },
            });
            are_valid(&observed);
            let asked = asked(&observed);
            assert!(!asked.contains(&OBTAIN), "{number} {per:?}: {asked:?}");
            let reads = observed.sent.iter().filter(|asked| asked.request == READ);
            let meanwhile = |from: u64, to: u64| {
                let within = ms(from)..ms(to);
                reads.clone().filter(|one| within.contains(&one.at)).count()
            };
            // Users send the old token until it expires, and have a new one soon after the endpoint is back.
            assert!(meanwhile(7_100, 9_900) >= 6, "{number} {per:?}");
            assert!(meanwhile(10_100, 15_000) == 0, "{number} {per:?}");
            assert!(meanwhile(20_000, 25_000) >= 12, "{number} {per:?}");
        }
    }
}

#[test]
fn all_who_wait_for_a_token_are_without_an_answer() {
    let mut drive = with_transaction(refreshing(Per::Worker));
    drive.users = 100;
    let observed = simulate(drive, |asked| match asked.request {
        READ => Answer::After(ms(0)),
        REFRESH => Answer::Never,
        _ => gives(asked, 10 * SECOND, ms(20)),
    });
    assert_eq!(asked(&observed), [REFRESH]);
    assert_eq!(observed.unanswered(1).len(), 1);
    // The others kept the old token; their next requests were due when it had expired.
    let ages = observed.unanswered(0);
    assert_eq!(ages.len(), 99);
    let (low, high) = (ms(48_900), ms(50_100));
    let within = |age: u64| (low..=high).contains(&Duration::from_micros(age));
    assert!(within(ages.min()) && within(ages.max()));
    let visits = visits(&observed);
    assert_eq!(visits.counts.unanswered, 100);
    assert!(visits.unfinished_time.min() >= low.as_micros() as u64);
}

#[test]
fn who_has_no_token_is_not_under_way() {
    for kind in [
        LoadKind::Users,
        // More sessions arrive than there are connections.
        LoadKind::Arrival {
            rate_per_s: 20.0,
            spacing: lab_workload::Spacing::Constant,
        },
    ] {
        let mut drive = refreshing(Per::Worker);
        drive.kind = kind;
        let observed = simulate(drive, |asked| match asked.request {
            READ => Answer::After(ms(0)),
            REFRESH => Answer::Status(503, ms(20)),
            _ => gives(asked, 10 * SECOND, ms(20)),
        });
        assert!(observed.count(|step| step.counts.skipped) > 30);
        let windows = &observed.windows;
        // Each user has a slot, and users without a token think most of the time.
        let most = windows.iter().map(|window| window.counts.under_way);
        assert!(most.clone().max() <= Some(3), "{:?}", most.max());
        assert!(most.skip(20).filter(|count| *count == 0).count() > 10);
    }
}

#[test]
fn requests_at_the_same_time_count_the_wait_for_a_token() {
    let mut drive = at_once(Per::Worker, 4);
    workload(&mut drive).session.steps[0].wait = Wait::Constant(2 * SECOND);
    drive.users = 2;
    // The token has expired in each round: one user renews it, and the other waits.
    let observed = simulate(drive, |asked| match asked.request {
        0 | 5 | 6 => gives(asked, SECOND, ms(20)),
        _ => Answer::After(ms(10)),
    });
    let rounds = observed.times(1).len() as usize;
    assert!(rounds > 20);
    let each = [ms(10), ms(30)].map(|time| vec![time; 4 * rounds]);
    assert_eq!(observed.times(0), histogram(each.concat()));
    assert_eq!(visits(&observed).time, histogram(vec![ms(30); 2 * rounds]));
}

/// A user whose only request fails 3.5 s after the token was issued, and is retried when a renewal is due.
fn again(last: fn() -> Answer) -> Observed {
    let mut drive = with_transaction(refreshing(Per::User));
    workload(&mut drive).session.steps[0].retry = Some(Retry::new(1, Wait::Constant(ms(20))));
    (drive.users, drive.hold) = (1, 10 * SECOND);
    drive.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    let mut is_first = true;
    simulate(drive, move |asked| match asked.request {
        READ if std::mem::take(&mut is_first) => Answer::Status(500, ms(2500)),
        READ => last(),
        _ => gives(asked, 6 * SECOND, ms(20)),
    })
}

#[test]
fn a_renewal_before_a_retry_leaves_the_request_under_way() {
    let observed = again(|| Answer::After(ms(10)));
    assert_eq!(asked(&observed), [REFRESH]);
    let whole: Hist = histogram([ms(2500 + 20 + 20 + 10)]);
    assert_eq!(observed.times(0), whole);
    assert_eq!(visits(&observed).time, whole);
    let observed = again(|| Answer::Never);
    assert_eq!(observed.unanswered(0).clone(), histogram([ms(9000)]));
    assert_eq!(visits(&observed).unfinished_time, histogram([ms(9000)]));
}

#[test]
fn one_request_of_several_at_the_same_time_renews_the_token() {
    let mut drive = at_once(Per::User, 6);
    workload(&mut drive).session.steps[0].retry = Some(Retry::new(1, Wait::Constant(ms(20))));
    (drive.users, drive.hold) = (1, 10 * SECOND);
    drive.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    // The token has expired when the requests are retried.
    let mut fail = 6;
    let observed = simulate(drive, move |asked| match asked.request {
        0 | 7 | 8 => gives(asked, 5 * SECOND, ms(20)),
        _ if fail > 0 => {
            fail -= 1;
            Answer::Status(500, ms(5000))
        }
        _ => Answer::After(ms(10)),
    });
    let asked = observed.sent.iter().map(|asked| asked.request);
    assert_eq!(
        asked.filter(|request| *request > 6).collect::<Vec<_>>(),
        [8]
    );
    let time = ms(5000 + 20 + 20 + 10);
    assert_eq!(observed.times(0), histogram([time; 6]));
    assert_eq!(visits(&observed).time, histogram([time]));
}

#[test]
fn one_user_of_the_setup_renews_the_token_that_all_share() {
    // When the users send their second request, the token is due for renewal, or has expired.
    for takes in [ms(700), ms(2000)] {
        let mut drive = refreshing(Per::Worker);
        drive.users = 50;
        let requests = vec![shown(); 2];
        workload(&mut drive).setup.push(Step::of("Open", requests));
        let observed = simulate(drive, move |asked| match asked.request {
            // A token renewed in the setup outlives the trial.
            0 => gives(asked, SECOND, ms(20)),
            4 | 5 => gives(asked, 1000 * SECOND, ms(20)),
            1 => Answer::After(takes),
            _ => Answer::After(ms(0)),
        });
        assert_eq!(observed.setup, Some((1 + 50 * 2 + 1, 0, 0)), "{takes:?}");
        let asked = observed.sent.iter().map(|asked| asked.request);
        assert_eq!(
            asked.filter(|request| *request > 3).collect::<Vec<_>>(),
            [5]
        );
    }
    // After a failed renewal, no request that needs a token is sent, and only one user tried to renew it.
    let mut drive = refreshing(Per::Worker);
    drive.users = 50;
    let requests = vec![shown(); 2];
    workload(&mut drive).setup.push(Step::of("Open", requests));
    let observed = simulate(drive, |asked| match asked.request {
        0 => gives(asked, SECOND, ms(20)),
        4 | 5 => Answer::Status(503, ms(20)),
        1 => Answer::After(ms(2000)),
        _ => Answer::After(ms(0)),
    });
    assert_eq!(observed.setup, Some((1 + 50, 1, 49)));
}
