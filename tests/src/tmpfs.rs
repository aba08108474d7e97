//! A small file system of its own, to be filled up: a tmpfs, which takes root to mount.
//!
//! No other program is started for that: until a child has become one, it has the locks of all files that tests beside
//! this one have open.

use std::path::Path;

use nix::mount::{MntFlags, MsFlags, mount, umount2};

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

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = umount2(self.folder.path(), MntFlags::empty());
    }
}
