//! Conversion of counts to floats.

/// Converts a count to a float; exact up to 2^53, far above any count of a run.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^53")]
#[must_use]
pub fn as_f64(count: u64) -> f64 {
    count as f64
}
