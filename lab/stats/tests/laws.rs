//! Laws of merging and of quantiles, on arbitrary samples.

use hdrhistogram::Histogram;
use lab_stats::{Merger, mean_interval, paired, quantile, support};
use proptest::prelude::*;

fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).unwrap();
    for value in values {
        histogram.record(*value).unwrap();
    }
    histogram
}

fn merge(parts: &[Vec<u64>]) -> Histogram<u64> {
    let mut merger = Merger::default();
    for part in parts {
        merger.add(&histogram(part)).unwrap();
    }
    merger.into_merged()
}

proptest! {
    #[test]
    fn merging_is_recording_everything(
        mut parts in prop::collection::vec(prop::collection::vec(0u64..60_000_000, 0..80), 0..8),
        rotate in 0usize..8,
    ) {
        let all: Vec<u64> = parts.iter().flatten().copied().collect();
        let recorded = histogram(&all);
        prop_assert_eq!(&merge(&parts), &recorded);
        if !parts.is_empty() {
            let by = rotate % parts.len();
            parts.rotate_left(by);
            prop_assert_eq!(&merge(&parts), &recorded);
        }
    }

    #[test]
    fn a_quantile_is_within_a_thousandth_of_the_sorted_sample(
        mut values in prop::collection::vec(1u64..60_000_000, 59..400),
    ) {
        let merged = merge(&[values.clone()]);
        values.sort_unstable();
        let rank = (0.95 * values.len() as f64).ceil() as usize;
        let exact = values[rank - 1] as f64;
        let read = quantile(&merged, 0.95).unwrap() as f64;
        prop_assert!((read - exact).abs() <= exact / 1000.0 + 1.0, "{read} for {exact}");
    }

    #[test]
    fn supported_quantiles_never_fall(values in prop::collection::vec(0u64..1_000_000, 299..600)) {
        let merged = merge(&[values]);
        let read: Vec<u64> =
            [0.5, 0.9, 0.95, 0.99].iter().map(|p| quantile(&merged, *p).unwrap()).collect();
        prop_assert!(read.windows(2).all(|pair| pair[0] <= pair[1]));
        prop_assert!(read[3] <= merged.max());
    }

    #[test]
    fn support_follows_its_definition(n in 1u64..5_000, p in 0.01f64..0.9999) {
        let by_definition = 1.0 - p.powf(n as f64) >= support::CONFIDENCE;
        let near = (1.0 - p.powf(n as f64) - support::CONFIDENCE).abs() < 1e-12;
        prop_assert!(near || lab_stats::supports(n, p) == by_definition);
    }

    #[test]
    fn an_interval_holds_its_mean_and_moves_with_its_values(
        values in prop::collection::vec(-1e6f64..1e6, 2..40), shift in -1e6f64..1e6,
    ) {
        let here = mean_interval(&values).unwrap();
        let (low, high) = here.bounds.unwrap();
        prop_assert!(low <= here.mean && here.mean <= high);
        let moved: Vec<f64> = values.iter().map(|value| value + shift).collect();
        let there = mean_interval(&moved).unwrap();
        prop_assert!((there.mean - here.mean - shift).abs() < 1e-3);
        prop_assert!((there.bounds.unwrap().1 - high - shift).abs() < 1e-3);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn exchanging_the_sides_mirrors_a_comparison(values in prop::collection::vec(-1.0_f64..1.0, 1..12)) {
        let mirrored: Vec<f64> = values.iter().map(|value| -value).collect();
        let (p, q) = (paired::sign_flip_p(&values, 1), paired::sign_flip_p(&mirrored, 1));
        prop_assert!((p - q).abs() < 1e-12);
        let (here, there) = (paired::interval(&values, 0.05, 1), paired::interval(&mirrored, 0.05, 1));
        prop_assert_eq!(here.is_bounded(), values.len() >= 6);
        if here.is_bounded() {
            prop_assert!((here.low + there.high).abs() < 1e-9 && (here.high + there.low).abs() < 1e-9);
            prop_assert!(here.low <= here.high);
        }
    }
}
