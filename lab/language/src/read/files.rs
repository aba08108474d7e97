//! Finding and reading files, before their content is interpreted.

use std::sync::Arc;

use lab_workload::Bytes;

use crate::error::{LoadError, Problem, Problems};
use crate::node::{self, Node, Value};
use crate::source::Span;
use lab_units::decode::Decode;
use lab_units::parts::{At, Scalar};
use lab_units::source::sibling_path;

/// The source of files. Paths use `/` and may start with `..`.
pub trait Files {
    /// Returns the bytes of a file. An implementation may refuse files above a few megabytes.
    ///
    /// # Errors
    /// The error of the read.
    fn read(&self, path: &str) -> Result<Vec<u8>, std::io::Error>;

    /// Returns the names of the files in a folder, to suggest the nearest; empty if unavailable.
    fn names(&self, _folder: &str) -> Vec<String> {
        Vec::new()
    }

    /// Opens a file of any size for reads at any offset.
    ///
    /// # Errors
    /// As [`Files::read`].
    fn open(&self, path: &str) -> Result<Arc<dyn Bytes>, std::io::Error> {
        Ok(Arc::new(self.read(path)?))
    }

    /// Returns the environment variable with this name, for `env(…)` and `secret(…)` in templates. Only an
    /// implementation that runs the workload returns a value.
    fn environment(&self, _name: &str) -> Environment {
        Environment::Untold
    }
}

/// The state of an environment variable.
#[derive(Clone, PartialEq, Eq)]
pub enum Environment {
    /// Its value, which may be secret.
    Set(String),
    /// It isn't set, or isn't text.
    Unset,
    /// Not read: the file is checked, not run.
    Untold,
}

/// Reads the shape; the texts are interpreted only if the shape is right.
///
/// # Errors
/// Parts with another shape.
pub fn decode<T: Decode>(root: &Node) -> Result<T, LoadError> {
    let mut problems = Problems::default();
    let file = T::decode(root, &mut problems);
    problems.finish(file)
}

/// Reads the bytes and the tree of a file.
///
/// # Errors
/// A file that is unreadable, empty, or no YAML.
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

/// Returns the error for an unreadable file.
pub(super) fn unreadable(path: &str, error: &std::io::Error, files: &dyn Files) -> LoadError {
    let mut problem = Problem::without_place(path, format!("{path} can't be read: {error}"));
    if error.kind() == std::io::ErrorKind::NotFound {
        problem.message = format!("there is no file {path}");
        problem.help = near_file(path, files);
    }
    problem.into()
}

/// Suggests the file meant by a path that does not exist.
pub(super) fn near_file(path: &str, files: &dyn Files) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let names = files.names(folder);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    crate::nearest(name, &names).map(|near| format!("did you mean `{near}`?"))
}

/// Opens the file that a value names, relative to the value's file; `None` if a problem was reported.
pub(super) fn open(
    file: &At<Scalar>,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Arc<dyn Bytes>> {
    let name = file.text();
    let path = sibling_path(&file.span.file.name, &name);
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

/// Reads a whole file up to this many bytes; one byte more shows that it is too large.
///
/// # Errors
/// Describes the read error.
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

/// Returns the first of several paths at which a file named in the study exists.
pub fn first_file(
    what: &str,
    path: &str,
    name: &At<Scalar>,
    candidates: &[String],
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<(String, Vec<u8>)> {
    let paths: Vec<String> = candidates.iter().map(|c| sibling_path(path, c)).collect();
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

/// Maximum length of an environment variable's value.
const MAX_GIVEN: usize = 64 * 1024;

/// Returns the value of an environment variable; the inner `None` if the environment is unknown, the outer one if a
/// problem was reported.
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
