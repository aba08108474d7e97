//! The differences of functions that the profiles of a study can show, in words.

use std::time::Duration;

use lab_analysis::power::detectable_in_function;
use lab_plan::Profiling;

use crate::words::duration;

/// Samples per second and core without a `rate` in the study: the rate that the budget allows on most machines.
const USUAL_RATE: f64 = 199.0;
/// The part of the hold that is sampled: one second of six, at random, is not, which measures the cost.
const SAMPLED: f64 = 5.0 / 6.0;
/// Parts of the CPU time of example functions.
const SHARES: [f64; 3] = [0.001, 0.01, 0.05];

/// The differences that profiles show with holds of this length and this many blocks, in lines of at most 80 columns.
/// `smallest` is the smallest difference of the whole that matters.
pub(crate) fn profile(of: &Profiling, hold: Duration, blocks: usize, smallest: f64) -> String {
    let rate = of.rate.unwrap_or(USUAL_RATE);
    let samples = rate * hold.as_secs_f64() * SAMPLED;
    let parts = SHARES.map(|share| detectable_in_function(share, samples, blocks, smallest));
    let [Some(small), Some(usual), Some(large)] = parts else {
        return "  profiles compare no functions with so few blocks: 6 are the fewest\n".to_owned();
    };
    let [small, usual, large] = [small, usual, large].map(percent);
    format!(
        "  functions that 4 of 5 studies show, by profiles at {rate:.0} samples/s of one busy\n    core over {}: \
         {small} of the CPU more in a function of 0.1 %,\n    {usual} in one of 1 %, {large} in one of 5 %; less with \
         more cores in use\n",
        duration(hold)
    )
}

/// `0.57 %`, `2.1 %`.
fn percent(part: f64) -> String {
    let percent = 100.0 * part;
    let digits = if percent < 0.995 { 2 } else { 1 };
    format!("{percent:.digits$} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rate: Option<f64>, seconds: u64, blocks: usize) -> String {
        let of = Profiling {
            rate,
            ..Profiling::default()
        };
        let text = profile(&of, Duration::from_secs(seconds), blocks, 0.001);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        text
    }

    #[test]
    fn more_samples_and_blocks_show_smaller_differences() {
        assert_eq!(
            shown(None, 72, 8),
            "  functions that 4 of 5 studies show, by profiles at 199 samples/s of one busy\n    \
             core over 1 min 12 s: 0.08 % of the CPU more in a function of 0.1 %,\n    0.25 % in one of 1 %, 0.56 % in one of \
             5 %; less with more cores in use\n"
        );
        assert!(shown(Some(997.0), 3_600, 12).contains("0.03 % in one of 1 %"));
        assert!(
            shown(Some(99.0), 5, 6).contains("2.2 % of the CPU more"),
            "{}",
            shown(Some(99.0), 5, 6)
        );
    }

    #[test]
    fn differences_that_do_not_matter_are_not_promised() {
        let of = Profiling::default();
        let text = profile(&of, Duration::from_secs(3_600), 12, 0.02);
        // A quarter of the smallest relevant difference of the whole.
        assert!(
            text.contains("0.50 % of the CPU more in a function of 0.1 %"),
            "{text}"
        );
    }

    #[test]
    fn five_blocks_compare_no_functions() {
        assert!(shown(None, 60, 5).contains("6 are the fewest"));
        assert!(shown(None, 0, 8).contains("no functions"));
    }
}
