//! Validates the load generators of a study.

use lab_language::settings::{Settings, note};
use lab_language::{Agents, TextError, Which, agents, parsed, units};

use crate::demand::GeneratorsTemplate;
use crate::file::{At, AwayFile, GeneratorsFile, LabelledFile, Scalar, WhichFile};

/// Most agents of a run.
const AGENTS: std::ops::RangeInclusive<u64> = 1..=1000;
/// Largest part of the load, in relation to the others'.
const WEIGHT: std::ops::RangeInclusive<u64> = 1..=1000;

/// Returns the load generators; `None` when a problem was noted.
pub(super) fn template(
    file: Option<&At<GeneratorsFile>>,
    settings: &mut Settings<'_>,
) -> Option<GeneratorsTemplate> {
    match file.map(|file| &file.value) {
        None => Some(GeneratorsTemplate::One),
        Some(GeneratorsFile::Processes(count)) => {
            let count = settings.required("generators", count);
            count.map(GeneratorsTemplate::Processes)
        }
        Some(GeneratorsFile::Away(away)) => of_agents(away, settings).map(GeneratorsTemplate::Away),
    }
}

fn of_agents(file: &AwayFile, settings: &mut Settings<'_>) -> Option<Agents> {
    let which = match &file.agents {
        WhichFile::Any(count) => value("agents", count, count_of, settings).map(Which::Any),
        WhichFile::Labelled(labelled) => self::labelled(labelled, settings),
        WhichFile::Named(names) => {
            let each = names.value.iter();
            let each: Vec<_> = each
                .map(|at| value("agents", at, agents::name, settings))
                .collect();
            let each: Vec<String> = each.into_iter().collect::<Option<_>>()?;
            if each.is_empty() {
                let help = "name one at least, or say how many: `agents: 3`";
                return note(&names.span, "this names no agent", help, settings);
            }
            let twice = (1..each.len()).find(|at| each[..*at].contains(&each[*at]));
            if let Some(at) = twice {
                let message = format!("`{}` is named twice", each[at]);
                let help = "an agent has one part of the load; say how large it is under `weights`";
                return note(&names.value[at].span, &message, help, settings);
            }
            Some(Which::Named(each))
        }
    };
    let weights = weights(file, settings);
    Some(Agents {
        which: which?,
        weights: weights?,
    })
}

fn labelled(file: &LabelledFile, settings: &mut Settings<'_>) -> Option<Which> {
    let label = value("label", &file.label, agents::label, settings);
    let count = match &file.count {
        Some(count) => value("count", count, count_of, settings).map(Some),
        None => Some(None),
    };
    let (label, value) = label?;
    Some(Which::Labelled {
        label,
        value,
        count: count?,
    })
}

fn weights(file: &AwayFile, settings: &mut Settings<'_>) -> Option<Vec<u32>> {
    let Some(at) = &file.weights else {
        return Some(Vec::new());
    };
    let names = match &file.agents {
        WhichFile::Named(names) => names.value.len(),
        WhichFile::Any(_) | WhichFile::Labelled(_) => 0,
    };
    if at.value.len() != names {
        let message = match names {
            0 => "`weights` are for agents that are named".to_owned(),
            names => format!("{} weights for {names} agents", at.value.len()),
        };
        let help = "name the agents in a list, and give each a weight, in their order";
        return note(&at.span, &message, help, settings);
    }
    let each = at.value.iter();
    let each: Vec<_> = each
        .map(|at| value("weights", at, |text| number(text, WEIGHT), settings))
        .collect();
    each.into_iter().collect()
}

fn count_of(text: &str) -> Result<u32, TextError> {
    number(text, AGENTS)
}

fn number(text: &str, range: std::ops::RangeInclusive<u64>) -> Result<u32, TextError> {
    units::whole_number(text, range).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// Reads a value that may not name a factor: agents are the same in all trials of a run.
fn value<T>(
    field: &str,
    at: &At<Scalar>,
    read: impl FnOnce(&str) -> Result<T, TextError>,
    settings: &mut Settings<'_>,
) -> Option<T> {
    let text = at.text();
    if text.contains("{{") {
        let problem = at.span.first_line().problem(
            "agents are the same in all trials of a run: no factor changes them",
            "here",
        );
        settings.problems.push(problem.help("write it out"));
        return None;
    }
    parsed(at, field, read, settings.problems)
}
