//! Thresholds as a study writes them: `p(95) < 300ms`, `rate < 0.1%`.

use lab_language::TextError;
use lab_language::units::{MAX_WAIT, call, duration, whole, within};

use lab_plan::Scope;

use crate::model::{Aggregate, Comparison, Metric, Threshold};

/// One threshold of `metric`: `p(95) < 300ms`, `rate < 0.1%`. A limit on a measure may have its `unit`.
pub(super) fn threshold(
    metric: Metric,
    scope: Scope,
    unit: &str,
    text: &str,
) -> Result<Threshold, TextError> {
    let operator = text.find(['<', '>']).ok_or_else(|| {
        TextError::new(
            "a threshold compares: `<`, `<=`, `>`, or `>=` is missing",
            whole(text),
        )
        .help(example(metric))
    })?;
    let or_equal = text[operator + 1..].starts_with('=');
    let comparison = match (text.as_bytes()[operator], or_equal) {
        (b'<', false) => Comparison::Less,
        (b'<', true) => Comparison::LessOrEqual,
        (_, false) => Comparison::Greater,
        (_, true) => Comparison::GreaterOrEqual,
    };
    let left = &text[..operator];
    let right = &text[operator + 1 + usize::from(or_equal)..];
    let aggregate = within(text, left, aggregate(metric, left))?;
    let limit = match (metric, aggregate) {
        (Metric::Measure, Aggregate::Rate) if !unit.is_empty() => {
            Err(TextError::new("`rate` can't have a unit", whole(right)))
        }
        (Metric::Measure, Aggregate::Rate) => limit(Metric::ErrorRate, unit, right),
        _ => limit(metric, unit, right),
    };
    let limit = within(text, right, limit)?;
    Ok(Threshold {
        metric,
        scope,
        aggregate,
        comparison,
        limit,
        text: text.trim().to_owned(),
        implied: false,
    })
}

fn example(metric: Metric) -> &'static str {
    match metric {
        Metric::ErrorRate | Metric::Resends => "write `rate < 0.1%`",
        Metric::Measure => "write `rate > 99%`, `p(95) < 300`, or `sum < 10`",
        time if time.is_time() => "write `p(95) < 300ms` or `avg < 100ms`",
        _ => "write `rate > 1000/s`",
    }
}

fn aggregate(metric: Metric, text: &str) -> Result<Aggregate, TextError> {
    let trimmed = text.trim();
    let bad = |message: String| TextError::new(message, whole(text)).help(example(metric));
    let of_measure = metric == Metric::Measure;
    match (trimmed, call(trimmed)) {
        ("rate", _) if !metric.is_time() => Ok(Aggregate::Rate),
        (other, _) if !metric.is_time() && !of_measure => {
            Err(bad(format!("`{other}` is not a figure of this metric")))
        }
        ("sum", _) if of_measure => Ok(Aggregate::Sum),
        ("avg" | "mean", _) => Ok(Aggregate::Mean),
        ("min", _) => Ok(Aggregate::Min),
        ("max", _) => Ok(Aggregate::Max),
        ("med", _) => Ok(Aggregate::Median),
        (_, Some(("p", percent))) => match percent.trim().parse::<f64>() {
            Ok(p) if p > 0.0 && p < 100.0 => Ok(Aggregate::Percentile(p)),
            _ => Err(bad(format!(
                "`{percent}` is not a percentile between 0 and 100"
            ))),
        },
        (other, _) if of_measure => Err(bad(format!("`{other}` is not a figure of a measure"))),
        (other, _) => Err(bad(format!("`{other}` is not a figure of a time"))),
    }
}

/// Parses milliseconds, a fraction, or a rate per second. A number without a unit is rejected: `50` may mean
/// milliseconds, as with k6, and `0.1` a tenth or a thousandth.
/// The limit of a measure is a number, with its unit or without.
fn limit(metric: Metric, unit: &str, text: &str) -> Result<f64, TextError> {
    let trimmed = text.trim();
    if metric == Metric::Measure {
        let bare = trimmed.strip_suffix(unit).unwrap_or(trimmed);
        return number(bare).ok_or_else(|| {
            let error = TextError::new(format!("`{trimmed}` is not a limit"), whole(text));
            error.help(format!("write a number of 0 or more {unit}").trim_end())
        });
    }
    if number(trimmed).is_some() {
        return Err(
            TextError::new(format!("`{trimmed}` has no unit"), whole(text))
                .help(with_unit(metric, trimmed)),
        );
    }
    let bad =
        || TextError::new(format!("`{trimmed}` is not a limit"), whole(text)).help(example(metric));
    match metric {
        time if time.is_time() => duration(text, MAX_WAIT).map(|d| d.as_secs_f64() * 1e3),
        Metric::ErrorRate | Metric::Resends => trimmed
            .strip_suffix('%')
            .and_then(number)
            .map(|percent| percent / 100.0)
            .filter(|part| *part <= 1.0)
            .ok_or_else(bad),
        _ => trimmed.strip_suffix("/s").and_then(number).ok_or_else(bad),
    }
}

fn number(text: &str) -> Option<f64> {
    let number = text.trim().parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

/// Suggests the units of a limit without one.
fn with_unit(metric: Metric, number: &str) -> String {
    match metric {
        Metric::ErrorRate | Metric::Resends => {
            format!(
                "a rate is a percentage: write `{number}%`, or 100 times as much if it was a fraction"
            )
        }
        time if time.is_time() => {
            format!("write `{number}ms`, which is what k6 means, or `{number}s`")
        }
        _ => format!("write `{number}/s`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<T: std::fmt::Debug>(result: Result<T, TextError>) -> String {
        let error = result.unwrap_err();
        format!(
            "{}..{} {error} / {}",
            error.at.start,
            error.at.end,
            error.help.as_deref().unwrap_or_default()
        )
    }

    fn threshold(metric: Metric, scope: Scope, text: &str) -> Result<Threshold, TextError> {
        super::threshold(metric, scope, "", text)
    }

    #[test]
    fn thresholds_are_those_of_k6_with_units() {
        let t = threshold(Metric::ResponseTime, Scope::All, "p(95) < 300ms").unwrap();
        assert_eq!(
            (t.aggregate, t.comparison, t.limit),
            (Aggregate::Percentile(95.0), Comparison::Less, 300.0)
        );
        let t = threshold(Metric::ResponseTime, Scope::All, "p(99.9)<=2ms").unwrap();
        assert_eq!((t.comparison, t.limit), (Comparison::LessOrEqual, 2.0));
        let t = threshold(Metric::ErrorRate, Scope::All, "rate < 0.1%").unwrap();
        assert_eq!((t.aggregate, t.limit), (Aggregate::Rate, 0.001));
        let t = threshold(Metric::Throughput, Scope::All, "rate >= 1000/s").unwrap();
        assert_eq!(
            (t.comparison, t.limit),
            (Comparison::GreaterOrEqual, 1000.0)
        );
        insta::assert_snapshot!(message(threshold(Metric::ResponseTime, Scope::All, "p(100) < 1s")), @"0..7 `100` is not a percentile between 0 and 100 / write `p(95) < 300ms` or `avg < 100ms`");
        insta::assert_snapshot!(message(threshold(Metric::ErrorRate, Scope::All, "rate < 150%")), @"6..11 `150%` is not a limit / write `rate < 0.1%`");
        insta::assert_snapshot!(message(threshold(Metric::ErrorRate, Scope::All, "rate 1%")), @"0..7 a threshold compares: `<`, `<=`, `>`, or `>=` is missing / write `rate < 0.1%`");
    }

    #[test]
    fn limits_on_measures_are_numbers_in_their_unit() {
        let read = |unit, text| {
            let scope = Scope::Measure("x".to_owned());
            super::threshold(Metric::Measure, scope, unit, text)
        };
        for (unit, text, aggregate, limit) in [
            ("", "rate > 50%", Aggregate::Rate, 0.5),
            ("", "sum < 10", Aggregate::Sum, 10.0),
            ("ms", "p(95) < 300ms", Aggregate::Percentile(95.0), 300.0),
            ("ms", "avg < 300", Aggregate::Mean, 300.0),
            ("km", "max<=0.5 km", Aggregate::Max, 0.5),
        ] {
            let read = read(unit, text).unwrap();
            assert_eq!((read.aggregate, read.limit), (aggregate, limit), "{text}");
        }
        insta::assert_snapshot!(message(read("", "rate > 0.99")), @"6..11 `0.99` has no unit / a rate is a percentage: write `0.99%`, or 100 times as much if it was a fraction");
        insta::assert_snapshot!(message(read("ms", "p(95) < 1s")), @"7..10 `1s` is not a limit / write a number of 0 or more ms");
        insta::assert_snapshot!(message(read("", "avg < 5 ms")), @"5..10 `5 ms` is not a limit / write a number of 0 or more");
        insta::assert_snapshot!(message(read("", "count < 5")), @"0..6 `count` is not a figure of a measure / write `rate > 99%`, `p(95) < 300`, or `sum < 10`");
    }

    #[test]
    fn a_limit_has_a_unit() {
        let unmeant = |metric, text| message(threshold(metric, Scope::All, text));
        insta::assert_snapshot!(unmeant(Metric::ResponseTime, "p(95) < 50"), @"7..10 `50` has no unit / write `50ms`, which is what k6 means, or `50s`");
        insta::assert_snapshot!(unmeant(Metric::ErrorRate, "rate < 0.01"), @"6..11 `0.01` has no unit / a rate is a percentage: write `0.01%`, or 100 times as much if it was a fraction");
        insta::assert_snapshot!(unmeant(Metric::Throughput, "rate > 100"), @"6..10 `100` has no unit / write `100/s`");
    }
}
