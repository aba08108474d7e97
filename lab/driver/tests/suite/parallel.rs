//! Parallel requests over real sockets: the sent requests, their connections, and the kept captures.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use h2::server::Builder;
use lab_driver::{Assignment, ErrorClass, Offer};
use lab_workload::{CaptureSource, ForEach, LoadKind, Parallel, Request, Step, Wait};

use crate::common::{Make, Seen, Server, ms, ok, run, run_until};
use crate::two::{Action, Two};

/// Returns one session of a page with these requests, of which those from `first` on are parallel.
pub(crate) fn page(
    make: Make,
    requests: Vec<Request>,
    first: usize,
    at_once: impl Into<Option<u32>>,
) -> Make {
    let parallel = Parallel {
        first,
        at_once: at_once.into(),
        stops: false,
        counts_as: vec![0; requests.len() - first],
        each: None,
    };
    let mut make = make;
    make.workload.session.steps.push(Step {
        parallel: Some(Box::new(parallel)),
        ..Step::of("Page", requests)
    });
    make
}

fn once(make: Make, server: &Server) -> Assignment {
    Assignment {
        kind: LoadKind::Sequence {
            sessions: 1,
            shared: false,
        },
        ..make.drive(&server.base())
    }
}

/// Responds late to every other request, so that responses arrive in another order than requests.
fn late_in_turn(seen: &Seen, late: usize) -> String {
    let number: usize = seen.line.rsplit('/').next().unwrap().parse().unwrap_or(0);
    if number % 2 == late {
        crate::common::pass(ms(40));
    }
    ok(&format!("{{\"n\":\"answer {number}\"}}"))
}

/// Returns the requests of a page with random values for each, to a server that is late with these.
fn drawn(late: usize) -> Vec<(String, String)> {
    let server = Server::answering(move |seen| late_in_turn(seen, late));
    let make = Make::new(&["first", "second"]);
    let request = |number: usize, name: &str| Request {
        headers: vec![("Draw".to_owned(), make.template("{{ random_text(9) }}"))],
        captures: vec![make.json(name, "$.n")],
        ..make.request(&format!("GET /{number}"))
    };
    let requests = vec![
        request(1, "first"),
        request(2, "first"),
        request(3, "second"),
        request(4, "second"),
    ];
    let mut make = page(make, requests, 0, 4);
    make = make.step(
        Wait::None,
        "GET /{{ first }}/{{ second }}?{{ random_text(9) }}",
    );
    let observed = run(once(make, &server));
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(
        observed.summary.connects, 5,
        "one for each, and the user's own"
    );
    let mut sent: Vec<(String, String)> = server
        .seen()
        .into_iter()
        .map(|seen| {
            (
                seen.line.clone(),
                seen.header("Draw").unwrap_or("").to_owned(),
            )
        })
        .collect();
    sent.sort();
    sent
}

#[test]
fn what_is_drawn_and_kept_does_not_depend_on_the_order_of_answers() {
    let sent = drawn(0);
    assert_eq!(sent, drawn(1));
    // The last capture of each name in the order of the file, whichever response arrived last.
    assert!(
        sent.iter()
            .any(|(line, _)| line.starts_with("GET /answer%202/answer%204?")),
        "{sent:?}"
    );
    let mut draws: Vec<&String> = sent.iter().map(|(_, draw)| draw).collect();
    draws.dedup();
    assert_eq!(draws.len(), 5, "each request has draws of its own");
}

#[test]
fn they_are_under_way_at_the_same_time_with_the_cookies_of_the_user() {
    let all_here = Arc::new(Barrier::new(3));
    let server = Server::answering(move |seen| match seen.line.as_str() {
        "GET /" => "HTTP/1.1 200 OK\r\nSet-Cookie: sid=7\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => {
            all_here.wait();
            ok("")
        }
    });
    let make = Make::new(&[]);
    let requests = ["GET /", "GET /a", "GET /b", "GET /c"].map(|line| make.request(line));
    let mut drive = once(page(make, requests.to_vec(), 1, 3), &server);
    drive.kind = LoadKind::Sequence {
        sessions: 3,
        shared: false,
    };
    let observed = run(drive);
    assert_eq!(
        (observed.summary.transactions, observed.summary.errors),
        (12, 0)
    );
    assert_eq!(
        observed.summary.connects, 4,
        "connections are kept from session to session"
    );
    let seen = server.seen();
    let parts = seen.iter().filter(|seen| seen.line != "GET /");
    assert!(
        parts
            .clone()
            .all(|seen| seen.header("Cookie") == Some("sid=7"))
    );
    assert_eq!(parts.count(), 9);
}

#[test]
fn a_request_goes_out_for_each_entry_of_a_list() {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /" => ok("{\"pictures\":[\"/1\",\"/2\",\"/3\",\"/4\"]}"),
        _ => ok(""),
    });
    let make = Make::new(&["pictures", "picture"]);
    let first = Request {
        captures: vec![make.json("pictures", "$.pictures[*]")],
        ..make.request("GET /")
    };
    let each = make.request("GET {{ picture }}");
    let mut make = page(make, vec![first, each], 1, 2);
    let parallel = make.workload.session.steps[0].parallel.as_mut().unwrap();
    parallel.each = Some(ForEach {
        list: 0,
        entry: 1,
        at_most: 3,
    });
    let observed = run(once(make, &server));
    let mut lines = server.lines();
    lines.sort();
    assert_eq!(lines, ["GET /", "GET /1", "GET /2", "GET /3"]);
    assert_eq!(observed.summary.errors, 0);
}

#[test]
fn one_that_fails_leaves_nothing_of_an_older_answer() {
    let asked = AtomicUsize::new(0);
    let server = Server::answering(move |seen| match seen.line.as_str() {
        "GET /a" if asked.fetch_add(1, Ordering::SeqCst) > 0 => {
            "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
        _ => ok("old"),
    });
    let make = Make::new(&["kept"]);
    let capture = make.capture("kept", CaptureSource::Body);
    let requests = ["GET /a", "GET /b"].map(|line| make.request(line));
    let [a, b] = requests;
    let a = Request {
        captures: vec![capture],
        ..a
    };
    let make = page(make, vec![a, b], 0, 2).step(Wait::None, "GET /{{ kept }}");
    let mut drive = once(make, &server);
    drive.kind = LoadKind::Sequence {
        sessions: 2,
        shared: false,
    };
    let observed = run(drive);
    assert_eq!(
        (observed.errors(ErrorClass::Status), observed.skipped(1)),
        (1, 1)
    );
    assert_eq!(
        observed.transactions(0),
        3,
        "the other one is sent all the same"
    );
}

#[test]
fn over_http_2_all_are_streams_of_the_users_connection() {
    for before in [0, 1] {
        let server = Two::start(Builder::new(), |_, _| {
            Action::Answers(10, Duration::from_millis(20))
        });
        let make = Make::new(&[]);
        let requests = ["GET /", "GET /a", "GET /b", "GET /c", "GET /d"];
        let requests = requests.map(|line| make.request(line)).to_vec();
        let make = page(make, requests, before, 100);
        let observed = run_until(server.drive(make), |observed| observed.done() >= 15);
        assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
        assert_eq!((observed.summary.connects, server.connections()), (1, 1));
        assert!(server.most() >= 4, "{} at once", server.most());
    }
}

#[test]
fn the_protocol_decides_how_many_go_out_unless_the_workload_says() {
    let many = |server: &Two, at_once: Option<u32>| {
        let make = Make::new(&[]);
        let requests = (0..20).map(|number| make.request(&format!("GET /{number}")));
        let requests = requests.collect();
        let mut drive = server.drive(page(make, requests, 0, at_once));
        drive.kind = LoadKind::Sequence {
            sessions: 1,
            shared: false,
        };
        drive
    };
    // The server doesn't respond before the last request has arrived.
    let all_here = |number: usize, _: &str| match number {
        19 => Action::Answers(10, Duration::ZERO),
        _ => Action::Answers(10, Duration::from_millis(300)),
    };
    let server = Two::start(Builder::new(), all_here);
    let observed = run(many(&server, None));
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 1));
    assert_eq!(server.most(), 20, "over HTTP/2");
    let server = Two::start(Builder::new(), all_here);
    let observed = run(many(&server, Some(6)));
    assert_eq!(
        (observed.summary.errors, server.most()),
        (0, 6),
        "as it says"
    );
    // One opens the connection, and the others use it once the server has chosen HTTP/2.
    let server = Two::secure(&["h2", "http/1.1"], all_here);
    let mut drive = many(&server, None);
    drive.protocol.offer = Offer::Auto;
    let observed = run(drive);
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 1));
    assert_eq!((server.connections(), server.most()), (1, 20));
}
