//! The load of a study: its settings as templates, each with its place.

use lab_language::settings::{Settings, note};
use lab_language::{AddressRange, OneOrMany, parsed};

use super::{generators, kinds, mix};
use crate::demand::{LoadTemplate, WhoTemplate};
use crate::file::{GeneratorsFile, LoadFile, StudyFile};
use crate::model::{StudyWorkload, Workload};

/// The load; `None` when a problem was noted.
pub(super) fn template(
    file: &StudyFile,
    workload: &Workload,
    populations: &[StudyWorkload],
    settings: &mut Settings<'_>,
) -> Option<LoadTemplate> {
    let load = &file.load.value;
    let who = who(file, workload, populations, settings);
    let is_sequence = load.sequence.is_some();
    let has_length = load.stages.is_some() || load.timeline.is_some();
    let ramp = match &load.ramp {
        Some(ramp) if is_sequence => {
            let help = "leave `ramp` out: sessions follow each other from the start";
            note(&ramp.span, "a sequence has no ramp", help, settings)
        }
        ramp => settings.optional("ramp", ramp.as_ref()),
    };
    let hold = match &load.hold {
        None if !is_sequence && !has_length => {
            let help = "say how long the full load lasts, such as `hold: 10m`";
            note(
                &file.load.span,
                "a load needs the key `hold`",
                help,
                settings,
            )
        }
        hold => settings.optional("hold", hold.as_ref()),
    };
    let timeout = settings.optional("timeout", load.timeout.as_ref());
    let time_limit = settings.optional("time_limit", load.time_limit.as_ref());
    let generators = generators::template(load.generators.as_ref(), settings);
    let connections = match &load.connections {
        Some(at) if !workload.speech.is_http() && !workload.speech.is_over_http2() => {
            let help = "leave `connections` out: each user has one of its own";
            let message = "users share connections over HTTP and gRPC alone";
            note(&at.span, message, help, settings)
        }
        connections => settings.optional("connections", connections.as_ref()),
    };
    let sources = sources(load, settings);
    Some(LoadTemplate {
        who: who?,
        ramp: ramp?,
        hold: hold?,
        timeout: timeout?,
        time_limit: time_limit?,
        generators: generators?,
        connections: connections?,
        over_http2: workload.speech.is_over_http2(),
        sources: sources?,
    })
}

/// The source addresses of connections. They belong to this machine, so agents can't use them.
fn sources(load: &LoadFile, settings: &mut Settings<'_>) -> Option<Vec<AddressRange>> {
    let written = load.sources.as_ref().map_or(&[][..], OneOrMany::as_slice);
    let generators = load.generators.as_ref().map(|at| &at.value);
    if let (Some(first), Some(GeneratorsFile::Away(_))) = (written.first(), generators) {
        let help = "leave `sources` out: each agent has the addresses of its own machine";
        let message = "agents don't have the addresses of this machine";
        return note(&first.span, message, help, settings);
    }
    let range = |text: &str| text.parse::<AddressRange>();
    let each = written.iter();
    let each = each.map(|at| parsed(at, "sources", range, settings.problems));
    let each: Vec<_> = each.collect();
    each.into_iter().collect()
}

fn who(
    file: &StudyFile,
    workload: &Workload,
    populations: &[StudyWorkload],
    settings: &mut Settings<'_>,
) -> Option<WhoTemplate> {
    let load = &file.load.value;
    let Some(at) = &load.mix else {
        return kinds::kind(file, workload, settings).map(WhoTemplate::One);
    };
    let says = load.users.is_some() || load.arrival.is_some() || load.stages.is_some();
    let says = says || file.find.is_some();
    let shared = match says {
        true => Some(kinds::kind(file, workload, settings)?),
        false => None,
    };
    mix::template(file, at, shared, populations, settings).map(WhoTemplate::Mix)
}
