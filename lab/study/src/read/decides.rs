//! The measure that a study's comparisons are decided by.

use lab_language::{Problems, unknown_name};
use lab_plan::{Named, Scope};

use super::parts::Parts;
use crate::file::StudyFile;
use crate::model::{Decides, Workload};

/// The measure that the study names, if it names one that its trials have.
pub(super) fn decides(
    file: &StudyFile,
    workload: &Workload,
    parts: &Parts,
    problems: &mut Problems,
) -> Option<Decides> {
    let at = file.decides.as_ref()?;
    let text = at.text();
    let named = text.parse::<Decides>();
    let (message, help) = match named {
        Err(_) => unknown(&text),
        Ok(_) if file.find.is_some() => (
            "the load line is what a search is decided by".to_owned(),
            "take this out: limits under `subject_to` say what is carried".to_owned(),
        ),
        Ok(Decides::ProbeMean) if workload.probe.is_none() => (
            "the workload has no probe".to_owned(),
            "give it one, or name another measure".to_owned(),
        ),
        Ok(Decides::TransferRate) if workload.transfer.is_none() => (
            "the workload does not say what a session carries".to_owned(),
            "it says so under `transfer`; or name another measure".to_owned(),
        ),
        Ok(measure) => match unknown_part(measure, parts) {
            Some(problem) => problem,
            None => return Some(measure),
        },
    };
    problems.push(at.span.first_line().problem(message, "here").help(help));
    None
}

/// Returns the error for a text that is not a measure.
fn unknown(text: &str) -> (String, String) {
    let (message, help) = unknown_name("measure", text, &Decides::names());
    let parts = format!("with parts: {}", Named::EXAMPLES.join(", "));
    (message, format!("{help}; {parts}"))
}

/// Returns the error for a measure of a part that the load doesn't have.
fn unknown_part(measure: Decides, parts: &Parts) -> Option<(String, String)> {
    let Decides::Named(named) = measure else {
        return None;
    };
    let first = |of: &[(String, bool)]| of.iter().map(|(name, _)| name.clone()).collect();
    let known: Vec<String> = match named.scope() {
        Scope::All | Scope::Measure(_) => return None,
        Scope::Step(_) => first(&parts.steps),
        Scope::Stage(_) => first(&parts.stages),
        Scope::Population(_) => parts.populations.clone(),
        Scope::Tag(_) => parts.tags.clone(),
        Scope::Transaction(_) => parts.transactions.clone(),
    };
    let (kind, name) = named.scope().named()?;
    if known.iter().any(|one| one == name) {
        return None;
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Some(match known.is_empty() {
        true => (
            format!("there is no {kind} `{name}`"),
            format!("the load has no {kind}s"),
        ),
        false => unknown_name(kind, name, &known),
    })
}
