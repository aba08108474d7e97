//! Faults of what is expected of answers, and of what is captured from them.

mod faults;

use faults::{Fault, STUDY, WORKLOAD, load, snapshot};

#[test]
fn faults_of_answers() {
    let step = "request: GET /list\n";
    let with = |keys: &str| format!("{step}      {keys}\n");
    let cases = [
        ("size of words", "expect: { size: small }"),
        ("size of nothing", "expect: { size: < 0 B }"),
        ("sizes the wrong way round", "expect: { size: 2 kB..1 kB }"),
        ("size of an open range", "expect: { size: 1 kB.. }"),
        ("no size", "expect: { size: < }"),
    ];
    let fault = |(name, keys): (&'static str, &str)| -> Fault {
        (name, step, Box::leak(with(keys).into_boxed_str()))
    };
    let mut faults: Vec<Fault> = cases.map(fault).into();
    let capture = "\"$.items[*].href\"";
    faults.extend([
        ("no selector", capture, "html()"),
        ("selector of siblings", capture, "'html(h1 + a)@href'"),
        ("selector left open", capture, "'html(a[)'"),
        ("attribute without a name", capture, "html(a)@"),
        ("something behind it", capture, "html(a).href"),
    ]);
    let load = |text: &str| load(STUDY.as_bytes(), text.as_bytes());
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, load));
}
