//! From files to a validated study or workload, and from what is wrong to a [`LoadError`].
//!
//! Files come through [`Files`]; nothing here opens one.

mod body;
mod capture;
mod choice;
mod command;
mod demand;
mod find;
mod matrix;
mod overrides;
mod parameters;
mod published;
mod request;
mod steps;
mod study;
mod system;
mod thresholds;
mod workload;

use crate::error::{LoadError, Problem, Problems};
use crate::file::{Decode, WorkloadFile};
use crate::model::{Cell, Study, Workload};
use crate::nearest::one_of;
use crate::node::{self, Node, Value};

/// Where files are read from. Paths use `/` and may begin with `..`.
pub trait Files {
    /// The bytes of a file. An implementation may refuse what is larger than a few megabytes.
    ///
    /// # Errors
    /// Whatever the reading gave.
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error>;

    /// The names of the files in a folder, for the nearest right name; none where they can't be
    /// told.
    fn names(&self, _folder: &str) -> Vec<String> {
        Vec::new()
    }
}

/// A study with the files that it was made of.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The validated study.
    pub study: Study,
    /// Name in the archive and content, byte for byte: `study.yaml`, `workload.yaml`, and the
    /// published figures.
    pub files: Vec<(String, Vec<u8>)>,
}

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
    study::load(path, files, bytes, root, overrides)
}

/// Loads a workload.
///
/// # Errors
/// Everything that is wrong with it.
pub fn load_workload(path: &str, files: &dyn Files) -> Result<Workload, LoadError> {
    let (_, root) = read_yaml(path, files)?;
    workload_from(&root).map(|(workload, _)| workload)
}

/// Loads a workload with these values of its parameters; what is missing has the workload's own.
///
/// # Errors
/// As [`load_workload`]; or that a value makes no sense in it.
pub fn load_workload_with(
    path: &str,
    files: &dyn Files,
    parameters: &Cell,
) -> Result<Workload, LoadError> {
    let (_, root) = read_yaml(path, files)?;
    let (own, file) = workload_from(&root)?;
    if parameters.is_empty() {
        return Ok(own);
    }
    let mut values = workload::defaults(&file);
    values.extend(parameters.clone());
    workload_with(&file, &values)
}

/// Loads a study or a workload, whichever the file is: its first key says so.
///
/// # Errors
/// As [`load_study`] and [`load_workload`]; or that the file is neither.
pub fn load_any(path: &str, files: &dyn Files) -> Result<LoadedAny, LoadError> {
    let (bytes, root) = read_yaml(path, files)?;
    // A study names its workload under the same key that a workload is called by.
    let is_study = root.get("study").is_some() || path.ends_with(".study.yaml");
    if is_study {
        return study::load(path, files, bytes, root, &[]).map(|l| LoadedAny::Study(Box::new(l)));
    }
    if root.get("workload").is_some() || path.ends_with(".workload.yaml") {
        return workload_from(&root).map(|(w, _)| LoadedAny::Workload(Box::new(w)));
    }
    let mut problem = root.span.first_line().problem(
        format!("{path} is neither a study nor a workload"),
        "it begins here",
    );
    problem.help = Some("a study has the key `study`, a workload the key `workload`".to_owned());
    Err(problem.into())
}

fn workload_from(root: &Node) -> Result<(Workload, WorkloadFile), LoadError> {
    let file = decode::<WorkloadFile>(root)?;
    let mut problems = Problems::default();
    let workload = workload::validate(&file, &mut problems);
    problems.finish(workload.map(|workload| (workload, file)))
}

/// The workload with a value for each of its parameters.
pub(crate) fn workload_with(file: &WorkloadFile, parameters: &Cell) -> Result<Workload, LoadError> {
    let mut problems = Problems::default();
    let workload = workload::validate_with(file, parameters, &mut problems);
    problems.finish(workload)
}

/// Reads the shape; what texts mean is judged only where the shape is right.
fn decode<T: Decode>(root: &Node) -> Result<T, LoadError> {
    let mut problems = Problems::default();
    let file = T::decode(root, &mut problems);
    problems.finish(file)
}

fn read_yaml(path: &str, files: &dyn Files) -> Result<(Vec<u8>, Node), LoadError> {
    let bytes = files
        .read(path)
        .map_err(|error| unreadable(path, &error, files))?;
    let file = node::text_file(path, &bytes)?;
    let root = node::parse(&file)?;
    if matches!(root.value, Value::Null) {
        let problem = Problem::without_place(path, format!("{path} is empty"));
        return Err(problem.into());
    }
    Ok((bytes, root))
}

fn unreadable(path: &str, error: &std::io::Error, files: &dyn Files) -> LoadError {
    let mut problem = Problem::without_place(path, format!("{path} can't be read: {error}"));
    if error.kind() == std::io::ErrorKind::NotFound {
        problem.message = format!("there is no file {path}");
        problem.help = near_file(path, files);
    }
    problem.into()
}

/// The file meant by a path that leads nowhere.
fn near_file(path: &str, files: &dyn Files) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let names = files.names(folder);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    crate::nearest::nearest(name, &names).map(|near| format!("did you mean `{near}`?"))
}

/// A path written in the file `from`, seen from where `from` is read.
fn beside(from: &str, path: &str) -> String {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    if path.starts_with('/') {
        return path.to_owned();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let root = if from.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// "there is no X `name`", with the nearest or all right names.
fn unknown_name(what: &str, name: &str, choices: &[&str]) -> (String, String) {
    let help = match crate::nearest::nearest(name, choices) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {what}s are {}", one_of(choices)),
    };
    (format!("there is no {what} `{name}`"), help)
}

/// Names of studies and workloads become names of files and folders.
fn is_short_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|b| plain(b) || b == b'-')
}

/// Notes a name that can't be a file's.
fn check_short_name(
    what: &str,
    name: &crate::file::At<crate::file::Scalar>,
    problems: &mut Problems,
) {
    if !is_short_name(&name.text()) {
        let message = format!("`{}` can't be the name of a {what}", name.text());
        let mut problem = name.span.first_line().problem(message, "this name");
        problem.help = Some("use lower-case letters, digits, and hyphens, 64 at most".to_owned());
        problems.push(problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_taken_from_the_file_that_names_them() {
        let check = |from: &str, path: &str, expected: &str| {
            assert_eq!(beside(from, path), expected, "{path} from {from}");
        };
        check("a.study.yaml", "../workloads/b.yaml", "../workloads/b.yaml");
        check("studies/a.yaml", "../workloads/b.yaml", "workloads/b.yaml");
        check("/x/studies/a.yaml", "../w/b.yaml", "/x/w/b.yaml");
        check("../studies/a.yaml", "../w/b.yaml", "../w/b.yaml");
        check("a.yaml", "./b.yaml", "b.yaml");
        check("s/a.yaml", "/abs/b.yaml", "/abs/b.yaml");
        check("/a.yaml", "b.yaml", "/b.yaml");
    }
}
