//! Rows of a file for users or sessions: the assignment of rows, and random access among millions without all of them
//! in memory.
//!
//! A file is scanned once, when it is loaded: every row is checked, and the offset of every 64th row is kept. Reading a
//! row reads the stretch between two such offsets. It opens no file: the loader of a workload passes the [`Bytes`].

mod permutation;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::slot::Slot;
pub use lab_filters::{Bytes, Table, TableError};
use permutation::permuted;

/// The owner of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Each {
    /// Each user gets a row, and keeps it.
    User,
    /// Each session gets another row.
    Session,
}

/// The rows of a workload.
#[derive(Clone, Serialize, Deserialize)]
pub struct Data {
    /// The file, as the workload names it.
    pub file: String,
    /// The owner of each row.
    pub each: Each,
    /// Whether rows are assigned in an order from the seed and the block, not in that of the file.
    pub shuffled: bool,
    /// Whether each row is assigned at most once in a trial.
    pub unique: bool,
    /// The variables that a row sets, by the indexes of the columns.
    pub columns: Vec<(u32, Slot)>,
    /// The delimiter of CSV columns.
    #[serde(default = "comma")]
    pub delimiter: u8,
    /// Number of rows, at least one.
    pub rows: u64,
    /// Length of the file, bytes.
    #[serde(default)]
    pub length: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// The index of the rows; `None` in a workload from another process until its files arrive.
    #[serde(skip)]
    pub table: Option<Arc<Table>>,
}

/// The default in older messages.
fn comma() -> u8 {
    b','
}

impl Data {
    /// Sets its rows.
    ///
    /// # Errors
    /// Describes what is wrong with them, or that they are from another file.
    pub fn fill(&mut self, bytes: Arc<dyn Bytes>) -> Result<(), String> {
        let table = Table::scan(&self.file, bytes, self.delimiter);
        let table = table.map_err(|error| error.to_string())?;
        if table.sha256() != self.sha256 || table.rows() != self.rows {
            return Err("it is another file than was said".to_owned());
        }
        self.table = Some(Arc::new(table));
        Ok(())
    }

    /// Returns the values of the row with this number, in the order of [`Data::columns`]. Users are numbered from 0,
    /// and so are the sessions of a trial.
    ///
    /// # Errors
    /// Describes a missing row, or one that has become unreadable.
    pub fn row(&self, number: u64, seed: u64, block: u32) -> Result<Vec<String>, String> {
        let Some(table) = &self.table else {
            return Err(format!("{} is not here", self.file));
        };
        if self.unique && number >= self.rows {
            let (file, rows) = (&self.file, self.rows);
            return Err(format!(
                "{file} has no row left: each of its {rows} is given once"
            ));
        }
        let at = number % self.rows.max(1);
        let at = match self.shuffled {
            true => permuted(at, self.rows, seed, block),
            false => at,
        };
        let columns = self.columns.iter().map(|(column, _)| *column as usize);
        let row = table.row(at, &columns.collect::<Vec<_>>());
        row.map_err(|error| format!("{}: {error}", self.file))
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows of {}", self.rows, self.file)
    }
}
