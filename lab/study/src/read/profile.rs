//! The profile that a study asks for.

use lab_language::{Problems, switch, units, unknown_name};
use lab_plan::{FramesWanted, Profiling};

use crate::file::{At, ProfileFile, ProfileWithFile, Scalar};

/// Samples a second of a core.
const RATES: std::ops::RangeInclusive<u64> = 1..=4999;
/// Parts of the CPU time that sampling may cost.
const BUDGETS: std::ops::RangeInclusive<f64> = 0.001..=0.5;
const FRAMES: [&str; 3] = ["auto", "pointers", "copies"];

/// `None` where no profile is asked for.
pub(super) fn profile(file: Option<&ProfileFile>, problems: &mut Problems) -> Option<Profiling> {
    match file? {
        ProfileFile::Switch(at) => switch(Some(at), problems).then(Profiling::default),
        ProfileFile::With(file) => Some(with(file, problems)),
    }
}

fn with(file: &ProfileWithFile, problems: &mut Problems) -> Profiling {
    let usual = Profiling::default();
    let rate = file.rate.as_ref().and_then(|at| {
        let text = at.text();
        units::whole_number(&text, RATES)
            .map_err(|error| problems.push(at.span.text_problem("rate", &text, &error)))
            .ok()
    });
    let budget = file.budget.as_ref().and_then(|at| {
        let text = at.text();
        units::fraction(&text, BUDGETS)
            .map_err(|error| problems.push(at.span.text_problem("budget", &text, &error)))
            .ok()
    });
    Profiling {
        rate: rate.map(|rate| rate as f64),
        frames: frames(file.frames.as_ref(), problems),
        budget: budget.unwrap_or(usual.budget),
    }
}

fn frames(at: Option<&At<Scalar>>, problems: &mut Problems) -> FramesWanted {
    let Some(at) = at else {
        return FramesWanted::Auto;
    };
    let text = at.text();
    match text.as_str() {
        "auto" => FramesWanted::Auto,
        "pointers" => FramesWanted::Pointers,
        "copies" => FramesWanted::Copies,
        other => {
            let (message, help) = unknown_name("way to find stacks", other, &FRAMES);
            problems.push(at.span.first_line().problem(message, "here").help(help));
            FramesWanted::Auto
        }
    }
}
