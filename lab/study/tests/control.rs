//! Behaviour that depends on the responses: conditions as written, faults of conditions, loops, and retries,
//! and their representation in a plan.

use std::time::Duration;

use crate::faults::{self, Fault, STUDY, WORKLOAD, load, snapshot};
use lab_prediction::{Span, predict};
use lab_workload::template::Symbols;
use lab_workload::{LoadKind, LoadSpec, Message, Template, User, UserScope, Workload};

fn workload(steps: &str) -> Workload {
    faults::workload(format!("workload: w\nsession:\n  steps:\n{steps}"))
}

const CAPTURES: &str = "    - step: s\n      request: GET /\n      capture: { list: \"$[*]\", empty: \
                        \"$[*]\", one: $.one, nothing: $.nothing, text: header.x, unset: header.y }\n";

/// Variables of each kind.
fn scope(workload: &Workload) -> UserScope {
    let user = User {
        index: 7,
        users: 10,
        first: 0,
        seed: 1,
        block: 0,
        base_date: jiff::civil::date(2026, 1, 5),
    };
    let mut scope = workload.scope(user, &[]).unwrap();
    let slot = |name| workload.slot(name).unwrap();
    scope.set_list(slot("list"), &["a", "7"]);
    scope.set_list::<&str>(slot("empty"), &[]);
    scope.set_found(slot("one"), &["12.5".to_owned()]);
    scope.set_found::<&str>(slot("nothing"), &[]);
    scope.set_text(slot("text"), "true");
    scope
}

#[test]
fn conditions_read_values_as_what_they_are() {
    let workload = workload(CAPTURES);
    let mut scope = scope(&workload);
    let symbols = Symbols::new(&workload.variables);
    let mut check = |text: &str, expected: bool| {
        let condition = Template::condition(text, symbols).unwrap();
        assert_eq!(condition.holds(&mut scope), Ok(expected), "{text}");
    };
    for holds in [
        "one > 9",
        "{{ one == 12.5 }}",
        "text",
        "text == true",
        "list",
        "list | length == 2",
        "'a' in list and 7 in list",
        "not empty",
        "empty | length == 0",
        "nothing is not defined",
        "unset is not defined or unset > 3",
        "index == 7 and not unset",
        "one is defined",
        "true",
    ] {
        check(holds, true);
    }
    for not in [
        "one < 9",
        "empty",
        "nothing",
        "unset",
        // Can't be decided without the value.
        "unset == 3",
        "unset != 3",
        "unset < 3",
        "unset | length == 0",
        "'b' in list",
        "false",
    ] {
        check(not, false);
    }
    let failing = Template::condition("one % 0 > 1", symbols).unwrap();
    assert!(failing.holds(&mut scope).is_err());
    // Nothing was taken.
    assert_eq!(scope.count(workload.slot("list").unwrap()), 2);
}

#[test]
fn faults_of_control() {
    let step = "wait: 1s..2s\n      request: GET /list\n";
    let with = |keys: &str| format!("{keys}\n      {step}");
    let cases = [
        ("unknown variable", "when: linsk | length > 0"),
        ("no expression", "when: links >"),
        ("empty", "when: '{{ }}'"),
        ("taking", "when: take(links) == 'a'"),
        ("a number as text", "when: name == '404'"),
        ("a switch as text", "when: name == \"true\""),
        ("unknown filter", "when: links | lenght > 0"),
        ("no bound", "until: links"),
        ("no condition", "at_most: 3"),
        ("bound of nothing", "until: links\n      at_most: 0"),
        ("bound of words", "until: links\n      at_most: many"),
        (
            "two counts",
            "until: links\n      at_most: 3\n      repeat: 2",
        ),
        ("no retry", "retry: 0"),
        ("retry without a number", "retry: { wait: 1s }"),
        ("retry of strange wait", "retry: { at_most: 2, wait: soon }"),
        ("retry of strange key", "retry: { at_most: 2, on: 503 }"),
        (
            "retries that shrink",
            "retry: { at_most: 2, multiplier: 0.5 }",
        ),
        (
            "retries that grow in words",
            "retry: { at_most: 2, multiplier: twice }",
        ),
        (
            "retries without a bound",
            "retry: { at_most: 2, max_wait: none }",
        ),
        ("half a switch", "retry: { at_most: 2, retry_after: 5s }"),
        ("unknown reaction", "on_failure: stop"),
        ("no time at all", "timeout: 0s"),
    ];
    let fault = |(name, keys): (&'static str, &str)| -> Fault {
        (name, step, Box::leak(with(keys).into_boxed_str()))
    };
    let mut faults: Vec<Fault> = cases.map(fault).into();
    faults.extend([
        ("unknown reaction of all", "  pace: 10s", "  pace: 10s\n  on_failure: abort"),
        (
            "retry of a variable",
            step,
            "retry: { at_most: 2, wait: seconds(name) }\n      wait: 1s..2s\n      request: GET /list\n",
        ),
        (
            "a wait of no variable",
            step,
            "wait: seconds(pause)\n      request: GET /list\n",
        ),
        ("visitor of no kind", "  pace: 10s", "  pace: 10s\n  visitor: knew"),
        (
            "in a setup",
            "session:\n",
            "setup:\n  - { request: GET /, when: true }\n  - { request: GET /, retry: 2 }\nsession:\n",
        ),
    ]);
    let load = |text: &str| load(STUDY.as_bytes(), text.as_bytes());
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, load));
}

#[test]
fn control_arrives_as_it_was_sent() {
    let workload = workload(
        "    - when: index > 2\n      until: found == 200\n      at_most: 4\n      steps:\n        - { \
         step: a, request: GET /, capture: { found: status }, retry: { at_most: 2, wait: 1s..2s } }\n    \
         \x20   - { step: b, when: 'found is defined', request: GET / }\n",
    );
    let message = serde_json::to_string(&Message::new(&workload).unwrap()).unwrap();
    let arrived = serde_json::from_str::<Message>(&message).unwrap();
    let arrived = arrived.workload().unwrap();
    let same = |of: &Workload| format!("{:?}", of.session);
    assert_eq!(same(&arrived), same(&workload));
    assert_eq!(arrived.session.groups.len(), 1);
}

#[test]
fn reactions_to_failures_arrive_as_they_were_sent() {
    let text = "workload: w\nsession:\n  on_failure: end_session\n  steps:\n    - { step: a, request: GET /, timeout: 5s, \
                retry: { at_most: 2, wait: 1s, multiplier: 1.5, max_wait: 20s, retry_after: true } }\n    \
                - { step: b, request: GET /, on_failure: continue }\n";
    let message = serde_json::to_string(&Message::new(&faults::workload(text.to_owned())).unwrap());
    let message: Message = serde_json::from_str(&message.unwrap()).unwrap();
    let arrived = message.workload().unwrap();
    let [first, second] = arrived.session.steps.as_slice() else {
        panic!("two steps")
    };
    assert!(first.ends_session && !second.ends_session);
    assert_eq!(first.requests[0].timeout, Some(Duration::from_secs(5)));
    let retry = first.retry.unwrap();
    let waits = |retries, asked| {
        retry
            .waits(Duration::from_secs(1), retries, asked)
            .as_secs_f64()
    };
    assert_eq!((waits(0, None), waits(2, None)), (1.0, 2.25));
    assert_eq!((waits(9, None), waits(900, Some(3))), (20.0, 20.0));
    assert_eq!((waits(0, Some(7)), waits(0, Some(3600))), (7.0, 20.0));
}

#[test]
fn only_answers_of_http_say_when_to_send_again() {
    let text = "workload: w\nprotocol: redis\nsession:\n  steps:\n    - { step: a, request: PING, \
                retry: { at_most: 2, retry_after: true } }\n";
    let error = load(STUDY.as_bytes(), text.as_bytes()).unwrap_err();
    let told = error.to_string();
    assert!(
        told.contains("`retry_after` belongs to requests of HTTP"),
        "{told}"
    );
}

fn load_of(users: u32, kind: LoadKind) -> LoadSpec {
    LoadSpec {
        kind,
        ..LoadSpec::of_users(users, 100_000, 400)
    }
}

#[test]
fn a_plan_knows_fewest_and_most() {
    // A session of 10 s: a fixed one, up to five rounds of another, and an optional one.
    let workload = workload(
        "    - { step: a, wait: 5s, request: GET / }\n    - { step: b, wait: 1s, until: index > 0, \
         at_most: 5, request: GET / }\n    - { step: c, wait: 4s, when: index > 0, request: GET / }\n",
    );
    let range = |kind, users| {
        let plan = predict(&workload, 1, 0, &load_of(users, kind), 1_000_000).unwrap();
        let of = |span: Option<Span>| span.map(|span| (span.low, span.high)).unwrap();
        let steps: Vec<_> = plan.steps.iter().map(|step| of(step.range)).collect();
        let whole = plan.range.unwrap().trial;
        (plan.transactions, steps, (whole.low, whole.high))
    };
    // In 100 s: 16 short sessions of 6 s begin and send at most, 7 long ones of 14 s at least.
    let (usual, steps, whole) = range(LoadKind::Users, 10);
    assert_eq!(usual, 10.0 * (10.0 + 10.0 + 9.0));
    assert_eq!(steps[0], (70.0, 160.0));
    // The maximum number of rounds: sessions of 10 s.
    assert_eq!(steps[1], (70.0, 490.0));
    assert_eq!(steps[2], (0.0, 90.0));
    assert_eq!(whole, (140.0, 740.0));
    // A sequence has its sessions, however long they take.
    let (usual, steps, _) = range(
        LoadKind::Sequence {
            sessions: 3,
            shared: false,
        },
        1,
    );
    assert_eq!(usual, 9.0);
    assert_eq!(steps, [(3.0, 3.0), (3.0, 15.0), (0.0, 3.0)]);
}

#[test]
fn a_plan_of_fixed_steps_has_no_range() {
    let workload = workload("    - { step: a, wait: 5s, request: GET /, retry: 3 }\n");
    let plan = predict(&workload, 1, 0, &load_of(1, LoadKind::Users), 1_000_000).unwrap();
    assert_eq!((plan.range, plan.steps[0].range), (None, None));
}

#[test]
fn a_condition_uses_the_parameters_that_it_names() {
    let study = format!("{STUDY}parameters: {{ most: 5 }}\n");
    let workload = WORKLOAD.replace("session:\n", "parameters: { most: 3 }\nsession:\n");
    let step = "request: GET /list\n";
    let used = workload.replace(step, &format!("when: index < most\n      {step}"));
    assert!(load(study.as_bytes(), used.as_bytes()).is_ok());
    assert!(load(study.as_bytes(), workload.as_bytes()).is_err());
}
