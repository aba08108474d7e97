//! A file of rows: CSV with a header line, or JSON Lines, whose first object names the columns.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// The offset of every 64th row is kept: 8 bytes for 64 rows, 1 MB for 8 million.
const STRIDE: u64 = 64;
/// Longest row.
const MAX_ROW_BYTES: u64 = 64 * 1024;
/// Most columns.
const MAX_COLUMNS: usize = 200;

/// The error for a file that changed after the scan.
const CHANGED: &str = "it is not what it was when the run began";

/// The bytes of a file, readable at any offset by any thread.
pub trait Bytes: Send + Sync {
    /// Reads from an offset; 0 at the end.
    ///
    /// # Errors
    /// The error of the read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl Bytes for Vec<u8> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(self.len());
        let count = buffer.len().min(self.len() - from);
        buffer[..count].copy_from_slice(&self[from..from + count]);
        Ok(count)
    }
}

impl Bytes for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

/// Format of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// CSV with this delimiter.
    Csv(u8),
    JsonLines,
}

/// A scanned file of rows.
pub struct Table {
    bytes: Arc<dyn Bytes>,
    form: Form,
    columns: Vec<String>,
    rows: u64,
    /// Offsets of the rows 0, 64, 128, …, then the end of the last one.
    places: Vec<u64>,
    /// Length of the file, bytes.
    length: u64,
    sha256: String,
}

/// Why a file of rows is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// An invalid row; with its line, from 1.
    #[error("line {line}: {cause}")]
    Row {
        /// Line of its start.
        line: u64,
        /// What is wrong with it.
        cause: String,
    },
    /// The header line has another delimiter than the workload.
    #[error("its columns are separated by {found}, not by {said}: say `delimiter: {found}`")]
    Delimiter {
        /// Delimiter in the workload.
        said: String,
        /// Delimiter in the first line.
        found: String,
    },
    /// The file has no rows.
    #[error("it has no rows")]
    Empty,
    /// The file can't be read.
    #[error("it can't be read: {0}")]
    Io(#[from] io::Error),
}

/// Returns a delimiter as a workload writes it.
fn named(delimiter: char) -> String {
    match delimiter {
        '\t' => "tab".to_owned(),
        other => format!("\"{other}\""),
    }
}

impl Table {
    /// Scans a file: JSON Lines if its name ends so (`.jsonl`, `.ndjson`), else CSV with this delimiter.
    ///
    /// # Errors
    /// The first invalid row, and a file without rows.
    pub fn scan(name: &str, bytes: Arc<dyn Bytes>, delimiter: u8) -> Result<Self, TableError> {
        let json = name.ends_with(".jsonl") || name.ends_with(".ndjson");
        let mut table = Self {
            bytes,
            form: match json {
                true => Form::JsonLines,
                false => Form::Csv(delimiter),
            },
            columns: Vec::new(),
            rows: 0,
            places: Vec::new(),
            length: 0,
            sha256: String::new(),
        };
        let mut hashed = Hashed {
            bytes: Arc::clone(&table.bytes),
            at: 0,
            hash: Sha256::new(),
        };
        match table.form {
            Form::Csv(delimiter) => table.scan_csv(&mut hashed, delimiter)?,
            Form::JsonLines => table.scan_json(&mut hashed)?,
        }
        if table.rows == 0 {
            return Err(TableError::Empty);
        }
        // Hash also the bytes after the last row.
        io::copy(&mut hashed, &mut io::sink())?;
        table.length = hashed.at;
        table.sha256 = hex::encode(hashed.hash.finalize());
        Ok(table)
    }

    /// Returns the names of the columns.
    #[must_use]
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// Returns the file's bytes.
    #[must_use]
    pub fn bytes(&self) -> &dyn Bytes {
        &*self.bytes
    }

    /// Returns the length of the file, bytes.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Returns the SHA-256 of the file, in hex.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Returns the bytes kept in memory.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        let names: usize = self.columns.iter().map(String::len).sum();
        names + self.places.len() * size_of::<u64>()
    }

    fn scan_csv(&mut self, hashed: &mut Hashed, delimiter: u8) -> Result<(), TableError> {
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .from_reader(BufReader::new(hashed));
        let names = reader.headers().map_err(|error| wrong(&error))?;
        self.columns = names
            .iter()
            .map(|name| name.trim().trim_start_matches('\u{feff}').to_owned())
            .collect();
        if let [only] = self.columns.as_slice()
            && let Some(found) = only.chars().find(|c| ",;\t|".contains(*c))
        {
            let (said, found) = (named(char::from(delimiter)), named(found));
            return Err(TableError::Delimiter { said, found });
        }
        self.check_columns()?;
        let mut record = csv::StringRecord::new();
        loop {
            let begins = reader.position().clone();
            if !reader
                .read_record(&mut record)
                .map_err(|error| wrong(&error))?
            {
                return Ok(());
            }
            let begins = record.position().unwrap_or(&begins);
            self.note(begins.byte(), reader.position().byte(), begins.line())?;
        }
    }

    fn scan_json(&mut self, hashed: &mut Hashed) -> Result<(), TableError> {
        use std::io::BufRead as _;
        let mut reader = BufReader::new(hashed);
        let (mut line, mut number, mut at) = (Vec::new(), 0, 0);
        loop {
            line.clear();
            number += 1;
            let limit = MAX_ROW_BYTES + 1;
            let count = reader.by_ref().take(limit).read_until(b'\n', &mut line)? as u64;
            if count == 0 {
                return Ok(());
            }
            let begins = at;
            at += count;
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.note(begins, at, number)?;
            let row = |cause| TableError::Row {
                line: number,
                cause,
            };
            let object = object(&line).map_err(row)?;
            if self.columns.is_empty() {
                self.columns = object.keys().cloned().collect();
                self.check_columns()?;
            }
            let missing = self.columns.iter().find(|name| !object.contains_key(*name));
            if let Some(name) = missing {
                return Err(row(format!(
                    "there is no `{name}`, which the first row has"
                )));
            }
        }
    }

    fn check_columns(&self) -> Result<(), TableError> {
        let row = |cause: String| Err(TableError::Row { line: 1, cause });
        if self.columns.len() > MAX_COLUMNS {
            return row(format!("more than {MAX_COLUMNS} columns"));
        }
        for (at, name) in self.columns.iter().enumerate() {
            if self.columns[..at].contains(name) {
                return row(format!("two columns are called `{name}`"));
            }
        }
        Ok(())
    }

    /// Records a row.
    fn note(&mut self, begins: u64, ends: u64, line: u64) -> Result<(), TableError> {
        if ends - begins > MAX_ROW_BYTES {
            let cause = format!("a row has at most {MAX_ROW_BYTES} bytes");
            return Err(TableError::Row { line, cause });
        }
        if self.rows.is_multiple_of(STRIDE) {
            // The previous end is where this stretch starts.
            self.places.pop();
            self.places.push(begins);
            self.places.push(ends);
        } else if let Some(end) = self.places.last_mut() {
            *end = ends;
        }
        self.rows += 1;
        Ok(())
    }

    /// Returns the values of some columns of a row, from 0.
    ///
    /// # Errors
    /// Describes a file that has changed.
    pub fn row(&self, row: u64, columns: &[usize]) -> Result<Vec<String>, String> {
        let text = self.stretch(row)?;
        let within = (row % STRIDE) as usize;
        let values = match self.form {
            Form::Csv(delimiter) => csv_row((&text, delimiter), within, columns),
            Form::JsonLines => self.json_row(&text, within, columns),
        };
        values.ok_or_else(|| CHANGED.to_owned())
    }

    /// Returns the values of a column in a row, from 0, and in the next rows that are read with it: at least one, 64 at
    /// most.
    ///
    /// # Errors
    /// As for [`Table::row`].
    pub fn column_from(&self, row: u64, column: usize) -> Result<Vec<String>, String> {
        let text = self.stretch(row)?;
        let within = (row % STRIDE) as usize;
        let rows = (self.rows - row).min(STRIDE - row % STRIDE) as usize;
        let values: Option<Vec<String>> = match self.form {
            Form::Csv(delimiter) => csv_column((&text, delimiter), column)
                .map(|mut all| all.split_off(within.min(all.len()))),
            Form::JsonLines => (within..within + rows)
                .map(|at| self.json_row(&text, at, &[column])?.pop())
                .collect(),
        };
        let values = values.filter(|values| values.len() == rows);
        values.ok_or_else(|| CHANGED.to_owned())
    }

    /// Returns the stretch of text that contains a row.
    fn stretch(&self, row: u64) -> Result<Vec<u8>, String> {
        let stretch = (row / STRIDE) as usize;
        let (Some(&from), Some(&to)) = (self.places.get(stretch), self.places.get(stretch + 1))
        else {
            return Err(format!("there is no row {row}"));
        };
        let mut text = vec![0; (to - from) as usize];
        self.fill(from, &mut text)
            .map_err(|error| format!("it can't be read: {error}"))?;
        Ok(text)
    }

    fn json_row(&self, text: &[u8], within: usize, columns: &[usize]) -> Option<Vec<String>> {
        let mut lines = text.split(|byte| *byte == b'\n');
        let line = lines
            .by_ref()
            .filter(|line| !line.trim_ascii().is_empty())
            .nth(within)?;
        let object = object(line).ok()?;
        let value = |column: &usize| match object.get(self.columns.get(*column)?)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        columns.iter().map(value).collect()
    }

    fn fill(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            let count = self.bytes.read_at(offset, buffer)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            offset += count as u64;
            buffer = &mut buffer[count..];
        }
        Ok(())
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {:?}", self.rows, self.columns)
    }
}

fn csv_row(
    (text, delimiter): (&[u8], u8),
    within: usize,
    columns: &[usize],
) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(text);
    let mut record = csv::StringRecord::new();
    for _ in 0..=within {
        if !reader.read_record(&mut record).ok()? {
            return None;
        }
    }
    columns
        .iter()
        .map(|column| record.get(*column).map(str::to_owned))
        .collect()
}

fn csv_column((text, delimiter): (&[u8], u8), column: usize) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(text);
    let records = reader.records();
    records
        .map(|record| record.ok()?.get(column).map(str::to_owned))
        .collect()
}

fn object(line: &[u8]) -> Result<Map<String, Value>, String> {
    // A byte-order mark may begin the file.
    match serde_json::from_slice(line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("this is not a JSON object".to_owned()),
        Err(error) => Err(format!("not JSON: {error}")),
    }
}

/// Returns the fault in a row of a CSV file, and its place.
fn wrong(error: &csv::Error) -> TableError {
    let line = error.position().map_or(1, csv::Position::line);
    let cause = match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("{len} values, and there are {expected_len} columns")
        }
        csv::ErrorKind::Utf8 { .. } => "it is not UTF-8 text".to_owned(),
        csv::ErrorKind::Io(error) => {
            return TableError::Io(io::Error::new(error.kind(), error.to_string()));
        }
        _ => error.to_string(),
    };
    TableError::Row { line, cause }
}

/// Hashes a file from its start while it is read.
struct Hashed {
    bytes: Arc<dyn Bytes>,
    at: u64,
    hash: Sha256,
}

impl Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.bytes.read_at(self.at, buffer)?;
        self.hash.update(&buffer[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
mod tests;
