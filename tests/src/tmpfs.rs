//! A small file system to be filled up: a tmpfs, which only root can mount.
//!
//! It starts no other program: until it calls `exec`, a child holds the locks of all files that concurrent tests have
//! open.

use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// A small file system that is unmounted on drop.
#[derive(Debug)]
pub struct Tmpfs {
    folder: tempfile::TempDir,
}

impl Tmpfs {
    /// Mounts a file system of a size as `mount` takes it, such as `16m`; `None` where that is not permitted.
    ///
    /// # Panics
    /// When no folder can be made to mount it on.
    pub fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let size = format!("size={size}");
        let mounted = mount(
            Some("tmpfs"),
            folder.path(),
            Some("tmpfs"),
            MsFlags::empty(),
            Some(size.as_str()),
        );
        mounted.is_ok().then_some(Self { folder })
    }

    /// The mount point.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = umount2(self.folder.path(), MntFlags::empty());
    }
}
