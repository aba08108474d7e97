//! Falling rates, and the level at which half of the trials still pass.
//!
//! More load never makes a trial more likely to pass. That alone, without a curve, gives the estimate (isotonic
//! regression: Ayer, Brunk, Ewing, Reid & Silverman, "An empirical distribution function for sampling with incomplete
//! information", 1955) and an interval: at a level beyond the line, a trial passes with at most even odds, so that the
//! number of passed trials is at most binomial with one half. Two sign tests are inverted, one for each side, each at
//! half of the error.
//!
//! Earlier results determine the levels, which favours luck. Simulated searches (`tests/line.rs`) cover the line in 95
//! % and more at the 95 % level, for curves as flat as from 73 % to 27 % over a factor of seven in users, and for steps
//! from 70 % to 30 %. Coverage is lower only if the odds stay at one half far beyond the line: 81 to 85 %.

/// Default confidence of a load line's interval.
pub const CONFIDENCE: f64 = 0.95;

/// Trials at one level, and how many passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// The level.
    pub level: u32,
    /// Trials that passed.
    pub held: u32,
    /// All trials; at least one.
    pub trials: u32,
}

/// Converts trials in any order to one tally for each level, sorted by level.
#[must_use]
pub fn tally(trials: impl IntoIterator<Item = (u32, bool)>) -> Vec<Tally> {
    let mut tallies: Vec<Tally> = Vec::new();
    for (level, holds) in trials {
        let at = tallies.binary_search_by_key(&level, |t| t.level);
        let at = at.unwrap_or_else(|at| {
            let none = Tally {
                level,
                held: 0,
                trials: 0,
            };
            tallies.insert(at, none);
            at
        });
        tallies[at].trials += 1;
        tallies[at].held += u32::from(holds);
    }
    tallies
}

/// Returns the falling rates that fit best, one for each tally; tallies are sorted by level. Rising neighbours are
/// pooled until none is left (pool adjacent violators).
#[must_use]
pub fn falling_rates(tallies: &[Tally]) -> Vec<f64> {
    // For each pool: passed trials, trials, tallies.
    let mut pools: Vec<(u64, u64, usize)> = Vec::new();
    for tally in tallies {
        pools.push((tally.held.into(), tally.trials.into(), 1));
        while let [.., (h0, n0, _), (h1, n1, _)] = pools[..] {
            // h0/n0 ≥ h1/n1 is in order.
            if h0 * n1 >= h1 * n0 {
                break;
            }
            let (_, _, count) = pools.pop().unwrap_or_default();
            if let Some(pool) = pools.last_mut() {
                *pool = (h0 + h1, n0 + n1, pool.2 + count);
            }
        }
    }
    let rates = pools
        .into_iter()
        .flat_map(|(held, n, count)| std::iter::repeat_n(held as f64 / n.max(1) as f64, count));
    rates.collect()
}

/// Returns the levels next to the line: the highest at which at least half pass, and the one after it.
#[must_use]
pub fn beside(tallies: &[Tally]) -> (Option<u32>, Option<u32>) {
    let held = carried(tallies);
    let level = |at: usize| tallies.get(at).map(|t| t.level);
    (held.checked_sub(1).and_then(level), level(held))
}

/// Returns how many of the tallies are at levels at which at least half pass.
fn carried(tallies: &[Tally]) -> usize {
    let rates = falling_rates(tallies);
    rates.iter().take_while(|rate| **rate >= 0.5).count()
}

/// The sustained number of users: the most at which at least half of the trials pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadLine {
    /// The highest sustained level that was tried; 0 if not even the lowest was sustained.
    pub users: u32,
    /// Lower bound of the line; 0 if the trials don't bound it from below.
    pub low: u32,
    /// Upper bound of the line; `None` if the trials don't bound it from above.
    pub high: Option<u32>,
    /// Confidence of the interval: `0.95`.
    pub confidence: f64,
    /// What stopped the search below the line, if anything did.
    pub ceiling: Option<Ceiling>,
}

/// Why no more users were tried although all tried levels are sustained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ceiling {
    /// The study's maximum.
    Asked,
    /// With this many users the trial is invalid: the generator is the limit.
    Generator {
        /// The fewest users at which it failed.
        users: u32,
    },
}

/// Returns the line and its interval from tallies sorted by level; `None` without any. The caller, which knows why no
/// more was tried, sets the ceiling.
#[must_use]
pub fn load_line(tallies: &[Tally], confidence: f64) -> Option<LoadLine> {
    if tallies.is_empty() {
        return None;
    }
    let (low, high) = bounds(tallies, (1.0 - confidence) / 2.0);
    Some(LoadLine {
        users: beside(tallies).0.unwrap_or(0),
        low,
        high,
        confidence,
        ceiling: None,
    })
}

/// Returns the lines that neither test rejects at `alpha`, from the lowest to the highest.
///
/// Each test uses the trials between the tested line and the estimate: those beyond it would only dilute the evidence
/// against that line.
fn bounds(tallies: &[Tally], alpha: f64) -> (u32, Option<u32>) {
    let (carried, beyond) = tallies.split_at(carried(tallies));
    // Is the line below this level? Then all trials from here on pass at most half of the time.
    let holds = |from: &[Tally]| tail(sum(from, |t| t.trials), sum(from, |t| t.held)) <= alpha;
    let shown = (0..carried.len()).take_while(|at| holds(&carried[*at..]));
    let low = shown.last().map_or(0, |at| carried[at].level);
    // Is it at this level or above? Then all trials up to here pass at least half of the time.
    let fails = |to: &[Tally]| tail(sum(to, |t| t.trials), sum(to, |t| t.trials - t.held)) <= alpha;
    let shown = (0..beyond.len())
        .rev()
        .take_while(|at| fails(&beyond[..=*at]));
    let high = shown.last().map(|at| beyond[at].level.saturating_sub(1));
    (low, high)
}

fn sum(tallies: &[Tally], of: fn(&Tally) -> u32) -> u32 {
    tallies.iter().map(of).sum()
}

/// Returns the probability that at least `successes` of `n` fair coins fall on one side.
pub(crate) fn tail(n: u32, successes: u32) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    // From the far end: C(n, 0) = C(n, n), then down to C(n, successes).
    for missing in 0..=n - successes {
        sum += term;
        term *= f64::from(n - missing) / f64::from(missing + 1);
    }
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tallies(of: &[(u32, u32, u32)]) -> Vec<Tally> {
        let tally = |(level, held, trials): &(u32, u32, u32)| Tally {
            level: *level,
            held: *held,
            trials: *trials,
        };
        of.iter().map(tally).collect()
    }

    #[test]
    fn rates_that_rise_are_pooled() {
        // Worked by hand; the third column of the second case is a textbook cascade.
        let check = |of: &[(u32, u32, u32)], expected: &[f64]| {
            assert_eq!(falling_rates(&tallies(of)), expected);
        };
        check(&[(1, 4, 4), (2, 2, 4), (3, 0, 4)], &[1.0, 0.5, 0.0]);
        check(
            &[(1, 4, 4), (2, 1, 4), (3, 2, 4), (4, 3, 4)],
            &[1.0, 0.5, 0.5, 0.5],
        );
        check(&[(1, 0, 1), (2, 1, 1)], &[0.5, 0.5]);
        check(&[], &[]);
    }

    #[test]
    fn tails_of_the_even_coin() {
        assert!((tail(6, 6) - 1.0 / 64.0).abs() < 1e-15);
        assert!((tail(6, 0) - 1.0).abs() < 1e-15);
        assert!((tail(10, 9) - 11.0 / 1024.0).abs() < 1e-15);
        assert!((tail(0, 0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn a_sharp_line_is_between_its_levels() {
        let seen = tallies(&[(100, 1, 1), (200, 6, 6), (220, 0, 6), (400, 0, 1)]);
        let line = load_line(&seen, CONFIDENCE).unwrap();
        assert_eq!((line.users, line.low, line.high), (200, 200, Some(219)));
        // Five at each can't reach 2.5 % on a side; the trials further out help.
        let few = tallies(&[(200, 5, 5), (220, 0, 5)]);
        let line = load_line(&few, CONFIDENCE).unwrap();
        assert_eq!((line.users, line.low, line.high), (200, 0, None));
        let helped = tallies(&[(100, 1, 1), (200, 5, 5), (220, 0, 5), (400, 0, 1)]);
        let line = load_line(&helped, CONFIDENCE).unwrap();
        assert_eq!((line.users, line.low, line.high), (200, 100, Some(399)));
    }

    #[test]
    fn all_or_nothing_is_open_on_one_side() {
        let all = load_line(&tallies(&[(10, 1, 1), (20, 6, 6)]), CONFIDENCE).unwrap();
        assert_eq!((all.users, all.low, all.high), (20, 20, None));
        let none = load_line(&tallies(&[(10, 0, 6)]), CONFIDENCE).unwrap();
        assert_eq!((none.users, none.low, none.high), (0, 0, Some(9)));
        assert_eq!(load_line(&[], CONFIDENCE), None);
    }

    proptest! {
        #[test]
        fn fitted_rates_fall_and_keep_the_sum(
            of in proptest::collection::vec((0u32..9, 1u32..9), 1..30),
        ) {
            let of: Vec<Tally> = (1..).zip(of).map(|(level, (held, more))| Tally {
                level, held, trials: held + more,
            }).collect();
            let rates = falling_rates(&of);
            prop_assert_eq!(rates.len(), of.len());
            prop_assert!(rates.windows(2).all(|pair| pair[0] >= pair[1]));
            let sum: f64 = rates.iter().zip(&of).map(|(rate, t)| rate * f64::from(t.trials)).sum();
            let held: u32 = of.iter().map(|t| t.held).sum();
            prop_assert!((sum - f64::from(held)).abs() < 1e-9);
        }

        #[test]
        fn the_line_is_within_its_interval(
            of in proptest::collection::vec((1u32..40, any::<bool>()), 1..60),
        ) {
            let line = load_line(&tally(of), CONFIDENCE).unwrap();
            prop_assert!(line.low <= line.users, "{line:?}");
            prop_assert!(line.high.is_none_or(|high| high >= line.users), "{line:?}");
        }
    }
}
