//! Users with shared gRPC connections: each call is counted once, with its own end, whatever happens to the connection.

use std::io::Read;
use std::net::TcpStream;

use h2::Reason;
use h2::server::Builder;
use lab_driver::{Assignment, ErrorClass, Phase};
use lab_workload::{Expectation, JsonPath, LoadKind, Request, Step, Wait};
use proptest::prelude::*;

use crate::common::{Make, Observed, Peer, Server, ms, run, run_until};
use crate::grpc::{by_notes, changed, holds, make, notes, saying};
use crate::parallel::page;
use crate::two::{Action, Two, counted, phase};

/// Runs this number of users on these connections, each of which repeats this request.
fn sharing(
    server: &Two,
    (users, connections): (u32, u32),
    request: impl FnOnce(&Make) -> Request,
) -> Assignment {
    let make = make(&[]).step_with(Wait::Constant(ms(1)), "GET /", |_, make| request(make));
    shared(make, server, (users, connections))
}

fn shared(make: Make, server: &Two, (users, connections): (u32, u32)) -> Assignment {
    let mut drive = make.drive(&server.base());
    drive.tls = server.trusted();
    drive.users = users;
    drive.protocol.shared = Some(connections);
    drive
}

/// Returns a call that sends a note; the server acts on its text.
fn say(make: &Make, text: &str) -> Request {
    saying(make, "Say", &[&format!("{{\"text\": \"{text}\"}}")])
}

/// Returns a call that sends a note and stays open.
fn talk(make: &Make, text: &str) -> Request {
    let request = saying(make, "Talk", &[&format!("{{\"text\": \"{text}\"}}")]);
    changed(request, |call| call.stays_open = true)
}

#[test]
fn connections_carry_as_many_calls_as_the_server_allows_and_no_more() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(4);
    let server = Two::start(builder, by_notes);
    let drive = sharing(&server, (20, 2), |make| Request {
        answer: holds("$[0].number", "1"),
        ..saying(make, "Count", &[r#"{"number": 1}"#])
    });
    let observed = run_until(drive, |observed| observed.done() >= 80);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!((server.connections(), observed.summary.connects), (2, 2));
    assert_eq!(observed.summary.http2_connects, 2);
    assert_eq!(server.most(), 8);
    counted(&server, &observed, 20);
    // Ten users per connection that allows four: most calls wait, and the wait is a phase of its own.
    let blocked = phase(&observed, Phase::Blocked);
    assert!(blocked * 2 > observed.transactions(0), "{blocked}");
}

#[test]
fn what_the_server_did_nothing_with_is_called_again_once() {
    // Every other attempt is refused.
    let server = Two::start(Builder::new(), |number, _| match number % 2 {
        0 => Action::Resets(Reason::REFUSED_STREAM),
        _ => Action::By(notes),
    });
    let drive = sharing(&server, (1, 1), |make| Request {
        answer: holds("$.text", "user: hi"),
        ..say(make, "hi")
    });
    let observed = run_until(drive, |observed| observed.done() >= 10);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let (done, again) = (
        observed.summary.transactions,
        observed.summary.stale_retries,
    );
    assert!(again == done || again == done + 1, "{again} of {done}");
    assert_eq!(server.connections(), 1);

    let server = Two::start(Builder::new(), |_, _| {
        Action::Resets(Reason::REFUSED_STREAM)
    });
    let drive = sharing(&server, (1, 1), |make| say(make, "hi"));
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert_eq!(observed.errors(ErrorClass::Status), observed.done());
    assert!(
        observed.examples[0].1.contains("UNAVAILABLE"),
        "{:?}",
        observed.examples
    );
    counted(&server, &observed, 1);
}

#[test]
fn a_server_that_leaves_loses_no_call() {
    let server = Two::start(Builder::new(), |number, _| match number % 5 {
        4 => Action::LeavesBy(notes),
        _ => Action::By(notes),
    });
    let drive = sharing(&server, (4, 1), |make| say(make, "hi"));
    let observed = run_until(drive, |observed| observed.done() >= 60);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert!(server.connections() > 4, "{}", server.connections());
    counted(&server, &observed, 4);
}

#[test]
fn a_connection_that_dies_under_several_users_is_an_error_of_each() {
    // Five of six calls hang until the sixth breaks the connection.
    let server = Two::start(Builder::new(), |number, _| match number % 6 {
        5 => Action::Breaks,
        _ => Action::By(notes),
    });
    let drive = sharing(&server, (6, 1), |make| say(make, "hang"));
    let observed = run_until(drive, |observed| observed.errors(ErrorClass::Reset) >= 12);
    let (reset, status) = (
        observed.errors(ErrorClass::Reset),
        observed.errors(ErrorClass::Status),
    );
    // The call whose response was not gRPC.
    assert!(status >= 1, "{:?}", observed.examples);
    assert_eq!(reset + status, observed.done(), "{:?}", observed.examples);
    let whole = |(_, why): &(ErrorClass, String)| why.contains("before the answer was whole");
    assert!(
        observed.examples.iter().any(whole),
        "{:?}",
        observed.examples
    );
    assert_eq!(observed.summary.stale_retries, 0);
    // The server never received the calls in transit when it broke the connection.
    let had = server.requests().len() as u64;
    assert!(
        had.abs_diff(observed.done()) <= 6,
        "{had} came, {} counted",
        observed.done()
    );
}

#[test]
fn calls_that_hang_hold_up_no_other_and_no_place_for_long() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(2);
    let server = Two::start(builder, by_notes);
    let make = make(&[])
        // The call that opens the connection has no short deadline.
        .step_with(Wait::None, "GET /", |_, make| say(make, "hi"))
        .step_with(Wait::Constant(ms(1)), "GET /", |_, make| {
            changed(say(make, "hang"), |call| call.deadline = Some(ms(100)))
        });
    let observed = run_until(shared(make, &server, (5, 1)), |observed| {
        observed.errors(ErrorClass::Timeout) >= 8 && observed.transactions(0) >= 8
    });
    let timeouts = observed.errors(ErrorClass::Timeout);
    assert_eq!(observed.summary.errors, timeouts, "{:?}", observed.examples);
    // A call's own deadline says nothing about the connection.
    assert_eq!(observed.summary.connects, 1);
}

#[test]
fn a_connection_on_which_nothing_is_heard_is_replaced() {
    let server = Two::start(Builder::new(), by_notes);
    let mut drive = sharing(&server, (1, 1), |make| say(make, "hang"));
    drive.limits.request_timeout = ms(150);
    let observed = run_until(drive, |observed| observed.errors(ErrorClass::Timeout) >= 4);
    assert_eq!(observed.summary.transactions, 0);
    assert!(
        observed.summary.connects >= 2,
        "{}",
        observed.summary.connects
    );
}

#[test]
fn messages_of_several_users_are_larger_than_any_window() {
    let mut builder = Builder::new();
    builder
        .initial_window_size(1_000)
        .initial_connection_window_size(70_000);
    let server = Two::start(builder, by_notes);
    let drive = sharing(&server, (3, 1), |make| Request {
        answer: holds("$.number", "300000"),
        ..say(make, &"x".repeat(300_000))
    });
    let observed = run_until(drive, |observed| observed.done() >= 6);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.summary.connects, 1);
}

#[test]
fn calls_that_stay_open_are_each_users_own() {
    let server = Two::start(Builder::new(), by_notes);
    let expected = |make: &Make, text: &str, stays_open| {
        let request = changed(talk(make, text), |call| call.stays_open = stays_open);
        let said = Expectation::Json {
            path: Box::new(JsonPath::parse("$[0].text").unwrap()),
            value: make.template(text),
        };
        let answer = vec![said];
        Request { answer, ..request }
    };
    let make = make(&[])
        .step_with(Wait::Constant(ms(2)), "GET /1", |_, make| {
            expected(make, "one of {{ index }}", true)
        })
        .step_with(Wait::Constant(ms(2)), "GET /2", |_, make| {
            expected(make, "two of {{ index }}", true)
        })
        .step_with(Wait::Constant(ms(2)), "GET /3", |_, make| {
            expected(make, "three of {{ index }}", false)
        });
    let observed = run_until(shared(make, &server, (3, 1)), |observed| {
        observed.done() >= 45
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.summary.connects, 1);
    let calls = server.requests().len() as u64;
    let sessions = observed.transactions(2);
    assert!(
        (sessions..=sessions + 6).contains(&calls),
        "{calls} calls in {sessions} sessions"
    );
}

#[test]
fn what_one_user_leaves_unread_holds_up_no_other() {
    let server = Two::start(Builder::new(), by_notes);
    // More than a browser allows to wait on a connection: 20 times 1 MiB.
    let make = make(&[])
        .step_with(Wait::None, "GET /", |_, make| talk(make, "flood"))
        .step_with(Wait::Constant(ms(200)), "GET /", |_, make| say(make, "hi"))
        .step_with(Wait::Constant(ms(60_000)), "GET /", |_, make| {
            say(make, "never")
        });
    let observed = run_until(shared(make, &server, (20, 1)), |observed| {
        observed.transactions(1) >= 20
    });
    assert_eq!((observed.summary.errors, observed.transactions(1)), (0, 20));
    assert_eq!(observed.summary.connects, 1);
}

#[test]
fn connections_over_tls_are_shared_too() {
    let server = Two::secure(&["h2"], by_notes);
    let drive = sharing(&server, (6, 2), |make| say(make, "hi"));
    let observed = run_until(drive, |observed| observed.done() >= 20);
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 2));
}

#[test]
fn who_speaks_http_1_is_told_to_each_user() {
    let server = Server::start(|mut peer: Peer<TcpStream>| {
        let heard = peer.stream.read(&mut [0; 64]);
        if !heard.is_ok_and(|count| count > 0) {
            // The load ended just as it had opened this connection.
            return;
        }
        peer.send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        while peer.stream.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
    });
    let make = make(&[]).step_with(Wait::Constant(ms(1)), "GET /", |_, make| say(make, "hi"));
    let mut drive = make.drive(&server.base());
    drive.users = 3;
    drive.protocol.shared = Some(1);
    let observed = run_until(drive, |observed| observed.done() >= 6);
    let refused = observed.errors(ErrorClass::Connect);
    assert_eq!(refused, observed.done(), "{:?}", observed.examples);
    assert!(
        observed.examples[0].1.contains("speaks no HTTP/2"),
        "{:?}",
        observed.examples
    );
}

#[test]
fn who_allows_no_call_is_named_as_the_cause() {
    let mut builder = Builder::new();
    builder.max_concurrent_streams(0);
    let server = Two::start(builder, by_notes);
    let mut drive = sharing(&server, (2, 1), |make| say(make, "hi"));
    drive.limits.request_timeout = ms(200);
    let named = |observed: &Observed| {
        let mut all = observed.examples.iter();
        all.any(|(_, why)| why.contains("allows 0 calls at once"))
    };
    let observed = run_until(drive, named);
    assert!(named(&observed), "{:?}", observed.examples);
    assert_eq!(server.requests().len(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// For any server behaviour and any sharing: the server received what is counted.
    #[test]
    fn each_call_is_counted_once(
        acts in proptest::collection::vec(0u8..6, 5..40),
        users in 1u32..7,
        connections in 1u32..4,
    ) {
        let refused = acts.iter().filter(|act| **act == 1).count() as u64;
        let broken = acts.iter().filter(|act| **act == 2).count() as u64;
        let enough = acts.len() as u64;
        let server = Two::start(Builder::new(), move |number, _| match acts.get(number) {
            Some(1) => Action::Resets(Reason::REFUSED_STREAM),
            Some(2) => Action::Resets(Reason::INTERNAL_ERROR),
            Some(3) => Action::LeavesBy(notes),
            _ => Action::By(notes),
        });
        let drive = sharing(&server, (users, connections), |make| say(make, "hi"));
        let observed = run_until(drive, |observed| observed.done() >= enough);
        counted(&server, &observed, users as usize);
        let errors = observed.summary.errors;
        prop_assert_eq!(errors, observed.errors(ErrorClass::Status), "{:?}", &observed.examples);
        // Each refused call is sent again, and at most once.
        prop_assert!(errors <= broken + refused / 2, "{} of {:?}", errors, &observed.examples);
        prop_assert!(observed.summary.stale_retries <= refused);
    }
}

/// Runs one session of concurrent calls, and a call that sends the capture of the first one.
fn at_once(texts: &[&str], connections: Option<u32>) -> (Two, Observed) {
    let server = Two::start(Builder::new(), by_notes);
    let make = make(&["heard"]);
    let mut calls: Vec<Request> = texts.iter().map(|text| say(&make, text)).collect();
    calls[0].captures = vec![make.json("heard", "$.text")];
    let last = Request {
        answer: holds("$.text", "user: user: late"),
        ..say(&make, "{{ heard }}")
    };
    let mut make = page(make, calls, 0, None);
    let steps = &mut make.workload.session.steps;
    steps.push(Step::of("Last", vec![last]));
    let steps = steps.split_off(steps.len() - 2);
    make.workload.session.steps = steps;
    let mut drive = make.drive(&server.base());
    drive.tls = server.trusted();
    drive.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    drive.protocol.shared = connections;
    let observed = run(drive);
    (server, observed)
}

#[test]
fn parallel_calls_are_streams_of_shared_connections() {
    let (server, observed) = at_once(&["late", "late", "late", "late"], Some(1));
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.transactions(0), 4);
    assert_eq!((server.most(), server.connections()), (4, 1));
}

#[test]
fn parallel_calls_have_connections_of_their_own_where_none_is_shared() {
    let (server, observed) = at_once(&["late"; 8], None);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(observed.transactions(0), 8);
    // Six at once, and the user's own for the call after them.
    assert_eq!((server.most(), server.connections()), (6, 7));
}

#[test]
fn a_parallel_call_that_is_refused_fails_alone() {
    let (server, observed) = at_once(&["late", "refuse", "late"], Some(1));
    assert_eq!(observed.errors(ErrorClass::Status), 1);
    // The others get responses, and the capture of the first one is kept.
    assert_eq!((observed.transactions(0), observed.transactions(1)), (2, 1));
    assert_eq!(server.connections(), 1);
}
