//! A duet: two variants at the same time, each on one side of a machine, the sides swapped by block.
//!
//! What disturbs the machine disturbs both, and their ratio is left alone (Bulej, Horký, Tůma, Farquet &
//! Prokopec, "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE 2020,
//! doi:10.1145/3358960.3379132). But the sides aren't alike: one may have the core that serves the disk.
//! So each variant has each side in half of the blocks, in an order that is drawn by lot.
//!
//! The block is the unit, as everywhere in this crate. What a block came to is turned to left ÷ right,
//! which is, where the variants are alike, the same whichever of them was left. Then any other lot would
//! have shown the same values under other labels, so the labels are exchanged, but only such that each
//! side keeps its number of blocks (Fisher, *The Design of Experiments*, 1935, section 21; Rosenberger &
//! Lachin, *Randomization in Clinical Trials*, 2nd ed., chapter 6). What a side has to itself stays in
//! the mean of all, and drops out of the difference.
//!
//! Two shorter ways are wrong: signs of the plain log ratios, flipped block by block, take the sides'
//! difference for noise; and the same after the sides' mean difference was taken off calls 6.8 % of equals
//! different where it says 5 %, since what was fitted is no noise any more (8 blocks, `tests/duet.rs`).

use crate::paired::{self, Adjusted, Bounds};
use crate::unpaired::{self, Row};
use crate::verdict::ALPHA;

/// The fewest blocks that can show a difference: four on each side, 2 of 70 lots.
pub const LEAST_BLOCKS: usize = 8;

/// What a block came to in one measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// The log of *b* ÷ *a*, or any other difference.
    pub difference: f64,
    /// Whether *b* was on the left side, else *a* was.
    pub swapped: bool,
}

impl Block {
    /// Left less right.
    fn of_sides(self) -> f64 {
        match self.swapped {
            true => self.difference,
            false => -self.difference,
        }
    }
}

/// The difference of two variants, and that of two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effects {
    /// Of *b* and *a*: the mean over blocks, both ways to take the sides counting alike.
    pub variants: f64,
    /// Of left and right.
    pub sides: f64,
}

/// Both differences; `None` where a variant was never on one of the sides.
#[must_use]
pub fn effects(blocks: &[Block]) -> Option<Effects> {
    let (straight, swapped) = by_side(blocks);
    let (straight, swapped) = (paired::mean(&straight)?, paired::mean(&swapped)?);
    Some(Effects {
        variants: (swapped - straight) / 2.0,
        sides: f64::midpoint(swapped, straight),
    })
}

/// The differences of the variants that the test doesn't reject at `alpha`. Unbounded where so few
/// blocks can reject nothing.
#[must_use]
pub fn interval(blocks: &[Block], alpha: f64, seed: u64) -> Bounds {
    let (straight, swapped) = by_side(blocks);
    // One group has the difference with the one sign, the other with the other.
    let twice = unpaired::interval(&straight, &swapped, alpha, seed);
    Bounds {
        low: twice.low / 2.0,
        high: twice.high / 2.0,
    }
}

/// p of several measures, labels exchanged jointly per block: alone, and such that the chance of one or
/// more false differences among all is what it says. `rows` have a measure's difference (b less a) per
/// block, `None` where a block has none; `swapped` says of each block whether *b* was on the left.
#[must_use]
pub fn max_t(rows: &[Row], swapped: &[bool], seed: u64) -> Vec<Adjusted> {
    let with = |side: bool| (0..swapped.len()).filter(move |block| swapped[*block] == side);
    let units: Vec<usize> = with(false).chain(with(true)).collect();
    let of_sides = |row: &Row| -> Row {
        let one = |block: &usize| {
            let difference = (*row.get(*block)?)?;
            let swapped = swapped[*block];
            Some(
                Block {
                    difference,
                    swapped,
                }
                .of_sides(),
            )
        };
        units.iter().map(one).collect()
    };
    let rows: Vec<Row> = rows.iter().map(of_sides).collect();
    unpaired::max_t(&rows, with(false).count(), seed)
}

/// Whether blocks with these sides can show a difference at all.
#[must_use]
pub fn can_show(swapped: &[bool]) -> bool {
    let on_left = swapped.iter().filter(|swapped| **swapped).count();
    unpaired::least_p(on_left, swapped.len() - on_left) <= ALPHA
}

/// What the paired windows of a block come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windows {
    /// The mean over windows of what *b* has more than *a*, on the scale of the values.
    pub difference: f64,
    /// Windows in which both have a value.
    pub paired: usize,
    /// Windows in which only one has.
    pub unpaired: usize,
}

/// Pairs windows of the same moments: values of *a* and *b* on the scale on which differences are judged,
/// such as logs. Since a window is compared with the same window of the other side, a disturbance of any
/// size cancels that strikes both. `None` where no window has both.
#[must_use]
pub fn windows(a: &[Option<f64>], b: &[Option<f64>]) -> Option<Windows> {
    let pairs = || a.iter().zip(b);
    let both = pairs().filter_map(|(a, b)| Some((*b)? - (*a)?));
    let differences: Vec<f64> = both.collect();
    Some(Windows {
        difference: paired::mean(&differences)?,
        paired: differences.len(),
        unpaired: pairs().filter(|(a, b)| a.is_some() != b.is_some()).count(),
    })
}

/// Left less right, of the blocks with *a* on the left, and of those with *b*.
fn by_side(blocks: &[Block]) -> (Vec<f64>, Vec<f64>) {
    let with = |side: bool| {
        let of = blocks.iter().filter(move |block| block.swapped == side);
        of.map(|block| block.of_sides()).collect()
    };
    (with(false), with(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    /// *b* has 0.05 more than *a*, the left side 0.2 more than the right, and so much noise each.
    fn blocks(noise: &[f64]) -> Vec<Block> {
        let one = |(n, noise): (usize, &f64)| {
            let swapped = n % 2 == 1;
            let side = if swapped { 0.2 } else { -0.2 };
            Block {
                difference: 0.05 + side + noise,
                swapped,
            }
        };
        noise.iter().enumerate().map(one).collect()
    }

    fn row(blocks: &[Block]) -> (Row, Vec<bool>) {
        let row = blocks.iter().map(|block| Some(block.difference)).collect();
        (row, blocks.iter().map(|block| block.swapped).collect())
    }

    #[test]
    fn what_a_side_has_to_itself_is_told_from_the_variants() {
        let found = effects(&blocks(&[0.0; 8])).unwrap();
        assert!(close(found.variants, 0.05) && close(found.sides, 0.2));
        let bounds = interval(&blocks(&[0.0; 8]), 0.05, 1);
        assert!(close(bounds.low, 0.05) && close(bounds.high, 0.05));
        assert_eq!(effects(&blocks(&[0.0])), None);
        assert_eq!(effects(&[]), None);
    }

    #[test]
    fn p_is_that_of_the_lots() {
        let blocks = blocks(&[0.01, 0.0, -0.01, 0.02, 0.0, -0.02, 0.01, 0.0]);
        let (row, swapped) = row(&blocks);
        let one = max_t(std::slice::from_ref(&row), &swapped, 1)[0];
        // Two groups of four that don't overlap: 2 of 70.
        assert!(close(one.single, 2.0 / 70.0), "{one:?}");
        // The order of blocks tells nothing.
        let back: Row = row.iter().rev().copied().collect();
        let swapped: Vec<bool> = swapped.iter().rev().copied().collect();
        assert!(close(max_t(&[back], &swapped, 1)[0].single, one.single));
        // A block that has no value is in no group.
        let mut gap = row;
        gap[0] = None;
        let (straight, all) = (vec![false, true, false, true, false, true, false, true], 1);
        let less = max_t(&[gap], &straight, all)[0];
        // Three beside four: no other of 35 lots is as far out.
        assert!(close(less.single, 1.0 / 35.0), "{less:?}");
    }

    #[test]
    fn seven_blocks_or_one_side_show_nothing() {
        let sides = |left: usize, right: usize| [vec![true; left], vec![false; right]].concat();
        assert!(can_show(&sides(4, 4)) && can_show(&sides(3, 6)));
        assert!(!can_show(&sides(4, 3)) && !can_show(&sides(9, 0)) && !can_show(&[]));
        assert!(can_show(&sides(LEAST_BLOCKS / 2, LEAST_BLOCKS / 2)));
        let few = blocks(&[0.0; 5]);
        assert!(!interval(&few, 0.05, 1).is_bounded());
        assert!(!interval(&[], 0.05, 1).is_bounded());
    }

    #[test]
    fn windows_are_compared_with_their_own_moment() {
        // A disturbance of a factor of e in one window, and of e² in another, that strikes both.
        let a = [Some(1.0), Some(2.0), None, Some(3.0), None];
        let b = [Some(1.1), Some(2.1), Some(9.0), Some(3.1), None];
        let found = windows(&a, &b).unwrap();
        assert!(close(found.difference, 0.1));
        assert_eq!((found.paired, found.unpaired), (3, 1));
        assert_eq!(windows(&a, &[None; 5]), None);
        assert_eq!(windows(&[], &[]), None);
    }
}
