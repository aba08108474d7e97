//! Tests of summaries of scripts.

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

fn trial(measures: &[MeasureAnalysis]) -> Trial<'_> {
    Trial {
        measures,
        elapsed_ms: 1_000,
    }
}

#[test]
fn one_failed_check_in_many_is_seen() {
    let all = [values("checks", 100_000, 0.999_99, None)];
    let summary = figures(&json!({}), &[trial(&all)], &json!({}));
    assert_eq!(summary["metrics"]["checks"]["values"]["fails"], 1.0);
}

#[test]
fn metrics_of_the_report_get_types_and_thresholds() {
    let report = json!({ "metrics": {
        "http_req_duration": { "avg": 1.5, "p(95)": 3.0, "thresholds": { "p(95) < 200ms": false } },
        "http_req_failed": { "value": 0.25, "passes": 1, "fails": 3 },
        "checks": { "value": 1, "passes": 1, "fails": 0 },
        "price": { "avg": 0.5, "thresholds": { "avg < 0.1": true } },
    } });
    let all = [values("price", 3, 0.5, None)];
    let summary = figures(&report, &[trial(&all)], &json!({}));
    let metrics = &summary["metrics"];
    assert_eq!(metrics["http_req_duration"]["type"], "trend");
    assert_eq!(
        metrics["http_req_duration"]["thresholds"]["p(95) < 200ms"]["ok"],
        true
    );
    assert_eq!(metrics["http_req_failed"]["values"]["rate"], 0.25);
    assert_eq!(metrics["price"]["thresholds"]["avg < 0.1"]["ok"], false);
    assert!(metrics["price"]["values"].get("p(95)").is_none());
    assert!(metrics.get("checks").is_none(), "the script has none");
}
