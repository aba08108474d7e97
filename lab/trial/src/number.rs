//! Counts as numbers to calculate with.

/// A count as a float; exact up to 2^53, which no count of a run comes near.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
#[must_use]
pub fn as_f64(count: u64) -> f64 {
    count as f64
}
