//! The flow of a session after responses, over real connections: retries, conditions on captures, new visitors.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::common::{Make, Server, ms, ok, run_until};
use lab_client::ErrorClass;
use lab_workload::template::Symbols;
use lab_workload::{CaptureSource, Control, Retry, Template, Until, Visitor, Wait};

fn condition(make: &Make, text: &str) -> Template {
    let symbols = Symbols::new(&make.workload.variables);
    Template::condition(text, symbols).unwrap()
}

#[test]
fn a_retry_sends_the_same_message_again() {
    let asked = AtomicU32::new(0);
    let server = Server::answering(move |seen| match asked.fetch_add(1, Ordering::SeqCst) {
        0 | 1 if seen.line.starts_with("PUT") => {
            "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        _ => ok(""),
    });
    let mut make =
        Make::new(&[]).step_with(Wait::None, "PUT /{{ uuid() }}", |mut request, make| {
            request.body = lab_workload::Body::Text(make.template("{{ uuid() }}"));
            request
        });
    make.workload.session.steps[0].retry = Some(Retry::new(5, Wait::Constant(ms(1))));
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(0) >= 2
    });
    let seen = server.seen();
    let message = |at: usize| (seen[at].line.clone(), seen[at].body.clone());
    assert_eq!(message(0), message(1));
    assert_eq!(message(0), message(2));
    // The next one is new.
    assert_ne!(message(2), message(3));
    assert_eq!(observed.summary.errors, 0);
    let retries: u64 = observed
        .windows
        .iter()
        .map(|window| window.steps[0].counts.sent_again())
        .sum();
    assert_eq!(retries, 2);
}

#[test]
fn a_retry_waits_for_as_long_as_the_answer_asks() {
    let asked = AtomicU32::new(0);
    let server = Server::answering(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => "HTTP/1.1 429 Slow down\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok(""),
    });
    let mut make = Make::new(&[]).step(Wait::None, "GET /limited");
    make.workload.session.steps[0].retry = Some(Retry {
        retry_after: true,
        ..Retry::new(3, Wait::Constant(ms(1)))
    });
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(0) >= 1
    });
    let waited: Vec<u64> = observed
        .windows
        .iter()
        .map(|window| window.steps[0].counts.retry_wait_us)
        .collect();
    let waited = waited.iter().sum::<u64>();
    assert!(waited >= 1_000_000, "{waited} us");
    assert_eq!(observed.summary.errors, 0);
}

#[test]
fn a_request_has_a_timeout_of_its_own() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /hangs" => String::new(),
        _ => ok(""),
    });
    let make = Make::new(&[])
        .step_with(Wait::None, "GET /hangs", |mut request, _| {
            request.timeout = Some(ms(50));
            request
        })
        .step(Wait::None, "GET /well");
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(1) >= 1
    });
    let timeouts: u64 = observed
        .windows
        .iter()
        .map(|window| window.steps[0].counts.errors[ErrorClass::Timeout])
        .sum();
    assert!(timeouts >= 1);
    assert_eq!(observed.summary.errors, timeouts);
}

#[test]
fn pages_are_turned_until_there_is_no_next_one() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /list" => ok(r#"{ "next": "/list/2" }"#),
        "GET /list/2" => ok(r#"{ "next": "/list/3" }"#),
        "GET /list/3" => ok(r#"{ "next": null }"#),
        _ => ok("{}"),
    });
    let next = |mut request: lab_workload::Request, make: &Make| {
        request.captures.push(make.json("next", "$.next"));
        request
            .captures
            .push(make.capture("status", CaptureSource::Status));
        request
    };
    let mut make = Make::new(&["next", "status"])
        .step_with(Wait::None, "GET /list", next)
        .step_with(Wait::None, "GET {{ next }}", next)
        .step(Wait::None, "GET /well")
        .step(Wait::Constant(ms(1)), "GET /never");
    let until = Until {
        condition: condition(&make, "next is not defined"),
        at_most: 50,
    };
    let control = |when, until| Some(Box::new(Control { when, until }));
    make.workload.session.steps[1].control = control(None, Some(until));
    make.workload.session.steps[2].control = control(Some(condition(&make, "status == 200")), None);
    make.workload.session.steps[3].control = control(Some(condition(&make, "status > 200")), None);
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(2) >= 2
    });
    let expected = ["GET /list", "GET /list/2", "GET /list/3", "GET /well"];
    assert_eq!(server.lines()[..4], expected);
    assert_eq!(server.lines()[4..8], expected);
    assert_eq!((observed.summary.errors, observed.summary.skipped), (0, 0));
    assert_eq!(observed.transactions(3), 0);
}

#[test]
fn a_new_visitor_has_no_cookie_no_connection_and_no_capture() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /seen" => "HTTP/1.1 200 OK\r\nSet-Cookie: id=1; Path=/\r\nX-Id: 7\r\nContent-Length: \
                        0\r\n\r\n"
            .to_owned(),
        _ => ok(""),
    });
    let make = |visitor| {
        let mut make = Make::new(&["name", "id"])
            .user("name", "ada")
            .step(Wait::None, "GET /first/{{ name }}")
            .step(Wait::None, "GET /known/{{ id }}")
            .step_with(Wait::Constant(ms(1)), "GET /seen", |mut request, make| {
                let header = CaptureSource::Header("x-id".to_owned());
                request.captures.push(make.capture("id", header));
                request
            });
        make.workload.session.visitor = visitor;
        make.drive(&server.base())
    };
    let observed = run_until(make(Visitor::New), |observed| observed.transactions(2) >= 3);
    let seen = server.seen();
    assert_eq!(observed.summary.errors, 0);
    assert!(observed.summary.connects >= 3);
    assert!(observed.skipped(1) >= 3);
    assert!(seen.iter().all(|seen| seen.header("Cookie").is_none()));
    assert_eq!(seen[2].line, "GET /first/ada");
    assert_ne!(seen[2].connection, seen[1].connection);
    // The same user has them all.
    let observed = run_until(make(Visitor::Same), |observed| {
        observed.transactions(2) >= 3
    });
    assert_eq!((observed.summary.connects, observed.skipped(1)), (1, 1));
    assert!(
        server
            .seen()
            .iter()
            .any(|seen| seen.header("Cookie") == Some("id=1"))
    );
}
