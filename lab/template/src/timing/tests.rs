//! Tests of `timing`.

use super::*;

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn draws(seed: u64, block: u32, index: u32) -> Vec<Duration> {
    let mut stream = TimingStream::new(seed, block, index);
    let wait = Wait::Uniform(seconds(5), seconds(15));
    (0..50).map(|_| stream.next_wait(&wait)).collect()
}

#[test]
fn a_stream_is_its_seed_block_and_user() {
    assert_eq!(draws(1, 0, 7), draws(1, 0, 7));
    assert_ne!(draws(1, 0, 7), draws(1, 0, 8));
    assert_ne!(draws(1, 0, 7), draws(1, 1, 7));
    assert_ne!(draws(1, 0, 7), draws(2, 0, 7));
}

#[test]
fn every_kind_of_wait_takes_one_draw() {
    let kinds = [
        Wait::None,
        Wait::Constant(seconds(1)),
        Wait::Uniform(seconds(1), seconds(2)),
        Wait::Exponential(seconds(1)),
        Wait::Lognormal(seconds(1), 0.5),
    ];
    let after = |kind: &Wait| {
        let mut stream = TimingStream::new(3, 0, 0);
        stream.next_wait(kind);
        stream.next_wait(&Wait::Uniform(Duration::ZERO, seconds(1)))
    };
    for kind in &kinds {
        assert_eq!(after(kind), after(&Wait::None), "{kind:?}");
    }
}

#[test]
fn means_and_cuts_are_those_of_the_distributions() {
    let check = |wait: Wait, expected: f64, low: f64, high: f64| {
        let mut stream = TimingStream::new(11, 0, 0);
        let n = 200_000;
        let mut sum = 0.0;
        for _ in 0..n {
            let w = stream.next_wait(&wait).as_secs_f64();
            assert!(w >= low && w <= high, "{wait:?} gave {w}");
            sum += w;
        }
        let mean = sum / f64::from(n);
        assert!(
            (mean / expected - 1.0).abs() < 0.01,
            "{wait:?}: mean {mean}, not {expected}"
        );
    };
    check(Wait::Uniform(seconds(5), seconds(15)), 10.0, 5.0, 15.0);
    // Truncation at ten means reduces the mean by e⁻¹⁰ of it: not visible here.
    check(Wait::Exponential(seconds(10)), 10.0, 0.0, 100.0);
    // Mean of a lognormal: median × exp(σ²/2).
    check(
        Wait::Lognormal(seconds(10), 0.5),
        10.0 * 0.125f64.exp(),
        0.0,
        1000.0,
    );
}

#[test]
fn normal_quantiles_match_the_tables() {
    for (p, z) in [
        (0.5, 0.0),
        (0.975, 1.959_963_985),
        (0.001, -3.090_232_306),
        (0.99, 2.326_347_874),
    ] {
        assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}");
    }
}

#[test]
fn a_shuffle_keeps_every_item_and_moves_with_the_block() {
    let mut first: Vec<u32> = (0..40).collect();
    let mut again = first.clone();
    let mut other = first.clone();
    shuffle(&mut first, 5, 0);
    shuffle(&mut again, 5, 0);
    shuffle(&mut other, 5, 1);
    assert_eq!(first, again);
    assert_ne!(first, other);
    first.sort_unstable();
    assert_eq!(first, (0..40).collect::<Vec<_>>());
}
