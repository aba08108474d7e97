//! Reads the kind of load of a study: settings as templates, each with its place.

use lab_language::settings::{Settings, note};

use super::{stages, timeline};
use crate::file::{ArrivalFile, At, StudyFile, TimelineFile};
use crate::kinds::{ArrivalTemplate, KindTemplate, SequenceTemplate};
use crate::model::Workload;
use crate::stages::Level;

/// Returns the kind of load; `None` when a problem was noted.
pub(super) fn kind(
    file: &StudyFile,
    workload: &Workload,
    settings: &mut Settings<'_>,
) -> Option<KindTemplate> {
    let load = &file.load.value;
    if let Some(find) = &file.find {
        // Its own faults are noted where the search is judged.
        let least = find.value.users.min.as_ref();
        let least = least.and_then(|min| min.text().parse().ok());
        return Some(KindTemplate::Searched(least.unwrap_or(1)));
    }
    if let Some(at) = &load.stages {
        let found = stages::templates(at, settings);
        let arrival = match &load.arrival {
            Some(at) => arrival(at, settings).map(Some),
            None => Some(None),
        };
        let ((of, stages), arrival) = (found?, arrival?);
        let rate = load.arrival.as_ref().and_then(|at| at.value.rate.as_ref());
        return match (&load.arrival, rate) {
            (Some(at), _) if of == Level::Users => {
                let help = "leave `arrival` out, or give the stages a `rate` each";
                note(&at.span, "users don't arrive on their own", help, settings)
            }
            (_, Some(rate)) => {
                let help = "leave `rate` out of `arrival`";
                note(&rate.span, "the stages say the rate", help, settings)
            }
            _ => Some(KindTemplate::Stages {
                of,
                stages,
                arrival,
            }),
        };
    }
    if let Some(at) = &load.timeline {
        return replayed(at, load.arrival.as_ref(), workload, settings);
    }
    match (&load.users, &load.arrival, &load.sequence) {
        (Some(users), ..) => settings.required("users", users).map(KindTemplate::Users),
        (None, Some(arrival), _) => rated(arrival, settings),
        (None, None, Some(sequence)) => {
            if workload.session.pace.is_some() {
                let message = "the workload has a `pace`, which a sequence can't keep";
                let help = "its sessions follow each other at once: take the pace out, or use \
                            `users: 1`";
                return note(&sequence.span, message, help, settings);
            }
            let of = &sequence.value;
            let sessions = settings.required("sessions", &of.sessions);
            let users = settings.optional("users", of.users.as_ref());
            let shared = settings.optional("shared", of.shared.as_ref());
            Some(KindTemplate::Sequence(Box::new(SequenceTemplate {
                sessions: sessions?,
                users: users?,
                shared: shared?,
            })))
        }
        (None, None, None) => {
            let help = "write `users: 100`, `arrival: { rate: 100/s }`, `sequence: { sessions: 10 }`, or \
                        `stages: [{ users: 100, for: 2m }]`";
            let message = "a load needs `users`, `arrival`, `sequence`, or `stages`";
            note(&file.load.span, message, help, settings)
        }
    }
}

/// Sessions that arrive as recorded.
pub(super) fn replayed(
    at: &At<TimelineFile>,
    beside: Option<&At<ArrivalFile>>,
    workload: &Workload,
    settings: &mut Settings<'_>,
) -> Option<KindTemplate> {
    let template = timeline::template(at, workload, settings);
    let said = beside.map(|at| (&at.value.rate, &at.value.spacing));
    if let Some((Some(other), _) | (None, Some(other))) = said {
        let help = "leave it out of `arrival`; `connections` may stand there";
        return note(
            &other.span,
            "the timeline says when sessions arrive",
            help,
            settings,
        );
    }
    let arrival = match beside {
        Some(at) => Some(arrival(at, settings)?),
        None => None,
    };
    Some(KindTemplate::Timeline(Box::new(template?), arrival))
}

/// Reads sessions that arrive at a rate given with them.
pub(super) fn rated(at: &At<ArrivalFile>, settings: &mut Settings<'_>) -> Option<KindTemplate> {
    if at.value.rate.is_none() {
        let help = "write `rate: 100/s`, or give the load `stages` with a `rate` each";
        return note(&at.span, "an arrival needs the key `rate`", help, settings);
    }
    arrival(at, settings).map(KindTemplate::Arrival)
}

fn arrival(at: &At<ArrivalFile>, settings: &mut Settings<'_>) -> Option<Box<ArrivalTemplate>> {
    let arrival = &at.value;
    let rate = settings.optional("rate", arrival.rate.as_ref());
    let spacing = settings.optional("spacing", arrival.spacing.as_ref());
    let sessions = match &arrival.sessions {
        Some(sessions) => settings.optional("sessions", Some(sessions)),
        None => settings.optional("connections", arrival.connections.as_ref()),
    };
    Some(Box::new(ArrivalTemplate {
        rate: rate?,
        spacing: spacing?,
        sessions: sessions?,
    }))
}
