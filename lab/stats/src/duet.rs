//! A duet: two variants run concurrently, each on one side of a machine, and the sides are swapped by block.
//!
//! A disturbance of the machine affects both, and leaves their ratio unchanged (Bulej, Horký, Tůma, Farquet & Prokopec,
//! "Duet Benchmarking: Improving Measurement Accuracy in the Cloud", ICPE 2020, doi:10.1145/3358960.3379132). But the
//! sides differ: one may have the core that serves the disk. So each variant has each side in half of the blocks, by
//! random assignment.
//!
//! The block is the unit, as everywhere in this crate. A block's result is converted to left ÷ right, which doesn't
//! depend on the assignment if the variants are equal. Then any other assignment would have shown the same values under
//! other labels. So the labels are permuted, but only such that each side keeps its number of blocks (Fisher, *The
//! Design of Experiments*, 1935, section 21; Rosenberger & Lachin, *Randomization in Clinical Trials*, 2nd ed., chapter
//! 6). A side's own effect stays in the overall mean, and cancels in the difference.
//!
//! Two simpler tests are wrong. Sign flips of the plain log ratios, block by block, treat the difference of the sides
//! as noise. The same after subtracting the sides' mean difference calls 6.8 % of equals different at a nominal 5 %,
//! since fitted values are no noise any more (8 blocks, `tests/duet.rs`).

use crate::paired::{self, Adjusted, Bounds};
use crate::unpaired::{self, Row};
use crate::verdict::ALPHA;

/// The fewest blocks that can show a difference: four on each side, 2 of 70 assignments.
pub const LEAST_BLOCKS: usize = 8;

/// The result of a block in one measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// The log of *b* ÷ *a*, or any other difference.
    pub difference: f64,
    /// Whether *b* was on the left side; otherwise *a* was.
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
    /// *b* less *a*: the mean over blocks, with both assignments of sides weighted alike.
    pub variants: f64,
    /// Of left and right.
    pub sides: f64,
}

/// Returns both differences; `None` if a variant was never on one of the sides.
#[must_use]
pub fn effects(blocks: &[Block]) -> Option<Effects> {
    let (straight, swapped) = by_side(blocks);
    let (straight, swapped) = (paired::mean(&straight)?, paired::mean(&swapped)?);
    Some(Effects {
        variants: (swapped - straight) / 2.0,
        sides: f64::midpoint(swapped, straight),
    })
}

/// Returns the differences of the variants that the test doesn't reject at `alpha`. Unbounded if there are too few
/// blocks to reject any.
#[must_use]
pub fn interval(blocks: &[Block], alpha: f64, seed: u64) -> Bounds {
    let (straight, swapped) = by_side(blocks);
    // One group has the difference with a positive sign, the other with a negative one.
    let twice = unpaired::interval(&straight, &swapped, alpha, seed);
    Bounds {
        low: twice.low / 2.0,
        high: twice.high / 2.0,
    }
}

/// Returns p of several measures, labels permuted jointly per block: alone, and adjusted to bound the probability of
/// any false difference among all. `rows` have a measure's difference (b less a) per block, `None` if a block has none;
/// `swapped` is true for blocks with *b* on the left.
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

/// Returns true if blocks with these sides can show a difference at all.
#[must_use]
pub fn can_show(swapped: &[bool]) -> bool {
    let on_left = swapped.iter().filter(|swapped| **swapped).count();
    unpaired::least_p(on_left, swapped.len() - on_left) <= ALPHA
}

/// The result of the paired windows of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Windows {
    /// The mean over windows of *b* less *a*, on the scale of the values.
    pub difference: f64,
    /// Windows in which both have a value.
    pub paired: usize,
    /// Windows in which only one has a value.
    pub unpaired: usize,
}

/// Pairs concurrent windows: values of *a* and *b* on the scale on which differences are judged, such as logs. Since a
/// window is compared with the same window of the other side, a disturbance of both cancels, whatever its size. `None`
/// if no window has both.
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

/// Returns left less right, of the blocks with *a* on the left, and of those with *b*.
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

    /// Returns blocks in which *b* exceeds *a* by 0.05, and left exceeds right by 0.2, plus this noise.
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
        // The order of blocks is irrelevant.
        let back: Row = row.iter().rev().copied().collect();
        let swapped: Vec<bool> = swapped.iter().rev().copied().collect();
        assert!(close(max_t(&[back], &swapped, 1)[0].single, one.single));
        // A block without a value is in no group.
        let mut gap = row;
        gap[0] = None;
        let (straight, all) = (vec![false, true, false, true, false, true, false, true], 1);
        let less = max_t(&[gap], &straight, all)[0];
        // Three and four: no other of 35 assignments is as extreme.
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
        // A disturbance of both by a factor of e in one window, and of e² in another.
        let a = [Some(1.0), Some(2.0), None, Some(3.0), None];
        let b = [Some(1.1), Some(2.1), Some(9.0), Some(3.1), None];
        let found = windows(&a, &b).unwrap();
        assert!(close(found.difference, 0.1));
        assert_eq!((found.paired, found.unpaired), (3, 1));
        assert_eq!(windows(&a, &[None; 5]), None);
        assert_eq!(windows(&[], &[]), None);
    }
}
