//! Tests of `supply`.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::control::Control;
use crate::scope::{DEFAULT_DATES_FROM, User};
use crate::wait::Chance;

/// Variables of all these workloads: `item`, `list`, and `name`, which each user has.
fn request(target: &str, captures: &[(Slot, CaptureSource)]) -> Request {
    let names = ["item", "list", "name"].map(str::to_owned);
    let capture = |(slot, source): &(Slot, CaptureSource)| Capture {
        variable: names[usize::from(*slot)].clone(),
        slot: *slot,
        source: source.clone(),
    };
    Request {
        captures: captures.iter().map(capture).collect(),
        ..Request::get(Template::parse(target, &names).unwrap())
    }
}

fn step(name: &str, request: Request) -> Step {
    Step::of(name, vec![request])
}

fn workload(steps: Vec<Step>) -> Workload {
    let mut workload = Workload::of("w", steps);
    workload.variables = Arc::from(["item", "list", "name"].map(str::to_owned));
    workload.user = vec![("name".to_owned(), Template::literal("n"))];
    workload
}

fn list() -> CaptureSource {
    CaptureSource::JsonPath(Box::new(crate::JsonPath::parse("$.items[*]").unwrap()))
}

fn found(workload: &Workload, arrives: bool) -> Vec<(String, String, f64)> {
    let starved = workload.starved(1, "", arrives).into_iter();
    let told = starved.map(|one| (one.need.step, one.need.variable, one.part));
    told.collect()
}

#[test]
fn one_value_is_taken_once() {
    let open = step(
        "Open",
        request("/{{ name }}", &[(0, CaptureSource::RequestPath)]),
    );
    let mut accept = step("Accept", request("{{ take(item) }}/accept", &[]));
    let fine = workload(vec![open.clone(), accept.clone()]);
    assert!(found(&fine, false).is_empty());
    assert!(found(&fine, true).is_empty());
    accept.repeat = 4;
    let dry = workload(vec![open.clone(), accept.clone()]);
    let told = [("Accept".to_owned(), "item".to_owned(), 0.75)];
    assert_eq!(found(&dry, false), told);
    assert_eq!(found(&dry, true), told);
    // A value that is read, not taken, stays.
    let mut look = step("Look", request("{{ pick(item) }}/{{ item }}", &[]));
    look.repeat = 4;
    assert!(found(&workload(vec![open, look]), false).is_empty());
}

#[test]
fn how_long_a_list_is_only_answers_know() {
    let read = step("Read", request("/", &[(1, list())]));
    let mut open = step("Open", request("{{ take(list) }}", &[]));
    open.repeat = 100;
    assert!(found(&workload(vec![read, open]), false).is_empty());
}

#[test]
fn what_is_left_out_by_chance_fills_nothing() {
    let mut read = step("Read", request("/", &[(1, list())]));
    read.chance = Some(Chance {
        group: 1,
        from: 0.0,
        to: 0.25,
    });
    let open = step(
        "Open",
        request("{{ take(list) }}", &[(0, CaptureSource::RequestPath)]),
    );
    let close = step("Close", request("{{ take(item) }}", &[]));
    let mut visitors = workload(vec![read, open, close]);
    // The remains of a list depend on the responses; a new user has none.
    visitors.session.visitor = Visitor::New;
    let told = found(&visitors, false);
    let [(step, variable, part)] = &told[..] else {
        panic!("the step that only follows is not told: {told:?}");
    };
    assert_eq!((step.as_str(), variable.as_str()), ("Open", "list"));
    assert!((part - 0.75).abs() < 0.06, "{part}");
}

#[test]
fn a_step_before_the_one_that_fills_it_is_skipped_once() {
    let look = step("Look", request("{{ item }}", &[]));
    let open = step("Open", request("/", &[(0, CaptureSource::RequestPath)]));
    let late = workload(vec![look.clone(), open.clone()]);
    let told = [("Look".to_owned(), "item".to_owned(), 1.0 / 64.0)];
    assert_eq!(found(&late, false), told);
    // An arriving session may get the remains of another one.
    assert!(found(&late, true).is_empty());
    let mut set_up = late;
    set_up.setup = vec![open];
    assert!(found(&set_up, false).is_empty());
}

#[test]
fn conditions_are_taken_to_be_right() {
    let open = step("Open", request("/", &[(0, CaptureSource::Status)]));
    let mut again = step("Again", request("{{ take(item) }}", &[]));
    again.repeat = 2;
    again.control = Some(Box::new(Control {
        when: Some(Template::literal("true")),
        until: None,
    }));
    assert!(found(&workload(vec![open, again]), false).is_empty());
}

#[test]
fn needs_name_who_fills_them() {
    let read = step("Read", request("/", &[(1, list())]));
    let open = step("Open", request("{{ take(list) }}?{{ name }}", &[]));
    let need = Need {
        step: "Open".to_owned(),
        variable: "list".to_owned(),
        from: vec!["Read".to_owned()],
    };
    assert_eq!(workload(vec![read, open]).needs(), [need]);
}

/// The use of a variable by a step, its capture target, its chance, and its rounds.
type Drawn = (u8, Slot, Option<(Slot, bool)>, Option<f64>, u32);

fn drawn() -> impl Strategy<Value = Drawn> {
    let gives = proptest::option::of((0..2u16, any::<bool>()));
    let part = proptest::option::of(0.1..0.9f64);
    (0..4u8, 0..2u16, gives, part, 1..4u32)
}

fn made(group: u32, (uses, of, gives, part, repeat): &Drawn) -> Step {
    let name = ["item", "list"][usize::from(*of)];
    let target = match uses {
        0 => format!("{{{{ take({name}) }}}}"),
        1 => format!("{{{{ pick({name}) }}}}"),
        2 => format!("/{{{{ {name} }}}}"),
        _ => "/".to_owned(),
    };
    let source = |is_list| if is_list { list() } else { CaptureSource::Body };
    let captures: Vec<_> = gives
        .iter()
        .map(|(slot, many)| (*slot, source(*many)))
        .collect();
    let mut made = step(&group.to_string(), request(&target, &captures));
    made.repeat = *repeat;
    made.chance = part.map(|to| Chance {
        group,
        from: 0.0,
        to,
    });
    made
}

/// Number of skips of each step for a user with the same draws, if every list that is read has so many entries.
fn skipped(workload: &Workload, entries: usize, skips: &mut [u32], user: u32) {
    let identity = User {
        index: user,
        users: USERS,
        first: 0,
        seed: 1,
        block: 0,
        base_date: DEFAULT_DATES_FROM,
    };
    let mut scope = workload.scope(identity, &[]).unwrap();
    let mut stream = TimingStream::new(1, 0, user);
    for _ in 0..SESSIONS {
        let mut choice = SessionChoice::default();
        for (at, step) in workload.session.steps.iter().enumerate() {
            if !choice.does(step.chance.as_ref(), &mut stream) {
                continue;
            }
            for _ in 0..step.repeat {
                stream.next_wait(&step.wait);
                let request = &step.requests[0];
                let rendered = request.target.render(&mut scope, &mut String::new());
                skips[at] += u32::from(rendered.is_err());
                for capture in &request.captures {
                    match (&rendered, most(capture)) {
                        (Err(_), _) => scope.clear(capture.slot),
                        (Ok(()), 1) => scope.set_text(capture.slot, "/x"),
                        (Ok(()), _) => scope.set_list(capture.slot, &vec!["/x"; entries]),
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_user_skips_less_than_is_told(
        steps in proptest::collection::vec(drawn(), 1..6),
        entries in 0usize..4,
    ) {
        let made = (1..).zip(&steps).map(|(group, step)| made(group, step));
        let workload = workload(made.collect());
        let supply = Supply::of(&workload);
        let counts = workload.counts(&supply, 1, false);
        let mut skips = vec![0; steps.len()];
        (0..USERS).for_each(|user| skipped(&workload, entries, &mut skips, user));
        // Unset variables are reported when a workload is read, and the lengths of lists are unknown.
        let filled = |slot| steps.iter().any(|step| step.2.is_some_and(|(of, _)| of == slot));
        let is_list = |step: &Drawn| step.2.is_some_and(|(_, many)| many);
        let is_known = filled(0) && filled(1) && !steps.iter().any(is_list);
        for (count, skipped) in counts.iter().zip(skips) {
            match is_known {
                false => prop_assert!(count.skipped <= skipped, "{} {skipped}", count.skipped),
                true => prop_assert_eq!(count.skipped, skipped),
            }
        }
    }
}
