//! Figures of the numbers in responses.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use lab_archive::model::{Manifest, MeasureName, TrialRecord};
use lab_counts::{Aggregate, Scope};
use lab_plan::{SCRIPT_STEP, Threshold};
use lab_stats::histogram::MergeError;
use lab_stats::{Merger, histogram, needed_sample};

use crate::format::plural_count;
use crate::model::{MeasureAnalysis, Measured, ThresholdResult, Times};
use crate::number::as_f64;
use crate::sums::{Names, Sums, merge_all};
use crate::{notes, thresholds};

/// Figures are as exact as the recorded numbers: three digits.
const DIGITS: i32 = 3;

/// The numbers measured by a step.
pub(crate) struct OfMeasure {
    pub(crate) analysis: MeasureAnalysis,
    /// In thousandths.
    numbers: Histogram<u64>,
}

/// Returns the numbers measured by each step in the hold, in the order of the steps; measures of several requests with
/// one name are merged.
pub(crate) fn measures(
    manifest: &Manifest,
    names: &Names<'_>,
    sums: &Sums,
) -> Result<Vec<OfMeasure>, MergeError> {
    let mut found: Vec<(String, &MeasureName, Merger)> = Vec::new();
    let mut place = 0;
    for (at, measure) in manifest.measures.iter().enumerate() {
        let same_step = at > 0 && manifest.measures[at - 1].step == measure.step;
        place = if same_step { place + 1 } else { 0 };
        let Some(step) = names.step(measure.step) else {
            continue;
        };
        let same = |(of, one, _): &(String, &MeasureName, Merger)| {
            of == step && one.name == measure.name && one.unit == measure.unit
        };
        let index = found.iter().position(same).unwrap_or_else(|| {
            found.push((step.to_owned(), measure, Merger::default()));
            found.len() - 1
        });
        if let Some(numbers) = sums.measures.get(&(measure.step, place)) {
            found[index].2.add(numbers)?;
        }
    }
    let each = found.into_iter();
    Ok(each
        .map(|(step, measure, numbers)| {
            let numbers = numbers.into_merged();
            OfMeasure {
                analysis: analysis(step, measure, &numbers),
                numbers,
            }
        })
        .collect())
}

/// The numbers of all measures of one name.
pub(crate) struct Numbers {
    /// The unit; empty for a plain number.
    unit: String,
    all: Histogram<u64>,
    /// Whether a script adds them.
    is_of_script: bool,
    /// The sessions that ended in the hold.
    sessions: u64,
    /// The numbers that a script added and that no figure contains.
    not_counted: u64,
}

/// Returns the numbers of each measure that a threshold judges; `sessions` ended in the hold.
///
/// # Errors
/// [`MergeError`].
pub(crate) fn judged_numbers<'a>(
    thresholds: impl Iterator<Item = &'a Threshold>,
    (measures, sessions): (&[OfMeasure], u64),
    record: &TrialRecord,
) -> Result<BTreeMap<&'a str, Numbers>, MergeError> {
    let not_counted = notes::not_counted(record);
    let mut found = BTreeMap::new();
    for one in thresholds {
        let Scope::Measure(name) = &one.scope else {
            continue;
        };
        let own = measures.iter().filter(|one| one.analysis.name == *name);
        let unit = own.clone().map(|one| one.analysis.unit.clone()).next();
        let numbers = Numbers {
            unit: unit.unwrap_or_default(),
            is_of_script: own.clone().any(|one| is_of_script(&one.analysis.step)),
            all: merge_all(own.map(|one| &one.numbers))?,
            sessions,
            not_counted: not_counted.get(name).copied().unwrap_or_default(),
        };
        found.insert(name.as_str(), numbers);
    }
    Ok(found)
}

/// Whether a step, with its population or without, is the one of a script's checks and metrics.
fn is_of_script(step: &str) -> bool {
    step.rsplit('/').next() == Some(SCRIPT_STEP)
}

impl Numbers {
    /// Compares a figure of them with a threshold.
    pub(crate) fn judge(&self, threshold: &Threshold) -> ThresholdResult {
        let measured = self.measured(threshold.aggregate);
        thresholds::judge(threshold, measured, &self.unit)
    }

    fn measured(&self, aggregate: Aggregate) -> Measured {
        let figure = match self.not_counted {
            0 => self.figure(aggregate),
            some => Err(format!("not judged: {some} of its values are in no figure")),
        };
        Measured {
            value: figure.as_ref().ok().copied(),
            beyond: false,
            reason: figure.err(),
        }
    }

    fn figure(&self, aggregate: Aggregate) -> Result<f64, String> {
        let is_sum = matches!(aggregate, Aggregate::Sum | Aggregate::Rate);
        if self.all.is_empty() {
            // As in k6: sums and rates begin at 0. Without a session, nothing could be added.
            return match is_sum && self.is_of_script && self.sessions > 0 {
                true => Ok(0.0),
                false => Err("no values in the hold".to_owned()),
            };
        }
        if let Some(p) = aggregate.quantile() {
            let needed = needed_sample(p).unwrap_or(u64::MAX);
            let at = histogram::quantile(&self.all, p);
            let values = plural_count(self.all.len(), "value");
            let too_few = || format!("{values}, {needed} needed for this quantile");
            return at.map(|at| as_recorded(as_f64(at))).ok_or_else(too_few);
        }
        Ok(match aggregate {
            Aggregate::Sum => sum(&self.all),
            Aggregate::Min => as_recorded(as_f64(self.all.min())),
            Aggregate::Max => as_recorded(as_f64(self.all.max())),
            _ => sum(&self.all) / as_f64(self.all.len()),
        })
    }
}

/// Returns the sum of numbers, each as it was before it was recorded.
fn sum(numbers: &Histogram<u64>) -> f64 {
    let recorded = numbers.iter_recorded().map(|at| {
        let thousandths = numbers.lowest_equivalent(at.value_iterated_to());
        as_recorded(as_f64(thousandths)) * as_f64(at.count_at_value())
    });
    recorded.sum()
}

/// Thousandths below this are recorded exactly, larger ones to a thousandth of themselves.
const EXACT: f64 = 2048.0;

/// Returns a number by its thousandths in a histogram. One of three digits is what it was before it was recorded.
fn as_recorded(thousandths: f64) -> f64 {
    let value = thousandths / 1000.0;
    let near = rounded(value);
    let is_same = thousandths >= EXACT && (near - value).abs() <= value / 1000.0;
    if is_same { near } else { value }
}

/// Thousandths of a number correspond to µs of ms.
fn analysis(step: String, measure: &MeasureName, numbers: &Histogram<u64>) -> MeasureAnalysis {
    let exact = Times::of(numbers);
    let three = |figure: Option<f64>| figure.map(rounded);
    MeasureAnalysis {
        step,
        name: measure.name.clone(),
        unit: measure.unit.clone(),
        values: Times {
            count: exact.count,
            mean: three(exact.mean),
            min: three(exact.min),
            p50: three(exact.p50),
            p90: three(exact.p90),
            p95: three(exact.p95),
            p99: three(exact.p99),
            p999: three(exact.p999),
            max: three(exact.max),
        },
        sum: sum(numbers),
    }
}

/// Rounds to [`DIGITS`] digits.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm is small")]
fn rounded(value: f64) -> f64 {
    if value <= 0.0 {
        return value;
    }
    let digits = DIGITS - 1 - value.log10().floor() as i32;
    // By an exact power of ten, so that 0.3 doesn't become 0.30000000000000004.
    match digits {
        0.. => {
            let scale = 10f64.powi(digits);
            (value * scale).round() / scale
        }
        _ => {
            let scale = 10f64.powi(-digits);
            (value / scale).round() * scale
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(values: &[f64], sessions: u64, not_counted: u64) -> Numbers {
        let mut all = Histogram::new(3).unwrap();
        for value in values {
            all.record((value * 1000.0) as u64).unwrap();
        }
        Numbers {
            unit: String::new(),
            all,
            is_of_script: true,
            sessions,
            not_counted,
        }
    }

    #[test]
    fn sums_are_those_of_the_recorded_numbers() {
        for (value, times, sum) in [(3.0, 100, 300.0), (1000.0, 7, 7000.0), (2.5, 4, 10.0)] {
            let all = numbers(&vec![value; times], 9, 0);
            assert_eq!(all.measured(Aggregate::Sum).value, Some(sum));
            assert_eq!(super::sum(&all.all), sum);
        }
    }

    #[test]
    fn numbers_in_responses_do_not_begin_at_0() {
        let none = Numbers {
            is_of_script: false,
            ..numbers(&[], 9, 0)
        };
        for aggregate in [Aggregate::Sum, Aggregate::Rate] {
            assert_eq!(none.measured(aggregate).value, None);
        }
        assert!(is_of_script("script") && is_of_script("readers/script"));
        assert!(!is_of_script("GET /script/items") && !is_of_script("search"));
    }

    #[test]
    fn one_failed_check_in_many_is_in_the_rate() {
        let mut checks = vec![1.0; 99_999];
        checks.push(0.0);
        let rate = numbers(&checks, 9, 0).measured(Aggregate::Rate);
        let rate = rate.value.unwrap();
        assert!(rate < 1.0 && (rate - 0.999_99).abs() < 1e-9, "{rate}");
        let sum = numbers(&checks, 9, 0).measured(Aggregate::Sum).value;
        assert!((sum.unwrap() - 99_999.0).abs() < 1e-3);
    }

    #[test]
    fn figures_of_nothing_are_unknown_except_sums_of_sessions() {
        let p95 = Aggregate::Percentile(95.0);
        let few: &[f64] = &[0.5, 1.0, 1.5];
        for (values, sessions, not_counted, aggregate, expected) in [
            (&[][..], 9, 0, Aggregate::Sum, Ok(0.0)),
            (&[], 9, 0, Aggregate::Rate, Ok(0.0)),
            (&[], 0, 0, Aggregate::Sum, Err("no values in the hold")),
            (&[], 0, 0, Aggregate::Rate, Err("no values in the hold")),
            (&[], 9, 0, Aggregate::Mean, Err("no values in the hold")),
            (&[], 9, 0, Aggregate::Max, Err("no values in the hold")),
            (&[], 9, 0, p95, Err("no values in the hold")),
            (few, 9, 0, p95, Err("3 values, 59 needed for this quantile")),
            (few, 9, 0, Aggregate::Mean, Ok(1.0)),
            (few, 9, 0, Aggregate::Min, Ok(0.5)),
            (few, 9, 0, Aggregate::Max, Ok(1.5)),
            (few, 0, 0, Aggregate::Sum, Ok(3.0)),
            (
                few,
                9,
                2,
                Aggregate::Sum,
                Err("not judged: 2 of its values are in no figure"),
            ),
        ] {
            let found = numbers(values, sessions, not_counted).measured(aggregate);
            let expected = match expected {
                Ok(value) => (Some(value), None),
                Err(reason) => (None, Some(reason.to_owned())),
            };
            assert_eq!((found.value, found.reason), expected, "{aggregate:?}");
        }
        let many: Vec<f64> = (1..=100).map(f64::from).collect();
        let found = numbers(&many, 9, 0).measured(p95).value;
        assert!((found.unwrap() - 95.0).abs() < 0.1);
    }

    #[test]
    fn a_limit_that_a_number_equals_is_met() {
        for value in [20.0, 125.0, 999.0, 5.3] {
            for aggregate in [Aggregate::Mean, Aggregate::Min, Aggregate::Max] {
                let found = numbers(&[value; 3], 9, 0).measured(aggregate);
                assert_eq!(found.value, Some(value), "{aggregate:?}");
            }
        }
        let max = numbers(&[100.4], 9, 0).measured(Aggregate::Max).value;
        assert!(max > Some(100.2), "{max:?}");
        let mean = numbers(&[0.999, 1.0], 9, 0).measured(Aggregate::Mean).value;
        assert!(mean < Some(1.0), "{mean:?}");
    }

    #[test]
    fn figures_have_three_digits() {
        for (value, expected) in [
            (0.0, 0.0),
            (5.003, 5.0),
            (32.992, 33.0),
            (0.301_2, 0.301),
            (1023.9, 1020.0),
            (999.6, 1000.0),
            (3.2e9, 3.2e9),
        ] {
            assert_eq!(rounded(value).to_string(), expected.to_string());
        }
    }
}
