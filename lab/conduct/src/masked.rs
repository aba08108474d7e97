//! Masks secrets in records and events. The caller decides which values are secrets.

use lab_archive::{TrialEnd, TrialRecord, Warning};
use lab_study::Secrets;
use lab_study::model::{Cell, Level};

use crate::ConductError;
use crate::event::Event;

/// Masks the record of a trial.
pub(crate) fn record(secrets: &Secrets, record: &mut TrialRecord) {
    let masked = |text: &mut String| *text = secrets.masked(text);
    record.notes.iter_mut().for_each(masked);
    let noted = record.warnings.iter_mut();
    noted.flat_map(Warning::texts).for_each(masked);
    for example in &mut record.error_examples {
        masked(&mut example.detail);
    }
    for (name, value) in &mut record.system_settings {
        let variable = name.strip_prefix("env ");
        *value = match variable {
            Some(variable) => secrets.shown(variable, value),
            None => secrets.masked(value),
        };
    }
    end(secrets, &mut record.end);
}

fn end(secrets: &Secrets, end: &mut TrialEnd) {
    match end {
        TrialEnd::Complete => {}
        TrialEnd::SystemFailed { message }
        | TrialEnd::PreparationFailed { message, .. }
        | TrialEnd::GeneratorFailed { message }
        | TrialEnd::AgentLost { message }
        | TrialEnd::Aborted { message } => {
            *message = secrets.masked(message);
        }
    }
}

/// Masks an event.
pub(crate) fn event(secrets: &Secrets, mut event: Event) -> Event {
    match &mut event {
        Event::TrialStarted { cell, .. } => levels(secrets, cell),
        Event::TrialDone {
            end: how, judged, ..
        } => {
            end(secrets, how);
            for check in &mut judged.failed {
                check.evidence = secrets.masked(&check.evidence);
            }
        }
        Event::Failed(example) => example.detail = secrets.masked(&example.detail),
        Event::Note(text) => *text = secrets.masked(text),
        _ => {}
    }
    event
}

fn levels(secrets: &Secrets, cell: &mut Cell) {
    for level in cell.values_mut() {
        if let Level::Text(text) = level {
            *text = secrets.masked(text);
        }
    }
}

/// Masks the error of a run.
pub(crate) fn error(secrets: &Secrets, error: ConductError) -> ConductError {
    match error {
        ConductError::Unreachable { mut problems } => {
            for problem in &mut problems {
                *problem = secrets.masked(problem);
            }
            ConductError::Unreachable { problems }
        }
        ConductError::Settings { mut problems } => {
            for problem in &mut problems {
                *problem = secrets.masked(problem);
            }
            ConductError::Settings { problems }
        }
        ConductError::Unsupported(text) => ConductError::Unsupported(secrets.masked(&text)),
        other => other,
    }
}
