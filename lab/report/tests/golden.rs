//! Three runs of real servers, kept in `tests/golden`, are read and analysed as on the day they ran.
//!
//! These archives stay readable for ever: a format that changes gets another version, and the reader keeps both. So an
//! archive here is never made anew; newer formats add theirs beside. `result.json` in each is the program's output
//! right after the run. If a figure changes for a reason, the new text (this test prints its path) replaces it, and the
//! commit states the reason.
//!
//! They were made by `plimsoll run tests/golden/studies/NAME.study.yaml --out tests/golden/NAME`; only the rendered
//! reports are left out of its output.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use lab_analysis::model::{Outcome, Verdict};
use lab_analysis::{Analysis, analyse};
use lab_archive::Run;
use lab_plan::Plan;
use lab_report::write::json;
use lab_stats::search::{Next, Tried};
use lab_study::present_plan;
use lab_trial::judge_trial;
use serde_json::Value;

/// Sums over other orders or by another libm differ by less.
const RELATIVE: f64 = 1e-9;
/// The maximum number of differences that are printed.
const TOLD: usize = 20;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/golden")
        .join(name)
}

/// The differences between two values, as `path: stored → now`.
fn differences(path: &str, stored: &Value, now: &Value, found: &mut Vec<String>) {
    match (stored, now) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let other = b.get(key).unwrap_or(&Value::Null);
                if !b.contains_key(key) {
                    found.push(format!("{path}/{key}: is missing now"));
                } else {
                    differences(&format!("{path}/{key}"), value, other, found);
                }
            }
            let new = b.keys().filter(|key| !a.contains_key(*key));
            found.extend(new.map(|key| format!("{path}/{key}: is new")));
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (at, (value, other)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{at}"), value, other, found);
            }
        }
        (Value::Number(a), Value::Number(b)) if close(a.as_f64(), b.as_f64()) => {}
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: {a} → {b}")),
    }
}

fn close(a: Option<f64>, b: Option<f64>) -> bool {
    a.zip(b)
        .is_some_and(|(a, b)| (a - b).abs() <= RELATIVE * a.abs().max(b.abs()))
}

/// The archive, its plan in the present form.
fn run(name: &str) -> Run {
    let mut run = Run::open(&folder(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    run.plan = present_plan(run.plan, &run.files, &run.manifest.overrides)
        .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    run
}

/// The archive's analysis, after it was compared with the stored one.
fn golden(name: &str) -> Analysis {
    let (folder, run) = (folder(name), run(name));
    let analysis = analyse(&run).unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let text = json(&analysis).expect("JSON");
    let now: Value = serde_json::from_str(&text).expect("JSON");
    let stored = std::fs::read(folder.join("result.json")).expect("the stored result");
    let stored: Value = serde_json::from_slice(&stored).expect("JSON");
    let mut found = Vec::new();
    differences("", &stored, &now, &mut found);
    if !found.is_empty() {
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("golden-{name}.json"));
        std::fs::write(&kept, text).expect("written");
        let mut told = String::new();
        for line in found.iter().take(TOLD) {
            let _ = writeln!(told, "  {line}");
        }
        panic!(
            "{name}: {} differences; the new text is {}\n{told}",
            found.len(),
            kept.display()
        );
    }
    let valid = |trial: &&lab_analysis::model::TrialAnalysis| trial.verdict == Verdict::Valid;
    assert!(
        analysis.trials.iter().filter(valid).count() >= 1,
        "{name} measured nothing"
    );
    analysis
}

#[test]
fn a_run_with_a_workload_of_several_steps() {
    let analysis = golden("workload");
    assert_eq!(analysis.study.steps.len(), 3);
    assert!(analysis.trials.iter().all(|trial| trial.probe.is_some()));
    assert_eq!(analysis.summary.outcome, Outcome::ThresholdFailed);
    assert_eq!(analysis.published.len(), 1);
}

#[test]
fn a_search_for_the_load_line() {
    let analysis = golden("search");
    let line = analysis.load_line.as_ref().expect("a line");
    assert!(line.levels.len() >= 2, "{line:?}");
}

/// A search judges each trial when it ends, and continues from it. Its report judges the trials in the same way, and so
/// the rules lead to the same levels again.
#[test]
fn a_finished_search_is_judged_as_it_went() {
    let run = run("search");
    let analysis = analyse(&run).expect("an analysis");
    let mut tried: Vec<Tried> = Vec::new();
    let plan: Plan = serde_json::from_value(run.plan.clone()).expect("a plan");
    let find = &plan.search.as_ref().expect("a search").find;
    let rules = find.rules(plan.seed, plan.question.repeats);
    for trial in &analysis.trials {
        let then = judge_trial(&run, trial.id).expect("judged");
        let failed = then.failed.first();
        assert_eq!(then.judgement, trial.judgement(), "trial {}", trial.id);
        assert_eq!(then.cause, trial.cause, "trial {}", trial.id);
        assert_eq!(
            failed.is_none(),
            trial.verdict == Verdict::Valid,
            "trial {}",
            trial.id
        );
        assert_eq!(
            rules.next(&tried),
            Next::Try(trial.users),
            "trial {}",
            trial.id
        );
        tried.push(Tried {
            level: trial.users,
            judgement: then.judgement,
        });
    }
    assert!(
        matches!(rules.next(&tried), Next::Done(_)),
        "{:?}",
        rules.next(&tried)
    );
}

#[test]
fn a_comparison_with_verdicts() {
    let analysis = golden("comparison");
    let judged = |one: &&lab_analysis::model::Comparison| one.verdict.is_some();
    assert!(analysis.comparisons.iter().filter(judged).count() >= 1);
    assert!(analysis.inference.judged >= 1);
}

#[test]
fn differences_are_found_at_any_depth() {
    let stored = serde_json::json!({ "a": [1.0, { "b": "x" }], "c": null, "d": 2.0 });
    let now = serde_json::json!({ "a": [1.0 + 1e-12, { "b": "y" }], "d": 2.000_001, "e": 1 });
    let mut found = Vec::new();
    differences("", &stored, &now, &mut found);
    assert_eq!(
        found,
        [
            "/a/1/b: \"x\" → \"y\"",
            "/c: is missing now",
            "/d: 2.0 → 2.000001",
            "/e: is new"
        ]
    );
}
