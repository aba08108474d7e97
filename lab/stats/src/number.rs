//! Conversions of whole numbers to floats.

/// Converts a count for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

/// Converts a count of samples for arithmetic.
#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
pub(crate) fn count_u64(n: u64) -> f64 {
    n as f64
}
