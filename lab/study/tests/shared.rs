//! What users share: how it is read, and what is wrong with it.

use lab_workload::{SharedKind, Workload};

use crate::faults::{self, Fault, STUDY, WORKLOAD, load, snapshot};

fn workload(text: &str) -> Workload {
    faults::workload(format!("workload: w\n{text}"))
}

#[test]
fn counters_are_read_and_travel() {
    let read = workload(
        "shared: { no: { counter: { from: 7 } }, other: { counter: {} } }\nsession: { steps: [{ step: s, request: \
         \"GET /{{ next('no') }}/{{ next(other) + 1 }}\" }, { step: t, request: GET /t }] }\n",
    );
    let from = |at: usize| match read.shared[at].kind {
        SharedKind::Counter { from } => from,
    };
    assert_eq!((from(0), from(1)), (7, 1));
    assert_eq!(read.counters(), ["no", "other"]);
    assert_eq!(read.unseeded_steps(), ["s"]);
    let message = lab_workload::Message::new(&read).unwrap();
    let json = serde_json::to_string(&message).unwrap();
    let back: lab_workload::Message = serde_json::from_str(&json).unwrap();
    assert_eq!(back.workload().unwrap().shared.len(), 2);
}

/// Faults of what stands before the session, or in the place of the last request.
fn faults(texts: &[(&'static str, &str, &str)]) -> String {
    let places = ["session:\n", "      request: GET {{ take(links) }}\n"];
    let fault = |(name, shared, step): &(&'static str, &str, &str)| -> (&'static str, String) {
        let text = WORKLOAD.replace(places[0], &format!("{shared}{}", places[0]));
        let step = match *step {
            "" => places[1].to_owned(),
            step => format!("      {step}\n"),
        };
        (*name, text.replace(places[1], &step))
    };
    let mut out = String::new();
    for (name, text) in texts.iter().map(fault) {
        let fault: Fault = (name, WORKLOAD, &*text.leak());
        out += &snapshot(WORKLOAD, &[fault], |text| {
            load(STUDY.as_bytes(), text.as_bytes())
        });
    }
    out
}

#[test]
fn faults_of_counters() {
    let counter = "shared: { order_no: { counter: { from: 1 } } }\n";
    insta::assert_snapshot!(faults(&[
        ("an unknown kind", "shared: { no: { conter: {} } }\n", ""),
        ("no kind", "shared: { no: {} }\n", ""),
        (
            "no number",
            "shared: { no: { counter: { from: a } } }\n",
            ""
        ),
        ("a bad name", "shared: { order-no: { counter: {} } }\n", ""),
        (
            "an unknown counter",
            counter,
            "request: GET /{{ next('order_on') }}"
        ),
        ("none at all", "", "request: GET /{{ next('order_no') }}"),
        ("no name", counter, "request: GET /{{ next(1) }}"),
        (
            "a condition",
            counter,
            "request: GET /\n      when: next('order_no') > 3"
        ),
        (
            "a user's",
            counter,
            "request: GET /{{ no }}\n      set: { no: \"{{ next(order_on) }}\" }"
        ),
    ]));
}
