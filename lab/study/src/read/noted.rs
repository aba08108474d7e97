//! Single values of a file, read by their notation.

use lab_language::{Problems, TextError};

use crate::file::{At, Scalar};

/// Reads a value. If it is wrong, the problem is noted under the name `what`.
pub(super) fn noted<T>(
    what: &str,
    at: &At<Scalar>,
    read: impl FnOnce(&str) -> Result<T, TextError>,
    problems: &mut Problems,
) -> Option<T> {
    let text = at.text();
    read(&text)
        .map_err(|error| problems.push(at.span.text_problem(what, &text, &error)))
        .ok()
}
