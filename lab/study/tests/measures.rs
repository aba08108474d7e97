//! Numbers in responses, and defaults that steps share, as written in files.

use crate::faults::{self, Fault, STUDY, WORKLOAD, load, snapshot};
use lab_study::{LoadedAny, Workload};
use lab_workload::{Message, User};

const STEP: &str = "      request: GET /list\n";

fn workload(with: &str) -> Workload {
    let text = WORKLOAD.replace(STEP, &format!("{STEP}{with}"));
    match load(STUDY.as_bytes(), text.as_bytes()) {
        Ok(LoadedAny::Study(loaded)) => Workload::clone(&loaded.study.workload),
        other => panic!("{other:?}"),
    }
}

const MEASURES: &str = "      tags: [lists, all]\n      measure: { queued: \"$.queue.length\", free: { from: \
                        header.X-Free, unit: MB } }\n";

#[test]
fn a_measure_is_a_capture_that_no_template_sees() {
    let workload = workload(MEASURES);
    let step = &workload.session.steps[1];
    assert_eq!(step.tags, ["lists", "all"]);
    let of = |at: usize| {
        let measure = &step.measures[at];
        let variable = workload.variables[usize::from(measure.slot)].as_str();
        (measure.name.as_str(), measure.unit.as_str(), variable)
    };
    assert_eq!(of(0), ("queued", "", "measure queued"));
    assert_eq!(of(1), ("free", "MB", "measure free"));
    let captured: Vec<&str> = step.requests[0]
        .captures
        .iter()
        .map(|capture| capture.variable.as_str())
        .collect();
    assert_eq!(captured, ["links", "measure queued", "measure free"]);
}

#[test]
fn an_expression_measures_what_is_there_when_the_answer_is() {
    let workload = faults::workload(
        "workload: w\nsession:\n  repeatable: true\n  steps:\n    - step: Receive\n      request: GET /next\n      \
         capture: { sent: $.sent_us, number: $.number }\n      measure:\n        \
         delivery: { from: '{{ (now_us() - sent | int) / 1000 }}', unit: ms }\n        twice: '{{ number | float * 2 }}'\n"
            .to_owned(),
    );
    let user = User {
        index: 0,
        users: 1,
        first: 0,
        seed: 1,
        block: 0,
        base_date: jiff::civil::date(2026, 1, 5),
    };
    let mut scope = workload.scope(user, &[]).unwrap();
    let [delivery, twice] = workload.session.steps[0].measures.as_slice() else {
        panic!("two measures")
    };
    let mut numbers = Vec::new();
    // A missing value is not a number.
    delivery.read(&mut scope, &mut numbers).unwrap();
    assert_eq!(numbers, [0; 0]);
    scope.set_text(workload.slot("number").unwrap(), "10.5");
    twice.read(&mut scope, &mut numbers).unwrap();
    assert_eq!(numbers, [21_000]);
    let before = jiff::Timestamp::now().as_microsecond();
    scope.set_text(
        workload.slot("sent").unwrap(),
        &(before - 2_000_000).to_string(),
    );
    delivery.read(&mut scope, &mut numbers).unwrap();
    let took = jiff::Timestamp::now().as_microsecond() - before;
    let measured = i64::try_from(numbers[1]).unwrap();
    assert!(
        (2_000_000..=2_000_000 + took).contains(&measured),
        "{measured} us"
    );
    scope.set_text(workload.slot("sent").unwrap(), "yesterday");
    assert!(delivery.read(&mut scope, &mut numbers).is_err());
}

#[test]
fn measures_and_tags_travel() {
    let workload = workload(MEASURES);
    let text = serde_json::to_string(&Message::new(&workload).unwrap()).unwrap();
    let message: Message = serde_json::from_str(&text).unwrap();
    let there = message.workload().unwrap();
    let (here, there) = (&workload.session.steps[1], &there.session.steps[1]);
    assert_eq!(here.tags, there.tags);
    assert_eq!(
        format!("{:?}", here.measures),
        format!("{:?}", there.measures)
    );
    // A slot beyond the last variable is invalid.
    let slot = format!("\"slot\":{}", here.measures[1].slot);
    let (before, after) = text.rsplit_once(&slot).unwrap();
    let bad = format!("{before}\"slot\":900{after}");
    let message: Message = serde_json::from_str(&bad).unwrap();
    assert!(message.workload().is_err());
}

#[test]
fn tags_are_of_all_steps_that_have_them() {
    let text = WORKLOAD
        .replace(
            "    - step: Log in\n",
            "    - step: Log in\n      tags: all\n",
        )
        .replace(STEP, &format!("{STEP}      tags: [lists, all]\n"));
    let study = STUDY.replace(
        "thresholds:\n",
        "thresholds:\n  error_rate{tag:lists}: [\"rate < 1%\"]\n",
    );
    let Ok(LoadedAny::Study(loaded)) = load(study.as_bytes(), text.as_bytes()) else {
        panic!("a study");
    };
    let plan = lab_study::plan::plan(&loaded.study, &Default::default()).unwrap();
    let tags: Vec<(&str, Vec<&str>)> = plan
        .question
        .workload
        .tags
        .iter()
        .map(|tag| {
            (
                tag.name.as_str(),
                tag.steps.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    let all = vec!["Log in", "Read the list"];
    assert_eq!(tags, [("all", all), ("lists", vec!["Read the list"])]);
    let scope = &plan.question.thresholds[0].scope;
    assert_eq!(scope.named(), Some(("tag", "lists")));
}

#[test]
fn faults_of_measures_and_tags() {
    let with = |text: &str| format!("{STEP}      {text}\n");
    let faults = [
        ("no place", with("measure: { queued: queue.length }")),
        ("no path", with("measure: { queued: \"$.[\" }")),
        ("no name", with("measure: { \"queue length\": \"$.a\" }")),
        ("a unit alone", with("measure: { queued: { unit: MB } }")),
        (
            "a long unit",
            with("measure: { queued: { from: \"$.a\", unit: messages that wait for somebody } }"),
        ),
        (
            "an unknown key",
            with("measure: { queued: { frm: \"$.a\" } }"),
        ),
        ("a tag with spaces", with("tags: [check out]")),
        ("one tag twice", with("tags: [a, a]")),
    ];
    let faults: Vec<Fault> = faults
        .into_iter()
        .map(|(name, text)| (name, STEP, &*text.leak()))
        .collect();
    insta::assert_snapshot!(snapshot(WORKLOAD, &faults, |text| load(
        STUDY.as_bytes(),
        text.as_bytes()
    )));
}

#[test]
fn faults_of_who_measures_nothing() {
    let faults: &[Fault] = &[
        (
            "a setup that measures",
            "session:\n",
            "setup:\n  - request: GET /a\n    measure: { queued: \"$.a\" }\nsession:\n",
        ),
        (
            "a probe that measures",
            "session:\n",
            "probe: { every: 1s, request: GET /a, measure: { queued: \"$.a\" } }\nsession:\n",
        ),
        (
            "a setup with tags",
            "session:\n",
            "setup:\n  - request: GET /a\n    tags: [b]\nsession:\n",
        ),
    ];
    insta::assert_snapshot!(snapshot(WORKLOAD, faults, |text| load(
        STUDY.as_bytes(),
        text.as_bytes()
    )));
}

#[test]
fn faults_of_thresholds_on_tags() {
    let faults: &[Fault] = &[(
        "no tags",
        "thresholds:\n",
        "thresholds:\n  error_rate{tag:checkout}: [\"rate < 1%\"]\n",
    )];
    insta::assert_snapshot!(snapshot(STUDY, faults, |text| load(
        text.as_bytes(),
        WORKLOAD.as_bytes()
    )));
    let tagged = WORKLOAD.replace(STEP, &format!("{STEP}      tags: checkout\n"));
    let faults: &[Fault] = &[
        (
            "an unknown tag",
            "thresholds:\n",
            "thresholds:\n  error_rate{tag:chekout}: [\"rate < 1%\"]\n",
        ),
        (
            "events of a tag",
            "thresholds:\n",
            "thresholds:\n  first_event{tag:checkout}: [\"p(95) < 1s\"]\n",
        ),
    ];
    insta::assert_snapshot!(
        "of_a_tag",
        snapshot(STUDY, faults, |text| load(
            text.as_bytes(),
            tagged.as_bytes()
        ))
    );
}

#[test]
fn thresholds_on_measures_are_planned_or_have_a_place() {
    let measured = WORKLOAD.replace(STEP, &format!("{STEP}{MEASURES}"));
    let study = STUDY.replace(
        "thresholds:\n",
        "thresholds:\n  measure{name:queued}: [\"p(95) < 10\", \"sum > 0\", \"rate > 99%\"]\n  \
         measure{name:free}: [\"min >= 5 MB\"]\n",
    );
    let Ok(LoadedAny::Study(loaded)) = load(study.as_bytes(), measured.as_bytes()) else {
        panic!("a study");
    };
    let plan = lab_study::plan::plan(&loaded.study, &Default::default()).unwrap();
    let planned = plan.question.thresholds[..4].iter();
    let planned: Vec<_> = planned
        .map(|one| (one.scope.named().unwrap(), one.text.as_str(), one.limit))
        .collect();
    let [queued, free] = [("measure", "queued"), ("measure", "free")];
    assert_eq!(
        planned,
        [
            (queued, "p(95) < 10", 10.0),
            (queued, "sum > 0", 0.0),
            (queued, "rate > 99%", 0.99),
            (free, "min >= 5 MB", 5.0),
        ]
    );
    let no_measures: &[Fault] = &[(
        "no measures",
        "thresholds:\n",
        "thresholds:\n  measure{name:queued}: [\"max < 1\"]\n",
    )];
    let mut told = snapshot(STUDY, no_measures, |text| {
        load(text.as_bytes(), WORKLOAD.as_bytes())
    });
    let faults: &[Fault] = &[
        (
            "an unknown measure",
            "thresholds:\n",
            "thresholds:\n  measure{name:queue}: [\"max < 1\"]\n",
        ),
        (
            "a part of values with a unit",
            "thresholds:\n",
            "thresholds:\n  measure{name:free}: [\"rate > 99%\"]\n",
        ),
        (
            "no name of a measure",
            "thresholds:\n",
            "thresholds:\n  measure: [\"max < 1\"]\n",
        ),
        (
            "another unit",
            "thresholds:\n",
            "thresholds:\n  measure{name:free}: [\"min > 5 GB\"]\n",
        ),
        (
            "a measure that ends trials",
            "thresholds:\n",
            "abort_on: [\"measure > 3\"]\nthresholds:\n",
        ),
    ];
    told.push_str(&snapshot(STUDY, faults, |text| {
        load(text.as_bytes(), measured.as_bytes())
    }));
    insta::assert_snapshot!(told);
}
