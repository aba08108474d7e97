//! The time that users wait for responses, by Little's law: users = throughput × (response time + think time).
//!
//! Source: Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961).

/// Returns the part of `users`' time that was spent on `busy_s` seconds of waiting for responses during `hold_s`: at
/// most this part of the load can be missing because the server was slow.
///
/// `None` without users or time.
#[must_use]
pub fn busy_fraction(busy_s: f64, users: f64, hold_s: f64) -> Option<f64> {
    let all = users * hold_s;
    (all > 0.0 && busy_s.is_finite()).then(|| (busy_s / all).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_part_is_a_part() {
        assert_eq!(busy_fraction(5.0, 10.0, 1.0), Some(0.5));
        assert_eq!(busy_fraction(50.0, 10.0, 1.0), Some(1.0));
        assert_eq!(busy_fraction(5.0, 0.0, 1.0), None);
        assert_eq!(busy_fraction(f64::NAN, 1.0, 1.0), None);
    }
}
