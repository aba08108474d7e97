//! File systems that are made for trials: an image file that is written in its whole size, a loop device over it,
//! mounted where the trial's data lies. All of it goes with the trial.
//!
//! Taking it away needs to know nothing but where the images lie: what is mounted there, which loop devices have
//! their file there, and the files are found by looking. So it can be done again, by any process, wherever
//! an attempt was cut off, and the journal keeps nothing but that folder.

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

/// End of the names of images.
const IMAGE: &str = "image";
/// What is written at once into an image.
const CHUNK: usize = 4 << 20;
/// What is written before it is brought to the disk: the page cache is the system's, not the image's.
const SYNC_BYTES: u64 = 256 << 20;
/// Most that a program takes which makes a file system, mounts it, or takes it away.
const PROGRAM: Duration = Duration::from_secs(300);
/// How long something may go on to use what is to be taken away.
const IN_USE: Duration = Duration::from_secs(10);
/// How long a device is waited for that lets go of its file by itself.
const LETS_GO: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(20);
/// Where programs of root are that PATH may not name.
const SYSTEM_FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];
const LOOP_CONTROL: &str = "/dev/loop-control";

/// A file system that is mounted. Dropped, it is taken away with all in it.
#[derive(Debug)]
pub struct Disk {
    at: PathBuf,
    facts: DiskFacts,
    gone: bool,
}

/// What the archive tells of a file system that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFacts {
    /// Its kind.
    pub kind: &'static str,
    /// Its size.
    pub bytes: u64,
    /// The file system that its image lies in.
    pub below: String,
    /// The program that made it, with its version and what it was told beside the usual.
    pub made_by: String,
    /// What it is mounted with, as the kernel tells it.
    pub options: String,
    /// Whether the loop device goes around the page cache of the file system below.
    pub direct: bool,
}

impl DiskFacts {
    /// As settings of a trial, by name; `folder` is the one that the study names. The number of the loop
    /// device is chance.
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

/// What a file system is made in.
#[derive(Clone, Copy)]
enum Image<'a> {
    /// A file with all its blocks written, until this says to stop.
    Written(&'a dyn Fn() -> bool),
    /// One without: for a try.
    Sparse,
}

/// What keeps file systems from being made here that the plan wants; one sentence each.
pub fn check(plan: &Plan) -> Vec<String> {
    let made = plan
        .every_trial()
        .filter_map(|trial| trial.host.filesystem.as_ref());
    unusable(&made.map(|made| made.kind).collect())
}

/// What keeps file systems of these kinds from being made here; one sentence each.
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

/// Where Debian has that program.
fn package(kind: Filesystem) -> &'static str {
    match kind {
        Filesystem::Ext4 => "e2fsprogs",
        Filesystem::Xfs => "xfsprogs",
        Filesystem::Btrfs => "btrfs-progs",
    }
}

/// What it is always told: to be silent, to keep the image's blocks, and to leave nothing to be done in the
/// background while a trial runs.
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

/// What it is mounted with before what the study says. btrfs gives unused blocks back by itself, which would
/// punch holes into the image.
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
    /// Makes one at `at`, a whole path without links whose last part is not there yet; its image lies beside it.
    ///
    /// # Errors
    /// When a program fails, there is no room, or `stop` says so; then nothing is left.
    pub fn make(
        spec: &FilesystemSpec,
        at: &Path,
        stop: &dyn Fn() -> bool,
    ) -> Result<Self, HostError> {
        Self::build(spec, at, Image::Written(stop))
    }

    /// Makes one without writing its image, and takes it away: what this machine refuses is known then.
    ///
    /// # Errors
    /// As of [`Disk::make`], and when it can't be taken away.
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
        // From here on, what fails is taken away by dropping it.
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

    /// What is told of it.
    #[must_use]
    pub fn facts(&self) -> &DiskFacts {
        &self.facts
    }

    /// Unmounts it and removes its image.
    ///
    /// # Errors
    /// When something goes on to use it.
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
        // What is still in it was there before it was mounted, and is not ours.
        let _ = fs::remove_dir(&self.at);
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The journal holds its folder: what stays is taken away when the run ends, or by the next one.
        let _ = self.end();
    }
}

/// Takes away all that was made in a folder; what it was, by the places where data lay.
///
/// # Errors
/// When something goes on to use it.
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
    // It is the run's, and goes with it where it is empty.
    let _ = fs::remove_dir(folder);
    Ok(cleared)
}

/// The image of what is mounted at a place.
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

/// Unmounts what is mounted at such places, and frees the loop devices whose file is one of them.
fn take_away(is_meant: &dyn Fn(&Path) -> bool) -> Result<(), HostError> {
    let found = mounts().map_err(|error| stays(Path::new("/"), error.to_string()))?;
    // What was mounted last may lie in what was mounted first.
    for mount in found.iter().rev().filter(|mount| is_meant(&mount.at)) {
        unmount(&mount.at)?;
    }
    let began = Stopwatch::start();
    while let Some((device, file)) = loops().into_iter().find(|(_, file)| is_meant(file)) {
        if began.elapsed() > LETS_GO && loop_says(&device, "autoclear") {
            // A container that was started meanwhile has it mounted, too: it goes when that ends, and so does
            // its file.
            return Ok(());
        }
        if began.elapsed() > IN_USE {
            let message =
                format!("{device} goes on to use it; `losetup --detach {device}` frees it");
            return Err(stays(&file, message));
        }
        // It may have been faster.
        let _ = run("losetup", ["--detach", &device].map(OsStr::new));
        pause(LOOK);
    }
    Ok(())
}

fn unmount(at: &Path) -> Result<(), HostError> {
    let began = Stopwatch::start();
    loop {
        // Processes of a trial that was killed may still be ending.
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

/// A file of a size, for its owner alone.
fn write_image(path: &Path, bytes: u64, image: Image<'_>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // Whole pages, as loop devices have them.
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

/// Brings what was written to the disk, and takes it out of the page cache.
fn to_disk(file: &File) -> io::Result<()> {
    file.sync_data()?;
    // Advice only: a file system that has no use for it says so.
    let _ = posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    Ok(())
}

/// Has a loop device go around the page cache below it, where all would be kept twice; whether it does.
fn make_direct(device: &str) -> bool {
    // Where the file system below can't, the archive says so.
    let _ = run("losetup", ["--direct-io=on", device].map(OsStr::new));
    loop_says(device, "dio")
}

/// A switch of a loop device.
fn loop_says(device: &str, what: &str) -> bool {
    let name = device.trim_start_matches("/dev/");
    let says = fs::read_to_string(format!("/sys/block/{name}/loop/{what}"));
    says.is_ok_and(|says| says.trim() == "1")
}

/// The program that makes a file system, with its version and what the study tells it.
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

/// Runs a program to its end: what it said, or how it failed. It has a process group of its own, so that a
/// Ctrl-C that ends a run does not cut it off.
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
    // What these programs say fits into a pipe.
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

    // What starts programs is tried apart, in `tests/disk.rs`: the journal's tests look at locks.

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
