//! The windows of a hold, in which responses are counted.

use crate::Stage;

/// Longest window of a load with a known end, unless there were too many of them.
const LONGEST_WINDOW_MS: u64 = 1000;
/// Most windows of a hold; twice as many if stages need them: half a day of one-second windows with thirty steps is
/// gigabytes, which no report could read.
const MOST_WINDOWS: u64 = 5000;

/// The usual number of windows in a hold: enough for a chart and a trend.
pub const USUAL_WINDOWS: u64 = 250;

/// The length of the windows of a hold, in milliseconds: 250 of them fit into it; a short stage has at least ten, so
/// that it has figures, but all together never more than 5,000. Windows end with stages, if their lengths allow it.
pub fn window_ms(hold_ms: u64, stages: &[Stage]) -> u64 {
    let least = hold_ms / MOST_WINDOWS;
    let longest = LONGEST_WINDOW_MS.max(least);
    let usual = (hold_ms / USUAL_WINDOWS).max(least).clamp(1, longest);
    let lengths = || stages.iter().map(|stage| stage.length_ms);
    let Some(shortest) = lengths().min() else {
        return usual;
    };
    // A stage has a whole window within it, wherever it starts.
    let most = (shortest / 10)
        .max(least)
        .min((shortest / 2).max(LONGEST_WINDOW_MS));
    let most = usual.min(most).max(1);
    let fits = |window: &u64| lengths().all(|length| length.is_multiple_of(*window));
    (most.div_ceil(2)..=most).rev().find(fits).unwrap_or(most)
}

#[cfg(test)]
mod tests;
