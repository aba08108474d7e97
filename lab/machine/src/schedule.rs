//! The schedule of repeated work. It reads no clock.

use std::time::Duration;

/// The next regular time after `now`; missed times are skipped. Just before `end` there is a last one, so that the hold
/// is covered to its end while its threads still live.
#[must_use]
pub fn next_due(last: Duration, every: Duration, now: Duration, end: Duration) -> Duration {
    let mut next = last + every;
    if next <= now {
        let missed = (now - last).as_nanos() / every.as_nanos().max(1);
        next = last + every * u32::try_from(missed).unwrap_or(u32::MAX).saturating_add(1);
    }
    let before_end = end.saturating_sub(every / 10);
    if now < before_end && next > before_end {
        before_end
    } else {
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn due_times_are_regular_leave_out_missed_ones_and_cover_the_end() {
        let end = ms(10_000);
        assert_eq!(next_due(ms(0), ms(1000), ms(3), end), ms(1000));
        assert_eq!(next_due(ms(1000), ms(1000), ms(1999), end), ms(2000));
        assert_eq!(
            next_due(ms(1000), ms(1000), ms(4500), end),
            ms(5000),
            "held up"
        );
        assert_eq!(
            next_due(ms(9000), ms(1000), ms(9001), end),
            ms(9900),
            "the last one"
        );
        assert_eq!(
            next_due(ms(9900), ms(1000), ms(9901), end),
            ms(10_900),
            "none after it"
        );
        let forever = next_due(ms(1000), ms(1000), ms(1001), Duration::MAX);
        assert_eq!(forever, ms(2000));
    }
}
