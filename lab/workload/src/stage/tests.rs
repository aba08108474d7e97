//! Tests of `stage`.

use proptest::prelude::*;

use super::*;

fn seconds(visits: &[Visit]) -> Vec<(f64, f64)> {
    let s = |ns: u64| ns as f64 / 1e9;
    let both = visits.iter().map(|one| (s(one.from), s(one.until)));
    both.collect()
}

#[test]
fn who_came_last_leaves_first() {
    // Two users, a spike of four, two again, and down to none.
    let spike = stages(&[
        (10_000, 2.0, 2.0),
        (2_000, 2.0, 4.0),
        (5_000, 4.0, 4.0),
        (3_000, 2.0, 2.0),
        (2_000, 2.0, 0.0),
        (1_000, 4.0, 4.0),
    ]);
    assert_eq!(seconds(&visits(&spike, 0)), [(0.0, 23.0)]);
    assert_eq!(seconds(&visits(&spike, 1)), [(0.0, 21.0), (22.0, 23.0)]);
    assert_eq!(seconds(&visits(&spike, 2)), [(10.0, 17.0), (22.0, 23.0)]);
    assert_eq!(seconds(&visits(&spike, 3)), [(11.0, 17.0), (22.0, 23.0)]);
    assert_eq!(visits(&spike, 4), []);
}

proptest! {
    #[test]
    fn as_many_are_there_as_the_level_says(
        levels in proptest::collection::vec((1u64..5_000, 0u32..40, 0u32..40), 1..8),
        at in 0.0..1.0f64,
    ) {
        let of: Vec<_> = levels.iter().map(|(ms, a, b)| (*ms, f64::from(*a), f64::from(*b))).collect();
        let stages = stages(&of);
        let mut begin = 0;
        for stage in &stages {
            let length = stage.length_ms * 1_000_000;
            let now = begin + (at * length as f64) as u64;
            let level = stage.from + (stage.to - stage.from) * (now - begin) as f64 / length as f64;
            let there = (0..40u32).filter(|user| {
                visits(&stages, *user).iter().any(|one| (one.from..one.until).contains(&now))
            });
            let there = there.count() as f64;
            prop_assert!((there - level).abs() <= 1.0, "{there} {level}");
            begin += length;
        }
        for user in 0..40 {
            let visits = visits(&stages, user);
            prop_assert!(visits.iter().all(|one| one.from < one.until && one.until <= begin));
            prop_assert!(visits.windows(2).all(|two| two[0].until < two[1].from));
        }
    }
}
