//! The rows of a workload: the file is found and scanned, and its columns become variables.

use std::sync::Arc;

use lab_workload::{Data, Each, PASSWORD, Slot, Table, TableError};

use super::files::{Files, open};
use super::names::{parsed, switch};
use super::variable::{RESERVED, is_word};
use crate::error::Problems;
use crate::file::{DataFile, RowsFile};
use crate::source::Span;
use crate::units;
use lab_units::parts::{At, Scalar};
use lab_units::source::sibling_path;

/// Reads the rows that a workload names; `None` if a problem was reported.
pub(super) fn data(
    written: &At<DataFile>,
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Data> {
    let alone;
    let rows = match &written.value {
        DataFile::Full(rows) => rows,
        DataFile::File(file) => {
            alone = RowsFile::of(file);
            &alone
        }
    };
    self::rows(rows, files, problems)
}

/// Reads the rows of a file.
pub(super) fn rows(rows: &RowsFile, files: &dyn Files, problems: &mut Problems) -> Option<Data> {
    let kinds = [("user", Each::User), ("session", Each::Session)];
    let each = choice("each", rows.each.as_ref(), &kinds, Each::User, problems);
    let orders = [("listed", false), ("shuffled", true)];
    let shuffled = choice("order", rows.order.as_ref(), &orders, false, problems);
    let unique = switch(rows.unique.as_ref(), problems);
    let delimiter = delimiter(rows, problems)?;
    let table = table((&rows.file, delimiter), files, problems)?;
    let columns = columns(&rows.file, &table, problems)?;
    Some(Data {
        file: rows.file.text(),
        each: each?,
        shuffled: shuffled?,
        unique,
        columns,
        delimiter,
        rows: table.rows(),
        length: table.length(),
        sha256: table.sha256().to_owned(),
        table: Some(Arc::new(table)),
    })
}

/// Returns the first variables of a workload, by slot: `password`, then the columns of its rows.
pub(super) fn first_variables(data: Option<&Data>) -> Vec<String> {
    let mut names = vec![PASSWORD.to_owned()];
    if let Some((data, table)) = data.and_then(|data| Some((data, data.table.as_ref()?))) {
        for (column, _) in &data.columns {
            let name = &table.columns()[*column as usize];
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

/// Parses the delimiter of columns.
fn delimiter(rows: &RowsFile, problems: &mut Problems) -> Option<u8> {
    let Some(at) = &rows.delimiter else {
        let is_tabbed = rows.file.text().ends_with(".tsv");
        return Some(if is_tabbed { b'\t' } else { b',' });
    };
    match at.text().as_bytes() {
        b"tab" | b"\t" => return Some(b'\t'),
        [one] if one.is_ascii_punctuation() && *one != b'"' => return Some(*one),
        _ => {}
    }
    let message = "a delimiter is one character that is no letter and no quote";
    let help = "write `delimiter: \";\"`, or `delimiter: tab`";
    note(&at.span, message.to_owned(), help, problems);
    None
}

fn table(
    (file, delimiter): (&At<Scalar>, u8),
    files: &dyn Files,
    problems: &mut Problems,
) -> Option<Table> {
    let name = file.text();
    let path = sibling_path(&file.span.file.name, &name);
    let place = file.span.first_line();
    let bytes = open(file, files, problems)?;
    match Table::scan(&path, bytes, delimiter) {
        Ok(table) => Some(table),
        Err(error) => {
            let message = match &error {
                TableError::Row { line, cause } => format!("{path}:{line}: {cause}"),
                other => format!("{path}: {other}"),
            };
            problems.push(place.problem(message, "named here"));
            None
        }
    }
}

/// Returns the columns that templates can name, with their slots.
fn columns(file: &At<Scalar>, table: &Table, problems: &mut Problems) -> Option<Vec<(u32, Slot)>> {
    let mut known = vec![PASSWORD.to_owned()];
    let mut columns = Vec::new();
    for (at, name) in table.columns().iter().enumerate() {
        if RESERVED.contains(&name.as_str()) {
            let message = format!(
                "the column `{name}` of {} has a meaning of its own",
                file.text()
            );
            note(
                &file.span,
                message,
                "give the column another name",
                problems,
            );
            return None;
        }
        if !is_word(name) {
            continue;
        }
        let slot = known.iter().position(|one| one == name).unwrap_or_else(|| {
            known.push(name.clone());
            known.len() - 1
        });
        columns.push((at as u32, slot as Slot));
    }
    if columns.is_empty() {
        let message = format!(
            "no column of {} has a name that a template can use",
            file.text()
        );
        let help = "the first line names the columns: letters, digits, and underscores";
        note(&file.span, message, help, problems);
        return None;
    }
    Some(columns)
}

fn choice<T: Copy>(
    what: &str,
    at: Option<&At<Scalar>>,
    named: &[(&str, T)],
    otherwise: T,
    problems: &mut Problems,
) -> Option<T> {
    let Some(at) = at else {
        return Some(otherwise);
    };
    parsed(
        at,
        what,
        |text| units::one_named("choice", text, named),
        problems,
    )
}

fn note(span: &Span, message: String, help: &str, problems: &mut Problems) {
    problems.push(span.first_line().problem(message, "this file").help(help));
}
