//! The sign test: counts how often one side was lower, and ignores by how much. It needs no quiet blocks, only pairs
//! that were treated alike.

use crate::isotonic::tail;

/// Returns the two-sided p of these numbers of lower and higher pairs, if either were equally likely; the caller
/// excludes pairs without a difference. 1 without pairs.
///
/// Source: Conover, *Practical Nonparametric Statistics*, 3rd ed., section 3.4.
#[must_use]
pub fn sign_test_p(lower: u32, higher: u32) -> f64 {
    let most = lower.max(higher);
    (2.0 * tail(lower + higher, most)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::sign_test_p;

    #[test]
    fn it_is_the_even_coin_on_both_sides() {
        for (lower, higher, p) in [
            (0, 0, 1.0),
            (3, 3, 1.0),
            (6, 0, 2.0 / 64.0),
            (0, 6, 2.0 / 64.0),
            (17, 1, 38.0 / 262_144.0),
            (18, 0, 2.0 / 262_144.0),
        ] {
            let found = sign_test_p(lower, higher);
            assert!((found - p).abs() < 1e-12, "{lower}, {higher}: {found}");
        }
    }
}
