//! Names of variables.

use lab_workload::Slot;

use crate::error::Problems;
use lab_units::parts::At;

/// Names that templates know in every workload.
pub(super) const RESERVED: &[&str] = &[
    "index", "users", "round", "cycle", "loop", "true", "false", "none", "range", "dict",
];

/// Returns true if templates read the text as a name.
pub(super) fn is_word(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = text.starts_with(|c: char| !c.is_ascii_digit());
    begins && text.chars().all(word) && text.len() <= 64
}

/// Returns the slot of a variable.
pub(super) fn slot(variables: &[String], name: &str) -> Option<Slot> {
    let place = variables.iter().position(|known| known == name)?;
    Some(place as Slot)
}

/// Reports a name that no variable can have.
pub(super) fn check(name: &At<String>, problems: &mut Problems) -> bool {
    let text = name.value.as_str();
    let message = if RESERVED.contains(&text) {
        format!("`{text}` has a meaning of its own and can't be a variable")
    } else if !is_word(text) {
        format!("`{text}` can't be the name of a variable")
    } else {
        return true;
    };
    let mut problem = name.span.problem(message, "this name");
    problem.help = Some("use letters, digits, and underscores, such as `event_href`".to_owned());
    problems.push(problem);
    false
}
