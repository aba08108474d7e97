//! Words for a comparison: a difference is called one only if it is beyond noise *and* relevant.
//!
//! A tiny difference can be sure, and a large one unsure; neither is news. Where the noise itself is
//! larger than what would matter, the honest word is "unstable" (as ClickHouse's performance tests
//! do it). This file knows ratios, not what was measured.

use crate::paired::Bounds;

/// Fewer blocks than this can't show p < 0.05: k pairs reach 2/2^k at best.
pub const LEAST_BLOCKS: usize = 6;

/// Joint p below which a difference is beyond noise; intervals have the confidence 1 − this.
pub const ALPHA: f64 = 0.05;

/// Ratios within this part of 1 don't matter, unless a study says otherwise.
pub const SMALLEST_RELEVANT: f64 = 0.02;

/// Which way a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Times, and what a transaction costs.
    Lower,
}

/// What a comparison of *a* with *b* comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// *b* is better, beyond noise and by more than the smallest relevant difference.
    Faster,
    /// *b* is worse, likewise.
    Slower,
    /// Whatever the difference is, it isn't a relevant one that was shown, and the noise is small
    /// enough to have seen one.
    NoDifference,
    /// The noise is larger than the smallest relevant difference: a relevant difference may or may
    /// not be there.
    Unstable,
}

/// A comparison as judged: logs of ratios `b ÷ a`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// Mean log ratio.
    pub log_ratio: f64,
    /// Its interval.
    pub bounds: Bounds,
    /// p over all comparisons of the study together.
    pub p: f64,
    /// Pairs.
    pub blocks: usize,
}

/// The verdict; `None` with fewer than [`LEAST_BLOCKS`] pairs.
///
/// `relevant` is the smallest relevant difference as a part: 0.02 means ratios beyond 1.02 or below
/// 1 ÷ 1.02.
#[must_use]
pub fn verdict(compared: &Compared, better: Better, relevant: f64) -> Option<Verdict> {
    (compared.blocks >= LEAST_BLOCKS).then(|| word(compared, better, relevant))
}

/// The word, however many pairs there are: of groups without pairs, whose own test tells whether
/// they are enough.
#[must_use]
pub fn word(compared: &Compared, better: Better, relevant: f64) -> Verdict {
    let relevant = relevant.max(0.0).ln_1p();
    let shown = compared.p <= ALPHA && compared.log_ratio.abs() > relevant;
    let noise = (compared.bounds.high - compared.bounds.low) / 2.0;
    let higher = compared.log_ratio > 0.0;
    match shown {
        true if higher == (better == Better::Higher) => Verdict::Faster,
        true => Verdict::Slower,
        // An unbounded interval has infinite noise.
        false if noise > relevant => Verdict::Unstable,
        false => Verdict::NoDifference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(ratio: f64, low: f64, high: f64, p: f64) -> Compared {
        Compared {
            log_ratio: ratio.ln(),
            bounds: Bounds {
                low: low.ln(),
                high: high.ln(),
            },
            p,
            blocks: 6,
        }
    }

    #[test]
    fn four_words() {
        let judge = |c: Compared| verdict(&c, Better::Lower, SMALLEST_RELEVANT);
        let slower = compared(1.10, 1.08, 1.12, 0.031);
        assert_eq!(judge(slower), Some(Verdict::Slower));
        assert_eq!(
            verdict(&slower, Better::Higher, SMALLEST_RELEVANT),
            Some(Verdict::Faster)
        );
        assert_eq!(
            judge(compared(0.90, 0.88, 0.92, 0.031)),
            Some(Verdict::Faster)
        );
        // Sure, but too small to matter.
        assert_eq!(
            judge(compared(1.01, 1.008, 1.012, 0.031)),
            Some(Verdict::NoDifference)
        );
        // Large, but not sure.
        assert_eq!(
            judge(compared(1.10, 0.95, 1.25, 0.2)),
            Some(Verdict::Unstable)
        );
        assert_eq!(
            judge(compared(1.001, 0.99, 1.012, 0.7)),
            Some(Verdict::NoDifference)
        );
    }

    #[test]
    fn five_blocks_have_no_verdict() {
        let few = Compared {
            blocks: 5,
            ..compared(2.0, 1.9, 2.1, 0.01)
        };
        assert_eq!(verdict(&few, Better::Lower, SMALLEST_RELEVANT), None);
    }

    #[test]
    fn a_study_may_ask_for_more() {
        let slower = compared(1.10, 1.08, 1.12, 0.031);
        assert_eq!(
            verdict(&slower, Better::Lower, 0.15),
            Some(Verdict::NoDifference)
        );
    }
}
