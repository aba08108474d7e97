//! Failures count: limits on times are about all attempts, and an error rate is always judged.

use crate::support::{Made, STUDY, Shape, WORKLOAD};
use lab_analysis::Analysis;
use lab_analysis::model::{
    Attempt, Comparison, Difference, Measure, Outcome, ThresholdResult, TrialAnalysis,
};
use lab_comparison::{RunComparison, RunOutcome, compare_runs};
use lab_counts::ErrorClass;
use lab_plan::Metric;
use lab_trial::judge_trial;

const LIMITS: &str =
    "thresholds:\n  response_time: [\"p(95) < 300ms\"]\n  error_rate: [\"rate < 1%\"]\n";

/// Every n-th request fails at once.
fn failing(every: u64, thresholds: &str) -> Analysis {
    let shape = Shape {
        fails_every: every,
        ..Shape::default()
    };
    let study = STUDY.replace(LIMITS, thresholds);
    Made {
        study,
        ..Made::both(&shape)
    }
    .analysis()
}

fn judged(trial: &TrialAnalysis, text: &str) -> ThresholdResult {
    let found = trial.thresholds.iter().find(|one| one.text == text);
    found
        .unwrap_or_else(|| panic!("{:?}", trial.thresholds))
        .clone()
}

#[test]
fn an_answer_without_its_events_is_slower_than_any_limit() {
    let limits = "thresholds:\n  first_event{step:Log in}: [\"med < 1s\", \"p(85) < 300ms\", \"p(95) < 1h\"]\n  \
                  between_events{step:Log in}: [\"max < 1h\", \"p(50) > 1ms\"]\n";
    let of = |fails_every| {
        let shape = Shape {
            fails_every,
            events: true,
            ..Shape::default()
        };
        let listening = "request: POST /login\n      events: { count: 2 }";
        let made = Made {
            study: STUDY.replace(LIMITS, limits),
            workload: WORKLOAD.replace("request: POST /login", listening),
            ..Made::both(&shape)
        };
        made.analysis().trials.remove(0)
    };
    let (well, tenth) = (of(0), of(10));
    let value = |text: &str| judged(&well, text).value.unwrap();
    assert!(
        well.thresholds.iter().all(|one| one.holds),
        "{:#?}",
        well.thresholds
    );
    let (first, between) = (value("med < 1s"), value("p(50) > 1ms"));
    assert!(
        (between / first - 0.4 / 0.6).abs() < 0.01,
        "{first} {between}"
    );
    for (text, beyond) in [
        ("med < 1s", false),
        ("p(85) < 300ms", false),
        ("p(95) < 1h", true),
        ("max < 1h", true),
        ("p(50) > 1ms", false),
    ] {
        let judged = judged(&tenth, text);
        assert_eq!(
            (judged.beyond, judged.holds),
            (beyond, !beyond),
            "{judged:?}"
        );
    }
}

#[test]
fn a_failed_attempt_is_slower_than_any_limit() {
    let analysis = failing(
        10,
        "thresholds:\n  response_time: [\"med < 300ms\", \"p(89) < 300ms\", \"p(95) < 300ms\", \"max < 1h\", \
         \"p(95) > 1ms\", \"min < 300ms\"]\n  response_time{step:Read}: [\"p(95) < 300ms\"]\n  \
         service_time: [\"p(95) < 300ms\"]\n  error_rate: [\"rate <= 100%\"]\n",
    );
    let trial = &analysis.trials[0];
    for holds in ["med < 300ms", "p(89) < 300ms", "p(95) > 1ms", "min < 300ms"] {
        assert!(judged(trial, holds).holds, "{:?}", judged(trial, holds));
    }
    let beyond = trial.thresholds.iter().filter(|one| one.beyond);
    let beyond: Vec<&ThresholdResult> = beyond.collect();
    assert_eq!(
        beyond.len(),
        5,
        "three p(95), the one with >, and max: {beyond:#?}"
    );
    for one in beyond {
        assert_eq!(
            (one.holds, one.value),
            (one.text.contains('>'), None),
            "{one:?}"
        );
        let reason = one.reason.as_ref().unwrap();
        assert!(
            reason.starts_with("beyond any limit: ") && reason.ends_with(" failed"),
            "{reason}"
        );
    }
    assert_eq!(analysis.summary.outcome, Outcome::ThresholdFailed);
    let all = trial.response_with_failures_ms;
    assert_eq!(all.count, trial.response_ms.count + all.failed);
    assert!(matches!(all.p50, Attempt::Ms(_)));
    assert_eq!((all.p95, all.p99), (Attempt::Beyond, Attempt::Beyond));
    assert!(
        trial.response_ms.p95.is_some(),
        "of those answered it is told as before"
    );
    let json = serde_json::to_value(all).unwrap();
    assert_eq!(json["p95"], "beyond any limit");
}

#[test]
fn a_failed_attempt_counts_as_the_timeout_in_an_average() {
    let mean = |load: &str| {
        let shape = Shape {
            fails_every: 10,
            ..Shape::default()
        };
        let study = STUDY.replace(LIMITS, "thresholds:\n  response_time: [\"avg < 300ms\"]\n");
        let study = study.replace("hold: 4 cycles", load);
        let analysis = Made {
            study,
            ..Made::both(&shape)
        }
        .analysis();
        judged(&analysis.trials[0], "avg < 300ms").value.unwrap()
    };
    let (short, usual) = (mean("hold: 4 cycles, timeout: 1s"), mean("hold: 4 cycles"));
    assert!(
        (90.0..130.0).contains(&short),
        "a tenth of 1 s and what the others took: {short}"
    );
    assert!(
        (5_900.0..6_100.0).contains(&usual),
        "a tenth of 60 s: {usual}"
    );
}

#[test]
fn an_error_rate_is_judged_unless_said_otherwise() {
    let silent = |every| failing(every, "");
    let few = silent(200);
    let implied = judged(&few.trials[0], "rate < 1%");
    assert!(implied.holds && implied.implied && implied.metric == Metric::ErrorRate);
    assert_eq!(few.summary.outcome, Outcome::Ok);
    assert_eq!(silent(50).summary.outcome, Outcome::ThresholdFailed);

    let said = failing(50, "thresholds:\n  error_rate: [\"rate < 5%\"]\n");
    assert_eq!(said.summary.outcome, Outcome::Ok);
    assert_eq!(
        said.trials[0].thresholds.len(),
        1,
        "only what the study says"
    );
    // Of one step it isn't the study's.
    let of_a_step = failing(
        50,
        "thresholds:\n  error_rate{step:Read}: [\"rate < 5%\"]\n",
    );
    assert_eq!(of_a_step.trials[0].thresholds.len(), 2);
    assert_eq!(of_a_step.summary.outcome, Outcome::ThresholdFailed);
}

/// A server that refuses at once what it can't carry has the best times of all.
#[test]
fn a_search_does_not_call_refusals_carried() {
    let study = STUDY
        .replace("matrix: { users: [100, 200] }\n", "")
        .replace("users: \"{{ users }}\", ", "")
        .replace("published: [load.csv, steps.csv]\n", "")
        .replace(
            LIMITS,
            "find:\n  users: { min: 50, max: 400 }\n  subject_to: { response_time: [\"p(95) < 100ms\"] }\n",
        );
    let judgement = |fails_every: u64| {
        let made = Made {
            study: study.clone(),
            shapes: vec![Shape {
                fails_every,
                fails_with: ErrorClass::Status,
                ..Shape::default()
            }],
            searched: vec![(0, 100)],
            ..Made::default()
        };
        let judged = judge_trial(&made.run(), 1).unwrap();
        let reported = made.analysis();
        assert_eq!(reported.trials[0].carried, judged.judgement.carried());
        assert_eq!(reported.load_lines[0].thresholds[1], "error rate < 0.1%");
        judged.judgement.carried()
    };
    assert_eq!(judgement(0), Some(true));
    assert_eq!(
        judgement(2),
        Some(false),
        "half refused: the quantile is beyond"
    );
    assert_eq!(
        judgement(500),
        Some(false),
        "0.2 % are above what a search allows"
    );
}

/// Four blocks of one cell, each of which fails every so many requests and sends some again.
fn run(fails: [u64; 4], resent: u64) -> Analysis {
    let study = STUDY
        .replace("[100, 200]", "[100]")
        .replace("published: [load.csv, steps.csv]\n", "trials: 4\n");
    let shape = |fails_every| Shape {
        fails_every,
        stale_retries: resent,
        ..Shape::default()
    };
    Made {
        study,
        shapes: fails.map(shape).to_vec(),
        ..Made::default()
    }
    .analysis()
}

fn of(compared: &RunComparison, measure: Measure) -> Option<&Comparison> {
    let mut all = compared.comparisons.iter();
    all.find(|one| one.metric == measure)
}

#[test]
fn a_release_that_fails_more_often_is_a_regression() {
    let (well, fails) = (run([0; 4], 0), run([48, 50, 52, 54], 0));
    let worse = compare_runs(&well, &fails).unwrap();
    assert_eq!(worse.outcome, RunOutcome::Regression, "{}", worse.headline);
    assert!(
        worse.headline.contains("error rate +"),
        "{}",
        worse.headline
    );
    assert!(worse.headline.contains(" points"), "{}", worse.headline);
    let rate = of(&worse, Measure::ErrorRate).unwrap();
    assert_eq!(rate.verdict, Some(Difference::FailsMore));
    assert!(
        rate.mean_a.abs() < 1e-12 && (1.8..2.2).contains(&rate.mean_b),
        "{rate:?}"
    );
    // 1 and the difference: two percentage points.
    assert!(
        (rate.ratio - 1.0 - rate.difference / 100.0).abs() < 1e-9,
        "{rate:?}"
    );
    let (low, high) = rate.interval.unwrap();
    // Wider than the blocks alone: runs may spread, too.
    assert!(low > 1.016 && high < 1.023, "{rate:?}");

    let better = compare_runs(&fails, &well).unwrap();
    let rate = of(&better, Measure::ErrorRate).unwrap();
    assert_eq!(rate.verdict, Some(Difference::FailsLess));
    assert_eq!(
        of(&better, Measure::Timeouts),
        None,
        "nothing timed out in either"
    );

    let even = run([50; 4], 0);
    let same = compare_runs(&even, &even).unwrap();
    assert_eq!(same.outcome, RunOutcome::Ok, "{}", same.headline);
    let none = compare_runs(&well, &well).unwrap();
    assert_eq!(
        (none.outcome, of(&none, Measure::ErrorRate)),
        (RunOutcome::Ok, None)
    );
}

#[test]
fn requests_sent_again_are_told_and_judged() {
    let analysis = run([0; 4], 9);
    let told = |analysis: &Analysis| {
        let mut findings = analysis.findings.iter();
        findings.any(|one| one.contains("had to be sent again"))
    };
    assert!(told(&analysis), "{:?}", analysis.findings);
    assert!(!told(&run([0; 4], 1)), "below a tenth of a per cent");
    let compared = compare_runs(&run([0; 4], 0), &analysis).unwrap();
    let resends = of(&compared, Measure::Resends).unwrap();
    assert_eq!(resends.verdict, Some(Difference::FailsMore), "{resends:?}");

    let judged = |limit: &str| {
        let thresholds = format!("thresholds:\n  resends: [\"rate < {limit}\"]\n");
        let shape = Shape {
            stale_retries: 9,
            ..Shape::default()
        };
        let study = STUDY.replace(LIMITS, &thresholds);
        let made = Made {
            study,
            ..Made::both(&shape)
        };
        made.analysis().trials[0].thresholds[0].clone()
    };
    let missed = judged("0.1%");
    assert!(!missed.holds && missed.value > Some(0.001), "{missed:?}");
    assert!(judged("1%").holds);
}
