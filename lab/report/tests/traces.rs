//! Requests that are in the system's traces.

use crate::support::{Made, Shape};
use lab_report::write::{json, markdown};

#[test]
fn slow_and_failed_requests_are_told_with_their_traces() {
    let made = |traced: bool| {
        let shape = Shape {
            traced,
            fails_every: 10,
            ..Shape::default()
        };
        Made::both(&shape).analysis()
    };
    let notes = |traced: bool| {
        let page = markdown(&made(traced));
        let lines = page.lines().filter(|line| line.contains("(trace "));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    insta::assert_snapshot!(notes(true));
    assert_eq!(notes(false), "");
    let told = |traced: bool| {
        let text = json(&made(traced)).expect("a result");
        let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        result["trials"][0]["slowest"].as_array().map(Vec::len)
    };
    assert_eq!((told(true), told(false)), (Some(5), None));
}
