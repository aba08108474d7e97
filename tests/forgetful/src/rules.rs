//! What a disk does on purpose: failing calls, and syncs that it only pretends to do.

use nix::errno::Errno;
use serde::{Deserialize, Serialize};

/// A kind of call that changes something or makes it durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Call {
    /// Bytes into a file, or room for them.
    Write,
    /// A file's bytes made durable.
    Sync,
    /// A folder's names made durable.
    SyncFolder,
    /// A file or folder made, linked, renamed, or removed.
    Names,
}

/// Calls that fail.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Fault {
    /// Which kind.
    pub call: Call,
    /// So many of them succeed before.
    pub after: u64,
    /// So many fail.
    pub times: u64,
    /// With what, as the system numbers errors.
    pub errno: i32,
}

/// A sync that answers at once and does nothing: the negative control of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Lie {
    /// Of files whose path contains this.
    Files(String),
    /// Of folders whose path contains this.
    Folders(String),
}

/// What is asked of the disk now.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    pub(crate) faults: Vec<Fault>,
    pub(crate) lies: Vec<Lie>,
}

impl Rules {
    /// Whether a call of this kind fails now. Counts it.
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
