//! Figures of the numbers in responses.

use hdrhistogram::Histogram;
use lab_archive::model::{Manifest, MeasureName};
use lab_stats::Merger;
use lab_stats::histogram::MergeError;

use crate::model::{MeasureAnalysis, Times};
use crate::sums::{Names, Sums};

/// Figures are as exact as the recorded numbers: three digits.
const DIGITS: i32 = 3;

/// Returns the numbers measured by each step in the hold, in the order of the steps; measures of several requests with
/// one name are merged.
pub(crate) fn measures(
    manifest: &Manifest,
    names: &Names<'_>,
    sums: &Sums,
) -> Result<Vec<MeasureAnalysis>, MergeError> {
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
        .map(|(step, measure, numbers)| analysis(step, measure, &numbers.into_merged()))
        .collect())
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
        sum: exact.mean.unwrap_or_default() * exact.count as f64,
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
