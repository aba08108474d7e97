//! The mean of a few trials with its 95 % interval.
//!
//! The trial is the unit of analysis: one value per trial goes in, whatever the number of requests
//! (firecracker#6047; Abedi & Brecht, ICPE 2017).

/// A mean over trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Arithmetic mean.
    pub mean: f64,
    /// Ends of the two-sided 95 % interval; `None` for a single value, whose spread is unknown.
    pub bounds: Option<(f64, f64)>,
}

/// The 0.975 quantile of Student's t for 1 … 30 degrees of freedom.
///
/// Source: NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// Returns the mean of `values` and its Student-t interval at 95 %; `None` without values, or with values that aren't
/// finite.
#[must_use]
pub fn mean_interval(values: &[f64]) -> Option<Interval> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "the number of trials is small")]
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let bounds = (values.len() > 1).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let standard_error = (squares / (n - 1.0) / n).sqrt();
        let half = student_t_975(values.len() - 1) * standard_error;
        (mean - half, mean + half)
    });
    Some(Interval { mean, bounds })
}

/// Beyond 30 degrees of freedom, returns the largest tabulated value that is not below the true one: intervals are
/// slightly wide, never narrow.
pub(crate) fn student_t_975(degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1..=30 => T_975[degrees - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(
            mean_interval(&[3.0]),
            Some(Interval {
                mean: 3.0,
                bounds: None
            })
        );
        assert_eq!(mean_interval(&[]), None);
        assert_eq!(mean_interval(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn three_values_as_computed_by_hand() {
        // s = 1, n = 3: 2 ± 4.303 / √3.
        let interval = mean_interval(&[1.0, 2.0, 3.0]).unwrap();
        let (low, high) = interval.bounds.unwrap();
        assert!((interval.mean - 2.0).abs() < 1e-12);
        assert!((low - (2.0 - 4.303 / 3f64.sqrt())).abs() < 1e-9);
        assert!((high - (2.0 + 4.303 / 3f64.sqrt())).abs() < 1e-9);
    }

    #[test]
    fn the_factor_never_grows_with_more_values() {
        for degrees in 1..200 {
            assert!(student_t_975(degrees + 1) <= student_t_975(degrees));
        }
    }
}
