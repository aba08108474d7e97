//! The windows of a hold, in which it is counted what came back.

use crate::Stage;

/// Longest window of a load whose end is known, unless there were too many of them.
const LONGEST_WINDOW_MS: u64 = 1000;
/// A hold has no more windows than that, or twice as many where stages want it: what half a day of seconds leaves of
/// thirty steps is gigabytes, which no report could read.
const MOST_WINDOWS: u64 = 5000;

/// So many windows in a hold give a chart its shape, and a trend its points.
pub const USUAL_WINDOWS: u64 = 250;

/// How long the windows of a hold are, in milliseconds: as long as 250 fit into it; where a stage is short, ten into that, so that it has figures, but
/// never more than 5,000 into all. Windows end where stages do, if their lengths allow it.
pub fn window_ms(hold_ms: u64, stages: &[Stage]) -> u64 {
    let least = hold_ms / MOST_WINDOWS;
    let longest = LONGEST_WINDOW_MS.max(least);
    let usual = (hold_ms / USUAL_WINDOWS).max(least).clamp(1, longest);
    let lengths = || stages.iter().map(|stage| stage.length_ms);
    let Some(shortest) = lengths().min() else {
        return usual;
    };
    // Wherever it begins, a stage has a whole window within it.
    let most = (shortest / 10)
        .max(least)
        .min((shortest / 2).max(LONGEST_WINDOW_MS));
    let most = usual.min(most).max(1);
    let fits = |window: &u64| lengths().all(|length| length.is_multiple_of(*window));
    (most.div_ceil(2)..=most).rev().find(fits).unwrap_or(most)
}

#[cfg(test)]
mod tests {
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
}
