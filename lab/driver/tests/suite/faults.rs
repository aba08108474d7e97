//! Failures on the wire: each has its class, and the user continues.

use crate::common::{Make, Seen, Server, ms, ok, pass, run_until};
use lab_driver::{BaseUrl, ErrorClass};
use lab_workload::Wait;
use std::net::TcpListener;
use std::sync::Mutex;

fn get() -> Make {
    Make::new(&[]).step(Wait::Constant(ms(5)), "GET /")
}

/// Asserts that three responses of this kind are errors of `class`, with an example that contains `text`.
fn check(server: &Server, class: ErrorClass, text: &str) {
    let mut drive = get().drive(&server.base());
    drive.limits.max_response_bytes = 1000;
    drive.limits.max_header_bytes = 1000;
    if class == ErrorClass::Timeout {
        drive.limits.request_timeout = ms(60);
    }
    drive.limits.failure_pause = ms(5);
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert!(
        observed.errors(class) >= 3,
        "{class:?}: {:?}",
        observed.examples
    );
    assert_eq!(
        (observed.transactions(0), observed.errors(class)),
        (0, observed.summary.errors)
    );
    let says_so = |(_, detail): &(ErrorClass, String)| detail.contains(text);
    assert!(
        observed.examples.iter().any(says_so),
        "{:?}",
        observed.examples
    );
}

fn sends_and_closes(answer: &'static str) -> Server {
    Server::start(move |mut peer| {
        if peer.request().is_some() {
            peer.send(answer);
        }
    })
}

#[test]
fn truncated_answers_are_resets() {
    let nothing = sends_and_closes("");
    check(&nothing, ErrorClass::Reset, "before any answer came");
    for answer in [
        "HTT",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ] {
        check(
            &sends_and_closes(answer),
            ErrorClass::Reset,
            "before the answer was whole",
        );
    }
}

#[test]
fn answers_that_are_too_large_are_cut_off() {
    let head = format!("HTTP/1.1 200 OK\r\nA: {}\r\n\r\n", "x".repeat(2000));
    check(
        &Server::answering(move |_| head.clone()),
        ErrorClass::Check,
        "header section",
    );
    let body = ok(&"x".repeat(1001));
    check(
        &Server::answering(move |_| body.clone()),
        ErrorClass::Check,
        "longer than the workload's `max_body`",
    );
    let chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nxx\r\n".to_owned();
    let chunks = chunk + "3E8\r\n" + &"z".repeat(1000);
    check(
        &Server::answering(move |_| chunks.clone()),
        ErrorClass::Check,
        "longer than the workload's `max_body`",
    );
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(1001));
    check(
        &Server::answering(move |_| endless.clone()),
        ErrorClass::Check,
        "longer than the workload's `max_body`",
    );
}

#[test]
fn what_is_not_http_is_a_check() {
    check(
        &sends_and_closes("SSH-2.0-Server\r\n\r\n"),
        ErrorClass::Check,
        "not HTTP/1",
    );
    let broken = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n";
    check(&sends_and_closes(broken), ErrorClass::Check, "broken chunk");
    let switched = "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n";
    check(
        &sends_and_closes(switched),
        ErrorClass::Check,
        "switched protocols",
    );
}

#[test]
fn an_unexpected_status_shows_its_first_bytes() {
    let server = Server::answering(|_| {
        "HTTP/1.1 503 Busy\r\nContent-Length: 9\r\n\r\ncome\nback".to_owned()
    });
    check(&server, ErrorClass::Status, "status 503: come back");
}

#[test]
fn silence_is_a_timeout_and_its_connection_is_given_up() {
    let server = Server::start(|mut peer| {
        peer.request();
        // Until the client times out.
        assert!(peer.request().is_none());
    });
    check(
        &server,
        ErrorClass::Timeout,
        "no whole answer from / in time",
    );
    let seen = server.seen();
    assert!(
        seen.windows(2)
            .all(|pair| pair[0].connection != pair[1].connection)
    );
}

#[test]
fn a_dribbling_answer_times_out_as_a_whole() {
    let server = Server::start(|mut peer| {
        while peer.request().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nA: ");
            while peer.send("x") {
                pass(ms(10));
            }
        }
    });
    let mut drive = get().drive(&server.base());
    drive.limits.request_timeout = ms(50);
    let observed = run_until(drive, |observed| observed.done() >= 2);
    assert!(
        observed.errors(ErrorClass::Timeout) >= 2,
        "{:?}",
        observed.examples
    );
}

#[test]
fn a_closed_port_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base: BaseUrl = format!("http://{}", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    drop(listener);
    let mut drive = get().drive(&base);
    drive.limits.failure_pause = ms(5);
    let observed = run_until(drive, |observed| observed.done() >= 3);
    assert!(observed.errors(ErrorClass::Connect) >= 3);
    assert!(
        observed.examples[0].1.contains("refused"),
        "{:?}",
        observed.examples
    );
}

#[test]
fn a_reset_is_a_reset() {
    let server = Server::start(|mut peer| {
        peer.request();
        let socket = socket2::SockRef::from(&peer.stream);
        socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    });
    check(&server, ErrorClass::Reset, "before any answer came");
}

/// Responds to the first request of each connection; the second finds the connection closed.
fn closes_after_one(then: impl Fn(&Seen) -> bool + Send + Sync + 'static) -> Server {
    Server::start(move |mut peer| {
        if peer.request().is_some() {
            peer.ok("");
        }
        while let Some(seen) = peer.request() {
            if then(&seen) {
                return;
            }
            peer.ok("");
        }
    })
}

#[test]
fn a_connection_closed_while_idle_is_replaced_unseen() {
    let server = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.ok("");
        }
    });
    let observed = run_until(get().drive(&server.base()), |observed| observed.done() >= 5);
    assert_eq!(
        (observed.summary.errors, observed.transactions(0) >= 5),
        (0, true)
    );
    assert!(observed.summary.connects >= 5);
}

#[test]
fn a_request_on_a_stale_connection_is_sent_once_more() {
    let retried = Mutex::new(Vec::new());
    let server = closes_after_one(move |seen| {
        let mut retried = retried.lock().unwrap();
        let first = !retried.contains(&seen.connection);
        retried.push(seen.connection);
        first
    });
    let observed = run_until(get().drive(&server.base()), |observed| observed.done() >= 6);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert!(observed.summary.stale_retries >= 3);
    // Each retry shows as one more request than there were responses; nothing else is sent twice.
    let sent = server.seen().len() as u64;
    assert!(sent <= observed.summary.transactions + observed.summary.stale_retries + 1);
}

#[test]
fn what_has_begun_to_be_answered_is_never_sent_twice() {
    let server = Server::start(|mut peer| {
        if peer.request().is_some() {
            peer.ok("");
        }
        if peer.request().is_some() {
            peer.send("H");
        }
    });
    let observed = run_until(get().drive(&server.base()), |observed| observed.done() >= 6);
    assert_eq!(observed.summary.stale_retries, 0);
    assert!(observed.errors(ErrorClass::Reset) >= 2);
}

#[test]
fn a_retry_that_fails_too_is_an_error() {
    let first = Mutex::new(true);
    let server = Server::start(move |mut peer| {
        let was_first = std::mem::replace(&mut *first.lock().unwrap(), false);
        if peer.request().is_some() && was_first {
            peer.ok("");
            peer.request();
        }
    });
    let mut drive = get().drive(&server.base());
    drive.limits.failure_pause = ms(5);
    let observed = run_until(drive, |observed| observed.done() >= 4);
    assert_eq!(
        (observed.transactions(0), observed.summary.stale_retries),
        (1, 1)
    );
    assert!(observed.errors(ErrorClass::Reset) >= 3);
}

#[test]
fn a_post_is_never_sent_twice() {
    let server = closes_after_one(|_| true);
    let post = Make::new(&[]).step(Wait::Constant(ms(5)), "POST /");
    let mut drive = post.drive(&server.base());
    drive.limits.failure_pause = ms(5);
    let observed = run_until(drive, |observed| observed.done() >= 6);
    assert_eq!(observed.summary.stale_retries, 0);
    assert!(
        observed.errors(ErrorClass::Reset) >= 2,
        "{:?}",
        observed.examples
    );
}

#[test]
fn what_a_hanging_server_never_answers_is_counted_at_the_end() {
    let server = Server::start(|mut peer| {
        // The second request is read and gets no response.
        if peer.request().is_some() {
            peer.ok("");
            while peer.request().is_some() {}
        }
    });
    let mut drive = get().drive(&server.base());
    drive.users = 3;
    let observed = run_until(drive, |_| server.seen().len() == 6);
    let last = observed.windows.last().expect("windows");
    assert_eq!((observed.summary.errors, last.unanswered().0), (0, 3));
    assert!(!last.unanswered().1.is_zero());
    let before = &observed.windows[..observed.windows.len() - 1];
    assert!(before.iter().all(|window| window.unanswered().0 == 0));
}
