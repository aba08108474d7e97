//! Behaviour of browsers and curl besides requests and responses: cookies of the workload, closed connections, and
//! responses in odd forms.

use lab_driver::ErrorClass;
use lab_workload::{CaptureSource, OwnCookie, Request, Wait};

use crate::common::{Make, Seen, Server, ms, ok, run_until};

fn cookie(make: &Make, name: &str, value: &str, is_default: bool) -> OwnCookie {
    OwnCookie {
        name: name.to_owned(),
        value: make.template(value),
        is_default,
    }
}

#[test]
fn cookies_of_the_workload_go_out_beside_those_of_the_server() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /login" => "HTTP/1.1 200 OK\r\nSet-Cookie: sid=theirs; Path=/\r\nX-Token: abc\r\n\
                         Content-Length: 0\r\n\r\n"
            .to_owned(),
        _ => ok(""),
    });
    let defaults = |make: &Make| {
        vec![
            cookie(make, "sid", "mine", true),
            cookie(make, "token", "{{ token }}", true),
        ]
    };
    let make = Make::new(&["token"])
        .step_with(Wait::Constant(ms(5)), "GET /login", |mut request, make| {
            request.cookies = defaults(make);
            let token = CaptureSource::Header("x-token".to_owned());
            request.captures = vec![make.capture("token", token)];
            request
        })
        .step_with(Wait::None, "GET /page", |mut request, make| {
            request.cookies = defaults(make);
            request
        })
        .step_with(Wait::None, "GET /own", |mut request, make| {
            request.cookies = vec![
                cookie(make, "sid", "other", false),
                // In the form of a header.
                cookie(make, "", "a=1; b={{ token }}", false),
            ];
            request
        });
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let seen = server.seen();
    let cookies: Vec<_> = seen
        .iter()
        .take(3)
        .map(|seen| seen.header("cookie"))
        .collect();
    let expected = [
        Some("sid=mine"),
        Some("token=abc; sid=theirs"),
        Some("sid=other; a=1; b=abc"),
    ];
    assert_eq!(cookies, expected);
}

#[test]
fn a_redirect_takes_the_requests_cookies_along() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /old" => {
            "HTTP/1.1 302 Found\r\nLocation: /caf\u{e9}\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        _ => ok(""),
    });
    let make =
        Make::new(&[]).step_with(Wait::Constant(ms(5)), "GET /old", |request, make| Request {
            cookies: vec![cookie(make, "consent", "yes", false)],
            follow: 1,
            ..request
        });
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 2);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let seen = server.seen();
    assert_eq!(seen[1].line, "GET /caf%C3%A9");
    assert_eq!(seen[1].header("cookie"), Some("consent=yes"));
}

#[test]
fn bytes_of_a_location_that_are_no_utf8_are_percent_encoded() {
    let server = Server::start(|mut peer: crate::common::Peer<_>| {
        while let Some(seen) = peer.request() {
            let sent = match seen.line.as_str() {
                "GET /old" => peer.send(
                    &b"HTTP/1.1 302 Found\r\nLocation: /caf\xe9\r\nContent-Length: 0\r\n\r\n"[..],
                ),
                _ => peer.ok(""),
            };
            if !sent {
                return;
            }
        }
    });
    let make = Make::new(&[]).step_with(Wait::Constant(ms(5)), "GET /old", |request, _| Request {
        follow: 1,
        ..request
    });
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 2);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(server.seen()[1].line, "GET /caf%E9");
}

#[test]
fn connection_close_opens_a_connection_for_each_request() {
    let server = Server::answering(|_: &Seen| ok(""));
    let make = Make::new(&[]).step_with(Wait::Constant(ms(5)), "GET /", |mut request, make| {
        request.headers = vec![("Connection".to_owned(), make.template("close"))];
        request
    });
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 3);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let seen = server.seen();
    assert_eq!(seen[0].header("connection"), Some("close"));
    // The server would have kept each of them.
    for (at, seen) in seen.iter().enumerate() {
        assert_eq!(seen.connection, at);
    }
}

#[test]
fn json_may_begin_with_a_byte_order_mark() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /first" => ok("\u{feff}{\"id\": 17, \"list\": [1, 2]}"),
        _ => ok(""),
    });
    let make = Make::new(&["id", "deep"])
        .step_with(Wait::Constant(ms(5)), "GET /first", |mut request, make| {
            request.captures = vec![make.json("id", "$.id"), make.json("deep", "$..list[1]")];
            request
        })
        .step(Wait::None, "GET /then/{{ id }}/{{ deep }}");
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 2);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(server.seen()[1].line, "GET /then/17/2");
}

#[test]
fn a_longer_body_than_the_workload_takes_is_an_error() {
    let server = Server::answering(|_: &Seen| ok(&"x".repeat(2000)));
    for (max_body, errors) in [(Some(1000), true), (Some(2000), false), (None, false)] {
        let mut make = Make::new(&[]).step(Wait::Constant(ms(5)), "GET /");
        make.workload.max_body = max_body;
        let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 1);
        let failed = observed.errors(ErrorClass::Check);
        assert_eq!(failed > 0, errors, "{max_body:?}: {:?}", observed.examples);
        if errors {
            assert!(
                observed.examples[0].1.contains("`max_body`"),
                "{:?}",
                observed.examples
            );
        }
    }
}

#[test]
fn a_post_on_a_connection_that_the_server_closed_has_the_cause_in_its_error() {
    let server = Server::start(|mut peer: crate::common::Peer<_>| {
        if peer.request().is_some() {
            peer.ok("");
        }
        // The next request is read and gets no response.
        peer.request();
    });
    let make = Make::new(&[])
        .step(Wait::None, "GET /first")
        .step(Wait::None, "POST /second");
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.errors(ErrorClass::Reset) >= 1
    });
    let said = &observed.examples[0].1;
    assert!(
        said.contains("closed a kept connection before any answer"),
        "{said}"
    );
}
