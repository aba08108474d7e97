//! Validates a recorded timeline: the column, the rows, and the part to replay.

use std::sync::Arc;
use std::time::Duration;

use lab_language::settings::{Settings, note};
use lab_language::{TextError, parsed, units, unknown_name};
use lab_workload::{Data, Each, Recorded, Table, TimeUnit};

use crate::extent::MAX_PHASE;
use crate::file::{At, Scalar, TimelineFile};
use crate::model::Workload;
use crate::timeline::TimelineTemplate;

/// Returns the timeline; `None` when a problem was noted. Reads the whole column.
pub(super) fn template(
    at: &At<TimelineFile>,
    workload: &Workload,
    settings: &mut Settings<'_>,
) -> Option<TimelineTemplate> {
    let file = &at.value;
    let (data, table) = rows(at, workload, settings)?;
    let column = column(&file.column, data, table, settings)?;
    let unit = match &file.unit {
        Some(unit) => parsed(unit, "unit", unit_named, settings.problems)?,
        None => TimeUnit::default(),
    };
    let time = |text: &str| units::duration(text, MAX_PHASE);
    let from = match &file.from {
        Some(from) => parsed(from, "from", time, settings.problems)?,
        None => Duration::ZERO,
    };
    let to = match &file.to {
        Some(to) => Some(parsed(to, "to", time, settings.problems)?),
        None => None,
    };
    let scale = settings.optional("scale", file.scale.as_ref())?;
    let recorded = match Recorded::scan(table, (column, unit), (from, to)) {
        Ok(Some(recorded)) => recorded,
        Ok(None) => {
            let message = format!("{} has no moment from there to there", data.file);
            let help = "`from` and `to` count from its first moment on, and `to` is the later one";
            return note(&at.span, &message, help, settings);
        }
        Err(error) => {
            let message = format!("{}: {error}", data.file);
            let help = "moments are in rising order, and `unit` says how they are written";
            return note(&file.column.span, &message, help, settings);
        }
    };
    let last = recorded.last_ns.saturating_sub(recorded.origin_ns);
    let last = Duration::from_nanos(last.unsigned_abs());
    Some(TimelineTemplate {
        column,
        unit,
        length: to.map_or(last, |to| to.saturating_sub(from)),
        recorded,
        scale,
    })
}

/// The rows of the workload, where each session has the next one.
fn rows<'w>(
    at: &At<TimelineFile>,
    workload: &'w Workload,
    settings: &mut Settings<'_>,
) -> Option<(&'w Data, &'w Arc<Table>)> {
    let found = workload.data.as_ref();
    let found = found.and_then(|data| Some((&**data, data.table.as_ref()?)));
    let Some((data, table)) = found else {
        let message = "the workload has no rows to take moments from";
        let help = "write `data: { file: requests.csv, each: session }` in the workload";
        return note(&at.span, message, help, settings);
    };
    if data.each != Each::Session || data.shuffled {
        let message = format!(
            "the sessions don't take the rows of {} in their order",
            data.file
        );
        let help = "write `each: session` under the workload's `data`, and leave `order` out";
        return note(&at.span, &message, help, settings);
    }
    Some((data, table))
}

fn column(at: &At<Scalar>, data: &Data, table: &Table, settings: &mut Settings<'_>) -> Option<u32> {
    let text = at.text();
    let found = table.columns().iter().position(|name| *name == text);
    if let Some(found) = found.and_then(|found| u32::try_from(found).ok()) {
        return Some(found);
    }
    let names: Vec<&str> = table.columns().iter().map(String::as_str).collect();
    let (message, help) = unknown_name("column", &text, &names);
    note(
        &at.span,
        &format!("{message} in {}", data.file),
        &help,
        settings,
    )
}

fn unit_named(text: &str) -> Result<TimeUnit, TextError> {
    const NAMES: [(&str, TimeUnit); 5] = [
        ("s", TimeUnit::Seconds),
        ("ms", TimeUnit::Millis),
        ("us", TimeUnit::Micros),
        ("ns", TimeUnit::Nanos),
        ("datetime", TimeUnit::DateTime),
    ];
    units::one_named("unit", text, &NAMES)
}
