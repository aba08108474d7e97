//! Writes the events of a run to its archive's log, for live views. It decides nothing.

use std::path::Path;

use lab_archive::{EventLine, EventLog, Happening};
use lab_host::clock::calendar;

use crate::event::{Event, Phase};
use crate::record::whole_ms;

/// The log of a run. A failed write is ignored here: the run's own writes report a full disk.
pub(crate) struct Logged {
    log: Option<EventLog>,
}

impl Logged {
    pub(crate) fn of(archive: &Path) -> Self {
        let log = EventLog::open(archive).ok();
        Self { log }
    }

    pub(crate) fn take(&mut self, event: &Event) {
        if let Some(what) = line(event) {
            self.put(what);
        }
    }

    pub(crate) fn put(&mut self, what: Happening) {
        let at = calendar();
        let line = EventLine { at, what };
        if let Some(log) = &mut self.log
            && log.put(&line).is_err()
        {
            self.log = None;
        }
    }
}

/// The line of an event; `None` for events that the trial's windows contain, or that precede the archive.
fn line(event: &Event) -> Option<Happening> {
    Some(match event {
        Event::Restored(_) | Event::Cleared { .. } | Event::Gone { .. } | Event::Progress(_) => {
            return None;
        }
        Event::RunStarted {
            trials,
            completed,
            planned,
            ..
        } => Happening::RunStarted {
            pid: std::process::id(),
            trials: *trials,
            completed: *completed,
            planned_ms: whole_ms(*planned),
        },
        Event::TrialStarted { .. } | Event::TrialDone { .. } => return of_trial(event),
        Event::Waiting {
            disturbed_by, left, ..
        } => Happening::Waiting {
            disturbed_by: disturbed_by.clone(),
            left_ms: whole_ms(*left),
        },
        Event::CountedThere { cores } => Happening::CountedThere { cores: *cores },
        Event::PartCountedThere { part, cores } => Happening::PartCountedThere {
            part: part.clone(),
            cores: *cores,
        },
        Event::Phase(phase) => Happening::Phase {
            phase: name(*phase).to_owned(),
        },
        Event::SetupProgress {
            step,
            steps,
            users_done,
            transactions,
            errors,
        } => Happening::Setup {
            step: *step,
            steps: *steps,
            users_done: *users_done,
            transactions: *transactions,
            errors: *errors,
        },
        Event::Failed(example) => Happening::Failed {
            example: example.clone(),
        },
        Event::Note(text) => Happening::Note { text: text.clone() },
    })
}

/// The line of a trial's start or end.
fn of_trial(event: &Event) -> Option<Happening> {
    Some(match event {
        Event::TrialStarted {
            id,
            attempt_of,
            of,
            cell,
            control,
            load,
        } => Happening::TrialStarted {
            trial: *id,
            attempt_of: *attempt_of,
            of: *of,
            cell: serde_json::to_value(cell).unwrap_or_default(),
            control: *control,
            users: load.users,
            ramp_ms: load.ramp_ms,
            hold_ms: load.hold_ms,
        },
        Event::TrialDone {
            id,
            end,
            transactions,
            errors,
            took,
            judged,
        } => Happening::TrialDone {
            trial: *id,
            end: end.clone(),
            transactions: *transactions,
            errors: *errors,
            took_ms: whole_ms(*took),
            failed: judged
                .failed
                .iter()
                .map(|check| format!("{}: {}", check.name, check.evidence))
                .collect(),
            carried: judged.judgement.carried(),
        },
        _ => return None,
    })
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Starting => "starting",
        Phase::Provisioning => "provisioning",
        Phase::Setup => "setup",
        Phase::Ramp => "ramp",
        Phase::Hold => "hold",
        Phase::Stopping => "stopping",
    }
}
