//! How far another machine's monotonic clock is from this one's, by questions and answers: the shortest
//! round trip tells most, and half of it bounds the error. Pure.

use std::collections::VecDeque;

/// Exchanges of which the shortest counts.
const LAST: usize = 64;

/// One question and its answer, ns: asked and heard by this clock, came and went by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) asked: u64,
    pub(crate) came: u64,
    pub(crate) went: u64,
    pub(crate) heard: u64,
}

/// What an offset is known to be, ns: the other clock reads so much more than this one, within a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// When it was measured, by this clock.
    pub(crate) at: u64,
    /// How much more the other clock reads.
    pub(crate) offset: i64,
    /// Half of the round trip: the offset is off by no more.
    pub(crate) bound: u64,
}

impl Exchange {
    /// What this exchange alone tells; nothing when its times contradict each other.
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

/// The offset of one machine, as the last exchanges tell it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Offsets {
    last: VecDeque<Offset>,
}

impl Offsets {
    pub(crate) fn add(&mut self, exchange: Exchange) {
        self.last.extend(exchange.offset());
        if self.last.len() > LAST {
            self.last.pop_front();
        }
    }

    /// The best known.
    pub(crate) fn best(&self) -> Option<Offset> {
        self.last.iter().copied().min_by_key(|one| one.bound)
    }

    /// How many exchanges it rests on.
    pub(crate) fn len(&self) -> usize {
        self.last.len()
    }

    /// The longest way there and back among the last, ns.
    pub(crate) fn longest(&self) -> u64 {
        let bounds = self.last.iter().map(|one| one.bound.saturating_mul(2));
        bounds.max().unwrap_or(0)
    }
}

impl Offset {
    /// A moment of this clock, on the other.
    pub(crate) fn there(self, here: u64) -> u64 {
        here.saturating_add_signed(self.offset)
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
            prop_assert!(offsets.len() <= LAST);
            let at = offsets.best().unwrap();
            prop_assert!(at.there(5_000_000_000_000).abs_diff(5_000_000_000_000u64.saturating_add_signed(offset)) <= at.bound + 1);
        }
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
