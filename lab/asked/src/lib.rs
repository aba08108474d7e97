//! Counters that a system keeps of itself: parses the answers of its commands and addresses, computes differences per
//! transaction, and compares them between cells.
//!
//! Pure: it starts no command, opens no socket, reads no clock, and knows no study.
//!
//! ```text
//! answer ─read→ Reading ─Recorder→ Recorded ⇄ asked.jsonl
//! Recorded ─OfTrial→ counters per transaction ─compare→ AskDifference
//! ```

mod change;
mod differences;
mod file;
mod glob;
mod how;
mod model;
mod read;
mod recorder;
mod series;
mod units;
mod words;

pub use change::OfTrial;
pub use differences::{Rules, Sides, compare};
pub use file::{BadLine, from_jsonl, to_jsonl};
pub use how::{How, Read};
pub use model::{AskDifference, CountedMean, CountedSeries, CounterDifference, Counting, largest};
pub use recorder::{Answer, MOST_ANSWER_BYTES, Recorded, Recorder, WITHIN};
pub use series::Series;
pub use words::summary;
