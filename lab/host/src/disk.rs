//! File systems made for trials: a fully written image file, a loop device over it, mounted on the folder of the
//! trial's data. All of it is removed with the trial.
//!
//! Removal only needs the folder of the images: the mounts, the loop devices, and the files are found by scanning. So
//! any process can repeat it after an interruption at any point, and the journal stores nothing but that folder.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lab_monitor::{Mount, Roots};
use lab_study::plan::Plan;
use lab_study::{Filesystem, FilesystemSpec};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};

use crate::HostError;
use crate::clock::{Stopwatch, pause};
use crate::machine::{self, is_root};

/// Extension of images.
const IMAGE: &str = "image";
/// Bytes per write to an image.
const CHUNK: usize = 4 << 20;
/// Bytes written between syncs: the page cache is the system's, not the image's.
const SYNC_BYTES: u64 = 256 << 20;
/// Longest run time of a program that makes, mounts, or removes a file system.
const PROGRAM: Duration = Duration::from_secs(300);
/// Longest wait for a file system in use before its removal fails.
const IN_USE: Duration = Duration::from_secs(10);
/// Longest wait for a device that releases its file by itself.
const LETS_GO: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
/// Folders of root's programs that PATH may lack.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
const LOOP_CONTROL: &str = "/dev/loop-control";

/// A mounted file system. Dropped, it is removed with its content.
#[derive(Debug)]
pub struct Disk {
    at: PathBuf,
    facts: DiskFacts,
    gone: bool,
}

/// Facts of a made file system, for the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// Its kind.
    pub kind: &'static str,
    /// Its size.
    pub bytes: u64,
    /// The file system of its image.
    pub below: String,
    /// The program that made it, with its version and its additional arguments.
    pub made_by: String,
    /// Its mount options, as the kernel reports them.
    pub options: String,
    /// True if the loop device bypasses the page cache of the file system below.
    pub direct: bool,
}

impl DiskFacts {
    /// The settings of a trial, by name; `folder` is the one that the study names. The number of the loop device is
    /// arbitrary.
    #[must_use]
    pub fn told(&self, folder: Option<&str>) -> [(String, String); 4] {
        let folder = folder.unwrap_or("the run's folder");
        let (kind, megabytes, below) = (self.kind, self.bytes / 1_000_000, &self.below);
        let what = format!("{kind} of {megabytes} MB, in a file in {folder} ({below})");
        let direct = if self.direct { "yes" } else { "no" };
        [
            ("", what.as_str()),
            (" made by", self.made_by.as_str()),
            (" mounted with", self.options.as_str()),
            (" around the page cache below", direct),
        ]
        .map(|(name, value)| (format!("storage{name}"), value.to_owned()))
    }
}

/// The image of a file system.
#[derive(Clone, Copy)]
enum Image<'a> {
    /// A fully written file; the function cancels the writing.
    Written(&'a dyn Fn() -> bool),
    /// A sparse file, for a test.
    Sparse,
}

/// Why file systems of the plan can't be made here; one sentence each.
pub fn check(plan: &Plan) -> Vec<String> {
    let made = plan
        .every_trial()
        .filter_map(|trial| trial.host.filesystem.as_ref());
    unusable(&made.map(|made| made.kind).collect())
}

/// Why file systems of these kinds can't be made here; one sentence each.
#[must_use]
pub fn unusable(kinds: &BTreeSet<Filesystem>) -> Vec<String> {
    if kinds.is_empty() {
        return Vec::new();
    }
    let mut problems = Vec::new();
    if !is_root() {
        let what = "only root can make a file system for a trial: run it by `sudo`, or name a folder under \
                    `storage`";
        problems.push(what.to_owned());
    }
    if !Path::new(LOOP_CONTROL).exists() {
        problems.push(format!(
            "there is no {LOOP_CONTROL}, and so no loop device for a file system: `modprobe loop` loads the \
             driver; a container must be given it"
        ));
    }
    let makers = kinds.iter().map(|kind| (maker(*kind), package(*kind)));
    let mounting = ["mount", "umount", "losetup"].map(|name| (name.to_owned(), "mount"));
    for (program, package) in makers.chain(mounting) {
        if find(&program).is_none() {
            problems.push(format!(
                "there is no program {program}, which a trial's file system needs (Debian and Ubuntu: `apt \
                 install {package}`)"
            ));
        }
    }
    problems
}

/// The program that makes it.
fn maker(kind: Filesystem) -> String {
    format!("mkfs.{}", kind.name())
}

/// The Debian package of that program.
fn package(kind: Filesystem) -> &'static str {
    match kind {
        Filesystem::Ext4 => "e2fsprogs",
        Filesystem::Xfs => "xfsprogs",
        Filesystem::Btrfs => "btrfs-progs",
    }
}

/// Its default arguments: to print nothing, to keep the image's blocks, and to leave no background work during a trial.
fn usual(kind: Filesystem) -> &'static [&'static str] {
    match kind {
        Filesystem::Ext4 => &[
            "-q",
            "-F",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ],
        Filesystem::Xfs | Filesystem::Btrfs => &["-q", "-f", "-K"],
    }
}

/// Mount options before those of the study. btrfs would discard unused blocks by itself, which would punch holes into
/// the image.
fn mounted_with(spec: &FilesystemSpec) -> String {
    let own = match spec.kind {
        Filesystem::Ext4 | Filesystem::Xfs => "loop",
        Filesystem::Btrfs => "loop,nodiscard",
    };
    match &spec.options {
        None => own.to_owned(),
        Some(options) => format!("{own},{options}"),
    }
}

impl Disk {
    /// Makes one at `at`, an absolute path without links whose last part does not exist yet; its image lies beside it.
    ///
    /// # Errors
    /// When a program fails, there is no room, or `stop` returns true; then nothing remains.
    pub fn make(
        spec: &FilesystemSpec,
        at: &Path,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, HostError> {
        Self::build(spec, at, Image::Written(stop))
    }

    /// Makes one without writing its image, and removes it: this shows what the machine refuses.
    ///
    /// # Errors
    /// As of [`Disk::make`], and when it can't be removed.
    pub fn try_out(spec: &FilesystemSpec, at: &Path) -> Result<(), HostError> {
        Self::build(spec, at, Image::Sparse)?.take_away()
    }

    fn build(spec: &FilesystemSpec, at: &Path, image: Image<'_>) -> Result<Self, HostError> {
        let kind = spec.kind.name();
        let failed = |message: String| HostError::Filesystem {
            kind,
            path: at.to_path_buf(),
            message,
        };
        // From here on, a drop cleans up after a failure.
        let mut disk = Self {
            at: at.to_path_buf(),
            facts: DiskFacts {
                kind,
                bytes: spec.bytes,
                below: machine::filesystem(at).unwrap_or_default(),
                made_by: made_by(spec),
                options: String::new(),
                direct: false,
            },
            gone: false,
        };
        let path = image_of(at);
        write_image(&path, spec.bytes, image)
            .and_then(|()| fs::create_dir(at))
            .map_err(|error| failed(error.to_string()))?;
        let told = usual(spec.kind).iter().copied();
        let told = told.chain(spec.mkfs.iter().map(String::as_str));
        let making = told.map(OsStr::new).chain([path.as_os_str()]);
        run(&maker(spec.kind), making).map_err(failed)?;
        let options = mounted_with(spec);
        let how = ["-t", kind, "-o", &options].map(OsStr::new);
        let mounting = how.into_iter().chain([path.as_os_str(), at.as_os_str()]);
        run("mount", mounting).map_err(failed)?;
        let mounts = mounts().map_err(|error| failed(error.to_string()))?;
        let mounted = mounts.into_iter().rev().find(|mount| mount.at == at);
        let mounted = mounted.ok_or_else(|| failed("it is mounted nowhere".to_owned()))?;
        disk.facts.direct = make_direct(&mounted.source);
        disk.facts.options = mounted.options;
        Ok(disk)
    }

    /// Facts about it.
    #[must_use]
    pub fn facts(&self) -> &DiskFacts {
        &self.facts
    }

    /// Unmounts it and removes its image.
    ///
    /// # Errors
    /// When it is still in use.
    pub fn take_away(mut self) -> Result<(), HostError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), HostError> {
        if self.gone {
            return Ok(());
        }
        self.gone = true;
        let image = image_of(&self.at);
        take_away(&|path| path == self.at || path == image)?;
        remove(&image)?;
        // Remaining files were there before the mount, and are not ours.
        let _ = fs::remove_dir(&self.at);
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The journal has its folder: the end of the run, or the next one, removes what remains.
        let _ = self.end();
    }
}

/// Removes all file systems that were made in a folder; returns their mount points.
///
/// # Errors
/// When one is still in use.
pub fn clear(folder: &Path) -> Result<Vec<PathBuf>, HostError> {
    take_away(&|path| path != folder && path.starts_with(folder))?;
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(stays(folder, error.to_string())),
    };
    let mut cleared = Vec::new();
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.extension() == Some(OsStr::new(IMAGE)) {
            remove(&path)?;
            let at = path.with_extension("");
            let _ = fs::remove_dir(&at);
            cleared.push(at);
        }
    }
    // The folder is the run's, and is removed if it is empty.
    let _ = fs::remove_dir(folder);
    Ok(cleared)
}

/// The image of the file system mounted at a path.
fn image_of(at: &Path) -> PathBuf {
    at.with_extension(IMAGE)
}

fn stays(path: &Path, message: String) -> HostError {
    HostError::TakeAway {
        path: path.to_path_buf(),
        message,
    }
}

fn remove(image: &Path) -> Result<(), HostError> {
    match fs::remove_file(image) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(stays(image, error.to_string()))
        }
        _ => Ok(()),
    }
}

/// Unmounts the selected paths, and frees the loop devices whose files are selected.
fn take_away(is_meant: &dyn Fn(&Path) -> bool) -> Result<(), HostError> {
    let found = mounts().map_err(|error| stays(Path::new("/"), error.to_string()))?;
    // The last mount may lie within the first one.
    for mount in found.iter().rev().filter(|mount| is_meant(&mount.at)) {
        unmount(&mount.at)?;
    }
    let began = Stopwatch::start();
    while let Some((device, file)) = loops().into_iter().find(|(_, file)| is_meant(file)) {
        if began.elapsed() > LETS_GO && loop_says(&device, "autoclear") {
            // A container that was started meanwhile has it mounted, too: the mount and its file are freed when that
            // ends.
            return Ok(());
        }
        if began.elapsed() > IN_USE {
            let message =
                format!("{device} goes on to use it; `losetup --detach {device}` frees it");
            return Err(stays(&file, message));
        }
        // It may already be detached.
        let _ = run("losetup", ["--detach", &device].map(OsStr::new));
        pause(LOOK);
    }
    Ok(())
}

fn unmount(at: &Path) -> Result<(), HostError> {
    let began = Stopwatch::start();
    loop {
        // Processes of a killed trial may still be ending.
        let Err(message) = run("umount", [at.as_os_str()]) else {
            return Ok(());
        };
        if began.elapsed() > IN_USE {
            let path = at.display();
            return Err(stays(
                at,
                format!(
                    "{message} (`fuser -vm {path}` tells what uses it; when that has ended, `plimsoll restore` \
                     takes it away)"
                ),
            ));
        }
        pause(LOOK);
    }
}

/// Writes a file of a size, readable by its owner only.
fn write_image(path: &Path, bytes: u64, image: Image<'_>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // Whole pages, as loop devices need them.
    let bytes = bytes.next_multiple_of(4096);
    let Image::Written(stop) = image else {
        return file.set_len(bytes);
    };
    let zeros = vec![0; CHUNK];
    let (mut left, mut waiting) = (bytes, 0);
    while left > 0 {
        if stop() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let now = zeros.len().min(usize::try_from(left).unwrap_or(CHUNK));
        file.write_all(&zeros[..now])?;
        left -= now as u64;
        waiting += now as u64;
        if waiting >= SYNC_BYTES || left == 0 {
            to_disk(&file)?;
            waiting = 0;
        }
    }
    file.sync_all()
}

/// Syncs the written data, and drops it from the page cache.
fn to_disk(file: &File) -> io::Result<()> {
    file.sync_data()?;
    // Advice only: a file system without support returns an error.
    let _ = posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    Ok(())
}

/// Makes a loop device bypass the page cache below it, where all would be cached twice; returns true if it does.
fn make_direct(device: &str) -> bool {
    // If the file system below can't, the archive records it.
    let _ = run("losetup", ["--direct-io=on", device].map(OsStr::new));
    loop_says(device, "dio")
}

/// A flag of a loop device.
fn loop_says(device: &str, what: &str) -> bool {
    let name = device.trim_start_matches("/dev/");
    let says = fs::read_to_string(format!("/sys/block/{name}/loop/{what}"));
    says.is_ok_and(|says| says.trim() == "1")
}

/// The program that makes a file system, with its version and the study's arguments.
fn made_by(spec: &FilesystemSpec) -> String {
    let version = run(&maker(spec.kind), [OsStr::new("-V")]).unwrap_or_default();
    let first = version.lines().next().unwrap_or_default().trim().to_owned();
    let words = [first].into_iter().chain(spec.mkfs.iter().cloned());
    words.collect::<Vec<_>>().join(" ")
}

fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(PathBuf::from));
    folders
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// Runs a program to its end; returns its output, or its failure. It has a process group of its own, so that a Ctrl-C
/// that ends a run does not interrupt it.
fn run<'a>(
    program: &str,
    arguments: impl IntoIterator<Item = &'a OsStr>,
) -> Result<String, String> {
    let path = find(program).ok_or_else(|| format!("there is no program {program}"))?;
    let failed = |error: io::Error| format!("{program}: {error}");
    let mut child = Command::new(path)
        .args(arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(failed)?;
    let began = Stopwatch::start();
    // The output of these programs fits into a pipe.
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if began.elapsed() > PROGRAM {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!("{program} did not end within {PROGRAM:?}"));
        }
        pause(Duration::from_millis(2));
    };
    let mut said = String::new();
    let out = child
        .stdout
        .take()
        .map(|mut out| out.read_to_string(&mut said));
    let err = child
        .stderr
        .take()
        .map(|mut err| err.read_to_string(&mut said));
    if let Some(Err(error)) = out.or(err) {
        return Err(failed(error));
    }
    match status.success() {
        true => Ok(said),
        false => Err(format!("{program} ended with {status}: {}", said.trim())),
    }
}

fn mounts() -> io::Result<Vec<Mount>> {
    lab_monitor::mounts(&Roots::default())
}

/// Loop devices in use, and their files.
fn loops() -> Vec<(String, PathBuf)> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let backed = |device: fs::DirEntry| {
        let name = device.file_name().into_string().ok()?;
        let file = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        let file = file.trim_end_matches('\n');
        let file = file.strip_suffix(" (deleted)").unwrap_or(file);
        Some((format!("/dev/{name}"), PathBuf::from(file)))
    };
    devices.filter_map(backed).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    // Tests that start programs are separate, in `tests/disk.rs`: the journal's tests examine locks.

    #[test]
    fn images_are_whole_and_of_whole_pages() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.image");
        write_image(&path, (5 << 20) + 1, Image::Written(&|| false)).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), (5 << 20) + 4096);
        let mut last = [1; 16];
        let file = File::open(&path).unwrap();
        file.read_exact_at(&mut last, 5 << 20).unwrap();
        assert_eq!(last, [0; 16]);
        assert!(write_image(&path, 1, Image::Sparse).is_err(), "it is there");
        let other = dir.path().join("b.image");
        let stopped = write_image(&other, 1, Image::Written(&|| true)).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
    }

    #[test]
    fn what_was_made_is_told_in_full() {
        let facts = DiskFacts {
            kind: "xfs",
            bytes: 4_000_000_000,
            below: "ext4".to_owned(),
            made_by: "mkfs.xfs version 6.1.0 -m reflink=0".to_owned(),
            options: "rw,noatime".to_owned(),
            direct: true,
        };
        let told = facts.told(Some("/mnt/fast"));
        let told = told.map(|(name, value)| format!("{name}: {value}"));
        let expected = [
            "storage: xfs of 4000 MB, in a file in /mnt/fast (ext4)",
            "storage made by: mkfs.xfs version 6.1.0 -m reflink=0",
            "storage mounted with: rw,noatime",
            "storage around the page cache below: yes",
        ];
        assert_eq!(told, expected);
        let (_, in_run) = &facts.told(None)[0];
        assert!(in_run.ends_with("in the run's folder (ext4)"));
    }

    #[test]
    fn what_a_study_says_comes_after_what_is_usual() {
        let mut spec = FilesystemSpec {
            kind: Filesystem::Btrfs,
            bytes: 1,
            mkfs: Vec::new(),
            options: None,
        };
        assert_eq!(mounted_with(&spec), "loop,nodiscard");
        spec.options = Some("discard,noatime".to_owned());
        assert_eq!(mounted_with(&spec), "loop,nodiscard,discard,noatime");
        spec.kind = Filesystem::Ext4;
        assert_eq!(mounted_with(&spec), "loop,discard,noatime");
    }
}
