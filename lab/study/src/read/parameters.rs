//! The parameters of a workload as a study sets them, and the cells worked out with them.

use std::collections::HashSet;
use std::sync::Arc;

use lab_language::settings::Settings;
use lab_language::{
    CellError, Problem, Problems, Setting, WorkloadFile, unknown_name, workload_with,
};
use lab_workload::{Each, LoadSpec};

use crate::cell::CellTemplate;
use crate::file::{At, Scalar, StudyFile, Table};
use crate::model::{Cell, StudyWorkload, Workload};
use crate::parameters::ParametersTemplate;

/// Returns the parameters that the study sets for its own workload; `None` when a problem was noted. `others` are
/// the workloads of its populations, whose parameters are valid names, too.
pub(super) fn template(
    file: &StudyFile,
    workload: &WorkloadFile,
    others: &[StudyWorkload],
    settings: &mut Settings<'_>,
) -> Option<ParametersTemplate> {
    let defaults = workload.defaults();
    let mut names = defaults.clone();
    names.extend(others.iter().flat_map(|other| other.file.defaults()));
    let all_known = known(&file.parameters, &names, settings);
    let set = set(&file.parameters, &defaults, settings);
    all_known?;
    Some(ParametersTemplate {
        set: set?,
        defaults,
    })
}

/// Returns the parameters of a population: the study's for its workload, overridden by its own.
pub(super) fn of_population(
    file: &StudyFile,
    own: &Table<At<Scalar>>,
    workload: &WorkloadFile,
    settings: &mut Settings<'_>,
) -> Option<ParametersTemplate> {
    let defaults = workload.defaults();
    let all_known = known(own, &defaults, settings);
    let of_study = set(&file.parameters, &defaults, settings);
    let own = set(own, &defaults, settings);
    all_known?;
    let mut set = of_study?;
    set.extend(own?);
    Some(ParametersTemplate { defaults, set })
}

/// Notes names that no workload has.
fn known(table: &Table<At<Scalar>>, names: &Cell, settings: &mut Settings<'_>) -> Option<()> {
    let names: Vec<&str> = names.keys().map(String::as_str).collect();
    let mut all = Some(());
    for (name, _) in table.iter() {
        if names.contains(&name.value.as_str()) {
            continue;
        }
        let (message, help) = unknown_name("parameter", &name.value, &names);
        let help = match names.is_empty() {
            true => "the workload has none: it lists them under `parameters`".to_owned(),
            false => help,
        };
        let problem = name.span.problem(message, "here");
        settings.problems.push(problem.help(help));
        all = None;
    }
    all
}

/// The settings of a table that a workload has.
fn set(
    table: &Table<At<Scalar>>,
    defaults: &Cell,
    settings: &mut Settings<'_>,
) -> Option<Vec<(String, Setting)>> {
    let of = table
        .iter()
        .filter(|(name, _)| defaults.contains_key(&name.value));
    let each = of.map(|(name, value)| {
        let setting = settings.required(&format!("parameter {}", name.value), value)?;
        Some((name.value.clone(), setting))
    });
    // Each is checked, even if the one before is invalid.
    each.collect::<Vec<_>>().into_iter().collect()
}

/// Works out every cell, so that a plan finds nothing new. A setting is reported once.
pub(super) fn check_cells(
    file: &StudyFile,
    cells: &[Cell],
    template: &CellTemplate,
    (own, written, populations): (&Arc<Workload>, &WorkloadFile, &[StudyWorkload]),
    problems: &mut Problems,
) {
    let mut workloads = Workloads::new(own, written);
    let of_populations = populations.iter();
    let mut of_populations: Vec<Workloads<'_>> = of_populations
        .map(|one| Workloads::new(&one.workload, &one.file))
        .collect();
    let mut reported = HashSet::new();
    let mut short = false;
    for cell in cells {
        let system = template.system.of(cell).system(cell).map(drop);
        let host = template.system.of(cell).host(cell).map(drop);
        let reach = template.connect(cell).map(drop);
        let ask = template.system.of(cell).ask.spec(cell).map(drop);
        let parameters = template.parameters.parameters(cell);
        let workload = match &parameters {
            Ok(parameters) => workloads.of(parameters, problems),
            Err(_) => Some(Arc::clone(own)),
        };
        let load = match &workload {
            Some(workload) => template.load.load(cell, workload.session.pace).map(|load| {
                let load = load.spec(1.0);
                let mut all = vec![Arc::clone(workload)];
                for (population, workloads) in load.mix.iter().zip(&mut of_populations) {
                    all.extend(workloads.of(&population.parameters, problems));
                }
                let found = all
                    .iter()
                    .find_map(|workload| no_rows(file, workload, &load));
                if let Some(problem) = found.filter(|_| !short) {
                    problems.push(problem);
                    short = true;
                }
            }),
            None => Ok(()),
        };
        let results = [system, host, reach, ask, parameters.map(drop), load];
        for error in results.into_iter().filter_map(Result::err) {
            if !reported.contains(&error.field) {
                problems.push(cell_problem(file, &error));
                reported.insert(error.field);
            }
        }
    }
}

/// Returns the reason why the workload's rows can't be assigned to a load, if any.
fn no_rows(file: &StudyFile, workload: &Workload, load: &LoadSpec) -> Option<Problem> {
    let data = workload.data.as_ref()?;
    let place = file.load.span.first_line();
    if data.unique && data.each == Each::User && u64::from(load.users) > data.rows {
        let (users, rows) = (load.users, data.rows);
        let message = format!(
            "{users} users need a row each, and {} has {rows}",
            data.file
        );
        return Some(
            place
                .problem(message, "this load")
                .help("add rows, or leave `unique` out: rows are then given again"),
        );
    }
    None
}

/// Workloads by their parameters; cells mostly share a few.
struct Workloads<'f> {
    file: &'f WorkloadFile,
    own: &'f Workload,
    known: Vec<(Cell, Option<Arc<Workload>>)>,
}

impl<'f> Workloads<'f> {
    fn new(own: &'f Arc<Workload>, file: &'f WorkloadFile) -> Self {
        Self {
            file,
            own,
            known: vec![(file.defaults(), Some(Arc::clone(own)))],
        }
    }

    /// The workload, or `None` where it makes no sense: noted for the first such parameters.
    fn of(&mut self, parameters: &Cell, problems: &mut Problems) -> Option<Arc<Workload>> {
        if let Some((_, known)) = self.known.iter().find(|(known, _)| known == parameters) {
            return known.clone();
        }
        let all_well = self.known.iter().all(|(_, workload)| workload.is_some());
        let made = match workload_with(self.file, parameters, self.own) {
            Ok(workload) => Some(Arc::new(workload)),
            Err(error) => {
                if all_well {
                    let found = error.problems().iter().cloned();
                    found.for_each(|problem| problems.push(problem));
                }
                None
            }
        };
        self.known.push((parameters.clone(), made.clone()));
        made
    }
}

fn cell_problem(file: &StudyFile, error: &CellError) -> Problem {
    let span = &error.at.span;
    let written = error.at.text();
    if written == error.text {
        return span.text_problem(&error.field, &error.text, &error.cause);
    }
    let message = format!("{}: {}", error.field, error.cause.message);
    if let Some(level) = level_of(file, &written, &error.text) {
        let problem = level.span.first_line().problem(message, "this level");
        return Problem {
            help: error.cause.help.clone(),
            ..problem
        };
    }
    // The text is rendered from factors, so a position in it is not a position in the file.
    let label = format!("`{}` in one of the cells", error.text);
    let problem = span.first_line().problem(message, label);
    Problem {
        help: error.cause.help.clone(),
        ..problem
    }
}

/// The level that a setting like `{{ users }}` has its text from.
fn level_of<'f>(file: &'f StudyFile, written: &str, text: &str) -> Option<&'f At<Scalar>> {
    let name = written
        .trim()
        .strip_prefix("{{")?
        .strip_suffix("}}")?
        .trim();
    let factors = &file.matrix.as_ref()?.value;
    let (_, levels) = factors.iter().find(|(factor, _)| factor.value == name)?;
    levels.value.iter().find(|level| level.text() == text)
}
