//! Tests of `windows`.

use super::*;

const HOUR_MS: u64 = 3_600_000;

fn stages(lengths: &[u64]) -> Vec<Stage> {
    let stage = |length_ms: &u64| Stage {
        name: String::new(),
        length_ms: *length_ms,
        from: 1.0,
        to: 1.0,
    };
    lengths.iter().map(stage).collect()
}

#[test]
fn a_second_at_most_unless_the_trial_is_long() {
    let of = |hold_ms| window_ms(hold_ms, &[]);
    assert_eq!([of(1), of(10_000), of(HOUR_MS)], [1, 40, 1000]);
    for hold_ms in [12 * HOUR_MS, 30 * 24 * HOUR_MS] {
        assert_eq!(hold_ms / of(hold_ms), MOST_WINDOWS);
    }
}

#[test]
fn stages_end_with_windows_also_of_long_trials() {
    let of = |lengths: &[u64]| window_ms(lengths.iter().sum(), &stages(lengths));
    assert_eq!(of(&[1000, 60_000]), 100);
    assert_eq!(of(&[10 * HOUR_MS, 2 * HOUR_MS]), 8000);
    let all = 12 * HOUR_MS + 60_000;
    assert_eq!(of(&[60_000, 12 * HOUR_MS]), 7500);
    assert!(all.div_ceil(7500) <= 2 * MOST_WINDOWS);
}

#[test]
fn a_short_stage_of_a_long_trial_has_a_whole_window_wherever_it_begins() {
    for shortest in [3000, 10_000] {
        let window = window_ms(24 * HOUR_MS, &stages(&[shortest, 24 * HOUR_MS - shortest]));
        assert!(window <= shortest / 2, "{window}");
    }
}
