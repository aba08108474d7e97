//! Operations over the load's time limit: a bound in every format, never an error, never a mean.

use crate::support::{Made, STUDY, Shape, WORKLOAD};
use lab_analysis::Analysis;
use lab_analysis::model::{CheckOutcome, Comparison, Measure, Verdict};
use lab_comparison::{RunOutcome, compare_runs};
use lab_counts::ErrorClass;
use lab_report::write::{html, markdown, steps_csv, terminal};

/// Every 50th request got no answer in time, under a load with this in it.
fn analysis(limit: &str) -> Analysis {
    let shape = Shape {
        fails_every: 50,
        fails_with: ErrorClass::Timeout,
        ..Shape::default()
    };
    Made {
        study: STUDY
            .replace("hold: 4 cycles", &format!("hold: 4 cycles, {limit}"))
            .replace("< 300ms\"", "< 300ms\", \"p(99) < 300ms\", \"max < 300ms\""),
        ..Made::both(&shape)
    }
    .analysis()
}

#[test]
fn what_takes_too_long_is_a_bound() {
    let analysis = analysis("time_limit: 5s");
    let trial = &analysis.trials[0];
    assert_eq!(trial.verdict, Verdict::Valid, "{:#?}", trial.checks);
    assert_eq!((trial.errors, trial.error_examples.len()), (0, 0));
    for step in &trial.steps {
        let bound = step.bound.unwrap();
        assert!(bound.over > 0 && bound.over < bound.of, "{bound:?}");
        assert_eq!(bound.of, step.transactions + bound.over);
        let times = step.response_ms;
        assert_eq!(
            (times.mean, times.p50, times.p95, times.max),
            (None, None, None, None)
        );
        assert!(times.min.is_some());
    }
    assert_eq!(trial.response_ms.mean, None);
    let [p95, p99, max, errors] = trial.thresholds.as_slice() else {
        panic!("four thresholds");
    };
    // One in fifty took too long: p95 is still among the known times.
    assert!(p95.holds && p95.value.is_some() && errors.holds, "{p95:?}");
    for unknown in [p99, max] {
        assert!(!unknown.holds && unknown.value.is_none());
        assert!(unknown.reason.as_ref().unwrap().ends_with("took over 5 s"));
    }
    let errors = trial
        .checks
        .iter()
        .find(|check| check.id.title() == "errors");
    let errors = errors.unwrap();
    assert_eq!(errors.outcome, CheckOutcome::Pass, "{errors:?}");
    assert!(errors.evidence.contains("given up at the time limit"));
}

#[test]
fn every_format_has_the_bound() {
    let analysis = analysis("time_limit: 5s");
    let bound = analysis.cells[0].steps[0].bound.unwrap();
    let words = format!("{} of {} > 5 s", bound.over, bound.of);
    assert!(terminal(&analysis, 80).contains(&words));
    assert!(
        markdown(&analysis).contains(&words.replace('>', "&gt;"))
            || markdown(&analysis).contains(&words)
    );
    assert!(html(&analysis).contains(&words.replace('>', "&gt;")));
    let finding = "“Log in” at 100 users";
    let finding = analysis.findings.iter().find(|text| text.contains(finding));
    assert!(finding.is_some(), "{:?}", analysis.findings);
    let csv = steps_csv(&analysis);
    let (_, first) = csv.split_once('\n').unwrap();
    let first = first.lines().next().unwrap();
    // The last column is empty: the trial is no repeat of another one.
    assert!(
        first.ends_with(&format!(",{},5000,", bound.over)),
        "{first}"
    );
    let json = serde_json::to_value(&analysis).unwrap();
    let step = &json["trials"][0]["steps"][0];
    assert_eq!(step["bound"]["time_limit_ms"], 5000.0);
    assert!(step["response_ms"]["mean"].is_null());
}

#[test]
fn under_a_timeout_it_is_an_error() {
    let analysis = analysis("timeout: 5s");
    let trial = &analysis.trials[0];
    assert!(trial.errors > 0 && !trial.error_examples.is_empty());
    assert!(trial.steps.iter().all(|step| step.bound.is_none()));
    assert!(trial.response_ms.mean.is_some());
}

#[test]
fn a_step_that_was_not_repeated_is_no_fault_of_the_generator() {
    let shape = Shape {
        delivered: 0.5,
        first_step: 0.5,
        fails_every: 40,
        fails_with: ErrorClass::Timeout,
        ..Shape::default()
    };
    let study = STUDY.replace("hold: 4 cycles", "hold: 4 cycles, time_limit: 5s");
    let made = Made {
        study: study.clone(),
        workload: WORKLOAD.replace("wait: 200ms..400ms", "wait: 200ms..400ms\n      repeat: 3"),
        ..Made::both(&shape)
    };
    for trial in made.analysis().trials {
        for name in ["requests", "mix of steps"] {
            let check = trial.checks.iter().find(|check| check.id.title() == name);
            let check = check.unwrap();
            assert_eq!(check.outcome, CheckOutcome::NotJudged, "{check:?}");
        }
    }
}

#[test]
fn where_no_step_could_be_cut_short_the_load_is_judged() {
    let shape = Shape {
        delivered: 0.5,
        fails_every: 4_000,
        fails_with: ErrorClass::Timeout,
        ..Shape::default()
    };
    let made = Made {
        study: STUDY.replace("hold: 4 cycles", "hold: 4 cycles, time_limit: 5s"),
        workload: WORKLOAD.replace("requests: [GET /a, GET /b]", "request: GET /a"),
        ..Made::both(&shape)
    };
    for trial in made.analysis().trials {
        let check = trial
            .checks
            .iter()
            .find(|check| check.id.title() == "requests");
        assert_ne!(check.unwrap().outcome, CheckOutcome::NotJudged, "{check:?}");
        assert_ne!(check.unwrap().outcome, CheckOutcome::Pass, "{check:?}");
    }
}

#[test]
fn times_that_are_bounds_are_not_compared() {
    let run = |slow: usize| {
        let mut shapes = vec![Shape::default(); 4];
        for shape in &mut shapes[..slow] {
            (shape.fails_every, shape.fails_with) = (50, ErrorClass::Timeout);
        }
        let made = Made {
            study: STUDY.replace("hold: 4 cycles", "hold: 4 cycles, time_limit: 5s"),
            overrides: vec![
                ("matrix.users".to_owned(), "[20]".to_owned()),
                ("trials".to_owned(), "4".to_owned()),
            ],
            shapes,
            ..Made::default()
        };
        made.analysis()
    };
    assert_eq!(compare_runs(&run(0), &run(0)).unwrap().bounded.len(), 0);
    for slow in [1, 4] {
        let runs = compare_runs(&run(0), &run(slow)).unwrap();
        assert_eq!(
            runs.outcome,
            RunOutcome::TooFewValidTrials,
            "{}",
            runs.headline
        );
        assert!(runs.headline.contains("at 20 users"), "{}", runs.headline);
        let of_times = |one: &&Comparison| one.metric == Measure::Mean;
        assert_eq!(runs.comparisons.iter().filter(of_times).count(), 0);
    }
}
