//! The time of day, which requests may send.

/// Returns the time in µs since 1970.
pub(crate) fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}
