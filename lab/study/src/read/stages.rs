//! The stages of a load: their settings as templates, each with its place.

use lab_language::Setting;
use lab_language::settings::{Settings, note};
use lab_workload::MAX_STAGES;

use crate::file::{At, Scalar, StageFile};
use crate::stages::{Level, StageTemplate};

/// Returns the stages, and the unit of their levels; `None` when a problem was noted.
pub(super) fn templates(
    at: &At<Vec<At<StageFile>>>,
    settings: &mut Settings<'_>,
) -> Option<(Level, Vec<StageTemplate>)> {
    let stages = &at.value;
    let Some(first) = stages.first().filter(|_| stages.len() <= MAX_STAGES) else {
        let message = format!("a load has 1 to {MAX_STAGES} stages");
        let help = "write `stages: [{ users: 100, for: 2m }, { users: 500, over: 30s }]`";
        return note(&at.span, &message, help, settings);
    };
    let of = match &first.value.rate {
        Some(_) => Level::Rate,
        None => Level::Users,
    };
    let mut names: Vec<String> = Vec::new();
    let mut templates = Vec::new();
    for (number, stage) in (1..).zip(stages) {
        let name = name_of(number, &stage.value);
        if names.contains(&name) {
            let message = format!("two stages are named `{name}`");
            return note(
                &stage.span,
                &message,
                "give each a name of its own",
                settings,
            );
        }
        templates.push(template(of, name.clone(), stage, settings));
        names.push(name);
    }
    let templates: Option<Vec<_>> = templates.into_iter().collect();
    Some((of, templates?))
}

/// Returns the name in the file, or else the number.
pub(super) fn name_of(number: usize, stage: &StageFile) -> String {
    let name = stage.stage.as_ref().map(At::text);
    name.unwrap_or_else(|| number.to_string())
}

fn template(
    of: Level,
    name: String,
    at: &At<StageFile>,
    settings: &mut Settings<'_>,
) -> Option<StageTemplate> {
    let stage = &at.value;
    let level = level(of, at, settings);
    let from = match (&stage.from, &stage.ramps) {
        (Some(from), None) => {
            let message = "`from` belongs to a stage that changes its level (`over`)";
            note(&from.span, message, "leave it out", settings)
        }
        (from, _) => settings.optional("from", from.as_ref()),
    };
    let length = match (&stage.stays, &stage.ramps) {
        (Some(stays), None) => settings.required("for", stays),
        (None, Some(ramps)) => settings.required("over", ramps),
        (stays, _) => {
            let message = match stays {
                Some(_) => "a stage keeps its level (`for`) or changes it (`over`)",
                None => "a stage says how long it lasts",
            };
            let help =
                "write `for: 2m`, or `over: 30s` where the level changes; for both, two stages";
            note(&at.span, message, help, settings)
        }
    };
    Some(StageTemplate {
        name,
        level: level?,
        from: from?,
        length: length?,
        ramps: stage.ramps.is_some(),
    })
}

fn level(of: Level, at: &At<StageFile>, settings: &mut Settings<'_>) -> Option<Setting> {
    let stage = &at.value;
    let (field, level, other): (_, &Option<At<Scalar>>, _) = match of {
        Level::Users => ("users", &stage.users, &stage.rate),
        Level::Rate => ("rate", &stage.rate, &stage.users),
    };
    match (level, other) {
        (Some(level), None) => settings.required(field, level),
        (None, None) => {
            let message = format!("a stage needs the key `{field}`");
            note(
                &at.span,
                &message,
                "every stage says its level: `users` or `rate`",
                settings,
            )
        }
        (_, Some(other)) => {
            let message = "the stages of a load all have `users`, or all have `rate`";
            note(&other.span, message, "take one of them", settings)
        }
    }
}
