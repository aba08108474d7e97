//! Tests of thresholds and summaries of scripts.

use lab_trial::model::Times;

use super::*;

fn values(name: &str, count: u64, mean: f64, p95: Option<f64>) -> MeasureAnalysis {
    MeasureAnalysis {
        step: "script".to_owned(),
        name: name.to_owned(),
        unit: String::new(),
        values: Times {
            count,
            // As in results: three digits.
            mean: Some((mean * 1e3).round() / 1e3),
            min: Some(0.0),
            p95,
            max: Some(1.0),
            ..Times::default()
        },
        sum: mean * count as f64,
    }
}

fn trial(measures: &[MeasureAnalysis], sessions: u64) -> Trial<'_> {
    Trial {
        measures,
        sessions,
        elapsed_ms: 1_000,
    }
}

fn limit(measure: &str, figure: &str, operator: &str, value: f64) -> Limit {
    Limit {
        measure: measure.to_owned(),
        figure: figure.to_owned(),
        operator: operator.to_owned(),
        limit: value,
        text: format!("{measure}: {figure}{operator}{value}"),
    }
}

fn holds(limit: &Limit, trials: &[Trial<'_>]) -> bool {
    judge(std::slice::from_ref(limit), trials)[0].holds
}

#[test]
fn one_failed_check_in_many_is_seen() {
    let all = [values("checks", 100_000, 0.999_99, None)];
    assert!(!holds(
        &limit("checks", "rate", ">=", 1.0),
        &[trial(&all, 9)]
    ));
    let summary = figures(&json!({}), &[trial(&all, 9)], &[], &json!({}));
    assert_eq!(summary["metrics"]["checks"]["values"]["fails"], 1.0);
}

#[test]
fn thresholds_hold_in_all_populations_and_trials() {
    let good = values("checks", 10, 1.0, None);
    let bad = values("checks", 10, 0.5, None);
    let rate = limit("checks", "rate", ">", 0.9);
    assert!(holds(&rate, &[trial(std::slice::from_ref(&good), 9)]));
    assert!(!holds(&rate, &[trial(&[good.clone(), bad.clone()], 9)]));
    let (good, bad) = ([good], [bad]);
    assert!(!holds(&rate, &[trial(&bad, 9), trial(&good, 9)]));
    assert!(!holds(&rate, &[trial(&good, 9), trial(&bad, 9)]));
    assert!(!holds(&rate, &[]));
}

#[test]
fn what_is_missing_counts_as_zero_only_for_sums_of_sessions() {
    for (figure, sessions, expected) in [
        ("count", 9, true),
        ("rate", 9, true),
        ("count", 0, false),
        ("rate", 0, false),
        ("avg", 9, false),
        ("p(95)", 9, false),
    ] {
        let empty = [values("errors", 0, 0.0, None)];
        for measures in [&[][..], &empty[..]] {
            let found = holds(
                &limit("errors", figure, "<", 5.0),
                &[trial(measures, sessions)],
            );
            assert_eq!(found, expected, "{figure}, {sessions} sessions");
        }
    }
}

#[test]
fn quantiles_need_one_population_and_enough_values() {
    let known = values("price", 30, 0.5, Some(0.9));
    let few = values("price", 3, 0.5, None);
    let p95 = limit("price", "p(95)", "<", 1.0);
    assert!(holds(&p95, &[trial(std::slice::from_ref(&known), 9)]));
    assert!(!holds(&p95, &[trial(&[few], 9)]));
    assert!(!holds(&p95, &[trial(&[known.clone(), known.clone()], 9)]));
    assert!(!holds(
        &limit("price", "p(97)", "<", 1.0),
        &[trial(&[known], 9)]
    ));
}

#[test]
fn metrics_of_the_report_get_types_and_thresholds() {
    let report = json!({ "metrics": {
        "http_req_duration": { "avg": 1.5, "p(95)": 3.0, "thresholds": { "p(95) < 200ms": false } },
        "http_req_failed": { "value": 0.25, "passes": 1, "fails": 3 },
        "checks": { "value": 1, "passes": 1, "fails": 0 },
    } });
    let all = [values("price", 3, 0.5, None)];
    let judged = judge(&[limit("price", "avg", "<", 0.1)], &[trial(&all, 9)]);
    let summary = figures(&report, &[trial(&all, 9)], &judged, &json!({}));
    let metrics = &summary["metrics"];
    assert_eq!(metrics["http_req_duration"]["type"], "trend");
    assert_eq!(
        metrics["http_req_duration"]["thresholds"]["p(95) < 200ms"]["ok"],
        true
    );
    assert_eq!(metrics["http_req_failed"]["values"]["rate"], 0.25);
    assert_eq!(metrics["price"]["thresholds"]["avg<0.1"]["ok"], false);
    assert!(metrics["price"]["values"].get("p(95)").is_none());
    assert!(metrics.get("checks").is_none(), "the script has none");
}
