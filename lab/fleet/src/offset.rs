//! Estimates the offset of another machine's monotonic clock from request-reply exchanges: the shortest round trip is
//! the most precise, and half of it bounds the error. Pure.

use std::collections::VecDeque;

/// Window of exchanges; the shortest counts.
const LAST: usize = 64;

/// One question and its answer, ns: sent and received by this clock, received and sent by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) asked: u64,
    pub(crate) came: u64,
    pub(crate) went: u64,
    pub(crate) heard: u64,
}

/// A clock offset, ns: how far the other clock is ahead of this one, with a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// When it was measured, by this clock.
    pub(crate) at: u64,
    /// How far the other clock is ahead.
    pub(crate) offset: i64,
    /// Half of the round trip, the maximum error of the offset.
    pub(crate) bound: u64,
}

impl Exchange {
    /// Returns the offset from this exchange alone; `None` if its times contradict each other.
    pub(crate) fn offset(self) -> Option<Offset> {
        let round = self.heard.checked_sub(self.asked)?;
        let inside = self.went.checked_sub(self.came)?;
        let travelled = round.checked_sub(inside)?;
        let middle = |a: u64, b: u64| (i128::from(a) + i128::from(b)) / 2;
        let offset = middle(self.came, self.went) - middle(self.asked, self.heard);
        Some(Offset {
            at: self.heard,
            offset: i64::try_from(offset).ok()?,
            bound: travelled.div_ceil(2),
        })
    }
}

/// The offset of one machine, from the last exchanges.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offsets {
    last: VecDeque<Offset>,
    /// The successive best offsets since the beginning of a trial. One stays the best for half a minute or more: a
    /// trial of hours has some hundreds.
    bests: Vec<Offset>,
    told: u64,
}

impl Offsets {
    pub(crate) fn add(&mut self, exchange: Exchange) {
        let Some(new) = exchange.offset() else {
            return;
        };
        self.told += 1;
        // The clock has moved: earlier exchanges are wrong now, however short their round trips.
        if self.best().is_some_and(|best| best.apart(new) > 0) {
            self.last.clear();
        }
        self.last.push_back(new);
        if self.last.len() > LAST {
            self.last.pop_front();
        }
        let best = self.best();
        if best != self.bests.last().copied() {
            self.bests.extend(best);
        }
    }

    /// Returns the best offset.
    pub(crate) fn best(&self) -> Option<Offset> {
        self.last.iter().copied().min_by_key(|one| one.bound)
    }

    /// Restarts the list of best offsets.
    pub(crate) fn begin(&mut self) {
        self.bests = self.best().into_iter().collect();
    }

    /// Returns the successive best offsets since the beginning.
    pub(crate) fn bests(&self) -> &[Offset] {
        &self.bests
    }

    /// Returns the number of valid exchanges.
    pub(crate) fn told(&self) -> u64 {
        self.told
    }

    /// Returns the longest round trip among the last exchanges, ns.
    pub(crate) fn longest(&self) -> u64 {
        let bounds = self.last.iter().map(|one| one.bound.saturating_mul(2));
        bounds.max().unwrap_or(0)
    }
}

impl Offset {
    /// Converts a time of this clock to the other.
    pub(crate) fn there(self, here: u64) -> u64 {
        here.saturating_add_signed(self.offset)
    }

    /// Returns the gap between the intervals of two offsets; 0 if they overlap.
    fn apart(self, other: Self) -> u64 {
        let between = self.offset.abs_diff(other.offset);
        between.saturating_sub(self.bound.saturating_add(other.bound))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_bound(
            offset in -1_000_000_000_000i64..1_000_000_000_000,
            trips in proptest::collection::vec((0u64..5_000_000, 0u64..100_000, 0u64..5_000_000), 1..100),
        ) {
            let mut offsets = Offsets::default();
            let mut asked = 2_000_000_000_000u64;
            for (there, inside, back) in trips {
                let came = (asked + there).saturating_add_signed(offset);
                let (went, heard) = (came + inside, asked + there + inside + back);
                offsets.add(Exchange { asked, came, went, heard });
                let best = offsets.best().unwrap();
                prop_assert!(best.offset.abs_diff(offset) <= best.bound + 1);
                asked = heard + 1_000_000;
            }
            prop_assert!(offsets.last.len() <= LAST);
            let at = offsets.best().unwrap();
            prop_assert!(at.there(5_000_000_000_000).abs_diff(5_000_000_000_000u64.saturating_add_signed(offset)) <= at.bound + 1);
        }
    }

    /// An exchange with an immediate answer and this round trip, ns.
    fn exchange(asked: u64, offset: i64, trip: u64) -> Exchange {
        let came = (asked + trip / 2).saturating_add_signed(offset);
        Exchange {
            asked,
            came,
            went: came,
            heard: asked + trip,
        }
    }

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_clock_that_has_moved_is_known_anew_at_once() {
        let mut offsets = Offsets::default();
        let far = 1_000 * SECOND;
        for n in 0..100 {
            // The first is the shortest: it would be the best of the last 64 for a minute.
            let moved = if n < 70 { 0 } else { -2 * SECOND as i64 };
            let trip = if n < 60 { 40_000 } else { 90_000 };
            offsets.add(exchange(far + n * SECOND, moved, trip));
            let best = offsets.best().unwrap();
            assert!(
                best.offset.abs_diff(moved) <= best.bound + 1,
                "{n}: {best:?}"
            );
        }
        let steps: Vec<i64> = offsets.bests().iter().map(|one| one.offset).collect();
        assert_eq!((steps[0], *steps.last().unwrap()), (0, -2 * SECOND as i64));
    }

    #[test]
    fn twelve_hours_are_written_down_in_few_lines_and_without_a_gap() {
        let mut offsets = Offsets::default();
        let (mut trip, mut begun) = (1u64, SECOND);
        for n in 0..12 * 3600 {
            // Round trips of 50 to 306 us, in no order.
            trip = trip.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            begun = (n + 1) * SECOND;
            offsets.add(exchange(begun, 77, 50_000 + (trip >> 40) % 256_000));
            if n == 600 {
                offsets.begin();
                assert_eq!(offsets.bests().len(), 1);
            }
        }
        let bests = offsets.bests();
        assert!(bests.len() < 12 * 3600 / 20, "{}", bests.len());
        // Each was measured after the one before it, and no later than when that went out of the window.
        for pair in bests.windows(2) {
            let between = pair[1].at - pair[0].at;
            assert!(
                (1..=(LAST as u64 + 1) * SECOND).contains(&between),
                "{pair:?}"
            );
        }
        assert!(begun - bests.last().unwrap().at <= LAST as u64 * SECOND);
    }

    #[test]
    fn times_that_contradict_each_other_tell_nothing() {
        let exchange = |asked, came, went, heard| {
            Exchange {
                asked,
                came,
                went,
                heard,
            }
            .offset()
        };
        assert_eq!(exchange(10, 5, 6, 9), None);
        assert_eq!(exchange(10, 6, 5, 20), None);
        assert_eq!(exchange(10, 100, 120, 20), None);
        let known = Offset {
            at: 20,
            offset: 95,
            bound: 4,
        };
        assert_eq!(exchange(10, 109, 111, 20), Some(known));
    }
}
