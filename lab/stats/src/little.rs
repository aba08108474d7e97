//! Little's law: users = throughput × (response time + think time).
//!
//! Source: Little, "A Proof for the Queuing Formula L = λW", Operations Research 9 (1961); as a
//! check on a load generator: Faban, and wrk#114, which was found so. The law only checks anything
//! if its sides come from *independent* estimates: counted users on one side; counted completions
//! and **planned** waits on the other. With measured waits it is an identity that can't fail.

/// One station of a closed loop: a step with its rate and times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Station {
    /// Completions per second.
    pub per_s: f64,
    /// Mean time that each takes, in seconds.
    pub seconds: f64,
}

/// Users that the stations hold on average: Σ Xᵢ·Wᵢ.
#[must_use]
pub fn users(stations: impl IntoIterator<Item = Station>) -> f64 {
    stations
        .into_iter()
        .map(|station| station.per_s * station.seconds)
        .sum()
}

/// The part of `users`' time that went into `busy_s` seconds of waiting for answers during
/// `hold_s`: at most this part of the load can be missing because the server was slow.
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
    fn a_closed_loop_adds_up() {
        // 10 users, each thinks 0.9 s and is served in 0.1 s: 10 per second.
        let think = Station {
            per_s: 10.0,
            seconds: 0.9,
        };
        let serve = Station {
            per_s: 10.0,
            seconds: 0.1,
        };
        assert!((users([think, serve]) - 10.0).abs() < 1e-12);
    }

    #[test]
    fn the_busy_part_is_a_part() {
        assert_eq!(busy_fraction(5.0, 10.0, 1.0), Some(0.5));
        assert_eq!(busy_fraction(50.0, 10.0, 1.0), Some(1.0));
        assert_eq!(busy_fraction(5.0, 0.0, 1.0), None);
        assert_eq!(busy_fraction(f64::NAN, 1.0, 1.0), None);
    }
}
