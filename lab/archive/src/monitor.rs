//! `monitor.csv`: counters over a trial's time. It knows no counter by name.

use std::path::Path;

use crate::ArchiveError;

/// Name of the first column, milliseconds on the trial's clock.
pub(crate) const TIME: &str = "t_ms";

/// The counters of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MonitorTable {
    /// Names of the counters, without the time.
    pub columns: Vec<String>,
    /// Time in ms on the trial's clock, then one value per column; `None` is a gap.
    pub rows: Vec<(f64, Vec<Option<f64>>)>,
}

impl MonitorTable {
    /// The index of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c == name)
    }

    /// Returns time and value of one column, without gaps. Empty if there is no such column.
    pub fn series<'a>(&'a self, name: &str) -> impl Iterator<Item = (f64, f64)> + use<'a> {
        let column = self.column(name);
        self.rows
            .iter()
            .filter_map(move |(t, row)| Some((*t, (*row.get(column?)?)?)))
    }
}

/// One line of CSV, with its line end.
pub(crate) fn line<I: IntoIterator<Item = String>>(fields: I) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(fields)?;
    writer
        .into_inner()
        .map_err(|e| csv::Error::from(e.into_error()))
}

/// The fields of one row. A number that is not finite is a gap.
pub(crate) fn fields(t_ms: f64, values: &[Option<f64>]) -> impl Iterator<Item = String> {
    let number = |v: f64| {
        if v.is_finite() {
            v.to_string()
        } else {
            String::new()
        }
    };
    std::iter::once(number(t_ms)).chain(
        values
            .iter()
            .map(move |v| v.map_or_else(String::new, number)),
    )
}

/// Parses the whole file.
pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<MonitorTable, ArchiveError> {
    if bytes.is_empty() {
        return Ok(MonitorTable::default());
    }
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(true)
        .from_reader(bytes);
    let damaged = |e: csv::Error| {
        let line = e.position().map(csv::Position::line);
        ArchiveError::damaged(path, line, e)
    };
    let headers = reader.headers().map_err(damaged)?.clone();
    if headers.get(0) != Some(TIME) {
        return Err(ArchiveError::damaged(
            path,
            Some(1),
            "the first column is not t_ms",
        ));
    }
    let columns = headers.iter().skip(1).map(str::to_owned).collect();
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(damaged)?;
        let line = record.position().map(csv::Position::line);
        rows.push(row(&record).map_err(|problem| ArchiveError::damaged(path, line, problem))?);
    }
    Ok(MonitorTable { columns, rows })
}

/// Parses the one row of a line.
pub(crate) fn row_of(path: &Path, line: &[u8]) -> Result<Option<Row>, ArchiveError> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(line);
    let record = reader.records().next().transpose();
    let record = record.map_err(|e| ArchiveError::damaged(path, None, e))?;
    let row = record.map(|record| row(&record)).transpose();
    row.map_err(|problem| ArchiveError::damaged(path, None, problem))
}

/// Time in ms on the trial's clock, then one value per column; `None` is a gap.
type Row = (f64, Vec<Option<f64>>);

fn row(record: &csv::StringRecord) -> Result<Row, String> {
    let mut values = Vec::with_capacity(record.len());
    for field in record {
        values.push(if field.is_empty() {
            None
        } else {
            Some(number(field)?)
        });
    }
    let time = values.remove(0).ok_or("a row has no time")?;
    Ok((time, values))
}

fn number(field: &str) -> Result<f64, String> {
    let shown: String = field.chars().take(40).collect();
    match field.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(value),
        _ => Err(format!("{shown:?} is not a number")),
    }
}
