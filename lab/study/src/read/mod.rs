//! From files to a validated study or workload, or to a [`LoadError`].
//!
//! Files are read through [`Files`]; no code here opens one.

mod abort;
mod argv;
mod checks;
mod command;
mod decides;
mod demand;
mod duet;
mod find;
mod generators;
mod host;
mod kinds;
mod loaded;
mod matrix;
mod meaning;
mod mix;
mod overrides;
mod parameters;
mod parts;
mod preparation;
mod processes;
mod profile;
mod published;
mod reach;
mod requires;
mod stages;
mod storage;
mod study;
mod system;
mod threshold;
mod thresholds;
mod timeline;
mod unused;

use std::sync::Arc;

use lab_language::{Files, LoadError, WorkloadFile, read_yaml};
use lab_workload::{LoadSpec, Population};

use crate::model::{Cell, Study, StudyWorkload, Workload};
pub use loaded::Loaded;
use unused::Age;

/// A file of either kind.
#[derive(Debug, Clone)]
pub enum LoadedAny {
    /// A study and all that it names.
    Study(Box<Loaded>),
    /// A workload.
    Workload(Box<Workload>),
}

/// Loads a study, with `overrides` as `--set key.path=value` gives them.
///
/// # Errors
/// Everything that is wrong with the study, or else with its workload.
pub fn load_study(
    path: &str,
    files: &dyn Files,
    overrides: &[(String, String)],
) -> Result<Loaded, LoadError> {
    let (bytes, root) = read_yaml(path, files)?;
    study::load(path, files, (bytes, root), overrides, Age::New)
}

/// As [`load_study`], for a study that an earlier version ran: accepts all that the earlier version accepted.
///
/// # Errors
/// As for [`load_study`].
pub(crate) fn load_archived(
    path: &str,
    files: &dyn Files,
    overrides: &[(String, String)],
) -> Result<Loaded, LoadError> {
    let (bytes, root) = read_yaml(path, files)?;
    study::load(path, files, (bytes, root), overrides, Age::Archived)
}

/// Loads a workload.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_workload(path: &str, files: &dyn Files) -> Result<Workload, LoadError> {
    let (_, root) = read_yaml(path, files)?;
    lab_language::read_workload(&root, files).map(|(workload, _)| workload)
}

/// Loads a study or a workload, as the file's first key determines.
///
/// # Errors
/// As [`load_study`] and [`load_workload`]; or that the file is neither.
pub fn load_any(path: &str, files: &dyn Files) -> Result<LoadedAny, LoadError> {
    let (bytes, root) = read_yaml(path, files)?;
    // A study names its workload under the same key that a workload is called by.
    let is_study = root.get("study").is_some() || path.ends_with(".study.yaml");
    if is_study {
        let loaded = study::load(path, files, (bytes, root), &[], Age::New);
        return loaded.map(|loaded| LoadedAny::Study(Box::new(loaded)));
    }
    if root.get("workload").is_some() || path.ends_with(".workload.yaml") {
        return lab_language::read_workload(&root, files)
            .map(|(w, _)| LoadedAny::Workload(Box::new(w)));
    }
    let mut problem = root.span.first_line().problem(
        format!("{path} is neither a study nor a workload"),
        "it begins here",
    );
    problem.help = Some("a study has the key `study`, a workload the key `workload`".to_owned());
    Err(problem.into())
}

impl Study {
    /// The workload at speed 1 with these parameters, those of a [`crate::plan::Trial`]: a parameter
    /// is a constant of the workload's templates, so each set of values has a workload of its own.
    /// A missing parameter has the workload's own value.
    ///
    /// # Errors
    /// Values that are invalid in the workload; those of a plan's trials are valid.
    pub fn workload_with(&self, parameters: &Cell) -> Result<Arc<Workload>, LoadError> {
        with(&self.workload, &self.workload_file, parameters)
    }

    /// The workloads of a load at speed 1: those of its populations, in their order, or that of all users
    /// with these parameters. Only the first workload with a probe sends it.
    ///
    /// # Errors
    /// As [`Study::workload_with`].
    pub fn workloads_with(
        &self,
        load: &LoadSpec,
        parameters: &Cell,
    ) -> Result<Vec<Arc<Workload>>, LoadError> {
        if load.mix.is_empty() {
            return Ok(vec![self.workload_with(parameters)?]);
        }
        let mut has_probe = false;
        let populations = load.mix.iter().zip(&self.populations);
        let one = |(population, of): (&Population, &StudyWorkload)| {
            let mut workload = with(&of.workload, &of.file, &population.parameters)?;
            if workload.probe.is_some() && std::mem::replace(&mut has_probe, true) {
                Arc::make_mut(&mut workload).probe = None;
            }
            Ok(workload)
        };
        populations.map(one).collect()
    }
}

/// A workload with these of its parameters.
fn with(
    own: &Arc<Workload>,
    file: &WorkloadFile,
    parameters: &Cell,
) -> Result<Arc<Workload>, LoadError> {
    let defaults = file.defaults();
    let mut values = defaults.clone();
    let given = parameters
        .iter()
        .filter(|(name, _)| defaults.contains_key(*name));
    values.extend(given.map(|(name, value)| (name.clone(), value.clone())));
    if values == defaults {
        return Ok(Arc::clone(own));
    }
    lab_language::workload_with(file, &values, own).map(Arc::new)
}
