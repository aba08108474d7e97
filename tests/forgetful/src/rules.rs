//! The intended misbehaviour of a disk: failing calls, and syncs that it only pretends to do.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// A kind of call that changes something or makes it durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Writing bytes into a file, or reserving space for them.
    Write,
    /// Syncing a file's bytes.
    Sync,
    /// Syncing a folder's names.
    SyncFolder,
    /// Creating, linking, renaming, or removing a file or folder.
    Names,
}

/// Calls that fail.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Fault {
    /// The kind of call.
    pub call: Call,
    /// The number of calls that succeed before.
    pub after: u64,
    /// The number of calls that fail.
    pub times: u64,
    /// The errno.
    pub errno: i32,
}

/// A sync that returns at once and does nothing: the negative control of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lie {
    /// For files whose path contains this.
    Files(String),
    /// For folders whose path contains this.
    Folders(String),
}

/// The rules in effect.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) faults: Vec<Fault>,
    pub(crate) lies: Vec<Lie>,
}

impl Rules {
    /// Returns the error if a call of this kind fails now. Counts the call.
    pub(crate) fn failure(&mut self, call: Call) -> Option<Errno> {
        let mut failed = None;
        for fault in self.faults.iter_mut().filter(|fault| fault.call == call) {
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.times > 0 && failed.is_none() {
                fault.times -= 1;
                failed = Some(Errno::from_raw(fault.errno));
            }
        }
        failed
    }

    pub(crate) fn lies_about_file(&self, path: &str) -> bool {
        self.lies
            .iter()
            .any(|lie| matches!(lie, Lie::Files(part) if path.contains(part.as_str())))
    }

    pub(crate) fn lies_about_folder(&self, path: &str) -> bool {
        self.lies
            .iter()
            .any(|lie| matches!(lie, Lie::Folders(part) if path.contains(part.as_str())))
    }
}
