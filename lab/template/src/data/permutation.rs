//! A permutation of many rows without a list of them.
//!
//! A Feistel network of four rounds on the smallest even number of bits that holds all places is a permutation of that
//! many numbers, whatever its round function is (Luby and Rackoff 1988); a number outside the range is permuted again
//! until it is inside ("cycle walking", Black and Rogaway, *Ciphers with Arbitrary Finite Domains*, 2002). On average
//! less than four steps are needed.

use crate::timing::mix;

/// Separates this use of the seed from others.
const PURPOSE: u64 = 0x526f_7773;

/// Returns the source of place `at` among `count`, in the order of the seed and the block. `at` is below `count`.
pub(super) fn permuted(at: u64, count: u64, seed: u64, block: u32) -> u64 {
    if count < 2 {
        return at;
    }
    let key = mix(mix(mix(seed) ^ u64::from(block)) ^ PURPOSE);
    let half = (64 - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut place = at;
    loop {
        let (mut left, mut right) = (place >> half, place & mask);
        for round in 0..4 {
            let turned = mix(key ^ (round << 56) ^ right) & mask;
            (left, right) = (right, left ^ turned);
        }
        place = (left << half) | right;
        if place < count {
            return place;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_row_comes_once(count in 1u64..3000, seed: u64, block in 0u32..5) {
            let mut seen = vec![false; count as usize];
            for at in 0..count {
                let place = permuted(at, count, seed, block) as usize;
                prop_assert!(!seen[place]);
                seen[place] = true;
            }
        }
    }

    #[test]
    fn the_order_is_that_of_seed_and_block() {
        let order = |seed, block| -> Vec<u64> {
            (0..1000)
                .map(|at| permuted(at, 1000, seed, block))
                .collect()
        };
        assert_eq!(order(1, 0), order(1, 0));
        assert_ne!(order(1, 0), order(1, 1));
        assert_ne!(order(1, 0), order(2, 0));
        // Differs from the file's order: in a random order, one place in a thousand is unchanged.
        let first = order(1, 0);
        let kept = first
            .iter()
            .enumerate()
            .filter(|(at, place)| *at as u64 == **place);
        assert!(kept.count() < 10);
        assert!(permuted(u64::MAX / 2, u64::MAX, 1, 0) < u64::MAX);
    }
}
