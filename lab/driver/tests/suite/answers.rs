//! Expectations of responses, and captures from pages.

use crate::common::{Make, Server, ok, run_until};
use lab_driver::ErrorClass;
use lab_workload::{CaptureSource, Expectation, HtmlPath, JsonSchema, Wait};

#[test]
fn the_size_of_a_body_is_judged_though_nobody_reads_it() {
    let check = |low: u64, high: u64, said: Option<&str>| {
        let server = Server::answering(|_| ok(&"x".repeat(1000)));
        let make = Make::new(&[]).step_with(Wait::None, "GET /", |mut request, _| {
            request.answer.push(Expectation::Size { low, high });
            request
        });
        let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 2);
        match said {
            None => assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples),
            Some(said) => {
                assert!(observed.errors(ErrorClass::Check) >= 2);
                assert!(
                    observed.examples[0].1.contains(said),
                    "{:?}",
                    observed.examples
                );
            }
        }
    };
    check(0, 1000, None);
    check(1000, u64::MAX, None);
    check(0, 999, Some("the body has 1000 bytes, not at most 999"));
    check(1001, u64::MAX, Some("not at least 1001"));
    check(5, 7, Some("not 5 to 7"));
}

#[test]
fn a_form_is_sent_with_what_its_page_holds() {
    let server = Server::answering(|_| {
        ok("<form id=order><input name=csrf value='a&amp;b'></form><a class=next href=/2>Next</a>")
    });
    let html = |path: &str| CaptureSource::Html(Box::new(HtmlPath::parse(path).unwrap()));
    let make = Make::new(&["csrf", "next"])
        .step_with(Wait::None, "GET /order", |mut request, make| {
            let csrf = make.capture("csrf", html("(#order input[name=csrf])@value"));
            let next = make.capture("next", html("(a.next)@href"));
            request.captures = vec![csrf, next];
            request
        })
        .step(Wait::None, "POST {{ next }}?csrf={{ csrf | urlencode }}");
    let observed = run_until(make.drive(&server.base()), |observed| {
        observed.transactions(1) >= 1
    });
    assert_eq!(observed.summary.errors, 0, "{:?}", observed.examples);
    assert_eq!(server.lines()[1], "POST /2?csrf=a%26b");
}

#[test]
fn a_body_is_held_against_its_schema() {
    let observed = |body: &'static str| {
        let server = Server::answering(move |_| ok(body));
        let schema = br#"{ "required": ["items"], "properties": { "items": { "minItems": 1 } } }"#;
        let schema = JsonSchema::parse("order.schema.json", schema).unwrap();
        let make = Make::new(&[]).step_with(Wait::None, "GET /", |mut request, _| {
            request.answer.push(Expectation::Schema(schema));
            request
        });
        run_until(make.drive(&server.base()), |observed| observed.done() >= 2)
    };
    assert_eq!(observed(r#"{ "items": [7] }"#).summary.errors, 0);
    let short = observed(r#"{ "items": [] }"#);
    assert_eq!(short.errors(ErrorClass::Check), short.done());
    let text = &short.examples[0].1;
    for part in [
        "`/items`",
        "order.schema.json",
        "`/properties/items/minItems`",
    ] {
        assert!(text.contains(part), "{text}");
    }
    assert!(observed("<html>").examples[0].1.contains("not JSON"));
}

/// Returns the ids of the traces that a load's requests began, as the server received them.
fn traced(trace: Option<f64>, own: bool) -> (Vec<String>, Option<String>, Vec<String>) {
    let server = Server::answering(|seen| match seen.line.as_str() {
        "GET /fails" => "HTTP/1.1 500 X\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => ok(""),
    });
    let mut make = Make::new(&[])
        .step_with(Wait::None, "GET /constant", |mut request, make| {
            let header = ("traceparent".to_owned(), make.template("mine"));
            request.headers.extend(own.then_some(header));
            request
        })
        .step(Wait::None, "POST /{{ uuid() }}")
        .step(Wait::None, "GET /fails");
    make.workload.trace = trace;
    let mut examples = Vec::new();
    let observed = run_until(make.drive(&server.base()), |observed| observed.done() >= 9);
    examples.extend(observed.traces.clone());
    let slowest = observed.windows.iter().filter_map(|window| window.slowest);
    let slowest = slowest.map(|slow| slow.trace.id()).next();
    let ids = server.seen().into_iter();
    let ids = ids.filter_map(|seen| seen.header("traceparent").map(str::to_owned));
    (ids.collect(), slowest, examples)
}

#[test]
fn requests_begin_traces_whose_ids_are_told() {
    let (ids, slowest, failed) = traced(Some(1.0), false);
    let mut unique = ids.clone();
    unique.sort();
    unique.dedup();
    assert!(unique.len() >= 9 && unique.len() == ids.len(), "{ids:?}");
    let form = |id: &String| {
        let parts: Vec<&str> = id.split('-').collect();
        parts.len() == 4
            && (parts[0], parts[1].len(), parts[2].len(), parts[3]) == ("00", 32, 16, "01")
    };
    assert!(ids.iter().all(form), "{ids:?}");
    let sent = |id: &String| ids.iter().any(|sent| sent.contains(id.as_str()));
    assert!(slowest.is_some_and(|id| sent(&id)));
    assert!(failed.len() >= 2 && failed.iter().all(sent), "{failed:?}");
    assert_eq!(traced(None, false), (Vec::new(), None, Vec::new()));
    let (ids, ..) = traced(Some(1.0), true);
    assert!(
        ids.iter().filter(|id| *id == "mine").count() >= 3,
        "{ids:?}"
    );
}
