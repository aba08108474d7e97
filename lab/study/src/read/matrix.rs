//! Validates the matrix of a study: its factors, and the resulting cells.

use std::collections::HashSet;

use lab_language::settings::note_problem;
use lab_language::{Problems, Span, level, unknown_name};

use crate::cell;
use crate::file::{At, CellFile, MatrixFile, Scalar, StudyFile, SystemFile, Table};
use crate::model::{Cell, Factor, Level, VARIANT};

/// The factors; `None` when a problem was noted.
pub(super) fn factors(file: &StudyFile, problems: &mut Problems) -> Option<Vec<Factor>> {
    let mut factors = Vec::new();
    let mut good = true;
    if let Some(variants) = &file.variants {
        good &= check_variants(variants, problems);
        let name = |(name, _): &(At<String>, _)| Level::Text(name.value.clone());
        factors.push(Factor {
            name: VARIANT.to_owned(),
            levels: variants.value.iter().map(name).collect(),
        });
    }
    let Some(matrix) = &file.matrix else {
        return good.then_some(factors);
    };
    if matrix.value.is_empty() {
        let span = matrix.span.first_line();
        let mut problem = span.problem("the matrix has no factor", "an empty mapping");
        problem.help = Some("leave `matrix` out for a single cell".to_owned());
        problems.push(problem);
        good = false;
    }
    for (name, levels) in matrix.value.iter() {
        if file.variants.is_some() && name.value == VARIANT {
            let message = "`variant` is the factor that the variants make";
            note_problem::<()>(
                &name.span,
                message,
                "give this factor another name",
                problems,
            );
            good = false;
        }
        good &= check_factor(name, &levels.value, &levels.span, problems);
        let levels = levels.value.iter().map(level).collect();
        factors.push(Factor {
            name: name.value.clone(),
            levels,
        });
    }
    good.then_some(factors)
}

/// Names of variants stand in tables and sentences.
fn check_variants(variants: &At<Table<At<SystemFile>>>, problems: &mut Problems) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let mut good = true;
    if variants.value.is_empty() {
        let help = "name each: `variants: { before: { … }, after: { … } }`";
        note_problem::<()>(&variants.span, "there is no variant", help, problems);
        good = false;
    }
    for (name, _) in variants.value.iter() {
        let text = name.value.as_str();
        if text.is_empty() || text.len() > 64 || !text.chars().all(plain) {
            let message = format!("`{text}` can't be the name of a variant");
            let help = "use letters, digits, and `.`, `_`, `-`, such as `v2.1`";
            note_problem::<()>(&name.span, &message, help, problems);
            good = false;
        }
    }
    good
}

fn check_factor(
    name: &At<String>,
    levels: &[At<Scalar>],
    span: &Span,
    problems: &mut Problems,
) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let text = name.value.as_str();
    if text.is_empty() || !text.chars().all(word) || text.starts_with(|c: char| c.is_ascii_digit())
    {
        let message = format!("`{text}` can't be the name of a factor");
        let mut problem = name.span.problem(message, "this name");
        problem.help = Some("use letters, digits, and underscores, such as `http_threads`".into());
        problems.push(problem);
        return false;
    }
    if levels.is_empty() {
        let message = format!("the factor `{text}` has no levels");
        let mut problem = span.first_line().problem(message, "an empty list");
        problem.help = Some("list its values, such as `[1000, 2000]`".to_owned());
        problems.push(problem);
        return false;
    }
    let mut seen = HashSet::new();
    for level in levels {
        if !seen.insert(level.text()) {
            let message = format!("the factor `{text}` has the level `{}` twice", level.text());
            let mut problem = level.span.first_line().problem(message, "the second time");
            problem.help = Some("to repeat a cell, raise `trials`".to_owned());
            problems.push(problem);
            return false;
        }
    }
    true
}

/// Returns the cells in file order: combinations, without those that linked factors or `exclude` rule out,
/// then those of `include`. `None` when a problem was noted.
pub(super) fn cells(
    file: &StudyFile,
    factors: &[Factor],
    problems: &mut Problems,
) -> Option<Vec<Cell>> {
    let mut cells = cell::cells(factors);
    let Some(matrix) = &file.matrix else {
        return Some(cells);
    };
    let MatrixFile {
        zip,
        exclude,
        include,
        ..
    } = &matrix.value;
    let mut linked = HashSet::new();
    for group in zip {
        let group = linked_factors(group, factors, &mut linked, problems)?;
        cells.retain(|cell| {
            let mut places = group.iter().map(|factor| {
                let level = cell.get(&factor.name);
                factor.levels.iter().position(|other| Some(other) == level)
            });
            let first = places.next();
            places.all(|place| Some(place) == first)
        });
    }
    for written in exclude {
        let given = levels(written, factors, problems)?;
        let before = cells.len();
        cells.retain(|cell| {
            !given
                .iter()
                .all(|(name, level)| cell.get(name) == Some(level))
        });
        if cells.len() == before {
            let help = "name levels that occur together";
            return note_problem(&written.span, "this excludes no cell", help, problems);
        }
    }
    for written in include {
        let given = levels(written, factors, problems)?;
        if let Some(factor) = factors.iter().find(|f| !given.contains_key(&f.name)) {
            let message = format!("this cell has no `{}`", factor.name);
            let help = "a cell to include has a level of each factor";
            return note_problem(&written.span, &message, help, problems);
        }
        if cells.contains(&given) {
            let help = "to repeat a cell, raise `trials`";
            return note_problem(&written.span, "this cell is there already", help, problems);
        }
        cells.push(given);
    }
    if cells.is_empty() {
        let span = matrix.span.first_line();
        return note_problem(
            &span,
            "the matrix has no cell left",
            "exclude fewer",
            problems,
        );
    }
    Some(cells)
}

/// The factors of a group of `zip`.
fn linked_factors<'f>(
    group: &At<Vec<At<Scalar>>>,
    factors: &'f [Factor],
    linked: &mut HashSet<String>,
    problems: &mut Problems,
) -> Option<Vec<&'f Factor>> {
    let mut found = Vec::new();
    for name in &group.value {
        let factor = factor(&name.text(), &name.span, factors, problems)?;
        if !linked.insert(factor.name.clone()) {
            let message = format!("`{}` is linked already", factor.name);
            return note_problem(&name.span, &message, "name it in one group", problems);
        }
        found.push(factor);
    }
    if found.len() < 2 {
        let help = "write `zip: [[users, threads]]`";
        return note_problem(
            &group.span,
            "a group links two factors or more",
            help,
            problems,
        );
    }
    let count = found[0].levels.len();
    if let Some(other) = found.iter().find(|f| f.levels.len() != count) {
        let message = format!(
            "`{}` has {count} levels, and `{}` has {}",
            found[0].name,
            other.name,
            other.levels.len()
        );
        let help = "linked factors have as many levels each";
        return note_problem(&group.span, &message, help, problems);
    }
    Some(found)
}

/// The levels that a cell of `exclude` or `include` names.
fn levels(written: &CellFile, factors: &[Factor], problems: &mut Problems) -> Option<Cell> {
    let mut cell = Cell::new();
    for (name, value) in written.value.iter() {
        let factor = factor(&name.value, &name.span, factors, problems)?;
        let level = match factor.name.as_str() {
            // A variant may be called `2`.
            VARIANT if written_as_name(factor) => Level::Text(value.text()),
            _ => level(value),
        };
        cell.insert(factor.name.clone(), level);
    }
    if cell.is_empty() {
        let help = "write `{ users: 1000 }`";
        return note_problem(&written.span, "this names no factor", help, problems);
    }
    Some(cell)
}

fn written_as_name(factor: &Factor) -> bool {
    factor.levels.iter().all(|l| matches!(l, Level::Text(_)))
}

fn factor<'f>(
    name: &str,
    span: &Span,
    factors: &'f [Factor],
    problems: &mut Problems,
) -> Option<&'f Factor> {
    let found = factors.iter().find(|factor| factor.name == name);
    if found.is_none() {
        let names: Vec<&str> = factors.iter().map(|f| f.name.as_str()).collect();
        let (message, help) = unknown_name("factor", name, &names);
        return note_problem(span, &message, &help, problems);
    }
    found
}
