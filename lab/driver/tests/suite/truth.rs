//! A server with known counts of everything: the load's counts equal the server's, to the request.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lab_driver::ErrorClass;
use lab_workload::{Body, Comparison, Expectation, JsonState, LoadKind, Wait};

use crate::common::{Make, Observed, Peer, Server, ms, ok, pass, run};

/// Sessions of one request each.
const SESSIONS: u32 = 500;
/// The minimum time of a slow response.
const SLOW: Duration = ms(20);

/// The server's counts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Truth {
    requests: u64,
    well: u64,
    slow: u64,
    refused: u64,
    cut_short: u64,
    silent: u64,
    /// Connections reset after a request, by whether it was the connection's first.
    reset_first: u64,
    reset_later: u64,
    closed_after: u64,
}

/// Returns a body in chunks of one, two, three … bytes, with an extension and a trailer.
fn oddly_chunked(body: &str) -> String {
    let mut text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    let (mut rest, mut size) = (body, 1);
    while !rest.is_empty() {
        let (chunk, left) = rest.split_at(size.min(rest.len()));
        text += &format!("{:x};n=\"{size}\"\r\n{chunk}\r\n", chunk.len());
        (rest, size) = (left, size + 1);
    }
    text + "0\r\nX-Trailer: end\r\n\r\n"
}

/// Responds to request `number`, the connection's `nth`, and counts what it did. Returns false if the connection has
/// ended.
fn answer<S: Read + Write>(
    peer: &mut Peer<S>,
    (number, nth): (u64, u64),
    truth: &Mutex<Truth>,
    reset: impl Fn(&S),
) -> bool {
    let did = |what: fn(&mut Truth) -> &mut u64| *what(&mut truth.lock().unwrap()) += 1;
    did(|truth| &mut truth.requests);
    let body = "Known to the request";
    if number % 211 == 0 {
        did(|truth| &mut truth.silent);
        // Until the client times out.
        assert!(peer.request().is_none());
        return false;
    }
    if number % 100 == 0 {
        match nth {
            1 => did(|truth| &mut truth.reset_first),
            _ => did(|truth| &mut truth.reset_later),
        }
        reset(&peer.stream);
        return false;
    }
    if number % 101 == 0 {
        did(|truth| &mut truth.cut_short);
        peer.send(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{body}"
        ));
        return false;
    }
    if number % 50 == 0 {
        did(|truth| &mut truth.refused);
        return peer.send("HTTP/1.1 500 Broken\r\nContent-Length: 4\r\n\r\nsad\n");
    }
    did(|truth| &mut truth.well);
    if number % 10 == 3 || number <= 20 {
        did(|truth| &mut truth.slow);
        pass(SLOW);
    }
    match number % 7 {
        0 => {
            did(|truth| &mut truth.closed_after);
            let text = ok(body).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
            peer.send(text);
            false
        }
        1 => peer.send(oddly_chunked(body)),
        // Sends byte by byte.
        2 => ok(body).bytes().all(|byte| peer.send([byte])),
        _ => peer.ok(body),
    }
}

fn served(method: &str) -> (Truth, Observed) {
    let truth = Arc::new(Mutex::new(Truth::default()));
    let (noted, requests) = (Arc::clone(&truth), AtomicU64::new(0));
    let server = Server::start(move |mut peer| {
        let mut nth = 0;
        while peer.request().is_some() {
            nth += 1;
            let number = requests.fetch_add(1, Ordering::SeqCst) + 1;
            let reset = |stream: &std::net::TcpStream| {
                let socket = socket2::SockRef::from(stream);
                socket.set_linger(Some(Duration::ZERO)).unwrap();
            };
            if !answer(&mut peer, (number, nth), &noted, reset) {
                return;
            }
        }
    });
    let make = Make::new(&[]).step(Wait::None, &format!("{method} /"));
    let mut drive = make.drive(&server.base());
    drive.kind = LoadKind::Sequence {
        sessions: SESSIONS,
        shared: false,
    };
    drive.limits.request_timeout = Duration::from_secs(5);
    drive.limits.failure_pause = ms(1);
    let observed = run(drive);
    let truth = truth.lock().unwrap().clone();
    (truth, observed)
}

#[test]
fn every_class_of_failure_is_counted_to_the_request() {
    for method in ["GET", "POST"] {
        let (truth, observed) = served(method);
        let sum = &observed.summary;
        assert!(
            truth.refused >= 4 && truth.cut_short >= 3 && truth.silent >= 2,
            "{truth:?}"
        );
        assert!(truth.reset_later >= 3, "{truth:?}");
        assert_eq!(sum.transactions, truth.well, "{method}: {truth:?}");
        assert_eq!(observed.errors(ErrorClass::Status), truth.refused);
        assert_eq!(observed.errors(ErrorClass::Timeout), truth.silent);
        // Only idempotent requests are sent a second time, and then they are counted.
        let (resent, reset) = match method {
            "GET" => (truth.reset_later, truth.reset_first),
            _ => (0, truth.reset_later + truth.reset_first),
        };
        assert_eq!(sum.stale_retries, resent, "{method}: {truth:?}");
        assert_eq!(observed.errors(ErrorClass::Reset), truth.cut_short + reset);
        assert_eq!(
            observed.errors(ErrorClass::Connect) + observed.errors(ErrorClass::Check),
            0
        );
        assert_eq!(sum.transactions + sum.errors, u64::from(SESSIONS));
        assert_eq!(
            sum.transactions + sum.errors + sum.stale_retries,
            truth.requests
        );
        // Each ended connection with later requests cost a new one.
        let ends = truth.closed_after + truth.cut_short + truth.silent;
        let ends = ends + truth.reset_first + truth.reset_later;
        assert!(
            (ends..=ends + 1).contains(&sum.connects),
            "{} of {ends}",
            sum.connects
        );
        // Two modes: no slow response is recorded as a quick one.
        let times = observed.times(0);
        let slow_us = SLOW.as_micros() as u64;
        assert!(times.len() - times.count_between(0, slow_us - 100) >= truth.slow);
    }
}

/// The body is returned while it is still being sent: neither side's buffers hold it.
#[test]
fn an_answer_that_begins_before_the_request_is_sent_is_read_meanwhile() {
    const BYTES: usize = 8 << 20;
    let server = Server::start(|mut peer| {
        let stream = &mut peer.stream;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\n\r\n");
        stream.write_all(answer.as_bytes()).unwrap();
        let (mut left, mut space) = (BYTES, vec![0; 16 << 10]);
        while left > 0 {
            let count = stream.read(&mut space).unwrap();
            // The server reads no further before this is read.
            if count == 0 || stream.write_all(&space[..count]).is_err() {
                return;
            }
            left -= count;
        }
    });
    let make = Make::new(&[]).step_with(Wait::None, "POST /", |mut request, make| {
        request.body = Body::Text(make.template(&"x".repeat(BYTES)));
        request
    });
    let mut drive = make.drive(&server.base());
    drive.kind = LoadKind::Sequence {
        sessions: 1,
        shared: false,
    };
    drive.limits.request_timeout = Duration::from_secs(120);
    let observed = run(drive);
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (1, 0),
        "{:?}",
        observed.examples
    );
    let bytes: u64 = observed
        .windows
        .iter()
        .map(|window| window.steps[0].counts.bytes)
        .sum();
    assert_eq!(bytes, BYTES as u64);
}

/// A server that responds before it has read everything: its response counts, and its connection isn't reused.
#[test]
fn an_answer_to_half_a_request_counts() {
    // The server keeps the connections and reads nothing more.
    let held = Mutex::new(Vec::new());
    let server = Server::start(move |mut peer| {
        let mut head = [0; 64];
        if peer.stream.read_exact(&mut head).is_ok() {
            peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            held.lock().unwrap().push(peer.stream.try_clone().unwrap());
        }
    });
    let make = Make::new(&[]).step_with(Wait::None, "PUT /", |mut request, make| {
        request.body = Body::Text(make.template(&"x".repeat(32 << 20)));
        request
    });
    let mut drive = make.drive(&server.base());
    drive.kind = LoadKind::Sequence {
        sessions: 2,
        shared: false,
    };
    drive.limits.request_timeout = Duration::from_secs(120);
    drive.limits.failure_pause = ms(1);
    let observed = run(drive);
    assert_eq!(
        observed.errors(ErrorClass::Status),
        2,
        "{:?}",
        observed.examples
    );
    assert_eq!(observed.summary.connects, 2);
}

type Expects<'a> = Box<dyn Fn(&Make) -> Expectation + 'a>;

/// A response without an expected part is a failure, and the example has the actual value.
#[test]
fn an_answer_without_what_is_expected_is_a_failure() {
    let answer = |body: &str| ok(body).replace("\r\n\r\n", "\r\nX-Kind: plain text\r\n\r\n");
    let server = Server::answering(move |seen| {
        answer(match seen.line.as_str() {
            "GET /well" => r#"{"state":"open","items":[{"n":1},{"n":2}]}"#,
            "GET /else" => r#"{"state":"shut","items":[]}"#,
            _ => "not JSON, but welcome",
        })
    });
    let json = |path: &str, value: &str, make: &Make| Expectation::Json {
        path: Box::new(lab_workload::JsonPath::parse(path).unwrap()),
        value: make.template(value),
    };
    let header = |name: &str, text: &str, make: &Make| Expectation::Header {
        name: name.to_owned(),
        text: make.template(text),
    };
    let cases: Vec<(&str, Expects<'_>, Option<&str>)> = vec![
        ("well", Box::new(|make| json("$.state", "open", make)), None),
        (
            "well",
            Box::new(|make| json("$.items[*].n", "2", make)),
            None,
        ),
        (
            "well",
            Box::new(|make| json("$.state", "{{ wanted }}", make)),
            None,
        ),
        (
            "well",
            Box::new(|make| header("x-kind", "plain", make)),
            None,
        ),
        ("well", Box::new(|make| header("x-kind", "", make)), None),
        (
            "text",
            Box::new(|make| Expectation::Contains(make.template("welcome"))),
            None,
        ),
        (
            "else",
            Box::new(|make| json("$.state", "open", make)),
            Some("`$.state` is `shut`, not `open`; status 200: {\"state\":\"shut\""),
        ),
        (
            "else",
            Box::new(|make| json("$.items[*].n", "2", make)),
            Some("`$.items[*].n` is nothing, not `2`"),
        ),
        (
            "text",
            Box::new(|make| json("$.state", "open", make)),
            Some("not JSON: "),
        ),
        (
            "well",
            Box::new(|make| Expectation::Contains(make.template("closed"))),
            Some("the body doesn't contain `closed`"),
        ),
        (
            "well",
            Box::new(|make| header("x-kind", "html", make)),
            Some("header `x-kind` is `plain text`, without `html`"),
        ),
        (
            "well",
            Box::new(|make| header("x-none", "", make)),
            Some("no header `x-none`"),
        ),
    ];
    meet(&server, cases);
}

/// Requests each path twice. Its responses meet the expectation or fail with an example that contains the text.
fn meet(server: &Server, cases: Vec<(&str, Expects<'_>, Option<&str>)>) {
    for (path, expects, fails) in cases {
        let make = Make::new(&["wanted"]).user("wanted", "open").step_with(
            Wait::None,
            &format!("GET /{path}"),
            |mut request, make| {
                request.answer = vec![expects(make)];
                request
            },
        );
        let mut drive = make.drive(&server.base());
        drive.kind = LoadKind::Sequence {
            sessions: 2,
            shared: false,
        };
        let observed = run(drive);
        let failed = observed.errors(ErrorClass::Check);
        assert_eq!(
            observed.summary.transactions + failed,
            2,
            "{:?}",
            observed.examples
        );
        match fails {
            None => assert_eq!(failed, 0, "{path}: {:?}", observed.examples),
            Some(text) => {
                assert_eq!(failed, 2, "{path}: {text}");
                assert!(
                    observed.examples[0].1.contains(text),
                    "{:?}",
                    observed.examples
                );
            }
        }
    }
}

#[test]
fn absent_null_and_present_are_three_states() {
    let server = Server::answering(|seen| {
        ok(match seen.line.as_str() {
            "GET /value" => r#"{"a":0,"list":[null,1]}"#,
            "GET /null" => r#"{"a":null,"list":[null]}"#,
            _ => r#"{"list":[]}"#,
        })
    });
    let found = |path: &'static str, state| -> Expects<'_> {
        let path = Box::new(lab_workload::JsonPath::parse(path).unwrap());
        Box::new(move |_| Expectation::Found {
            path: path.clone(),
            state,
        })
    };
    let (absent, null, present) = (JsonState::Absent, JsonState::Null, JsonState::Present);
    let cases = vec![
        ("value", found("$.a", present), None),
        ("null", found("$.a", null), None),
        ("none", found("$.a", absent), None),
        ("value", found("$.list[*]", present), None),
        ("value", found("$.list[?@ == null]", null), None),
        ("none", found("$.list[*]", absent), None),
        (
            "value",
            found("$.a", absent),
            Some("`$.a` is `0`, not absent"),
        ),
        ("value", found("$.a", null), Some("`$.a` is `0`, not null")),
        (
            "null",
            found("$.a", absent),
            Some("`$.a` is `null`, not absent"),
        ),
        (
            "null",
            found("$.a", present),
            Some("`$.a` is `null`, not present"),
        ),
        (
            "null",
            found("$.list[*]", present),
            Some("`$.list[*]` is `null`, not present"),
        ),
        (
            "none",
            found("$.a", null),
            Some("`$.a` is absent, not null"),
        ),
        (
            "none",
            found("$.a", present),
            Some("`$.a` is absent, not present"),
        ),
    ];
    meet(&server, cases);
}

#[test]
fn numbers_are_compared_by_value() {
    let server = Server::answering(|_| {
        ok(r#"{"one":1.0,"price":1.10,"big":18446744073709551557,"text":"5","many":[1,20]}"#)
    });
    let is = |path: &'static str, value: &'static str| -> Expects<'_> {
        let path = Box::new(lab_workload::JsonPath::parse(path).unwrap());
        Box::new(move |make: &Make| {
            let (path, value) = (path.clone(), make.template(value));
            match Comparison::split(value.source()) {
                Some((comparison, rest)) => Expectation::Number {
                    path,
                    comparison,
                    value: make.template(rest),
                },
                None => Expectation::Json { path, value },
            }
        })
    };
    let cases = vec![
        ("", is("$.one", "1"), None),
        ("", is("$.price", "1.1"), None),
        ("", is("$.big", "18446744073709551557"), None),
        ("", is("$.big", "> 18446744073709551556"), None),
        ("", is("$.one", "<= 1"), None),
        ("", is("$.many[*]", ">= 20.0"), None),
        ("", is("$.one", "< 1.5"), None),
        ("", is("$.one", "> 1"), Some("`$.one` is `1.0`, not > 1;")),
        (
            "",
            is("$.big", "18446744073709551558"),
            Some("`$.big` is `18446744073709551557`, not `18446744073709551558`"),
        ),
        (
            "",
            is("$.text", "> 1"),
            Some("`$.text` is `5`, which is no number, not > 1"),
        ),
        (
            "",
            is("$.none", "> 1"),
            Some("`$.none` is nothing, not > 1"),
        ),
        (
            "",
            is("$.one", "> {{ wanted }}"),
            Some("can't be compared with `open`, which is no number"),
        ),
    ];
    meet(&server, cases);
}

#[test]
fn errors_of_graphql_are_failures_whatever_the_status() {
    let server = Server::answering(|seen| {
        ok(match seen.line.as_str() {
            "GET /good" => r#"{"data":{"me":null}}"#,
            "GET /empty" => r#"{"data":{},"errors":[]}"#,
            "GET /null" => r#"{"data":{},"errors":null}"#,
            "GET /bad" => r#"{"data":null,"errors":[{"message":"no field `x`"},{"message":"y"}]}"#,
            "GET /odd" => r#"{"errors":"down"}"#,
            "GET /neither" => "{}",
            "GET /list" => "[]",
            _ => "<html>",
        })
    });
    let graphql = || -> Expects<'_> { Box::new(|_| Expectation::Graphql) };
    let cases = vec![
        ("good", graphql(), None),
        ("empty", graphql(), None),
        ("null", graphql(), None),
        (
            "bad",
            graphql(),
            Some("GraphQL reports `no field `x`` and 1 more; status 200"),
        ),
        ("odd", graphql(), Some("GraphQL reports `\"down\"`;")),
        ("neither", graphql(), Some("neither `data` nor `errors`")),
        ("list", graphql(), Some("it is no JSON object")),
        ("page", graphql(), Some("not JSON")),
    ];
    meet(&server, cases);
}

#[test]
fn a_text_is_not_contained_and_a_time_is_kept() {
    let server = Server::answering(|_| ok("Traceback of an error"));
    let not = |text: &'static str| -> Expects<'_> {
        Box::new(move |make: &Make| Expectation::NotContains(make.template(text)))
    };
    let below = |below| -> Expects<'_> { Box::new(move |_| Expectation::Time { below }) };
    let cases = vec![
        ("", not("Fatal"), None),
        (
            "",
            not("Traceback"),
            Some("the body contains `Traceback`; status 200"),
        ),
        ("", below(Duration::from_secs(3600)), None),
        (
            "",
            below(Duration::from_nanos(1)),
            Some(", not less than 1ns; status 200"),
        ),
    ];
    meet(&server, cases);
}
