//! File systems made on real loop devices, used, and removed, also after a kill. Where none can be made, the tests
//! report that and do nothing.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use lab_host::disk::{self, Disk};
use lab_host::{HostError, machine};
use lab_study::{Filesystem, FilesystemSpec};

fn succeeds(program: &str, arguments: &[&Path]) -> bool {
    let output = Command::new(program).args(arguments).output();
    output.is_ok_and(|output| output.status.success())
}

/// `None`, with a message, where no such file system can be made.
fn spec(kind: Filesystem) -> Option<FilesystemSpec> {
    let name = kind.name();
    let dir = tempfile::tempdir().unwrap();
    let tmpfs = ["-t", "tmpfs", "tmpfs"].map(Path::new);
    let may_mount = succeeds("mount", &[&tmpfs[..], &[dir.path()]].concat())
        && succeeds("umount", &[dir.path()])
        && succeeds("losetup", &[Path::new("--find")]);
    if !may_mount || !succeeds(&format!("mkfs.{name}"), &[Path::new("-V")]) {
        eprintln!("SKIPPED: {name} can't be made and mounted here");
        return None;
    }
    Some(FilesystemSpec {
        kind,
        bytes: 320_000_000,
        mkfs: Vec::new(),
        options: None,
    })
}

/// A folder without links in its path, which has a blank.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(dir.path()).unwrap().join("a folder");
    fs::create_dir(&path).unwrap();
    (dir, path)
}

#[track_caller]
fn nothing_is_left(folder: &Path) {
    let spelled = folder.to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(&spelled.replace(' ', "\\040")), "{mounts}");
    for device in fs::read_dir("/sys/block").unwrap().flatten() {
        let says = |what: &str| fs::read_to_string(device.path().join("loop").join(what));
        let is_ours = says("backing_file").is_ok_and(|file| file.starts_with(spelled));
        // It may be released a little later, or when a process with a copy of all mounts ends.
        let lets_go = says("autoclear").is_ok_and(|switch| switch.trim() == "1");
        assert!(!is_ours || lets_go, "{}", device.path().display());
    }
    let left = fs::read_dir(folder).into_iter().flatten().count();
    assert_eq!(left, 0, "{spelled}");
}

#[test]
fn each_kind_is_made_used_and_taken_away() {
    for kind in [Filesystem::Ext4, Filesystem::Xfs, Filesystem::Btrfs] {
        let Some(mut spec) = spec(kind) else {
            continue;
        };
        spec.options = Some("noatime".to_owned());
        let (_dir, folder) = folder();
        let at = folder.join("001");
        let disk = Disk::make(&spec, &at, &|| false).unwrap();
        fs::write(at.join("file"), "content").unwrap();
        assert_eq!(machine::filesystem(&at).as_deref(), Some(kind.name()));
        let facts = disk.facts();
        assert!(facts.options.contains("noatime"), "{facts:?}");
        let has_version = facts.made_by.contains(|c: char| c.is_ascii_digit());
        assert!(has_version && facts.kind == kind.name(), "{facts:?}");
        // All blocks of the image are allocated, whatever the file system in it uses.
        let image = fs::metadata(at.with_extension("image")).unwrap();
        assert!(image.blocks() * 512 >= spec.bytes, "{}", image.blocks());
        disk.take_away().unwrap();
        nothing_is_left(&folder);
    }
}

#[test]
fn what_a_killed_process_left_is_found_and_taken_away() {
    let Some(spec) = spec(Filesystem::Ext4) else {
        return;
    };
    let (_dir, folder) = folder();
    // As after a kill: it is not removed.
    std::mem::forget(Disk::make(&spec, &folder.join("001"), &|| false).unwrap());
    // One was interrupted before it was mounted, one while its image was written.
    let second = folder.join("002.image");
    File::create(&second).unwrap().set_len(1 << 20).unwrap();
    assert!(succeeds("losetup", &[Path::new("--find"), &second]));
    File::create(folder.join("003.image")).unwrap();
    fs::write(folder.join("other"), "not ours").unwrap();
    let mut cleared = disk::clear(&folder).unwrap();
    cleared.sort();
    assert_eq!(cleared, ["001", "002", "003"].map(|name| folder.join(name)));
    fs::remove_file(folder.join("other")).unwrap();
    nothing_is_left(&folder);
    assert_eq!(disk::clear(&folder).unwrap(), Vec::<PathBuf>::new());
    assert!(!folder.exists(), "where it is empty, it goes, too");
    assert_eq!(disk::clear(&folder).unwrap(), Vec::<PathBuf>::new());
}

#[test]
fn what_can_not_be_made_is_said_and_leaves_nothing() {
    let Some(mut spec) = spec(Filesystem::Ext4) else {
        return;
    };
    let (_dir, folder) = folder();
    let at = folder.join("001");
    let stopped = Disk::make(&spec, &at, &|| true).unwrap_err();
    assert!(matches!(stopped, HostError::Filesystem { .. }), "{stopped}");
    nothing_is_left(&folder);
    spec.mkfs = vec!["--no-such-argument".to_owned()];
    let refused = Disk::try_out(&spec, &at).unwrap_err().to_string();
    assert!(refused.contains("mkfs.ext4 ended with"), "{refused}");
    nothing_is_left(&folder);
    spec.mkfs.clear();
    spec.options = Some("no_such_option".to_owned());
    let refused = Disk::try_out(&spec, &at).unwrap_err().to_string();
    assert!(refused.contains("mount ended with"), "{refused}");
    nothing_is_left(&folder);
}

/// Waits for the user of a file system: a process of a killed trial may end a little later.
#[test]
fn what_is_still_used_is_waited_for() {
    let Some(spec) = spec(Filesystem::Ext4) else {
        return;
    };
    let (_dir, folder) = folder();
    let at = folder.join("001");
    let disk = Disk::make(&spec, &at, &|| false).unwrap();
    let mut user = Command::new("sleep")
        .arg("1")
        .current_dir(&at)
        .spawn()
        .unwrap();
    disk.take_away().unwrap();
    assert!(user.wait().unwrap().success());
    nothing_is_left(&folder);
}
