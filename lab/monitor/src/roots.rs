//! The location of the kernel's files.

use std::path::PathBuf;

/// The location of the kernel's files; differs from the default only in tests.
#[derive(Debug, Clone)]
pub struct Roots {
    /// `/proc`
    pub proc: PathBuf,
    /// `/sys`
    pub sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            sys: PathBuf::from("/sys"),
        }
    }
}
