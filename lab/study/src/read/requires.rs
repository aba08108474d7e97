//! Reads the requirements of a study on this machine.

use lab_language::{At, Problems, Scalar};

use crate::file::RequiresFile;
use crate::model::Requires;

/// The requirements, each a name that can stand in a command as it is.
pub(super) fn requires(file: Option<&RequiresFile>, problems: &mut Problems) -> Requires {
    let Some(file) = file else {
        return Requires::default();
    };
    let debian = file.debian.iter().flat_map(|many| many.as_slice());
    Requires {
        programs: file
            .programs
            .as_slice()
            .iter()
            .filter_map(|at| name(at, "program", is_program, problems))
            .collect(),
        debian: debian
            .filter_map(|at| name(at, "Debian package", is_package, problems))
            .collect(),
    }
}

fn name(
    at: &At<Scalar>,
    what: &str,
    is_one: fn(&str) -> bool,
    problems: &mut Problems,
) -> Option<String> {
    let text = at.text();
    if is_one(&text) {
        return Some(text);
    }
    let message = format!("`{text}` is not the name of a {what}");
    let help = match what {
        "program" => "write a name such as `nginx`, or a whole path such as `/usr/sbin/nginx`",
        _ => "write a name such as `nginx`, with lower-case letters, digits, `+`, `-`, and `.`",
    };
    problems.push(at.span.first_line().problem(message, "here").help(help));
    None
}

fn is_program(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-._/*".contains(c);
    let is_whole = text.starts_with('/') || !text.contains(['/', '*']);
    !text.is_empty() && text.chars().all(is_plain) && is_whole
}

/// Debian Policy, 5.6.1.
fn is_package(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    let first = text.chars().next();
    first.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        && text.chars().all(is_plain)
}
