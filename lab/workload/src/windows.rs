//! The windows of a hold, in which it is counted what came back.

use crate::Stage;

/// Longest window of a load whose end is known, unless there were too many of them.
const LONGEST_WINDOW_MS: u64 = 1000;
/// A hold has no more windows than that, or twice as many where stages want it: what half a day of seconds leaves of
/// thirty steps is gigabytes, which no report could read.
const MOST_WINDOWS: u64 = 5000;

/// So many windows in a hold give a chart its shape, and a trend its points.
pub const USUAL_WINDOWS: u64 = 250;

/// How long the windows of a hold are, in milliseconds: as long as 250 fit into it; where a stage is short, ten into that, so that it has figures, but
/// never more than 5,000 into all. Windows end where stages do, if their lengths allow it.
pub fn window_ms(hold_ms: u64, stages: &[Stage]) -> u64 {
    let least = hold_ms / MOST_WINDOWS;
    let longest = LONGEST_WINDOW_MS.max(least);
    let usual = (hold_ms / USUAL_WINDOWS).max(least).clamp(1, longest);
    let lengths = || stages.iter().map(|stage| stage.length_ms);
    let Some(shortest) = lengths().min() else {
        return usual;
    };
    // Wherever it begins, a stage has a whole window within it.
    let most = (shortest / 10)
        .max(least)
        .min((shortest / 2).max(LONGEST_WINDOW_MS));
    let most = usual.min(most).max(1);
    let fits = |window: &u64| lengths().all(|length| length.is_multiple_of(*window));
    (most.div_ceil(2)..=most).rev().find(fits).unwrap_or(most)
}

#[cfg(test)]
mod tests;
