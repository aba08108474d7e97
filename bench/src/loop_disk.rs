//! A disk without other users: a loop device over a file, with an ext4 of its own. The kernel counts its writes,
//! journal of the file system included.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::sys::resource::UsageWho;

use crate::common::{Error, cpu_us};

const SECTOR_BYTES: u64 = 512;

/// The mounted disk, removed on drop.
pub(crate) struct LoopDisk {
    folder: tempfile::TempDir,
    device: String,
}

impl LoopDisk {
    /// Creates a disk of `bytes` in a scratch folder under `base`.
    ///
    /// # Errors
    /// Where a tool is missing or refuses: root and a kernel with loop devices are needed.
    pub(crate) fn make(base: &Path, bytes: u64) -> Result<Self, Error> {
        let folder = tempfile::tempdir_in(base)?;
        let image = folder.path().join("image");
        File::create(&image)?.set_len(bytes)?;
        run(Command::new("mkfs.ext4").arg("-q").arg(&image))?;
        let device = run(Command::new("losetup")
            .args(["--find", "--show"])
            .arg(&image))?;
        let disk = Self {
            folder,
            device: device.trim().to_owned(),
        };
        fs::create_dir(disk.mounted())?;
        run(Command::new("mount").arg(&disk.device).arg(disk.mounted()))?;
        Ok(disk)
    }

    /// The mount point.
    pub(crate) fn mounted(&self) -> PathBuf {
        self.folder.path().join("disk")
    }

    /// Writes all pending data.
    fn sync(&self) -> Result<(), Error> {
        run(Command::new("sync")
            .arg("--file-system")
            .arg(self.mounted()))
        .map(drop)
    }

    /// Runs `all`, which uses this disk; returns the bytes written to the disk, and the microseconds of this process's
    /// CPU.
    pub(crate) fn spent(
        &self,
        all: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(u64, f64), Error> {
        let own = UsageWho::RUSAGE_SELF;
        self.sync()?;
        let (written, cpu) = (self.written_bytes()?, cpu_us(own)?);
        all()?;
        let cpu = cpu_us(own)? - cpu;
        self.sync()?;
        Ok((self.written_bytes()? - written, cpu))
    }

    /// Bytes written to the device so far.
    fn written_bytes(&self) -> Result<u64, Error> {
        let name = self.device.trim_start_matches("/dev/");
        let text = fs::read_to_string(format!("/sys/block/{name}/stat"))?;
        // The kernel's Documentation/block/stat.rst: the seventh number is sectors written.
        let sectors = text
            .split_whitespace()
            .nth(6)
            .and_then(|n| n.parse::<u64>().ok());
        let sectors = sectors.ok_or_else(|| Error::Peer(format!("unreadable counters: {text}")))?;
        Ok(sectors * SECTOR_BYTES)
    }
}

impl Drop for LoopDisk {
    fn drop(&mut self) {
        for (tool, of) in [
            ("umount", self.mounted()),
            ("losetup", PathBuf::from(&self.device)),
        ] {
            let mut command = Command::new(tool);
            if tool == "losetup" {
                command.arg("--detach");
            }
            if let Err(error) = run(command.arg(&of)) {
                eprintln!("{}: {error}", of.display());
            }
        }
    }
}

/// Runs a tool; returns its output.
fn run(command: &mut Command) -> Result<String, Error> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let failed = |what: String| Error::Peer(format!("{tool}: {what}"));
    let output = command
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        ));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
