//! The messages between a test and the disk's process, one line of JSON each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::rules::{Fault, Lie};

/// Requests of the test.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Writes an image of a crash at this moment into this folder.
    Crash(PathBuf),
    /// Does so at `count` seeded moments, in numbered folders below this one; the next call waits for [`Ask::GoOn`]
    /// each time.
    Crashes {
        count: u64,
        most_calls: u64,
        below: PathBuf,
    },
    GoOn,
    Fail(Fault),
    Heal,
    Lie(Lie),
}

/// Replies of the disk's process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Tell {
    Mounted,
    /// The mount failed, or an image can't be written.
    Failed(String),
    Done,
    /// An image is written; it was taken before this call.
    Image {
        folder: PathBuf,
        call: u64,
    },
}
