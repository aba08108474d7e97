//! Which quantiles a sample supports.
//!
//! Of *n* independent values the largest lies above the *p*-quantile with probability 1 − pⁿ. An
//! upper 95 % confidence bound for that quantile therefore exists only if 1 − pⁿ ≥ 0.95, that is
//! from n ≥ ln 0.05 / ln p: 59 values for p95, 299 for p99, 2,995 for p99.9, and 29,956 for p99.99.
//! Source: the order-statistic interval for quantiles (Conover, *Practical Nonparametric
//! Statistics*, 3rd ed., section 3.2), computed.

/// The confidence that an upper bound of a quantile must reach.
pub const CONFIDENCE: f64 = 0.95;

/// Returns the minimum number of independent values that support the `p`-quantile, `0 < p < 1`.
///
/// `None` for a `p` outside of that range: a sample can't bound the extremes.
#[must_use]
pub fn needed_sample(p: f64) -> Option<u64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let exact = (1.0 - CONFIDENCE).ln() / p.ln();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and finite for 0 < p < 1; `as` saturates for p next to 1"
    )]
    let needed = exact.ceil() as u64;
    Some(needed.max(1))
}

/// Returns true if `n` independent values support the `p`-quantile; see [`needed_sample`].
#[must_use]
pub fn supports(n: u64, p: f64) -> bool {
    needed_sample(p).is_some_and(|needed| n >= needed)
}

/// Values beyond a quantile from fewer independent batches than this may be a single event, or two.
///
/// [`needed_sample`] asks for as many values as put three beyond the quantile on average (the rule of three). Where values
/// depend on each other, as requests do that wait for the same stall, three batches take the place of three values.
pub const LEAST_BATCHES: usize = 3;

/// Returns true if values beyond a quantile are from enough batches: `longest` has the largest value of each batch.
/// Fewer values than the required batches must each be from their own.
#[must_use]
pub fn is_spread(longest: impl IntoIterator<Item = u64>, quantile: u64, beyond: u64) -> bool {
    let holding = longest.into_iter().filter(|most| *most > quantile).count();
    let needed = usize::try_from(beyond).unwrap_or(LEAST_BATCHES);
    holding >= needed.min(LEAST_BATCHES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_sample_sizes() {
        for (p, needed) in [
            (0.5, 5),
            (0.9, 29),
            (0.95, 59),
            (0.99, 299),
            (0.999, 2_995),
            (0.9999, 29_956),
        ] {
            assert_eq!(needed_sample(p), Some(needed), "p = {p}");
            assert!(supports(needed, p));
            assert!(!supports(needed - 1, p));
        }
    }

    #[test]
    fn values_of_one_stall_are_one_event() {
        assert!(is_spread([1, 9, 1, 9, 9], 5, 40));
        assert!(!is_spread([1, 9, 1, 9, 1], 5, 40));
        assert!(is_spread([1, 9, 1, 9, 1], 5, 2));
        assert!(!is_spread([1, 9, 1, 1, 1], 5, 2));
        assert!(is_spread([5, 5], 5, 0));
    }

    #[test]
    fn extremes_are_not_quantiles() {
        for p in [0.0, 1.0, -0.5, 1.5, f64::NAN] {
            assert_eq!(needed_sample(p), None);
            assert!(!supports(u64::MAX, p));
        }
    }
}
