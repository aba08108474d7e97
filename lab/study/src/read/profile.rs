//! Reads the profile settings of a study.

use lab_language::{Problems, TextError, parsed, switch, units};
use lab_plan::{FramesWanted, Profiling, WaitsWanted};

use crate::file::{ProfileFile, ProfileWithFile};

/// Samples a second of a core.
const RATES: std::ops::RangeInclusive<u64> = 1..=4999;
/// Parts of the CPU time that sampling may cost.
const BUDGETS: std::ops::RangeInclusive<f64> = 0.001..=0.5;

/// Returns the profile settings; `None` if the study requests no profile.
pub(super) fn profile(file: Option<&ProfileFile>, problems: &mut Problems) -> Option<Profiling> {
    match file? {
        ProfileFile::Switch(at) => switch(Some(at), problems).then(Profiling::default),
        ProfileFile::With(file) => Some(with(file, problems)),
    }
}

fn with(file: &ProfileWithFile, problems: &mut Problems) -> Profiling {
    let usual = Profiling::default();
    let rate = |text: &str| units::whole_number(text, RATES).map(|rate| rate as f64);
    let budget = |text: &str| units::fraction(text, BUDGETS);
    let pattern = |text: &str| match regex::Regex::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(TextError::new(error.to_string(), 0..text.len())),
    };
    let idle = file.idle.iter().flat_map(|list| &list.value);
    let idle = idle.filter_map(|at| parsed(at, "idle", pattern, problems));
    let idle = idle.collect();
    let frames = |text: &str| one_of(text, FramesWanted::named, &FramesWanted::NAMES);
    let frames = file
        .frames
        .as_ref()
        .and_then(|at| parsed(at, "frames", frames, problems));
    let waits = |text: &str| one_of(text, WaitsWanted::named, &WaitsWanted::NAMES);
    let waits = file
        .waits
        .as_ref()
        .and_then(|at| parsed(at, "waits", waits, problems));
    let rate = file
        .rate
        .as_ref()
        .and_then(|at| parsed(at, "rate", rate, problems));
    let budget = file
        .budget
        .as_ref()
        .and_then(|at| parsed(at, "budget", budget, problems));
    Profiling {
        idle,
        waits: waits.unwrap_or(usual.waits),
        rate,
        frames: frames.unwrap_or(usual.frames),
        budget: budget.unwrap_or(usual.budget),
    }
}

fn one_of<T>(text: &str, named: fn(&str) -> Option<T>, names: &[&str]) -> Result<T, TextError> {
    let wrong = || {
        TextError::new(
            format!("`{text}` is none of {}", names.join(", ")),
            0..text.len(),
        )
    };
    named(text).ok_or_else(wrong)
}
