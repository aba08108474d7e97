//! What interference hides of a difference of two variants that run side by side, and a bound that holds
//! in spite of it.
//!
//! A program that takes a core from a request adds a wait to its time. Where the wait is in proportion to
//! the work, as of a request that is long beside the kernel's time slices, the ratio of two times stays what
//! it is. Where the wait doesn't depend on the work, as of a short request that finds its core taken, it
//! adds the same to both times: their difference stays, and their ratio moves towards 1.
//!
//! One assumption covers both and all between them: **interference makes the variant that needs more work
//! wait at least as long as the other.** Let T be times without interference and M the measured ones. Then
//! T_b − T_a ≤ M_b − M_a where *b* is the slower one, and
//!
//! ln(T_b ÷ T_a) ≤ ln(1 + (M_b − M_a) ÷ T_a) ≤ (M ÷ T) · ln(M_b ÷ M_a),
//!
//! since y · ln(1 + D ÷ y) rises with y. So a measured log ratio, stretched by how far measured times are
//! above a request's own time, is never closer to 0 than the true one, on average. The stretch *s* of blocks
//! differs, and a measured log ratio is at least 1 ÷ *s* of the true one, so the mean log ratio times the mean
//! stretch bounds the true one as well: mean(s) · mean(1 ÷ s) ≥ 1. One stretch for all blocks keeps what the
//! places differ in out of the noise. `tests/interference.rs` simulates the level of the bound.
//!
//! This is about means: a quantile of disturbed times is mostly one of the waits, and what the variants
//! differ in there can't be bounded by it.

use hdrhistogram::Histogram;

/// The quantile of a kind of request that stands for its own time: one request in ten met no interference,
/// or all of them met as much, and then it is in proportion and hides nothing.
pub const OWN_QUANTILE: f64 = 0.1;

/// The time of a request that met no interference, at most: [`OWN_QUANTILE`] of each kind, weighted by how
/// many there were. Kinds are steps: the quickest tenth of all requests together would be those of the
/// cheapest step. `None` where nothing was answered.
pub fn own_time<'a>(kinds: impl Iterator<Item = &'a Histogram<u64>>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for kind in kinds.filter(|kind| !kind.is_empty()) {
        let own = kind.value_at_quantile(OWN_QUANTILE).min(kind.max());
        sum += crate::number::count_u64(own) * crate::number::count_u64(kind.len());
        count += crate::number::count_u64(kind.len());
    }
    (count > 0.0).then(|| sum / count)
}

/// By how much a log ratio of mean times is stretched: `measured` ÷ `own`, times what waiting for each
/// other hides.
///
/// `crowding` is the part of the free CPU that both variants use. A request that finds the other variant at
/// work waits for that one's work, and the less of it the quicker the other is: where each uses half of
/// `crowding`, this takes up to that part from the difference. `None` where a time is missing or all CPU is
/// used.
#[must_use]
pub fn stretch(measured: f64, own: f64, crowding: f64) -> Option<f64> {
    let left = 1.0 - crowding.max(0.0) / 2.0;
    let stretch = measured / own / left;
    (own > 0.0 && crowding < 1.0 && stretch.is_finite()).then_some(stretch.max(1.0))
}

/// The upper bound on a true log ratio, by that on the measured one and the mean stretch of the blocks. A bound
/// below 0 stays: only what makes *b* slower may be hidden.
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
