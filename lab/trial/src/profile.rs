//! The CPU profile of a trial, over the time of its figures.

use lab_archive::TrialData;
use lab_profile::Profile;

use crate::model::TrialAnalysis;
use crate::sums::Hold;

/// Returns the CPU profile of a trial over the hold after its warm-up; `None` if none was recorded.
///
/// # Errors
/// Describes the damage of the file.
pub fn cpu_profile(data: &TrialData, analysis: &TrialAnalysis) -> Result<Option<Profile>, String> {
    within_hold(data.cpu_profile.as_ref(), "cpu.pb.gz", analysis)
}

/// Reads a profile over the hold after the trial's warm-up.
pub(crate) fn within_hold(
    file: Option<&Result<Vec<u8>, String>>,
    name: &str,
    analysis: &TrialAnalysis,
) -> Result<Option<Profile>, String> {
    let Some(file) = file else { return Ok(None) };
    let bytes = file.as_ref().map_err(Clone::clone)?;
    let profile = Profile::from_pprof(bytes).map_err(|error| format!("{name}: {error}"))?;
    Ok(Some(profile.within(seconds_of(analysis))))
}

/// The seconds of the trial's clock that begin within the hold after its warm-up.
pub(crate) fn seconds_of(analysis: &TrialAnalysis) -> std::ops::Range<u32> {
    let mut hold = Hold::new(analysis.ramp_ms, analysis.hold_ms);
    hold.start_ms += analysis.warmup_cut_ms;
    seconds(&hold)
}

/// Returns the seconds of the trial's clock that begin within the hold.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and no trial lasts a century"
)]
fn seconds(hold: &Hold) -> std::ops::Range<u32> {
    let first = |ms: f64| (ms / 1000.0).ceil() as u32;
    first(hold.start_ms)..first(hold.end_ms)
}

#[cfg(test)]
mod tests {
    use super::{Hold, seconds};

    #[test]
    fn seconds_begin_within_the_hold() {
        let mut hold = Hold::new(6_000, 24_000);
        assert_eq!(seconds(&hold), 6..30);
        hold.start_ms += 1_200.0;
        assert_eq!(seconds(&hold), 8..30);
        hold.end_ms = 29_500.0;
        assert_eq!(seconds(&hold), 8..30);
    }
}
