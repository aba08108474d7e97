//! Files as they are found and taken in, before anything in them is judged.

use std::sync::Arc;

use lab_workload::Bytes;

use crate::error::{LoadError, Problem, Problems};
use crate::node::{self, Node, Value};
use crate::source::Span;
use lab_units::decode::Decode;
use lab_units::parts::{At, Scalar};

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

    /// A file of any size, to be read from anywhere in it.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn open(&self, path: &str) -> Result<Arc<dyn Bytes>, std::io::Error> {
        Ok(Arc::new(self.read(path)?))
    }

    /// The environment variable of this name, which templates ask for by `env(…)` and `secret(…)`. Only
    /// who is about to run the workload tells it.
    fn environment(&self, _name: &str) -> Environment {
        Environment::Untold
    }
}

/// What is known of an environment variable.
#[derive(Clone, PartialEq, Eq)]
pub enum Environment {
    /// Its value, which may be secret.
    Set(String),
    /// It isn't set, or isn't text.
    Unset,
    /// Nobody asks: the file is judged, not run.
    Untold,
}

/// Reads the shape; what texts mean is judged only where the shape is right.
///
/// # Errors
/// What has another shape.
pub fn decode<T: Decode>(root: &Node) -> Result<T, LoadError> {
    let mut problems = Problems::default();
    let file = T::decode(root, &mut problems);
    problems.finish(file)
}

/// The bytes and the tree of a file.
///
/// # Errors
/// What can't be read, is empty, or is no YAML.
pub fn read_yaml(path: &str, files: &dyn Files) -> Result<(Vec<u8>, Node), LoadError> {
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

/// What is wrong with a file that can't be read.
pub(super) fn unreadable(path: &str, error: &std::io::Error, files: &dyn Files) -> LoadError {
    let mut problem = Problem::without_place(path, format!("{path} can't be read: {error}"));
    if error.kind() == std::io::ErrorKind::NotFound {
        problem.message = format!("there is no file {path}");
        problem.help = near_file(path, files);
    }
    problem.into()
}

/// The file meant by a path that leads nowhere.
pub(super) fn near_file(path: &str, files: &dyn Files) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let names = files.names(folder);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    crate::nearest(name, &names).map(|near| format!("did you mean `{near}`?"))
}

/// The file that a value names, seen from the file that the value stands in; `None` when a problem was
/// noted.
pub(super) fn open(
    file: &At<Scalar>,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Arc<dyn Bytes>> {
    let name = file.text();
    let path = beside(&file.span.file.name, &name);
    let error = match files.open(&path) {
        Ok(bytes) => return Some(bytes),
        Err(error) => error,
    };
    let missing = error.kind() == std::io::ErrorKind::NotFound;
    let message = match missing {
        true => format!("there is no file `{name}`"),
        false => format!("`{name}` can't be read: {error}"),
    };
    let near = near_file(&path, files).filter(|_| missing);
    problems.push(Problem {
        help: near.or_else(|| missing.then(|| format!("looked for {path}"))),
        ..file.span.first_line().problem(message, "named here")
    });
    None
}

/// All of a file of so many bytes at most; one byte more tells that it is too large.
///
/// # Errors
/// In words: what the reading gave.
pub(super) fn read_all(bytes: &dyn Bytes, most: usize) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    let mut piece = vec![0; 64 << 10];
    while all.len() <= most {
        match bytes.read_at(all.len() as u64, &mut piece) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&piece[..count]),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(all)
}

/// A path written in the file `from`, seen from where `from` is read.
#[must_use]
pub fn beside(from: &str, path: &str) -> String {
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

/// The first of several places where a file named in the study is.
pub fn first_file(
    what: &str,
    path: &str,
    name: &At<Scalar>,
    candidates: &[String],
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<(String, Vec<u8>)> {
    let paths: Vec<String> = candidates.iter().map(|c| beside(path, c)).collect();
    for place in &paths {
        match files.read(place) {
            Ok(bytes) => return Some((place.clone(), bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let message = unreadable(place, &error, files).to_string();
                problems.push(name.span.first_line().problem(message, "named here"));
                return None;
            }
        }
    }
    let message = format!("there is no {what} `{}`", name.text());
    let mut problem = name.span.first_line().problem(message, "named here");
    let near = paths.iter().find_map(|place| near_file(place, files));
    let near = near.map(|near| near.replace(".workload.yaml", ""));
    problem.help = near.or_else(|| Some(format!("looked for {}", paths.join(" and "))));
    problems.push(problem);
    None
}

/// Longest value that the environment gives.
const MAX_GIVEN: usize = 64 * 1024;

/// The value of an environment variable; the inner `None` if the environment is unknown, the outer one when a problem was
/// noted.
pub(super) fn environment(
    name: &str,
    place: impl FnOnce() -> Span,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Option<String>> {
    let problem = match files.environment(name) {
        Environment::Untold => return Some(None),
        Environment::Set(value) if value.len() <= MAX_GIVEN => return Some(Some(value)),
        Environment::Set(_) => {
            let message =
                format!("the environment variable `{name}` has more than {MAX_GIVEN} bytes");
            place().problem(message, "asked for here")
        }
        Environment::Unset => {
            let message = format!("the environment variable `{name}` is not set");
            let help = format!("set it for this command: `{name}=… plimsoll run …`");
            place().problem(message, "asked for here").help(help)
        }
    };
    problems.push(problem);
    None
}

#[cfg(test)]
mod tests;
