//! Descriptive helpers: weighted means, ratios, relative differences.

/// A mean of values weighted by their duration or frequency; gaps add nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct WeightedMean {
    sum: f64,
    weight: f64,
}

impl WeightedMean {
    /// Adds `value` with `weight`; skips values or weights that aren't finite, and weights ≤ 0.
    pub fn add(&mut self, value: f64, weight: f64) {
        if value.is_finite() && weight.is_finite() && weight > 0.0 {
            self.sum += value * weight;
            self.weight += weight;
        }
    }

    /// Returns the mean, or `None` if nothing was added.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }

    /// Returns the total weight.
    #[must_use]
    pub fn weight(&self) -> f64 {
        self.weight
    }
}

impl FromIterator<(f64, f64)> for WeightedMean {
    fn from_iter<I: IntoIterator<Item = (f64, f64)>>(pairs: I) -> Self {
        let mut mean = Self::default();
        for (value, weight) in pairs {
            mean.add(value, weight);
        }
        mean
    }
}

/// Returns `ours ÷ theirs`, or `None` if it is meaningless (theirs is zero, or either isn't finite).
#[must_use]
pub fn ratio(ours: f64, theirs: f64) -> Option<f64> {
    let ratio = ours / theirs;
    (theirs != 0.0 && ratio.is_finite()).then_some(ratio)
}

/// Returns `(value − reference) ÷ reference`, or `None` if it is undefined.
#[must_use]
pub fn relative_difference(value: f64, reference: f64) -> Option<f64> {
    ratio(value, reference).map(|ratio| ratio - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count() {
        let mean: WeightedMean = [(10.0, 1.0), (20.0, 3.0)].into_iter().collect();
        assert_eq!(mean.mean(), Some(17.5));
        assert!((mean.weight() - 4.0).abs() < f64::EPSILON);
    }

    #[test]
    fn gaps_add_nothing() {
        let gaps = [
            (f64::NAN, 1.0),
            (5.0, 0.0),
            (5.0, -1.0),
            (5.0, f64::INFINITY),
        ];
        assert_eq!(gaps.into_iter().collect::<WeightedMean>().mean(), None);
    }

    #[test]
    fn a_ratio_to_nothing_is_none() {
        assert_eq!(ratio(1.0, 0.0), None);
        assert_eq!(ratio(f64::NAN, 2.0), None);
        assert_eq!(ratio(3.0, 2.0), Some(1.5));
        assert_eq!(relative_difference(3.0, 2.0), Some(0.5));
    }
}
