//! Streams of events over real sockets: each event is counted, with its arrival time.

use std::net::TcpStream;

use lab_counts::Hist;
use lab_driver::ErrorClass;
use lab_workload::{Events, Request, Template, Wait};

use crate::common::{Make, Observed, Peer, Server, ms, pass, run_until};

/// Sends an event every 30 ms, the first after 50 ms, and continues after the last wanted event.
fn talks(mut peer: Peer<TcpStream>) {
    while let Some(seen) = peer.request() {
        assert_eq!(seen.header("accept"), Some("text/event-stream"));
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        pass(ms(50));
        let mut alive = peer.send(head);
        for word in ["one", "two", "three", "[DONE]", "never heard"] {
            let event = format!("data: {word}\n\n");
            alive = alive && peer.send(format!("{:x}\r\n{event}\r\n", event.len()));
            pass(ms(30));
        }
        if !(alive && peer.send("0\r\n\r\n")) {
            return;
        }
    }
}

fn wanted(until: Option<&str>, count: Option<u32>) -> Events {
    Events {
        until: until.map(Template::literal),
        named: None,
        count,
        at_most: 100,
    }
}

fn times(observed: &Observed, which: usize) -> Hist {
    let mut sum = Hist::<3>::default();
    for window in &observed.windows {
        sum.add(&window.steps[0].times.events[which]).unwrap();
    }
    sum
}

fn listens(server: &Server, events: Events, enough: u64) -> Observed {
    let listening = |request, _: &Make| Request {
        events: Some(events),
        ..request
    };
    let make = Make::new(&[]).step_with(Wait::Constant(ms(1)), "GET /talk", listening);
    run_until(make.drive(&server.base()), |observed| {
        observed.done() >= enough
    })
}

#[test]
fn each_event_has_its_time_and_the_rest_is_not_awaited() {
    let server = Server::start(talks);
    let observed = listens(&server, wanted(Some("[DONE]"), None), 4);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let done = observed.transactions(0);
    let (first, between) = (times(&observed, 0), times(&observed, 1));
    assert_eq!((first.len(), between.len()), (done, 3 * done));
    // If the machine delays the reader, a late event shortens the time to the next one. All events of a response
    // together take at least the server's time.
    let together = first.mean() + 3.0 * between.mean();
    assert!(
        first.min() >= 49_000 && together >= 138_000.0,
        "{together} {first:?}"
    );
    // The last one ends the transaction: 50 ms and three times 30.
    let whole = observed.times(0);
    assert!(whole.min() >= 138_000, "{}", whole.min());
    // The rest of the stream is not taken for another response.
    assert!(
        observed.summary.connects >= done,
        "{}",
        observed.summary.connects
    );
}

#[test]
fn a_stream_that_is_heard_to_its_end_keeps_the_connection() {
    let server = Server::start(talks);
    let observed = listens(&server, wanted(None, None), 3);
    assert_eq!((observed.summary.errors, observed.summary.connects), (0, 1));
    assert_eq!(times(&observed, 1).len(), 4 * observed.transactions(0));
}

#[test]
fn streams_that_end_early_or_are_none_are_errors() {
    let check = |events: Events, answer: &'static str, text: &str| {
        let server = Server::answering(move |_| answer.to_owned());
        let observed = listens(&server, events, 2);
        assert_eq!(
            observed.errors(ErrorClass::Check),
            observed.done(),
            "{:?}",
            observed.examples
        );
        assert!(
            observed.examples[0].1.contains(text),
            "{:?}",
            observed.examples
        );
    };
    let two = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 18\r\n\r\ndata: 1\n\ndata: 2\n\n";
    check(wanted(Some("3"), None), two, "ended after 2 events");
    check(wanted(None, Some(3)), two, "ended after 2 events");
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    check(wanted(None, None), json, "the answer is application/json");
    let none = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n";
    check(wanted(None, None), none, "without an event");
}

#[test]
fn an_unexpected_status_is_one_as_ever() {
    let server =
        Server::answering(|_| "HTTP/1.1 429 X\r\nContent-Length: 4\r\n\r\nwait".to_owned());
    let observed = listens(&server, wanted(None, None), 2);
    assert_eq!(observed.errors(ErrorClass::Status), observed.done());
    assert!(
        observed.examples[0].1.contains("status 429: wait"),
        "{:?}",
        observed.examples
    );
    assert!(times(&observed, 0).is_empty());
}
