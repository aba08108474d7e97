//! A small file system of its own, to be filled up: a tmpfs, which takes root to mount.

use std::path::Path;
use std::process::{Command, Stdio};

/// A small file system that is unmounted with this value.
#[derive(Debug)]
pub struct Tmpfs {
    folder: tempfile::TempDir,
}

impl Tmpfs {
    /// Mounts one of a size as `mount` takes it, such as `16m`; `None` where that is not permitted.
    ///
    /// # Panics
    /// When no folder can be made to mount it on.
    pub fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(folder.path())
            .stderr(Stdio::null())
            .status();
        mounted
            .is_ok_and(|status| status.success())
            .then_some(Self { folder })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.folder.path()).status();
    }
}
