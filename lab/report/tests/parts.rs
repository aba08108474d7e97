//! Figures of parts of a run: the steps with a tag, and the numbers in responses.

use crate::support::{Made, STUDY, Shape, WORKLOAD};
use lab_analysis::Analysis;
use lab_analysis::model::{QueueAnalysis, QueueSummary, Times};
use lab_report::write::{html, json, junit, k6, steps_csv, terminal, transactions_csv};

/// Steps with tags, and thresholds on them.
pub(crate) fn tagged() -> Made {
    let workload = WORKLOAD
        .replace(
            "    - step: Read\n",
            "    - step: Read\n      tags: [pages, all]\n",
        )
        .replace(
            "    - step: Write\n",
            "    - step: Write\n      tags: all\n",
        );
    Made {
        study: STUDY
            .replace("matrix: { users: [100, 200] }\n", "")
            .replace("\"{{ users }}\"", "100")
            .replace("published: [load.csv, steps.csv]\n", "")
            .replace(
                "  error_rate: [\"rate < 1%\"]\n",
                "  response_time{tag:pages}: [\"p(95) < 13ms\"]\n  \
                 response_time{tag:all}: [\"p(95) < 13ms\"]\n  \
                 error_rate{tag:pages}: [\"rate < 1%\"]\n",
            ),
        workload,
        shapes: vec![Shape::default()],
        ..Made::default()
    }
}

/// Sessions with these outcomes, and limits on them.
pub(crate) fn transacted(sessions: [u64; 3]) -> Made {
    let tagged = tagged();
    Made {
        study: tagged.study.replace(
            "  response_time{tag:pages}: [\"p(95) < 13ms\"]\n",
            "  transaction_time{transaction:session}: [\"p(90) < 35ms\"]\n  \
             transaction_elapsed{transaction:session}: [\"p(90) < 135ms\"]\n  \
             error_rate{transaction:session}: [\"rate < 1%\"]\n",
        ),
        shapes: vec![Shape {
            sessions: Some(sessions),
            ..Shape::default()
        }],
        ..tagged
    }
}

#[test]
fn named_transactions_have_a_file_of_their_own() {
    let analysis = transacted([30, 2, 1]).analysis();
    let named = &analysis.trials[0].named_transactions[0];
    assert!(named.predicted > Some(0) && named.completed > 0 && named.failed > 0);
    let csv = transactions_csv(&analysis);
    let (head, rows) = csv.split_once('\n').unwrap();
    assert!(
        head.contains(",transaction,predicted,completed,failed,skipped,unfinished,"),
        "{head}"
    );
    let counts = [named.predicted.unwrap(), named.completed, named.failed];
    let counts = counts.map(|count| count.to_string()).join(",");
    let row = rows.lines().next().unwrap();
    assert!(row.contains(&format!(",session,{counts},")), "{row}");
    assert_eq!(rows.lines().count(), 1);
    // A CSV without transactions has only the line of names.
    let none = transactions_csv(&Made::default().analysis());
    assert_eq!(none.lines().count(), 1, "{none}");
}

/// A run whose users shared a queue and a pool.
pub(crate) fn queued() -> Analysis {
    let mut analysis = Made::default().analysis();
    let queue = QueueSummary {
        name: "orders".to_owned(),
        puts: 4_321,
        takes: 4_310,
        length: 11,
        ..QueueSummary::default()
    };
    let pool = QueueSummary {
        name: "desks".to_owned(),
        is_pool: true,
        takes: 77,
        ..QueueSummary::default()
    };
    analysis.cells[0].queues = vec![queue, pool];
    analysis.trials[0].queues = vec![QueueAnalysis {
        name: "desks".to_owned(),
        is_pool: true,
        puts: 0,
        takes: 77,
        dropped: 0,
        missed: 0,
        length: 0,
        longest: 0,
        queue_wait_ms: Times::default(),
    }];
    analysis
}

#[test]
fn queues_and_pools_have_a_table() {
    assert!(!terminal(&Made::default().analysis(), 80).contains("Queues"));
    let analysis = queued();
    let text = terminal(&analysis, 80);
    let (_, section) = text.split_once("Queues\n").expect("a section");
    for part in ["orders", "4,321", "4,310", "11", "desks (pool)", "77", "–"] {
        assert!(section.contains(part), "{part} in {section}");
    }
}

#[test]
fn transactions_that_fail_or_do_not_end_never_improve_a_figure() {
    let judged = |sessions| {
        let analysis = transacted(sessions).analysis();
        let thresholds = &analysis.trials[0].thresholds;
        let of = thresholds
            .iter()
            .filter(|one| one.scope.named() == Some(("transaction", "session")));
        of.map(|one| one.holds).collect::<Vec<_>>()
    };
    assert_eq!(judged([10, 0, 0]), [true, true, true]);
    // A fifth fails: slower than any limit.
    assert_eq!(judged([8, 2, 0]), [false, false, false]);
    // As many are under way at the end as were completed, for longer than the limits.
    assert_eq!(judged([2, 0, 1_000_000]), [false, false, true]);
    assert_eq!(judged([0, 0, 0]), [false, false, false]);
}

#[test]
fn k6_knows_the_session_as_an_iteration_with_its_thresholds() {
    let of = |sessions| -> serde_json::Value {
        let summary = lab_report::write::k6(&transacted(sessions).analysis()).expect("it is JSON");
        serde_json::from_str(&summary).expect("it is JSON")
    };
    let good = of([10, 0, 0]);
    let iteration = &good["metrics"]["iteration_duration"];
    assert!(
        iteration["avg"].as_f64().is_some_and(|avg| avg > 0.0),
        "{iteration}"
    );
    assert_eq!(
        iteration["thresholds"],
        serde_json::json!({ "p(90) < 135ms": false })
    );
    let crossed = &of([8, 2, 0])["metrics"]["iteration_duration"]["thresholds"];
    assert_eq!(*crossed, serde_json::json!({ "p(90) < 135ms": true }));
}

#[test]
fn steps_of_a_tag_are_judged_and_told_together() {
    let analysis = tagged().analysis();
    let trial = &analysis.trials[0];
    let [pages, all] = [0, 1].map(|at| &trial.tags[at]);
    assert_eq!(
        (pages.name.as_str(), &pages.steps[..]),
        ("pages", &["Read".to_owned()][..])
    );
    assert_eq!(all.steps, ["Read", "Write"]);
    let of_step = |name: &str| {
        let found = trial.steps.iter().find(|step| step.name == name);
        found.unwrap().transactions
    };
    assert_eq!(pages.transactions, of_step("Read"));
    assert_eq!(all.transactions, of_step("Read") + of_step("Write"));
    let holds: Vec<(Option<&str>, bool)> = trial
        .thresholds
        .iter()
        .map(|one| (one.scope.named().map(|(_, name)| name), one.holds))
        .collect();
    // Writing takes longer than reading.
    let expected = [
        (Some("pages"), true),
        (Some("all"), false),
        (Some("pages"), true),
    ];
    assert!(expected.iter().all(|one| holds.contains(one)), "{holds:?}");
    let text = terminal(&analysis, 80);
    assert!(text.contains("of steps tagged “all”"), "{text}");
    let (_, section) = text.split_once("Tags\n").expect("a section");
    assert!(
        section.contains("pages") && section.contains("errors"),
        "{section}"
    );
    assert!(html(&analysis).contains(">Tags<"));
    assert!(!html(&Made::default().analysis()).contains(">Tags<"));
}

#[test]
fn numbers_that_answers_tell_have_their_figures() {
    let shape = Shape {
        queued: Some(12_500),
        ..Shape::default()
    };
    let made = Made::both(&shape);
    let analysis = made.analysis();
    let trial = &analysis.trials[0];
    let [measure] = &trial.measures[..] else {
        panic!("one measure: {:?}", trial.measures);
    };
    let values = &measure.values;
    let read = trial.steps.iter().find(|step| step.name == measure.step);
    let read = read.expect("a step with this name");
    assert_eq!(
        (measure.name.as_str(), measure.unit.as_str()),
        ("queued", "messages")
    );
    // One from each response of the hold, and one more at its end.
    assert_eq!(values.count, read.response_ms.count + 1, "{read:?}");
    assert_eq!((values.p50, values.max), (Some(12.5), Some(125.0)));
    let text = terminal(&analysis, 80);
    let (_, section) = text.split_once("Measures\n").expect("a section");
    assert!(
        section.contains("queued") && section.contains("12.5"),
        "{section}"
    );
    let csv = steps_csv(&analysis);
    let (head, rows) = csv.split_once('\n').unwrap();
    assert!(head.ends_with("queued_p999,queued_max"), "{head}");
    assert!(rows.lines().nth(1).unwrap().ends_with(",125"), "{rows}");
    assert!(
        rows.lines().next().unwrap().ends_with(",,,,,,,,,"),
        "{rows}"
    );
    assert!(json(&analysis).unwrap().contains("\"unit\": \"messages\""));
    // A run without measures has the default columns.
    assert!(!steps_csv(&Made::default().analysis()).contains("queued"));
}

/// Numbers in responses, and limits on them.
pub(crate) fn numbered() -> Made {
    let tagged = tagged();
    Made {
        study: tagged.study.replace(
            "  response_time{tag:pages}: [\"p(95) < 13ms\"]\n",
            "  measure{name:queued}: [\"p(95) < 20 messages\", \"max < 100\", \"sum > 100\"]\n",
        ),
        workload: tagged.workload.replace(
            "requests: [GET /a, GET /b]\n",
            "request: GET /a\n      measure: { queued: { from: $.queued, unit: messages } }\n",
        ),
        shapes: vec![Shape {
            queued: Some(12_500),
            ..Shape::default()
        }],
        ..tagged
    }
}

#[test]
fn numbers_are_judged_by_thresholds_everywhere() {
    let analysis = numbered().analysis();
    let judged = analysis.trials[0].thresholds.iter();
    let judged = judged.filter(|one| one.scope.named() == Some(("measure", "queued")));
    let judged: Vec<_> = judged
        .map(|one| (one.text.as_str(), one.holds, one.unit.as_str()))
        .collect();
    assert_eq!(
        judged,
        [
            ("p(95) < 20 messages", true, "messages"),
            ("max < 100", false, "messages"),
            ("sum > 100", true, "messages"),
        ]
    );
    assert!(analysis.summary.thresholds_failed > 0);
    let text = terminal(&analysis, 80);
    assert!(text.contains("max < 100 of “queued”"), "{text}");
    assert!(text.contains("125 messages"), "{text}");
    let junit = junit(&analysis);
    assert!(junit.contains("max &lt; 100 of “queued”"), "{junit}");
    let k6: serde_json::Value = serde_json::from_str(&k6(&analysis).unwrap()).unwrap();
    let queued = &k6["metrics"]["queued"];
    assert_eq!(queued["thresholds"]["max < 100"], true, "{queued}");
    assert_eq!(queued["thresholds"]["sum > 100"], false, "{queued}");
    assert_eq!(queued["max"], 125.0, "{queued}");
    let json = json(&analysis).unwrap();
    assert!(json.contains("\"measure\": \"queued\""));
}
