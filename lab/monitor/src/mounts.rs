//! The table of mounts. It judges nothing, and follows no links.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use crate::roots::Roots;

/// A file system at a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// The number of its device, `MAJOR:MINOR`.
    pub number: String,
    /// The mount point.
    pub at: PathBuf,
    /// Its kind.
    pub kind: String,
    /// The mounted source, usually a device.
    pub source: String,
    /// Options of the mount, then of the file system, each once.
    pub options: String,
}

/// Returns all mounts, in the order of mounting.
///
/// # Errors
/// If the kernel's table can't be read.
pub fn mounts(roots: &Roots) -> io::Result<Vec<Mount>> {
    let text = std::fs::read_to_string(roots.proc.join("self/mountinfo"))?;
    Ok(text.lines().filter_map(mount).collect())
}

/// Returns the mount of a path without links; of two at the same place the later one.
#[must_use]
pub fn mount_of<'m>(mounts: &'m [Mount], path: &Path) -> Option<&'m Mount> {
    let above = mounts.iter().filter(|mount| path.starts_with(&mount.at));
    above.max_by_key(|mount| mount.at.components().count())
}

/// A line of proc_pid_mountinfo(5): `36 35 98:0 /root /at rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn mount(line: &str) -> Option<Mount> {
    let (mount, system) = line.split_once(" - ")?;
    let mut mount = mount.split(' ').skip(2);
    let number = mount.next()?.to_owned();
    let mut mount = mount.skip(1);
    let (at, of_mount) = (mount.next()?, mount.next()?);
    let mut system = system.split(' ');
    let (kind, source, of_system) = (system.next()?, system.next()?, system.next()?);
    let mut options: Vec<&str> = of_mount.split(',').chain(of_system.split(',')).collect();
    let mut seen = BTreeSet::new();
    options.retain(|option| seen.insert(*option));
    Some(Mount {
        number,
        at: plain(at).into(),
        kind: kind.to_owned(),
        source: plain(source),
        options: options.join(","),
    })
}

/// The kernel writes blanks, tabs, line ends, and backslashes as `\040`, `\011`, `\012`, and `\134`.
fn plain(text: &str) -> String {
    let mut plain = text.to_owned();
    for (code, is) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        plain = plain.replace(code, is);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let line = "36 35 7:0 / /a\\040b/c rw,noatime shared:2 - xfs /dev/loop0 rw,attr2,noquota";
        let expected = Mount {
            number: "7:0".to_owned(),
            at: "/a b/c".into(),
            kind: "xfs".to_owned(),
            source: "/dev/loop0".to_owned(),
            options: "rw,noatime,attr2,noquota".to_owned(),
        };
        assert_eq!(mount(line), Some(expected));
        for wrong in [
            "",
            "36 35 7:0 / /a rw",
            "36 - xfs",
            "36 35 7:0 / /a rw - xfs /dev/loop0",
        ] {
            assert_eq!(mount(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_nearest_and_latest_mount_counts() {
        let lines = [
            "1 1 8:1 / / rw - ext4 /dev/sda1 rw",
            "2 1 0:40 / /a rw - tmpfs none rw",
            "3 1 0:41 / /a rw - tmpfs none rw",
            "4 1 0:42 / /a/b rw - tmpfs none rw",
        ];
        let mounts: Vec<Mount> = lines.iter().filter_map(|line| mount(line)).collect();
        let number = |path: &str| mount_of(&mounts, Path::new(path)).map(|mount| &*mount.number);
        assert_eq!(number("/"), Some("8:1"));
        assert_eq!(number("/ab"), Some("8:1"));
        assert_eq!(number("/a/c"), Some("0:41"));
        assert_eq!(number("/a/b"), Some("0:42"));
        assert_eq!(number("relative"), None);
    }
}
