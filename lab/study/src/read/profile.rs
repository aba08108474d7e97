//! The profile that a study asks for.

use lab_language::{Problems, TextError, switch, units};
use lab_plan::{FramesWanted, Profiling, WaitsWanted};

use super::noted::noted;
use crate::file::{ProfileFile, ProfileWithFile};

/// Samples a second of a core.
const RATES: std::ops::RangeInclusive<u64> = 1..=4999;
/// Parts of the CPU time that sampling may cost.
const BUDGETS: std::ops::RangeInclusive<f64> = 0.001..=0.5;

/// `None` where no profile is asked for.
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
    let frames = |text: &str| {
        let wrong = || format!("`{text}` is none of {}", FramesWanted::NAMES.join(", "));
        FramesWanted::named(text).ok_or_else(|| TextError::new(wrong(), 0..text.len()))
    };
    let waits = |text: &str| {
        let wrong = || format!("`{text}` is none of {}", WaitsWanted::NAMES.join(", "));
        WaitsWanted::named(text).ok_or_else(|| TextError::new(wrong(), 0..text.len()))
    };
    let pattern = |text: &str| match regex::Regex::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(TextError::new(error.to_string(), 0..text.len())),
    };
    let idle = file.idle.iter().flat_map(|list| &list.value);
    let idle = idle.filter_map(|at| noted("idle", at, pattern, problems));
    Profiling {
        idle: idle.collect(),
        waits: file
            .waits
            .as_ref()
            .and_then(|at| noted("waits", at, waits, problems))
            .unwrap_or(usual.waits),
        rate: file
            .rate
            .as_ref()
            .and_then(|at| noted("rate", at, rate, problems)),
        frames: file
            .frames
            .as_ref()
            .and_then(|at| noted("frames", at, frames, problems))
            .unwrap_or(usual.frames),
        budget: file
            .budget
            .as_ref()
            .and_then(|at| noted("budget", at, budget, problems))
            .unwrap_or(usual.budget),
    }
}
