//! Redirects over real sockets: followed hop by hop as one request, or an error with a hint.

use std::time::Duration;

use crate::common::{Make, Observed, Seen, Server, ms, run_until};
use lab_driver::{Assignment, ErrorClass};
use lab_workload::{Body, Wait};

fn to(status: u16, location: &str) -> String {
    format!("HTTP/1.1 {status} X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n")
}

fn fine() -> String {
    crate::common::ok("{\"at\":\"home\"}")
}

fn following(server: &Server, request: &str, follow: u32) -> Assignment {
    let make = Make::new(&["at"]);
    let body = make.template("name=anna");
    make.step_with(Wait::Constant(ms(5)), request, |mut request, make| {
        request.follow = follow;
        request.captures = vec![make.json("at", "$.at")];
        if request.method == "POST" {
            request.body = Body::Text(body);
        }
        request
    })
    .step(Wait::None, "GET /after?at={{ at }}")
    .drive(&server.base())
}

fn redirects(observed: &Observed) -> u64 {
    observed
        .windows
        .iter()
        .map(|w| w.steps[0].counts.hops)
        .sum()
}

/// Returns the method and target of each request, up to the first of these.
fn until(seen: &[Seen], last: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for one in seen {
        lines.push(one.line.clone());
        if one.line.starts_with(last) {
            break;
        }
    }
    lines
}

#[test]
fn a_request_with_its_redirects_is_one_transaction() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "POST /login" => {
            let cookie = "Set-Cookie: sid=1; Path=/\r\nContent-Length: 0";
            to(303, "first").replace("Content-Length: 0", cookie)
        }
        "GET /first" => to(302, "/second?x=1"),
        _ => fine(),
    });
    let observed = run_until(following(&server, "POST /login", 5), |observed| {
        observed.done() >= 4
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let seen = server.seen();
    let expected = [
        "POST /login",
        "GET /first",
        "GET /second?x=1",
        "GET /after?at=home",
    ];
    assert_eq!(until(&seen, "GET /after"), expected);
    assert_eq!(seen[0].body, "name=anna");
    assert_eq!(
        (seen[1].header("content-length"), &*seen[1].body),
        (None, "")
    );
    assert_eq!(seen[2].header("cookie"), Some("sid=1"));
    let sessions = observed.transactions(1);
    assert!(sessions >= 2);
    // The last session may be in progress.
    assert!((sessions..=sessions + 1).contains(&observed.transactions(0)));
    assert!(redirects(&observed) >= 2 * sessions && redirects(&observed) <= 2 * sessions + 2);
}

#[test]
fn a_circle_ends() {
    let server = Server::answering(|_| to(307, "/again"));
    let observed = run_until(following(&server, "GET /again", 3), |observed| {
        observed.errors(ErrorClass::Status) >= 1
    });
    let said = &observed.examples[0].1;
    assert_eq!(said, "status 307 after 3 redirects, another one to /again");
    // The last session may be in progress.
    let (hops, ended) = (redirects(&observed), observed.errors(ErrorClass::Status));
    assert!((3 * ended..=3 * ended + 3).contains(&hops));
    assert_eq!(observed.transactions(0), 0);
}

#[test]
fn without_leave_to_follow_the_error_says_where_it_leads() {
    let server = Server::answering(|_| to(302, "https://login.example.org/start"));
    let observed = run_until(following(&server, "GET /", 0), |observed| {
        observed.done() >= 1
    });
    let said = &observed.examples[0].1;
    let expected = "status 302, a redirect to https://login.example.org/start: say `follow: 5` to go \
                    there, or `expect: 302` if that is the answer";
    assert_eq!(said, expected);
}

#[test]
fn a_redirect_that_is_expected_is_the_answer() {
    let server = Server::answering(|_| to(302, "/elsewhere"));
    let drive = Make::new(&[])
        .step_with(Wait::Constant(ms(5)), "GET /", |mut request, _| {
            request.follow = 5;
            request.expect = vec![302..=302];
            request
        })
        .drive(&server.base());
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert_eq!((observed.summary.errors, redirects(&observed)), (0, 0));
    assert!(server.lines().iter().all(|line| line == "GET /"));
}

#[test]
fn another_server_gets_neither_cookie_nor_password() {
    let other = Server::answering(|_| fine());
    let there = format!("{}/there", other.base());
    let server = Server::answering(move |_| {
        let cookie = "Set-Cookie: sid=1; Path=/\r\nContent-Length: 0";
        to(302, &there).replace("Content-Length: 0", cookie)
    });
    let make = Make::new(&[]);
    let basic = (make.template("anna"), make.template("secret"));
    let drive = make
        .step_with(Wait::Constant(ms(5)), "GET /", |mut request, _| {
            request.follow = 5;
            request.basic_auth = Some(basic);
            request
        })
        .drive(&server.base());
    let observed = run_until(drive, |observed| observed.done() >= 4);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert!(server.seen()[0].header("authorization").is_some());
    let seen = other.seen();
    assert_eq!(seen[0].line, "GET /there");
    assert_eq!(seen[0].header("host"), Some(&*other.base().authority()));
    assert!(seen.iter().all(|one| one.header("cookie").is_none()));
    assert!(seen.iter().all(|one| one.header("authorization").is_none()));
}

#[test]
fn setup_and_probe_follow_too() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /begin" => to(302, "/ready"),
        "GET /health" => to(308, "/healthy"),
        _ => fine(),
    });
    let mut make = Make::new(&[])
        .setup("GET /begin")
        .step(Wait::Constant(ms(20)), "GET /own");
    make.workload.setup[0].requests[0].follow = 1;
    let mut request = make.request("GET /health");
    request.follow = 1;
    make.workload.probe = Some(lab_workload::Probe {
        request,
        every: Duration::from_millis(20),
    });
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(1) >= 4
    });
    assert_eq!(observed.setup, Some((2, 0, 0)));
    assert_eq!(
        (observed.summary.errors, observed.summary.probe_errors),
        (0, 0),
        "{:?}",
        observed.examples
    );
    let lines = server.lines();
    assert_eq!(&lines[..2], ["GET /begin", "GET /ready"]);
    assert!(lines.contains(&"GET /healthy".to_owned()));
}
