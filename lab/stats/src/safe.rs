//! The safe line: a level at which nearly all trials pass, with its confidence.
//!
//! If n of n trials passed, at confidence 1 − α at least the part α^(1/n) of all trials pass; 59 of 59 for 95 % at α =
//! 5 % (Wilks, "Determination of Sample Sizes for Setting Tolerance Limits", Ann. Math. Stat. 12, 1941). If some did
//! not pass, the exact bound of Clopper & Pearson applies ("The Use of Confidence or Fiducial Limits", Biometrika 26,
//! 1934).
//!
//! The results determine the level, so α is split: half of it for the highest level at which half of the trials pass,
//! and for each one below it half of the rest. Searches simulated in `tests/safe.rs` then overstate the part in at most
//! 5 % of cases, also for odds that are the same everywhere, where a search finds luck; with all of α for the first
//! level it would be up to 7 %, and with all of it for each 13 %.

use crate::isotonic::{Tally, beside};
use crate::student::incomplete_beta;

/// A level is safe if at least this part of the trials pass.
pub const PART: f64 = 0.95;

/// A level with a smaller part of passed trials is not reported: half of them pass at the load line.
const LEAST_PART: f64 = 0.5;

/// The evidence for the highest safe level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SafeLine {
    /// The level.
    pub level: u32,
    /// Trials at it that passed.
    pub held: u32,
    /// All trials at it.
    pub trials: u32,
    /// At least this part of all trials pass there, at the requested confidence.
    pub part: f64,
    /// The number of trials that must pass, without a failure, for the requested part.
    pub needed: u32,
}

/// Returns the highest level at which this `part` of the trials is shown to pass, at this confidence over all examined
/// levels; without one, the level with the largest proven part. `None` if that is below one half.
#[must_use]
pub fn safe_line(tallies: &[Tally], part: f64, confidence: f64) -> Option<SafeLine> {
    let (carried, _) = beside(tallies);
    let top = carried?;
    let mut left = 1.0 - confidence;
    let mut best: Option<SafeLine> = None;
    for tally in tallies.iter().rev().filter(|tally| tally.level <= top) {
        left /= 2.0;
        let found = SafeLine {
            level: tally.level,
            held: tally.held,
            trials: tally.trials,
            part: least_part(tally.held, tally.trials, left),
            needed: trials_for(part, left),
        };
        if found.part >= part {
            return Some(found);
        }
        if best.is_none_or(|best| found.part > best.part) {
            best = Some(found);
        }
    }
    best.filter(|best| best.part >= LEAST_PART)
}

/// Returns the least part of all trials that pass, if `held` of `trials` did: the lower end of Clopper and Pearson's
/// interval at confidence 1 − `alpha`.
#[must_use]
pub fn least_part(held: u32, trials: u32, alpha: f64) -> f64 {
    if held == 0 || trials == 0 {
        return 0.0;
    }
    if held >= trials {
        return alpha.powf(1.0 / f64::from(trials));
    }
    // The probability of this many or more passes is I_part(held, trials − held + 1), which rises with the part.
    let (a, b) = (f64::from(held), f64::from(trials - held) + 1.0);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if incomplete_beta(middle, a, b) > alpha {
            high = middle;
        } else {
            low = middle;
        }
    }
    low
}

/// Returns how many trials must pass, without a failure, for that `part` of all at confidence 1 − `alpha`.
#[must_use]
pub fn trials_for(part: f64, alpha: f64) -> u32 {
    let trials = alpha.ln() / part.ln();
    // A rounding error above a whole number doesn't count.
    (trials - 1e-9).ceil().clamp(1.0, 1e9) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tallies(of: &[(u32, u32, u32)]) -> Vec<Tally> {
        of.iter()
            .map(|(level, held, trials)| Tally {
                level: *level,
                held: *held,
                trials: *trials,
            })
            .collect()
    }

    #[test]
    fn fifty_nine_of_fifty_nine() {
        assert_eq!(trials_for(0.95, 0.05), 59);
        assert_eq!(trials_for(0.99, 0.05), 299);
        assert!(least_part(59, 59, 0.05) >= 0.95 && least_part(58, 58, 0.05) < 0.95);
    }

    /// Clopper and Pearson's bounds from R's `binom.test`: 9 of 10 at 95 % two-sided, 5 of 6 likewise.
    #[test]
    fn some_that_did_not_hold() {
        assert!((least_part(9, 10, 0.025) - 0.554_983_9).abs() < 1e-6);
        assert!((least_part(5, 6, 0.025) - 0.358_765_4).abs() < 1e-6);
        assert!(least_part(0, 9, 0.05) == 0.0 && least_part(0, 0, 0.05) == 0.0);
    }

    #[test]
    fn the_highest_level_that_is_shown_to_be_safe() {
        let found = safe_line(
            &tallies(&[(100, 90, 90), (200, 80, 80), (300, 2, 3)]),
            PART,
            0.95,
        );
        // 0.025 for the level at which half pass, and 0.0125 below it: 86 would be enough, 80 aren't.
        let found = found.unwrap();
        assert_eq!((found.level, found.needed), (200, 86));
        assert!((found.part - 0.0125_f64.powf(1.0 / 80.0)).abs() < 1e-12);
        let found = safe_line(
            &tallies(&[(100, 90, 90), (200, 86, 86), (300, 2, 3)]),
            PART,
            0.95,
        );
        assert_eq!(
            found.map(|found| (found.level, found.part >= PART)),
            Some((200, true))
        );
    }

    #[test]
    fn few_trials_show_less_and_fewer_nothing() {
        let found = safe_line(
            &tallies(&[(100, 1, 1), (200, 6, 6), (220, 2, 6)]),
            PART,
            0.95,
        )
        .unwrap();
        assert_eq!(
            (found.level, found.held, found.trials, found.needed),
            (200, 6, 6, 72)
        );
        assert!((found.part - 0.025_f64.powf(1.0 / 6.0)).abs() < 1e-12);
        assert_eq!(
            safe_line(
                &tallies(&[(100, 1, 1), (200, 5, 6), (220, 2, 6)]),
                PART,
                0.95
            ),
            None
        );
        assert_eq!(safe_line(&tallies(&[(100, 0, 6)]), PART, 0.95), None);
        assert_eq!(safe_line(&[], PART, 0.95), None);
    }
}
