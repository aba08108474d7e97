//! What a run took of memory and of the processor.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// What no run is too slow with.
const BASE_TIME: Duration = Duration::from_millis(200);
/// What a byte may take on top, in a program that is watched by a fuzzer, beside others. What takes longer the
/// longer the input is takes many times that.
const TIME_PER_BYTE: Duration = Duration::from_micros(20);

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// The most memory that it held at a time.
    pub peak_bytes: u64,
    /// The time that it had of the processor.
    pub time: Duration,
    /// The time that inputs so long may take.
    pub most_time: Duration,
}

impl Cost {
    /// Of a run on so many bytes.
    pub(crate) fn of(bytes: usize, run: impl FnOnce()) -> Self {
        let before = thread_time();
        let taken = allocation_counter::measure(run);
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self {
            peak_bytes: taken.bytes_max,
            time: thread_time().saturating_sub(before),
            most_time: BASE_TIME + TIME_PER_BYTE * bytes,
        }
    }

    /// Of both runs.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
            time: self.time + other.time,
            most_time: self.most_time + other.most_time,
        }
    }
}

/// What this thread has had of the processor.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    time.into()
}
