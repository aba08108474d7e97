//! What a test and the disk's process tell each other, a line of JSON each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::rules::{Fault, Lie};

/// From the test.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Ask {
    /// Write what a crash now leaves into this folder.
    Crash(PathBuf),
    /// Do so at seeded moments, so often, in numbered folders below this one; the call that comes next
    /// waits for [`Ask::GoOn`] each time.
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

/// From the disk's process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Tell {
    Mounted,
    /// It can't be mounted, or an image can't be written.
    Failed(String),
    Done,
    /// An image is there, taken before this call.
    Image {
        folder: PathBuf,
        call: u64,
    },
}
