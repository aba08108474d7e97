//! Rows of columns, separated by commas or tabs, as `psql --csv` and `mysql --batch` print them.

use super::found::{Found, Unreadable, number};
use crate::how::How;

/// Most columns of a table.
const MOST_COLUMNS: usize = 256;
/// Most rows of a table.
const MOST_ROWS: usize = 100_000;
/// The column of states: the time for which rows with these labels existed.
const TIME: &str = "time";

pub(super) fn read(how: &How, text: &str, found: &mut Found<'_>) -> Result<(), Unreadable> {
    let wrong = |problem: &dyn ToString| Unreadable::form("table", problem.to_string());
    let head = text.lines().next().unwrap_or_default();
    let delimiter = if head.contains('\t') { b'\t' } else { b',' };
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .quoting(delimiter == b',')
        .flexible(true)
        .from_reader(text.as_bytes());
    let names: Vec<String> = match reader.headers() {
        Ok(names) => names.iter().map(str::to_owned).collect(),
        Err(error) => return Err(wrong(&error)),
    };
    if names.iter().all(|name| name.trim().is_empty()) {
        return Err(wrong(&"it has no row of names"));
    }
    if names.len() > MOST_COLUMNS {
        return Err(wrong(&format!("it has over {MOST_COLUMNS} columns")));
    }
    let rows: Result<Vec<csv::StringRecord>, _> =
        reader.into_records().take(MOST_ROWS + 1).collect();
    let rows = rows.map_err(|error| wrong(&error))?;
    if rows.len() > MOST_ROWS {
        return Err(wrong(&format!("it has over {MOST_ROWS} rows")));
    }
    let is_label: Vec<bool> = (0..names.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            let mut filled = cells.filter(|cell| !cell.trim().is_empty());
            how.is_label(&names[at]) || filled.any(|cell| number(cell).is_none())
        })
        .collect();
    for row in &rows {
        let columns = || (0..names.len()).filter_map(|at| Some((at, row.get(at)?)));
        let labels = columns().filter(|(at, _)| is_label[*at]);
        let labels = found.labels(labels.map(|(at, cell)| {
            let is_text = number(cell).is_none();
            (names[at].as_str(), cell, is_text)
        }));
        if how.rows_ms.is_some() {
            found.add_kept(TIME, &labels, 1.0);
            continue;
        }
        for (at, cell) in columns().filter(|(at, _)| !is_label[*at]) {
            if let Some(value) = number(cell) {
                found.add(&names[at], &labels, value);
            }
        }
    }
    Ok(())
}
