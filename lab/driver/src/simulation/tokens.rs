//! Tokens that expire: the time and the number of their renewals, compared with the plan.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lab_client::{ErrorClass, RequestId};
use lab_prediction::{Prediction, predict};
use lab_workload::auth::{ClientAuth, Grant, Oauth2, Per};
use lab_workload::template::{Escape, Symbols};
use lab_workload::{
    Credentials, LoadSpec, Request, Slot, Step, TOKEN_STEP, TOKEN_VARIABLES, Template, Tokens, Wait,
};

use super::drive::workload;
use super::{Answer, Observed, Received, drive, histogram, ms, simulate};
use crate::assignment::Assignment;

pub(super) const SECOND: Duration = Duration::from_secs(1);

pub(super) fn template(text: &str) -> Template {
    let variables = TOKEN_VARIABLES.map(str::to_owned);
    Template::parse_with(text, Symbols::new(&variables), Escape::None).unwrap()
}

pub(super) fn tokens(per: Per, renew: Duration) -> Tokens<Request> {
    let text = || Some(Template::literal("x"));
    let auth = Oauth2 {
        token: Template::literal("POST /t"),
        grant: Grant::ClientCredentials,
        client_id: text(),
        client_secret: text(),
        client_auth: ClientAuth::Basic,
        username: None,
        password: None,
        refresh_token: None,
        scope: None,
        form: None,
        per,
        renew: None,
    };
    let refresh = template("{{ auth_refresh_token }}");
    Tokens::new(&auth, &Template::literal("/t"), renew, (0, refresh)).unwrap()
}

/// A workload whose users obtain a token in the setup and then send a request with it each second for a minute. The
/// target of the request is the token.
pub(super) fn shop(per: Per) -> Assignment {
    let request = Request {
        credentials: Some(Box::new(Credentials::Bearer(0))),
        ..Request::get(template("{{ auth_token }}"))
    };
    let read = Step {
        wait: Wait::Constant(SECOND),
        ..Step::of("Read", vec![request])
    };
    let mut drive = drive(vec![read, Step::of(TOKEN_STEP, Vec::new())]);
    let tokens = tokens(per, 3 * SECOND);
    let workload = workload(&mut drive);
    workload.variables = TOKEN_VARIABLES.map(str::to_owned).to_vec().into();
    workload.setup = vec![Step::of(TOKEN_STEP, vec![tokens.obtain.clone()])];
    workload.tokens = Some(Box::new(tokens));
    (drive.users, drive.hold, drive.window) = (3, 60 * SECOND, SECOND);
    drive
}

fn plan(drive: &Assignment) -> Prediction {
    let load = LoadSpec::of_users(drive.users, drive.hold.as_millis() as u64, 1000);
    let plan = predict(&drive.workload, drive.seed, drive.block, &load, 1_000_000);
    plan.unwrap()
}

/// The session's request; the setup's request precedes it, and the token requests follow it.
pub(super) const READ: RequestId = 1;

/// Issues tokens with this lifetime, whose text is their expiry (ms); other responses take no time.
fn lives(expires_in: Option<Duration>, takes: Duration) -> impl FnMut(Received) -> Answer {
    move |asked| {
        if asked.request == READ {
            return Answer::After(Duration::ZERO);
        }
        let until = expires_in.map_or(0, |lives| (asked.at + lives).as_millis());
        let mut values: Vec<(Slot, String)> = vec![(0, until.to_string())];
        values.extend(expires_in.map(|lives| (2, lives.as_secs().to_string())));
        Answer::Gives(values, takes)
    }
}

/// The send times of all token requests.
fn renewals(observed: &Observed) -> Vec<Duration> {
    let of_tokens = observed.sent.iter().filter(|asked| asked.request != READ);
    of_tokens.map(|asked| asked.at).collect()
}

/// Asserts that no request sent an expired token.
pub(super) fn are_valid(observed: &Observed) {
    for (asked, token) in observed.sent.iter().zip(&observed.rendered) {
        if asked.request == READ {
            let until = ms(token.parse().unwrap());
            assert!(asked.at < until, "{asked:?} showed a token until {until:?}");
        }
    }
}

#[test]
fn tokens_are_renewed_before_they_expire_and_no_sooner_than_they_should() {
    for (per, first) in [(Per::User, 3), (Per::Worker, 1)] {
        let drive = shop(per);
        let plan = plan(&drive);
        let observed = simulate(drive, lives(Some(10 * SECOND), ms(20)));
        are_valid(&observed);
        assert_eq!(observed.setup, Some((first, 0, 0)));
        let all = renewals(&observed);
        let holders: Vec<Vec<Duration>> = match per {
            Per::Worker => vec![all.clone()],
            Per::User => (0..3)
                .map(|user| {
                    let its = observed.sent.iter();
                    let its = its.filter(|asked| asked.request != READ && asked.user == user);
                    its.map(|asked| asked.at).collect()
                })
                .collect(),
        };
        for sent in &holders {
            // A token is due for renewal 3 s before it expires; the next request follows within a second.
            for (before, after) in sent.iter().zip(&sent[1..]) {
                let age = *after - *before;
                assert!(
                    7 * SECOND <= age && age < 8 * SECOND + ms(20),
                    "{per:?}: {sent:?}"
                );
            }
            assert!((7..=9).contains(&sent.len()), "{per:?}: {sent:?}");
        }
        let count = all.len() - first as usize;
        let counted = observed
            .windows
            .iter()
            .map(|window| window.steps[1].counts.ok);
        assert_eq!(counted.sum::<u64>() as usize, count, "{per:?}");
        let range = plan.steps[1].range.unwrap();
        assert_eq!(
            (range.low, range.high),
            (0.0, plan.steps[0].requests as f64)
        );
        assert!(
            (range.low..=range.high).contains(&(count as f64)),
            "{range:?}"
        );
        // No request's time includes that of a renewal.
        assert_eq!(observed.times(1), histogram(vec![ms(20); count]));
        let requests = observed.sent.len() - all.len();
        assert_eq!(observed.times(0), histogram(vec![Duration::ZERO; requests]));
    }
}

#[test]
fn as_few_and_as_many_are_renewed_as_the_plan_says() {
    // A token without a lifetime is never renewed; a token that lives for a second is renewed before each request.
    for (expires_in, is_most) in [(None, false), (Some(SECOND), true)] {
        let drive = shop(Per::User);
        let plan = plan(&drive);
        let observed = simulate(drive, lives(expires_in, Duration::ZERO));
        let count = (renewals(&observed).len() - 3) as f64;
        let range = plan.steps[1].range.unwrap();
        let expected = if is_most { range.high } else { range.low };
        assert_eq!(count, expected, "{range:?}");
        let whole = plan.range.unwrap().trial;
        assert_eq!(
            whole.low + count,
            (observed.sent.len() - 3) as f64,
            "{whole:?}"
        );
        assert_eq!(whole.high - whole.low, range.high);
    }
}

#[test]
fn the_old_token_is_shown_until_another_one_is_there_and_none_once_it_has_expired() {
    let drive = shop(Per::User);
    let asked_for = Rc::new(RefCell::new(Vec::new()));
    let known = Rc::clone(&asked_for);
    let mut gives = lives(Some(10 * SECOND), ms(20));
    // Only the first token request of each user succeeds.
    let observed = simulate(drive, move |asked| {
        let mut known = known.borrow_mut();
        let is_first = asked.request == READ || !known.contains(&asked.user);
        match is_first {
            true if asked.request == READ => gives(asked),
            true => {
                known.push(asked.user);
                gives(asked)
            }
            false => Answer::Fails(ErrorClass::Status, ms(20)),
        }
    });
    are_valid(&observed);
    for user in 0..3 {
        let reads = observed.sent.iter();
        let reads = reads.filter(|asked| asked.request == READ && asked.user == user);
        let last = reads.map(|asked| asked.at).max().unwrap();
        // Requests are sent until the token expires.
        assert!(8 * SECOND < last && last < 10 * SECOND, "{last:?}");
    }
    let (skipped, failed) = (
        observed.count(|step| step.counts.skipped),
        observed
            .windows
            .iter()
            .map(|window| window.steps[1].counts.errors.total()),
    );
    assert!(skipped > 3, "{skipped}");
    assert!(failed.sum::<u64>() >= skipped);
}
