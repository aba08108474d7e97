//! Where the kernel's files are.

use std::path::PathBuf;

/// Where the kernel's files are; others than the default only in tests.
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
