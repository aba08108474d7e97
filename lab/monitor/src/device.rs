//! Finds the block device under a folder. It reads no counters.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mounts::{mount_of, mounts};
use crate::roots::Roots;

/// A whole disk, not a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// The name in `/proc/diskstats`.
    pub(crate) name: String,
    pub(crate) major: i32,
    pub(crate) minor: i32,
}

/// The device under `dir`; `None` where there is none (tmpfs, overlay, network).
pub(crate) fn under(roots: &Roots, dir: &Path) -> Option<Device> {
    let number = fs::metadata(dir).ok()?.dev();
    let (major, minor) = (major(number), minor(number));
    let entry = match major {
        // No device of its own: some file systems over a device (btrfs) have such numbers.
        0 => mounted_device(roots, &format!("0:{minor}"), dir)?,
        _ => roots.sys.join(format!("dev/block/{major}:{minor}")),
    };
    whole_disk(&entry)
}

/// The device that `/proc/self/mountinfo` names for a file system. Files in btrfs have the number of their
/// subvolume, which no mount has: the innermost mount above the folder is used then.
fn mounted_device(roots: &Roots, number: &str, dir: &Path) -> Option<PathBuf> {
    let mounts = mounts(roots).ok()?;
    let of_number = mounts.iter().find(|mount| mount.number == number);
    let dir = fs::canonicalize(dir).ok()?;
    let above = mount_of(&mounts, &dir).filter(|mount| mount.kind == "btrfs");
    let source = &of_number.or(above)?.source;
    if !source.starts_with("/dev/") {
        return None;
    }
    // `/dev/mapper/x` is a link to `/dev/dm-0`.
    let source = fs::canonicalize(source).unwrap_or_else(|_| PathBuf::from(source));
    Some(roots.sys.join("class/block").join(source.file_name()?))
}

/// From a device's or partition's folder in `/sys` to the disk.
fn whole_disk(entry: &Path) -> Option<Device> {
    let mut folder = fs::canonicalize(entry).ok()?;
    if folder.join("partition").exists() {
        folder.pop();
    }
    let number = fs::read_to_string(folder.join("dev")).ok()?;
    let (major, minor) = number.trim().split_once(':')?;
    Some(Device {
        name: folder.file_name()?.to_str()?.to_owned(),
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// The major number, as glibc splits `dev_t`.
fn major(number: u64) -> u64 {
    (number >> 8 & 0xfff) | (number >> 32 & 0xffff_f000)
}

fn minor(number: u64) -> u64 {
    (number & 0xff) | (number >> 12 & 0xffff_ff00)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A `/sys` with the disk `sda`, its partition, and the names that lead to them.
    fn roots(dir: &Path, entry: &str) -> Roots {
        let sys = dir.join("sys");
        let partition = sys.join("devices/pci/block/sda/sda1");
        fs::create_dir_all(&partition).unwrap();
        fs::write(partition.join("partition"), "1\n").unwrap();
        fs::write(partition.join("dev"), "8:1\n").unwrap();
        fs::write(sys.join("devices/pci/block/sda/dev"), "8:0\n").unwrap();
        let link = sys.join(entry);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(&partition, link).unwrap();
        fs::create_dir_all(dir.join("proc/self")).unwrap();
        Roots {
            proc: dir.join("proc"),
            sys,
        }
    }

    fn sda() -> Option<Device> {
        Some(Device {
            name: "sda".to_owned(),
            major: 8,
            minor: 0,
        })
    }

    #[test]
    fn a_partition_leads_to_its_disk() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "dev/block/8:1");
        assert_eq!(whole_disk(&roots.sys.join("dev/block/8:1")), sda());
        assert_eq!(whole_disk(&roots.sys.join("devices/pci/block/sda")), sda());
        assert_eq!(whole_disk(&roots.sys.join("dev/block/9:9")), None);
    }

    #[test]
    fn a_file_system_without_a_device_number_is_found_by_its_mount() {
        let dir = tempfile::tempdir().unwrap();
        let roots = roots(dir.path(), "class/block/sda1");
        let data = fs::canonicalize(dir.path()).unwrap().join("data");
        fs::create_dir_all(data.join("subvolume")).unwrap();
        let mounts = format!(
            "35 35 0:40 / / rw shared:1 - overlay overlay rw\n\
             36 35 0:41 / {} rw,noatime shared:1 - btrfs /dev/sda1 rw\n\
             37 35 0:42 / /tmp rw shared:2 - tmpfs tmpfs rw\n\
             38 35 0:43 / /o rw shared:3 - overlay overlay rw\n",
            data.display()
        );
        fs::write(roots.proc.join("self/mountinfo"), mounts).unwrap();
        let found = |number, dir: &Path| {
            mounted_device(&roots, number, dir).and_then(|entry| whole_disk(&entry))
        };
        assert_eq!(found("0:41", dir.path()), sda());
        assert_eq!(found("0:42", dir.path()), None);
        assert_eq!(found("0:43", dir.path()), None);
        assert_eq!(found("0:99", dir.path()), None);
        assert_eq!(found("0:99", &data.join("subvolume")), sda());
    }

    #[test]
    fn device_numbers_split_as_the_kernel_makes_them() {
        let number = nix_style(8, 1);
        assert_eq!((major(number), minor(number)), (8, 1));
        let number = nix_style(0x1234, 0x5_6789);
        assert_eq!((major(number), minor(number)), (0x1234, 0x5_6789));
    }

    fn nix_style(major: u64, minor: u64) -> u64 {
        (major & 0xfff) << 8 | (major & !0xfff) << 32 | (minor & 0xff) | (minor & !0xff) << 12
    }
}
