//! Rows that users or sessions are given from a file: which row is whose, and how one is found among
//! millions without all of them in memory.
//!
//! A file is gone through once, when it is loaded: every row is judged, and the place of every
//! 64th one is kept. Reading a row then reads the stretch between two such places. It opens no
//! file: whoever loads a workload lends it the [`Bytes`].

mod permutation;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::slot::Slot;
pub use lab_filters::{Bytes, Table, TableError};
use permutation::permuted;

/// What each row is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Each {
    /// A row for each user, which keeps it.
    User,
    /// Another row in each session.
    Session,
}

/// The rows of a workload.
#[derive(Clone, Serialize, Deserialize)]
pub struct Data {
    /// The file, as the workload names it.
    pub file: String,
    /// What each row is for.
    pub each: Each,
    /// Whether rows are given in an order of the seed and the block, not in that of the file.
    pub shuffled: bool,
    /// Whether each row is given once at most in a trial.
    pub unique: bool,
    /// The variables that a row sets, by the places of the columns.
    pub columns: Vec<(u32, Slot)>,
    /// What stands between columns of CSV.
    #[serde(default = "comma")]
    pub delimiter: u8,
    /// Number of rows, at least one.
    pub rows: u64,
    /// Length of the file, bytes.
    #[serde(default)]
    pub length: u64,
    /// SHA-256 of the file, in hex.
    pub sha256: String,
    /// Where the rows are; nothing where the workload came from another process and its files did not yet.
    #[serde(skip)]
    pub table: Option<Arc<Table>>,
}

/// What an older message leaves out.
fn comma() -> u8 {
    b','
}

impl Data {
    /// Gives it its rows.
    ///
    /// # Errors
    /// In words: what is wrong with them, or that they are those of another file.
    pub fn fill(&mut self, bytes: Arc<dyn Bytes>) -> Result<(), String> {
        let table = Table::scan(&self.file, bytes, self.delimiter);
        let table = table.map_err(|error| error.to_string())?;
        if table.sha256() != self.sha256 || table.rows() != self.rows {
            return Err("it is another file than was said".to_owned());
        }
        self.table = Some(Arc::new(table));
        Ok(())
    }

    /// The values of the row with this number, in the order of [`Data::columns`]. Users are numbered from
    /// 0, and so are the sessions of a trial.
    ///
    /// # Errors
    /// In words: there is no such row, or it can't be read any more.
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
