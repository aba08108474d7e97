//! Numbers in responses, over real sockets: each is recorded, none is made up.

use lab_counts::Hist;
use lab_driver::ErrorClass;
use lab_workload::{Measure, Wait};

use crate::common::{Make, Observed, Server, ms, ok, run_until};

/// Runs a step that measures the number at this path in its responses.
fn measuring(path: &str, server: &Server, enough: u64) -> Observed {
    let capturing = |mut request: lab_workload::Request, make: &Make| {
        request.captures.push(make.json("found", path));
        request
    };
    let mut make = Make::new(&["found"]).step_with(Wait::Constant(ms(1)), "GET /queue", capturing);
    make.workload.session.steps[0].measures.push(Measure {
        name: "queue".to_owned(),
        unit: "messages".to_owned(),
        request: 0,
        slot: 0,
        value: None,
    });
    run_until(make.drive(&server.base()), |observed| {
        observed.done() >= enough
    })
}

fn numbers(observed: &Observed) -> Hist {
    let mut sum = Hist::<3>::default();
    for measured in observed
        .windows
        .iter()
        .flat_map(|window| window.steps[0].times.measures.first())
    {
        sum.add(measured).unwrap();
    }
    sum
}

#[test]
fn every_answer_gives_its_number_in_thousandths() {
    let server = Server::answering(|_| ok(r#"{"queued": 12.5}"#));
    let observed = measuring("$.queued", &server, 20);
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    let numbers = numbers(&observed);
    assert_eq!(numbers.len(), observed.transactions(0));
    assert!(numbers.min().abs_diff(12_500) < 20 && numbers.max().abs_diff(12_500) < 20);
}

#[test]
fn a_list_gives_each_of_its_numbers_and_nothing_gives_none() {
    let server = Server::answering(|_| ok(r#"{"queues": [{"n": 1}, {"n": 0}, {"n": 5}]}"#));
    let observed = measuring("$.queues[*].n", &server, 10);
    assert_eq!(numbers(&observed).len(), 3 * observed.transactions(0));
    assert_eq!(numbers(&observed).count_at(0), observed.transactions(0));
    let server = Server::answering(|_| ok(r#"{"queued": null}"#));
    let observed = measuring("$.queued", &server, 10);
    assert_eq!((observed.summary.errors, numbers(&observed).len()), (0, 0));
}

#[test]
fn what_is_no_number_is_an_error_that_says_so() {
    for answer in [
        r#"{"queued": "many"}"#,
        r#"{"queued": -3}"#,
        r#"{"queued": true}"#,
    ] {
        let server = Server::answering(move |_| ok(answer));
        let observed = measuring("$.queued", &server, 3);
        assert_eq!(observed.errors(ErrorClass::Check), observed.done());
        let text = &observed.examples[0].1;
        assert!(
            text.contains("measure `queue`") && text.contains("no number"),
            "{text}"
        );
        assert!(numbers(&observed).is_empty());
    }
}

#[test]
fn an_answer_that_fails_tells_nothing() {
    let server = Server::answering(|_| {
        "HTTP/1.1 503 Busy\r\nContent-Length: 13\r\n\r\n{\"queued\": 3}".to_owned()
    });
    let observed = measuring("$.queued", &server, 3);
    assert_eq!(observed.errors(ErrorClass::Status), observed.done());
    assert!(numbers(&observed).is_empty());
}
