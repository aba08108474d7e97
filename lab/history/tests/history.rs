//! Histories of runs with known figures: results of kept runs, with replaced figures.

use std::fs;
use std::path::Path;

use lab_history::{History, Recorded, StudyHistory};
use proptest::prelude::*;
use serde_json::{Value, json};

/// The result of a kept run, by name.
fn kept(name: &str) -> Value {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let text = fs::read(golden.join(name).join("result.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The kept comparison, started on `day`, its p95 at `bytes 100` multiplied by `factor`.
fn run(day: usize, factor: f64) -> Value {
    let mut result = kept("comparison");
    result["study"]["started"] = json!(format!("2026-11-{day:02}T08:15:00Z"));
    let p95 = &mut result["cells"][0]["response_ms"]["p95"]["mean"];
    *p95 = json!(p95.as_f64().unwrap() * factor);
    result
}

fn recorded(name: &str, result: &Value) -> Recorded {
    Recorded::new(name.to_owned(), result.to_string().as_bytes()).unwrap()
}

/// The only study of these runs.
fn of(results: &[Value]) -> StudyHistory {
    let named = (1..).zip(results);
    let runs = named.map(|(n, result)| recorded(&format!("run-{n:02}"), result));
    let mut studies = History::new(runs.collect()).studies;
    assert_eq!(studies.len(), 1);
    studies.remove(0)
}

/// Twelve days, slower by a fifth from the seventh on, with a spread of a percent or so.
fn slower() -> Vec<Value> {
    let spread = [1.01, 0.99, 1.0, 1.02, 0.985, 1.005];
    let factor = |at: usize| spread[at % 6] * if at < 6 { 1.0 } else { 1.2 };
    (0..12).map(|at| run(at + 1, factor(at))).collect()
}

/// The other trials of a build that failed in some don't represent it: the point is omitted.
#[test]
fn a_run_whose_system_failed_has_no_point() {
    let mut results = slower();
    let whole = of(&results).series;
    let of_cell = |series: &[lab_history::Series]| {
        let mut all = series.iter().filter(|one| one.measure == "p95 response");
        let found = all.find(|one| one.cell == "bytes 100").expect("a series");
        found
            .points
            .iter()
            .map(|point| point.run)
            .collect::<Vec<_>>()
    };
    assert_eq!(of_cell(&whole), (0..12).collect::<Vec<_>>());
    let fates = [
        ("valid", true),
        ("disturbed", true),
        ("not_run", true),
        ("invalid", false),
        ("not_started", false),
        ("died", false),
        ("aborted", false),
    ];
    for (fate, counts) in fates {
        results[3]["samples"] = json!([{
            "cell": { "bytes": 100 }, "label": "bytes 100", "users": 8, "fates": { "valid": 5, fate: 1 },
        }]);
        let found = of_cell(&of(&results).series);
        assert_eq!(found.contains(&3), counts, "{fate}");
    }
}

/// A run of a duet: its times depend on the machine's other programs, its ratio is given.
fn duet(day: usize, load: f64, ratio: f64) -> Value {
    let mut result = run(day, load);
    result["duet"] = json!({});
    for one in result["comparisons"].as_array_mut().unwrap() {
        one["ratio"] = json!(ratio);
    }
    result
}

#[test]
fn trend_of_duet_follows_the_ratio_and_not_the_times() {
    let spread = [1.01, 0.99, 1.0, 1.02, 0.985, 1.005];
    let results = |ratio: &dyn Fn(usize) -> f64| -> Vec<Value> {
        let load = |at: usize| if at < 6 { 1.0 } else { 2.0 };
        let each = (0..12).map(|at| duet(at + 1, load(at), spread[at % 6] * ratio(at)));
        each.collect()
    };
    let changes = |results: &[Value]| -> Vec<(String, usize)> {
        let series = of(results).series;
        assert!(series.iter().all(|one| one.unit == "ratio of the variants"));
        assert!(series.iter().all(|one| one.cell == "bytes 20000"));
        let found = series.iter().filter(|one| one.measure == "p95 response");
        let each = found.flat_map(|one| one.changes.iter().map(|c| (one.cell.clone(), c.run)));
        each.collect()
    };
    assert_eq!(changes(&results(&|_| 1.1)), []);
    let slower = results(&|at| if at < 6 { 1.1 } else { 1.3 });
    assert_eq!(changes(&slower), [("bytes 20000".to_owned(), 6)]);
}

/// A ratio needs both: the other trials of either after failures don't represent it.
#[test]
fn duet_whose_baseline_or_candidate_failed_has_no_point() {
    for label in ["bytes 100", "bytes 20000"] {
        let mut results: Vec<Value> = (1..=4).map(|day| duet(day, 1.0, 1.1)).collect();
        results[2]["samples"] = json!([{
            "cell": {}, "label": label, "users": 8, "fates": { "valid": 5, "died": 1 },
        }]);
        let series = of(&results).series;
        assert!(!series.is_empty());
        for one in series {
            let runs: Vec<usize> = one.points.iter().map(|point| point.run).collect();
            assert_eq!(runs, [0, 1, 3], "{label}: {}", one.measure);
        }
    }
}

#[test]
fn a_change_stands_at_its_run_in_its_figure_alone() {
    let mut results = slower();
    for result in &mut results[6..] {
        result["environment"]["kernel"] = json!("7.0");
    }
    let study = of(&results);
    let changed = study.series.iter().filter(|one| !one.changes.is_empty());
    let changed: Vec<_> = changed.collect();
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert_eq!(
        (changed[0].measure, &*changed[0].cell),
        ("p95 response", "bytes 100")
    );
    let change = changed[0].changes[0];
    assert_eq!((change.run, change.is_better), (6, false));
    assert!((change.ratio - 1.2).abs() < 0.01, "{change:?}");
    let (low, high) = change.interval.unwrap();
    assert!(
        low > 1.15 && low < 1.2 && high > 1.2 && high < 1.25,
        "{change:?}"
    );
    let what: Vec<_> = study.runs[6].changed.iter().map(|one| one.what).collect();
    assert_eq!(what, ["kernel"]);
    assert!(
        study
            .runs
            .iter()
            .filter(|run| !run.changed.is_empty())
            .count()
            == 1
    );
}

#[test]
fn another_study_file_is_another_series() {
    let mut results = slower();
    for result in &mut results[6..] {
        result["study"]["file_sha256"] = json!("00");
    }
    let study = of(&results);
    assert!(study.series.iter().all(|one| one.changes.is_empty()));
    assert!(study.series.iter().all(|one| one.points.len() == 6));
    assert_eq!(study.runs[6].changed[0].what, "study file");
}

#[test]
fn a_run_is_a_line_with_what_decides_it() {
    let words = |result: &Value| {
        let line = of(std::slice::from_ref(result)).runs.remove(0);
        let decisive = line
            .decisive
            .map(|one| format!("{} of {}: {}", one.measure, one.of, one.words));
        (line.verdict, decisive.unwrap_or_default())
    };
    let (verdict, decides) = words(&kept("comparison"));
    assert_eq!(verdict, "ok");
    assert_eq!(decides, "p95 response of bytes 20000: 2.05 ms (1.74–2.36)");
    let (verdict, decides) = words(&kept("search"));
    assert_eq!(
        (verdict, &*decides),
        ("ok", "load line of the only cell: 2 users")
    );
    let mut gate = kept("comparison");
    gate["answer"] = json!({ "decision": "worse", "decided_by": ["response_p95_ms"] });
    gate["comparisons"][0]["decides"] = json!(true);
    gate["comparisons"][0]["ratio"] = json!(1.25);
    gate["comparisons"][0]["interval"] = json!([1.2, 1.3]);
    let (verdict, decides) = words(&gate);
    assert_eq!(verdict, "worse");
    assert!(
        decides.ends_with("+25.0 % (+20.0 % to +30.0 %)"),
        "{decides}"
    );
    let mut invalid = kept("comparison");
    invalid["summary"]["outcome"] = json!("too_few_valid_trials");
    invalid["cells"] = json!([]);
    invalid["reasons"] = json!([{ "check": "loop lag", "outcome": "invalid", "evidence": "9 ms" }]);
    let line = of(&[invalid]).runs.remove(0);
    assert_eq!((line.verdict, line.decisive), ("invalid", None));
    assert_eq!(line.why, Some(("loop lag".to_owned(), "9 ms".to_owned())));
}

#[test]
fn copies_are_no_other_runs_and_words_are_found() {
    let results = [run(2, 1.0), run(1, 1.0), run(2, 1.0)];
    let study = of(&results);
    let days: Vec<&str> = study.runs.iter().map(|run| &run.started[..10]).collect();
    assert_eq!(days, ["2026-11-01", "2026-11-02"]);
    let run = recorded("nightly", &results[0]);
    for (text, is_there) in [
        ("NIGHTLY", true),
        ("bytes 100", true),
        ("epyc", true),
        ("arm", false),
    ] {
        assert_eq!(run.mentions(text), is_there, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A truncated or corrupt result is refused or read, and never causes a panic.
    #[test]
    fn broken_results_are_no_panic(cut in 0..40_000_usize, at in 0..40_000_usize, byte: u8) {
        let mut text = kept("comparison").to_string().into_bytes();
        text.truncate(cut);
        if let Some(old) = text.get_mut(at) {
            *old = byte;
        }
        if let Ok(run) = Recorded::new("a".to_owned(), &text) {
            let _ = History::new(vec![run]);
        }
    }
}
