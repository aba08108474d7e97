//! Concurrent trials, and the side of each.

use lab_plan::{Duet, Side};

use crate::cell::are_partners;
use crate::model::Cell;

/// Instead of a block's number in the draw of sides.
const OF_SIDES: u32 = u32::MAX;

/// For each block whether the second variant is on the left: by lot, so that either is there in half of
/// the blocks.
pub(super) fn sides(blocks: u32, seed: u64) -> Vec<bool> {
    let mut sides: Vec<bool> = (0..blocks).map(|block| block % 2 == 1).collect();
    lab_workload::timing::shuffle(&mut sides, seed, OF_SIDES);
    sides
}

/// Pairs the cells of a block, left and right, so that both cells of a pair differ only in the
/// variant. A study with duets has two variants.
pub(super) fn in_pairs(order: &[usize], cells: &[Cell], swapped: bool) -> Vec<usize> {
    let mut paired = Vec::with_capacity(order.len());
    for at in order {
        if paired.contains(at) {
            continue;
        }
        let partner = (0..cells.len()).find(|other| are_partners(&cells[*other], &cells[*at]));
        let Some(partner) = partner else { continue };
        // The cells of the first variant precede those of the second.
        let (a, b) = (partner.min(*at), partner.max(*at));
        paired.extend(if swapped { [b, a] } else { [a, b] });
    }
    paired
}

/// Returns the peer and the side of a trial, by its number: the left one of two comes first, and numbers
/// start at 1.
pub(super) fn beside(id: u32) -> Duet {
    match id % 2 {
        1 => Duet {
            partner: id + 1,
            side: Side::Left,
        },
        _ => Duet {
            partner: id - 1,
            side: Side::Right,
        },
    }
}
