//! Lines of a name and a number: `name: 1`, `name=1`, `name<tab>1`, or `STAT name 1`. Fields after the name, as
//! `name:calls=1,usec=2`, are counters whose label is the name.

use super::found::{Found, number};

/// The label of fields.
const NAME: &str = "name";

pub(super) fn read(text: &str, found: &mut Found<'_>) {
    for line in text.lines() {
        let Some((name, value)) = pair(line.trim()) else {
            continue;
        };
        if let Some(value) = number(value) {
            found.add(name, &[], value);
            continue;
        }
        let fields: Vec<(&str, f64)> = value.split(',').filter_map(field).collect();
        if fields.is_empty() {
            continue;
        }
        let labels = found.labels(std::iter::once((NAME, name, false)));
        for (field, value) in fields {
            found.add(field, &labels, value);
        }
    }
}

fn field(text: &str) -> Option<(&str, f64)> {
    let (name, value) = text.split_once('=')?;
    Some((name.trim(), number(value)?))
}

/// The name and the rest of a line.
fn pair(line: &str) -> Option<(&str, &str)> {
    let line = line.strip_prefix("STAT ").unwrap_or(line);
    let end = line.find([':', '=', '\t']).or_else(|| line.find(' '))?;
    let (name, rest) = line.split_at(end);
    let mut letters = rest.chars();
    letters.next();
    let name = name.trim();
    let is_name = !name.is_empty() && !name.starts_with('#');
    is_name.then(|| (name, letters.as_str().trim()))
}
