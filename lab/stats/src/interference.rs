//! How interference masks a difference of two concurrent variants, and a bound that holds in spite of it.
//!
//! A program that takes a core from a request adds a wait to its time. If the wait is proportional to the work, as for
//! a request much longer than the kernel's time slices, the ratio of two times is unchanged. If the wait is independent
//! of the work, as for a short request whose core is taken, it adds the same to both times: their difference is
//! unchanged, and their ratio moves towards 1.
//!
//! One assumption covers both cases and all between them: **interference makes the variant that needs more work wait at
//! least as long as the other.** Let T be times without interference and M the measured ones. Then T_b − T_a ≤ M_b −
//! M_a where *b* is the slower one, and
//!
//! ln(T_b ÷ T_a) ≤ ln(1 + (M_b − M_a) ÷ T_a) ≤ (M ÷ T) · ln(M_b ÷ M_a),
//!
//! since y · ln(1 + D ÷ y) rises with y. So a measured log ratio, stretched by the ratio of measured times to a
//! request's own time, is never closer to 0 than the true one, on average. The stretch *s* of blocks differs, and a
//! measured log ratio is at least 1 ÷ *s* of the true one, so the mean log ratio times the mean stretch bounds the true
//! one as well: mean(s) · mean(1 ÷ s) ≥ 1. One stretch for all blocks keeps differences between places out of the
//! noise. `tests/interference.rs` simulates the level of the bound.
//!
//! The bound applies to means: a quantile of disturbed times is mostly one of the waits, and it can't bound the
//! variants' difference there.

use hdrhistogram::Histogram;

/// The quantile that estimates the own time of a kind of request: one request in ten met no interference, or all of
/// them met as much, and then it is proportional and masks nothing.
pub const OWN_QUANTILE: f64 = 0.1;

/// Returns an upper bound on the time of a request without interference: [`OWN_QUANTILE`] of each kind, weighted by
/// counts. Kinds are steps: the quickest tenth of all requests together would be those of the cheapest step. `None`
/// without responses.
pub fn own_time<'a>(kinds: impl Iterator<Item = &'a Histogram<u64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for kind in kinds.filter(|kind| !kind.is_empty()) {
        let own = kind.value_at_quantile(OWN_QUANTILE).min(kind.max());
        sum += crate::number::count_u64(own) * crate::number::count_u64(kind.len());
        count += crate::number::count_u64(kind.len());
    }
    (count > 0.0).then(|| sum / count)
}

/// Returns how much a log ratio of mean times is stretched: `measured` ÷ `own`, times the factor masked by mutual
/// waiting.
///
/// `crowding` is the part of the free CPU that both variants use. A request that finds the other variant running waits
/// for its work, and the quicker the other is, the shorter. If each uses half of `crowding`, this masks up to that part
/// of the difference. `None` if a time is missing or all CPU is used.
#[must_use]
pub fn stretch(measured: f64, own: f64, crowding: f64) -> Option<f64> {
    let left = 1.0 - crowding.max(0.0) / 2.0;
    let stretch = measured / own / left;
    (own > 0.0 && crowding < 1.0 && stretch.is_finite()).then_some(stretch.max(1.0))
}

/// Returns the upper bound on a true log ratio, from that on the measured one and the mean stretch of the blocks. A
/// bound below 0 is unchanged: only a slowdown of *b* may be masked.
#[must_use]
pub fn worse_at_most(high: f64, stretch: f64) -> f64 {
    if high > 0.0 { high * stretch } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(values: &[u64]) -> Histogram<u64> {
        let mut all = Histogram::new(3).unwrap();
        values.iter().for_each(|value| all.record(*value).unwrap());
        all
    }

    #[test]
    fn own_time_weights_each_kind_by_its_requests() {
        let quick = times(&[100; 30]);
        let slow = times(&[[1_000; 2].as_slice(), &[9_000; 8]].concat());
        let both = own_time([&quick, &slow, &times(&[])].into_iter()).unwrap();
        assert!(
            (both - (100.0 * 30.0 + 1_000.0 * 10.0) / 40.0).abs() < 1.0,
            "{both}"
        );
        assert_eq!(own_time([&times(&[])].into_iter()), None);
        assert_eq!(own_time(std::iter::empty()), None);
    }

    #[test]
    fn stretch_is_never_below_one() {
        assert_eq!(stretch(10.0, 5.0, 0.0), Some(2.0));
        assert_eq!(stretch(10.0, 5.0, 0.5), Some(2.0 / 0.75));
        assert_eq!(stretch(4.0, 5.0, 0.0), Some(1.0));
        assert_eq!(
            [worse_at_most(0.02, 2.0), worse_at_most(-0.02, 2.0)],
            [0.04, -0.02]
        );
        for (measured, own, crowding) in [(4.0, 0.0, 0.0), (4.0, 5.0, 1.0), (f64::NAN, 5.0, 0.0)] {
            assert_eq!(stretch(measured, own, crowding), None);
        }
    }
}
