//! Verdicts of a comparison: a difference is reported only if it is beyond noise *and* relevant, and equality only if
//! that is also shown.
//!
//! A tiny difference can be certain, and a large one uncertain; neither is reported. The absence of a visible
//! difference shows nothing: if the noise leaves room for a relevant one, the words are "could not tell". Equality has
//! its own test, two one-sided ones at the margins (TOST: Schuirmann, "A Comparison of the Two One-Sided Tests
//! Procedure and the Power Approach", J. Pharmacokinet. Biopharm. 15, 1987), by the same permutations: the interval of
//! confidence 1 − 2α is within the equivalence margin. This file knows ratios, not what was measured.

use crate::paired::Bounds;

/// Fewer blocks can't show p < 0.05: k pairs reach 2/2^k at best.
pub const LEAST_BLOCKS: usize = 6;

/// Joint p below which a difference is beyond noise; intervals have the confidence 1 − this.
pub const ALPHA: f64 = 0.05;

/// Default equivalence margin: ratios within this part of 1 are irrelevant.
pub const SMALLEST_RELEVANT: f64 = 0.02;

/// The direction in which a metric is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// Throughput.
    Higher,
    /// Times, and the cost of a transaction.
    Lower,
}

/// The result of comparing *a* with *b*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// *b* is better, beyond noise and by more than the smallest relevant difference.
    Faster,
    /// *b* is worse, likewise.
    Slower,
    /// Any difference is shown to be smaller than the equivalence margin.
    Equal,
    /// *b* may be better by a relevant difference, but is shown not to be worse by one.
    NoWorse,
    /// A relevant difference may or may not exist.
    Unclear,
}

/// Inputs of a verdict: logs of ratios `b ÷ a`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compared {
    /// Mean log ratio.
    pub log_ratio: f64,
    /// Its interval at confidence 1 − 2 [`ALPHA`]: each end is beyond a one-sided test at [`ALPHA`].
    pub one_sided: Bounds,
    /// p over all comparisons that are tested together.
    pub p: f64,
    /// Pairs.
    pub blocks: usize,
}

/// Margins of differences, as parts: 0.02 means ratios beyond 1.02 or below 1 ÷ 1.02.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Margins {
    /// Equivalence margin: smaller differences are irrelevant, and shown to be within it means equal.
    pub matters: f64,
    /// Minimum detectable effect: at least `matters`, more if a control seemed to differ more.
    pub claims: f64,
}

impl Margins {
    /// Sets both margins to one value.
    #[must_use]
    pub fn of(part: f64) -> Self {
        Self {
            matters: part,
            claims: part,
        }
    }
}

/// Returns the verdict; `None` with fewer than [`LEAST_BLOCKS`] pairs.
#[must_use]
pub fn verdict(compared: &Compared, better: Better, margins: Margins) -> Option<Verdict> {
    (compared.blocks >= LEAST_BLOCKS).then(|| word(compared, better, margins))
}

/// Returns the verdict for any number of pairs: for unpaired groups, whose own test decides whether they are enough.
#[must_use]
pub fn word(compared: &Compared, better: Better, margins: Margins) -> Verdict {
    let matters = margins.matters.max(0.0).ln_1p();
    let claims = margins.claims.max(0.0).ln_1p().max(matters);
    let Bounds { low, high } = compared.one_sided;
    // A certain difference whose near end is beyond the margin can't be one of equals.
    if compared.p <= ALPHA && compared.log_ratio.abs() > claims {
        return if (compared.log_ratio > 0.0) == (better == Better::Higher) {
            Verdict::Faster
        } else {
            Verdict::Slower
        };
    }
    let (not_worse, not_better) = match better {
        Better::Lower => (high < matters, low > -matters),
        Better::Higher => (low > -matters, high < matters),
    };
    match (not_worse, not_better) {
        (true, true) => Verdict::Equal,
        (true, false) => Verdict::NoWorse,
        // An unbounded interval shows neither.
        (false, _) => Verdict::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(ratio: f64, low: f64, high: f64, p: f64) -> Compared {
        Compared {
            log_ratio: ratio.ln(),
            one_sided: Bounds {
                low: low.ln(),
                high: high.ln(),
            },
            p,
            blocks: 6,
        }
    }

    fn judge(ratio: f64, low: f64, high: f64, p: f64) -> Verdict {
        let compared = compared(ratio, low, high, p);
        verdict(&compared, Better::Lower, Margins::of(SMALLEST_RELEVANT)).unwrap()
    }

    #[test]
    fn a_difference_is_sure_and_matters() {
        assert_eq!(judge(1.10, 1.08, 1.12, 0.031), Verdict::Slower);
        assert_eq!(judge(0.90, 0.88, 0.92, 0.031), Verdict::Faster);
        let slower = compared(1.10, 1.08, 1.12, 0.031);
        let more = verdict(&slower, Better::Higher, Margins::of(SMALLEST_RELEVANT));
        assert_eq!(more, Some(Verdict::Faster));
        // Certain, but too small to be relevant.
        assert_eq!(judge(1.01, 1.008, 1.012, 0.031), Verdict::Equal);
        // Large, but uncertain.
        assert_eq!(judge(1.10, 0.95, 1.25, 0.2), Verdict::Unclear);
    }

    #[test]
    fn equal_is_shown_not_assumed() {
        assert_eq!(judge(1.001, 0.99, 1.012, 0.7), Verdict::Equal);
        // No difference is shown, and 3.9 % slower may be true: that is not equality.
        assert_eq!(judge(1.022, 1.005, 1.039, 0.06), Verdict::Unclear);
        assert_eq!(judge(1.001, 0.97, 1.012, 0.7), Verdict::NoWorse);
        assert_eq!(judge(0.985, 0.975, 0.995, 0.031), Verdict::NoWorse);
        let open = Compared {
            one_sided: Bounds {
                low: f64::NEG_INFINITY,
                high: f64::INFINITY,
            },
            ..compared(1.0, 1.0, 1.0, 1.0)
        };
        let margins = Margins::of(SMALLEST_RELEVANT);
        assert_eq!(word(&open, Better::Lower, margins), Verdict::Unclear);
        // For throughput the low end is the bad one.
        let less = compared(0.999, 0.97, 1.01, 0.5);
        assert_eq!(word(&less, Better::Higher, margins), Verdict::Unclear);
        assert_eq!(word(&less, Better::Lower, margins), Verdict::NoWorse);
    }

    #[test]
    fn a_control_takes_claims_away_and_makes_nothing_equal() {
        let noisy = Margins {
            matters: 0.02,
            claims: 0.15,
        };
        let slower = compared(1.10, 1.08, 1.12, 0.031);
        assert_eq!(word(&slower, Better::Lower, noisy), Verdict::Unclear);
        let near = compared(1.01, 0.95, 1.07, 0.5);
        assert_eq!(word(&near, Better::Lower, noisy), Verdict::Unclear);
    }

    #[test]
    fn five_blocks_have_no_verdict() {
        let few = Compared {
            blocks: 5,
            ..compared(2.0, 1.9, 2.1, 0.01)
        };
        let margins = Margins::of(SMALLEST_RELEVANT);
        assert_eq!(verdict(&few, Better::Lower, margins), None);
    }

    #[test]
    fn a_study_may_ask_for_more() {
        let slower = compared(1.10, 1.08, 1.12, 0.031);
        let verdict = verdict(&slower, Better::Lower, Margins::of(0.15));
        assert_eq!(verdict, Some(Verdict::Equal));
    }
}
