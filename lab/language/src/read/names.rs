//! Helpers for several kinds of files: short names, choices among names, switches.

use lab_workload::Level;

use crate::error::Problems;
use crate::node::Node;
use crate::source::Span;
use lab_units::TextError;
use lab_units::nearest::one_of;
use lab_units::parts::{At, Scalar};

/// Formats "there is no X `name`", with the nearest or all valid names.
pub fn unknown_name(what: &str, name: &str, choices: &[&str]) -> (String, String) {
    let help = match crate::nearest(name, choices) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("the {what}s are {}", one_of(choices)),
    };
    (format!("there is no {what} `{name}`"), help)
}

/// An absent value is valid, a present and wrong one is not.
pub(super) fn transposed<T>(value: Option<Option<T>>) -> Option<Option<T>> {
    match value {
        Some(None) => None,
        Some(Some(value)) => Some(Some(value)),
        None => Some(None),
    }
}

/// Converts a value of the file to a level.
pub fn level(scalar: &At<Scalar>) -> Level {
    match &scalar.value {
        Scalar::Bool(b) => Level::Bool(*b),
        Scalar::Int(n) => Level::Int(*n),
        Scalar::Float(n) => Level::Float(n.value),
        Scalar::Text(text) => Level::Text(text.clone()),
    }
}

/// Names of studies and workloads become names of files and folders.
fn is_short_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    name.len() <= 64
        && name.bytes().next().is_some_and(plain)
        && name.bytes().all(|b| plain(b) || b == b'-')
}

/// Reports a name that is not valid as a file name.
pub fn check_short_name(what: &str, name: &At<Scalar>, problems: &mut Problems) {
    if !is_short_name(&name.text()) {
        let message = format!("`{}` can't be the name of a {what}", name.text());
        let mut problem = name.span.first_line().problem(message, "this name");
        problem.help = Some("use lower-case letters, digits, and hyphens, 64 at most".to_owned());
        problems.push(problem);
    }
}

/// Parses a value with `read`. A failure is a problem under the name `what`.
pub fn parsed<T>(
    at: &At<Scalar>,
    what: &str,
    read: impl FnOnce(&str) -> Result<T, TextError>,
    problems: &mut Problems,
) -> Option<T> {
    let text = at.text();
    read(&text)
        .map_err(|error| problems.push(at.span.text_problem(what, &text, &error)))
        .ok()
}

/// Parses `true` or `false`; the default is `false`.
pub fn switch(at: Option<&At<Scalar>>, problems: &mut Problems) -> bool {
    match at.map(|at| (&at.value, &at.span)) {
        None => false,
        Some((Scalar::Bool(on), _)) => *on,
        Some((other, span)) => {
            let message = format!("`{other}` is neither true nor false");
            problems.push(span.first_line().problem(message, "here"));
            false
        }
    }
}

/// Returns the place of a file's first call of one of these functions with this name.
pub(super) fn called_at(root: &Node, name: &str, functions: &[&str]) -> Span {
    let file = &root.span.file;
    let called = |at: &usize| {
        let before = file.text[..*at].trim_end_matches(['\'', '"', ' ']);
        let call = before.strip_suffix('(').unwrap_or_default();
        functions.iter().any(|function| call.ends_with(function))
    };
    let found = file.text.match_indices(name).map(|(at, _)| at).find(called);
    match found {
        Some(at) => Span::new(file, at..at + name.len()),
        None => root.span.first_line(),
    }
}
