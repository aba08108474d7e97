//! A program with its arguments, as several keys of a system have them.

use lab_language::Setting;
use lab_language::settings::{Settings, note};

use crate::file::{At, Scalar};

/// A program with its arguments.
pub(super) fn argv(
    field: &str,
    list: &At<Vec<At<Scalar>>>,
    settings: &mut Settings<'_>,
) -> Option<Vec<Setting>> {
    if list.value.is_empty() {
        let message = format!("`{field}` names no program");
        let help = "list the program and its arguments, such as `[nginx, -g, daemon off;]`";
        return note(&list.span, &message, help, settings);
    }
    let numbered = (1..).zip(&list.value);
    let made: Vec<_> = numbered
        .map(|(n, at)| settings.required(&format!("{field} {n}"), at))
        .collect();
    made.into_iter().collect()
}
