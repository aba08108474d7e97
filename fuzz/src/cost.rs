//! The memory and CPU time of a run.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// The time that any run may take.
const BASE_TIME: Duration = Duration::from_millis(200);
/// The additional time per byte, in an instrumented program, beside others. Superlinear time exceeds it many times
/// over.
const TIME_PER_BYTE: Duration = Duration::from_micros(20);

/// The cost of a run.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// The peak memory.
    pub peak_bytes: u64,
    /// The CPU time.
    pub time: Duration,
    /// The maximum time for inputs of this length.
    pub most_time: Duration,
}

impl Cost {
    /// Measures a run on this many bytes.
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

    /// The cost of both runs.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
            time: self.time + other.time,
            most_time: self.most_time + other.most_time,
        }
    }
}

/// Returns the CPU time of this thread.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
    time.into()
}
