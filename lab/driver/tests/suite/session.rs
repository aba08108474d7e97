//! The requests of a user's session: identity, cookies, bodies, captured values, and skipped steps.

use crate::common::{Make, Seen, Server, ms, ok, run_until};
use lab_driver::ErrorClass;
use lab_workload::Template;
use lab_workload::template::Escape;
use lab_workload::{Body, CaptureSource, Wait};

/// Runs `make` until its last step was done `times` times. Returns the received requests.
fn drive(make: Make, server: &Server, times: u64) -> (Vec<Seen>, crate::common::Observed) {
    let last = make.workload.session.steps.len() - 1;
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(last) + observed.skipped(last) >= times
    });
    (server.seen(), observed)
}

#[test]
fn one_user_keeps_one_connection_and_says_who_it_is() {
    let server = Server::answering(|_| ok("x"));
    let (seen, observed) = drive(Make::new(&[]).step(Wait::None, "GET /a?b=c"), &server, 50);
    assert_eq!((observed.summary.connects, observed.summary.errors), (1, 0));
    let first = &seen[0];
    assert_eq!(first.line, "GET /a?b=c");
    assert_eq!(first.header("Host").unwrap(), server.base().authority());
    assert!(first.header("User-Agent").unwrap().starts_with("plimsoll/"));
    assert_eq!(
        (first.header("Content-Length"), first.header("Cookie")),
        (None, None)
    );
}

#[test]
fn a_closing_server_gets_a_new_connection_per_request() {
    let server = Server::answering(|_| {
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx".to_owned()
    });
    let (seen, observed) = drive(
        Make::new(&[]).step(Wait::Constant(ms(2)), "GET /"),
        &server,
        5,
    );
    assert!(
        seen.windows(2)
            .all(|pair| pair[0].connection != pair[1].connection)
    );
    assert_eq!(
        (observed.summary.errors, observed.summary.stale_retries),
        (0, 0)
    );
}

#[test]
fn a_connection_idle_for_too_long_is_replaced() {
    let server = Server::answering(|_| ok(""));
    let mut drive = Make::new(&[])
        .step(Wait::Constant(ms(20)), "GET /")
        .drive(&server.base());
    drive.limits.keep_alive_idle = ms(10);
    let observed = run_until(drive, |observed| observed.done() >= 4);
    assert!(
        observed.summary.connects >= 4,
        "{}",
        observed.summary.connects
    );
    assert_eq!(observed.summary.stale_retries, 0);
}

#[test]
fn cookies_come_back_and_go_when_they_are_removed() {
    let server = Server::answering(|seen| {
        let set = match seen.line.as_str() {
            "POST /login" => {
                "Set-Cookie: id=s3cret; Path=/; HttpOnly\r\nSet-Cookie: x=1; Secure\r\n"
            }
            "POST /logout" => "Set-Cookie: id=; Path=/; Max-Age=0\r\n",
            _ => "",
        };
        format!("HTTP/1.1 200 OK\r\n{set}Content-Length: 0\r\n\r\n")
    });
    let make = Make::new(&["id"])
        .step_with(Wait::None, "POST /login", |mut request, make| {
            request
                .captures
                .push(make.capture("id", CaptureSource::Cookie("id".to_owned())));
            request
        })
        .step(Wait::None, "GET /in/{{ id }}")
        .step(Wait::None, "POST /logout")
        .step(Wait::None, "GET /out");
    let (seen, observed) = drive(make, &server, 1);
    let cookies: Vec<_> = seen[..4].iter().map(|s| s.header("Cookie")).collect();
    assert_eq!(cookies, [None, Some("id=s3cret"), Some("id=s3cret"), None]);
    assert_eq!(seen[1].line, "GET /in/s3cret");
    assert_eq!(observed.summary.errors, 0);
}

#[test]
fn bodies_credentials_and_headers_are_sent_as_written() {
    let server = Server::answering(|_| ok(""));
    let names = ["name".to_owned()];
    let make = Make::new(&["name"])
        .user("name", "user {{ index }}\"")
        .step_with(Wait::None, "PUT /json", |mut request, _| {
            let text = "{{ name }}";
            let template = Template::parse_escaped(text, &names, Escape::JsonValue).unwrap();
            request.body = Body::Json(template);
            request
        })
        .step_with(Wait::None, "POST /form", |mut request, _| {
            let value = Template::parse_escaped("{{ name }}", &names, Escape::Form).unwrap();
            request.body = Body::Form(vec![
                ("user".to_owned(), value),
                ("go".to_owned(), Template::literal("1")),
            ]);
            request
        })
        .step_with(Wait::None, "POST /text", |mut request, make| {
            request.body = Body::Text(Template::literal("ä"));
            request.headers = vec![
                ("Content-Type".to_owned(), Template::literal("text/x")),
                ("Content-Length".to_owned(), Template::literal("999")),
                ("X-Who".to_owned(), make.template("{{ name }}")),
            ];
            request.basic_auth = Some((make.template("u{{ index }}"), Template::literal("p:w")));
            request
        })
        .step(Wait::None, "POST /empty")
        .step(Wait::None, "GET /a b\u{e4}?q={{ name }}");
    let (seen, observed) = drive(make, &server, 1);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(seen[0].body, r#""user 0\"""#);
    assert_eq!(seen[0].header("Content-Type"), Some("application/json"));
    assert_eq!(
        seen[1].header("Content-Type"),
        Some("application/x-www-form-urlencoded")
    );
    assert!(["user=user%200%22&go=1", "user=user+0%22&go=1"].contains(&seen[1].body.as_str()));
    assert_eq!(seen[2].body, "ä");
    assert_eq!(
        seen[2]
            .headers
            .iter()
            .filter(|h| h.starts_with("Content-"))
            .count(),
        2
    );
    assert_eq!(seen[2].header("Content-Type"), Some("text/x"));
    assert_eq!(seen[2].header("X-Who"), Some("user 0\""));
    assert_eq!(seen[2].header("Authorization"), Some("Basic dTA6cDp3"));
    assert_eq!(seen[3].header("Content-Length"), Some("0"));
    assert_eq!(seen[4].line, "GET /a%20b%C3%A4?q=user%200\"");
}

#[test]
fn no_value_can_smuggle_a_header_in() {
    let server = Server::answering(|_| ok(""));
    let make = Make::new(&["evil"])
        .user("evil", "x\r\nX-Evil: 1")
        .step(Wait::None, "GET /{{ evil }}")
        .step_with(Wait::None, "GET /header", |mut request, make| {
            request.headers = vec![("X-A".to_owned(), make.template("{{ evil }}"))];
            request
        })
        .step(Wait::None, "GET {{ evil }}")
        .step(Wait::None, "GET /end");
    let (seen, observed) = drive(make, &server, 1);
    assert_eq!(seen[0].line, "GET /x%0D%0AX-Evil:%201");
    assert!(seen.iter().all(|s| s.header("X-Evil").is_none()));
    assert!(!server.lines().contains(&"GET /header".to_owned()));
    assert_eq!(observed.errors(ErrorClass::Check), observed.summary.errors);
    assert!(
        observed.examples[0].1.contains("control character"),
        "{:?}",
        observed.examples
    );
    assert!(
        observed.examples[1].1.contains("neither a path"),
        "{:?}",
        observed.examples
    );
}

/// A list of two is captured; the third "open one" finds it empty.
#[test]
fn an_empty_list_skips_its_step_and_all_that_hangs_on_it() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /list" => ok(r#"{"items":[{"href":"/i/1"},{"href":"/i/2"}]}"#),
        _ => ok(""),
    });
    let mut make =
        Make::new(&["items", "item"]).step_with(Wait::None, "GET /list", |mut r, make| {
            r.captures.push(make.json("items", "$.items[*].href"));
            r
        });
    for _ in 0..3 {
        make = make
            .step_with(
                Wait::Constant(ms(1)),
                "GET {{ take(items) }}?x=1",
                |mut r, make| {
                    r.captures
                        .push(make.capture("item", CaptureSource::RequestPath));
                    r
                },
            )
            .step(Wait::Constant(ms(1)), "PUT {{ item }}/action?type=accept");
    }
    let (seen, observed) = drive(make, &server, 1);
    let lines: Vec<_> = seen.iter().map(|s| s.line.as_str()).take(5).collect();
    assert_eq!(
        lines,
        [
            "GET /list",
            "GET /i/1?x=1",
            "PUT /i/1/action?type=accept",
            "GET /i/2?x=1",
            "PUT /i/2/action?type=accept"
        ]
    );
    assert!(
        observed.skipped(5) >= 1 && observed.skipped(6) >= 1,
        "the older item must not be used again"
    );
    assert_eq!(
        observed.summary.skipped,
        observed.skipped(5) + observed.skipped(6)
    );
    assert_eq!(observed.summary.errors, 0);
    let waits: u64 = observed
        .windows
        .iter()
        .map(|w| w.steps[5].counts.waits)
        .sum();
    assert!(
        waits >= observed.skipped(5),
        "a skipped step has waited too"
    );
}

#[test]
fn a_failed_request_leaves_nothing_captured_and_ends_its_step() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::answering(move |seen| match seen.line.as_str() {
        "GET /list" if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => ok("[1,2]"),
        "GET /list" => "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok(""),
    });
    let mut make = Make::new(&["items"]).step_with(Wait::None, "GET /list", |mut r, make| {
        r.captures.push(make.json("items", "$[*]"));
        r
    });
    let second = make.request("GET /second");
    make.workload.session.steps[0].requests.push(second);
    let make = make.step(Wait::Constant(ms(1)), "GET /item/{{ pick(items) }}");
    let (_, observed) = drive(make, &server, 3);
    let count = |line: &str| server.lines().iter().filter(|l| *l == line).count();
    assert_eq!(count("GET /second"), 1);
    assert_eq!(count("GET /item/1") + count("GET /item/2"), 1);
    assert!(observed.skipped(1) >= 2);
}

#[test]
fn captures_that_the_answer_lacks_are_checks() {
    let server = Server::answering(|_| ok("no json"));
    let lacks = |source: fn(&Make) -> lab_workload::Capture, text: &str| {
        let make = Make::new(&["v"]).step_with(Wait::Constant(ms(1)), "GET /", |mut r, make| {
            r.captures.push(source(make));
            r
        });
        let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 1);
        assert!(observed.errors(ErrorClass::Check) >= 1);
        assert!(
            observed.examples[0].1.contains(text),
            "{:?}",
            observed.examples
        );
    };
    lacks(|m| m.json("v", "$"), "not JSON");
    lacks(
        |m| m.capture("v", CaptureSource::Header("location".to_owned())),
        "no header `location`",
    );
    lacks(
        |m| m.capture("v", CaptureSource::Cookie("s".to_owned())),
        "no cookie `s`",
    );
    let regex = |m: &Make| {
        m.capture(
            "v",
            CaptureSource::Regex(Box::new(lab_workload::Pattern::parse("(xyz)").unwrap())),
        )
    };
    lacks(regex, "no match of `(xyz)`");
}

#[test]
fn an_absolute_url_of_another_server_gets_no_cookies() {
    let other = Server::answering(|_| ok(""));
    let there = format!("{}/there", other.base());
    let server = Server::answering(move |seen| match seen.line.as_str() {
        "GET /link" => format!(
            "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n"
        ),
        _ => ok(""),
    });
    let base = server.base();
    let make = Make::new(&["link"])
        .step_with(Wait::None, "GET /link", |mut r, make| {
            r.captures
                .push(make.capture("link", CaptureSource::Header("location".to_owned())));
            r
        })
        .step(Wait::None, "GET {{ link }}")
        .step(Wait::None, &format!("GET {base}/back"));
    let (seen, observed) = drive(make, &server, 1);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let there = &other.seen()[0];
    assert_eq!(
        (there.line.as_str(), there.header("Cookie")),
        ("GET /there", None)
    );
    assert_eq!(there.header("Host").unwrap(), other.base().authority());
    assert_eq!(
        (seen[1].line.as_str(), seen[1].header("Cookie")),
        ("GET /back", Some("a=1"))
    );
}
