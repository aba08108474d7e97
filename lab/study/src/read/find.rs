//! The search for the load line, judged.

use lab_language::settings::note_problem;
use lab_language::{Problems, parsed, units};

use super::parts::Parts;
use super::thresholds::{thresholds, with_error_rate};
use crate::extent::USERS;
use crate::file::{At, FindFile, Scalar, StudyFile};
use crate::model::{Find, Threshold};

/// The distance between the levels around the line, unless a study sets another.
const RESOLUTION: f64 = 0.05;
/// The number of trials at each of them, unless a study sets another.
const REPEATS: u32 = 6;

/// The search of a study, if it has one; the outer `None` when a problem was noted.
pub(super) fn find(
    file: &StudyFile,
    parts: &Parts,
    problems: &mut Problems,
) -> Option<Option<Find>> {
    let Some(find) = &file.find else {
        return Some(None);
    };
    chooses_itself(file, problems)?;
    let users = &find.value.users;
    let min = match &users.min {
        Some(min) => number("min", min, USERS, problems),
        None => Some(1),
    };
    let max = number("max", &users.max, USERS, problems);
    let subject_to = self::subject_to(&find.value, parts, problems);
    let resolution = match &find.value.resolution {
        Some(at) => {
            let share = |text: &str| units::fraction(text, 0.005..=0.5);
            parsed(at, "resolution", share, problems)
        }
        None => Some(RESOLUTION),
    };
    let repeats = match &find.value.trials {
        Some(at) => number("trials", at, 1..=100, problems),
        None => Some(REPEATS),
    };
    let safe = match &find.value.safe {
        Some(at) => {
            let share = |text: &str| units::fraction(text, 0.5..=0.99);
            Some(parsed(at, "safe", share, problems)?)
        }
        None => None,
    };
    let (min_users, max_users) = (min?, max?);
    if min_users >= max_users {
        let message = format!("the search begins at {min_users} users and ends at {max_users}");
        return note_problem(&users.max.span, &message, "`max` is above `min`", problems);
    }
    Some(Some(Find {
        min_users,
        max_users,
        subject_to: subject_to?,
        resolution: resolution?,
        repeats: repeats?,
        safe,
    }))
}

/// Rejects settings that the search itself chooses.
fn chooses_itself(file: &StudyFile, problems: &mut Problems) -> Option<()> {
    let load = &file.load.value;
    let kinds = [
        load.users.as_ref().map(|at| &at.span),
        load.arrival.as_ref().map(|at| &at.span),
        load.sequence.as_ref().map(|at| &at.span),
        load.stages.as_ref().map(|at| &at.span),
        load.timeline.as_ref().map(|at| &at.span),
    ];
    if let Some(span) = kinds.into_iter().flatten().next() {
        let help = "take this out, or `find`";
        return note_problem(
            span,
            "a search chooses the number of users itself",
            help,
            problems,
        );
    }
    if let Some(trials) = &file.trials {
        let help = "how often the levels beside the line run is `trials` under `find`";
        return note_problem(&trials.span, "a search has no blocks", help, problems);
    }
    if let Some(control) = &file.control {
        let help = "two variants alike do the same for a search";
        return note_problem(&control.span, "a search has no control", help, problems);
    }
    Some(())
}

fn subject_to(file: &FindFile, parts: &Parts, problems: &mut Problems) -> Option<Vec<Threshold>> {
    let table = &file.subject_to;
    if table.value.iter().all(|(_, list)| list.is_empty()) {
        let help = "write `subject_to: { response_time: [\"p(95) < 100ms\"] }`";
        return note_problem(&table.span, "a search needs a threshold", help, problems);
    }
    let found = thresholds(&table.value, parts, problems);
    let written: usize = table.value.iter().map(|(_, list)| list.len()).sum();
    let whole = found.len() == written;
    whole.then(|| with_error_rate(found, Threshold::implied_error_rate_of_search()))
}

fn number(
    what: &str,
    at: &At<Scalar>,
    range: std::ops::RangeInclusive<u64>,
    problems: &mut Problems,
) -> Option<u32> {
    let parse = |text: &str| units::whole_number(text, range);
    parsed(at, what, parse, problems).map(|n| n as u32)
}
