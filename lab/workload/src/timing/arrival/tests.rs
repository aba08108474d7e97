//! Tests of `arrival`.

use proptest::prelude::*;

use super::*;
use crate::stage::stages;

const S: Duration = Duration::from_secs(1);

fn stream(rate: f64, spacing: Spacing, ramp: Duration) -> ArrivalStream {
    ArrivalStream::new(1, 0, spacing, Profile::ramp(rate, ramp))
}

fn until(stream: &ArrivalStream, end: Duration) -> usize {
    stream.clone().take_while(|a| a.at < end).count()
}

#[test]
fn constant_arrivals_fill_whole_seconds() {
    let flat = stream(1000.0, Spacing::Constant, Duration::ZERO);
    assert_eq!(until(&flat, 7 * S), 7000);
    let times: Vec<Duration> = flat.map(|a| a.at).take(3).collect();
    assert_eq!(times, [0, 1, 2].map(Duration::from_millis));
    // Half the rate on average over the ramp.
    let ramped = stream(10.0, Spacing::Constant, 4 * S);
    assert_eq!(until(&ramped, 4 * S), 20);
    assert_eq!(until(&ramped, 6 * S), 40);
}

#[test]
fn a_poisson_process_has_its_rate_and_its_spread() {
    // Counts of 1 s at 50/s after a ramp: mean and variance 50, each within five standard errors.
    let poisson = stream(50.0, Spacing::Poisson, 10 * S);
    let mut counts = [0.0_f64; 2000];
    for arrival in poisson {
        let second = arrival.at.as_secs();
        if second >= 2010 {
            break;
        }
        if second >= 10 {
            counts[second as usize - 10] += 1.0;
        }
    }
    let n = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / n;
    let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / n;
    assert!((mean - 50.0).abs() < 5.0 * (50.0 / n).sqrt(), "{mean}");
    assert!(
        (variance - 50.0).abs() < 5.0 * 50.0 * (2.0 / n).sqrt(),
        "{variance}"
    );
}

#[test]
fn a_stream_is_its_seed_and_block() {
    let times = |seed, block| -> Vec<Duration> {
        let profile = Profile::ramp(5.0, S);
        let stream = ArrivalStream::new(seed, block, Spacing::Poisson, profile);
        stream.map(|a| a.at).take(20).collect()
    };
    assert_eq!(times(1, 0), times(1, 0));
    assert_ne!(times(1, 0), times(1, 1));
    assert_ne!(times(1, 0), times(2, 0));
}

#[test]
fn stages_have_their_arrivals() {
    // 4 s at 10/s, nothing for 2 s, up to 20/s and down to 0.
    let of = stages(&[
        (4_000, 10.0, 10.0),
        (2_000, 0.0, 0.0),
        (2_000, 0.0, 20.0),
        (2_000, 20.0, 0.0),
    ]);
    let stream = ArrivalStream::new(1, 0, Spacing::Constant, Profile::stages(&of));
    let counted = [4, 6, 7, 8, 9, 10].map(|second| until(&stream, second * S));
    assert_eq!(counted, [40, 40, 45, 60, 75, 80]);
    assert_eq!(until(&stream, Duration::MAX), 80, "and then none");
}

#[test]
fn a_poisson_process_of_stages_has_the_rate_of_each() {
    // 200 times a spike of 1 s at 200/s in 9 s at 20/s.
    let spike = [
        (4_500, 20.0, 20.0),
        (1_000, 200.0, 200.0),
        (4_500, 20.0, 20.0),
    ];
    let of = stages(&spike.repeat(200));
    let (mut calm, mut high) = (0.0_f64, 0.0_f64);
    let stream = ArrivalStream::new(1, 0, Spacing::Poisson, Profile::stages(&of));
    for arrival in stream.take_while(|arrival| arrival.at < Duration::MAX) {
        let within = arrival.at.as_millis() % 10_000;
        match within {
            4_500..5_500 => high += 1.0,
            _ => calm += 1.0,
        }
    }
    assert!((high - 40_000.0).abs() < 5.0 * 40_000f64.sqrt(), "{high}");
    assert!((calm - 36_000.0).abs() < 5.0 * 36_000f64.sqrt(), "{calm}");
}

proptest! {
    #[test]
    fn arrivals_come_in_order_and_as_expected(
        rate in 0.01..10_000.0f64,
        ramp_ms in 0u64..100_000,
        units in 0.0..100_000.0f64,
        poisson in any::<bool>(),
    ) {
        let spacing = if poisson { Spacing::Poisson } else { Spacing::Constant };
        let profile = Profile::ramp(rate, Duration::from_millis(ramp_ms));
        let back = profile.expected(profile.time_of(units));
        prop_assert!((back - units).abs() <= 1e-6 * (1.0 + units) * (1.0 + rate), "{back} {units}");
        let stream = ArrivalStream::new(1, 0, spacing, profile);
        let mut last = Duration::ZERO;
        for (number, arrival) in stream.take(50).enumerate() {
            prop_assert_eq!(arrival.number, number as u64);
            prop_assert!(arrival.at >= last);
            last = arrival.at;
        }
    }

    #[test]
    fn any_stages_have_as_many_arrivals_as_expected(
        parts in proptest::collection::vec((1u64..20_000, 0.0..500.0f64, 0.0..500.0f64), 1..12),
        of_all in 0.0..1.0f64,
    ) {
        let stages = stages(&parts);
        let profile = Profile::stages(&stages);
        let length = Duration::from_millis(stages.iter().map(|stage| stage.length_ms).sum());
        let all = profile.expected(length);
        let area: f64 = parts.iter().map(|(ms, a, b)| *ms as f64 / 1e3 * f64::midpoint(*a, *b)).sum();
        prop_assert!((all - area).abs() <= 1e-9 * (1.0 + area));
        let back = profile.expected(profile.time_of(of_all * all));
        prop_assert!((back - of_all * all).abs() <= 1e-5 * (1.0 + all), "{back}");
        let mut last = Duration::ZERO;
        let stream = ArrivalStream::new(1, 0, Spacing::Constant, profile);
        let mut count = 0.0;
        for arrival in stream.take_while(|arrival| arrival.at < Duration::MAX) {
            prop_assert!(arrival.at >= last && arrival.at <= length);
            last = arrival.at;
            count += 1.0;
        }
        prop_assert!((all - count).abs() <= 1.0, "{all} {count}");
    }
}
