//! What is expected of answers, and captured from pages.

use crate::common::{Make, Server, ok, run_until};
use lab_driver::ErrorClass;
use lab_workload::{CaptureSource, Expectation, HtmlPath, Wait};

#[test]
fn the_size_of_a_body_is_judged_though_nobody_reads_it() {
    let check = |low: u64, high: u64, said: Option<&str>| {
        let server = Server::answering(|_| ok(&"x".repeat(1000)));
        let make = Make::new(&[]).step_with(Wait::None, "GET /", |mut request, _| {
            request.answer.push(Expectation::Size { low, high });
            request
        });
        let told = run_until(make.drive(&server.base()), |told| told.done() >= 2);
        match said {
            None => assert_eq!(told.summary.errors, 0, "{:?}", told.examples),
            Some(said) => {
                assert!(told.errors(ErrorClass::Check) >= 2);
                assert!(told.examples[0].1.contains(said), "{:?}", told.examples);
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
    let told = run_until(make.drive(&server.base()), |told| told.transactions(1) >= 1);
    assert_eq!(told.summary.errors, 0, "{:?}", told.examples);
    assert_eq!(server.lines()[1], "POST /2?csrf=a%26b");
}
