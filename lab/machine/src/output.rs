//! Bounds a system's output: keeps the first and the last 16 MiB. It knows no system.
//!
//! The system writes straight to a file, so that nothing stands between it and its output. A hole punched in the file
//! returns the middle to the disk while it grows, if the file system can. At the end the file is rewritten, with a line
//! where something is missing.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use lab_host::clock::Stopwatch;
use lab_study::Secrets;
use nix::fcntl::{FallocateFlags, fallocate};

/// Bytes kept of the beginning, and of the end.
const KEPT: u64 = 16 << 20;
/// A hole is punched when it is so much larger than the last.
const HOLE: u64 = 64 << 20;
/// Interval between two checks of the file's size.
const LOOK: Duration = Duration::from_secs(1);
/// Bytes per copy.
const CHUNK: usize = 1 << 20;

/// The output of a running system.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) path: PathBuf,
    looked: Stopwatch,
    /// End of the hole.
    hole_end: u64,
}

impl Output {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            looked: Stopwatch::start(),
            hole_end: KEPT,
        }
    }

    /// Punches a hole in the middle, now and then. A file system without holes keeps it until the end.
    pub(crate) fn thin(&mut self) {
        if self.looked.elapsed() < LOOK {
            return;
        }
        self.looked = Stopwatch::start();
        let length = fs::metadata(&self.path).map_or(0, |file| file.len());
        let end = length.saturating_sub(KEPT);
        if end >= self.hole_end + HOLE && punch(&self.path, KEPT, end).is_ok() {
            self.hole_end = end;
        }
    }
}

fn punch(path: &Path, from: u64, to: u64) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    let offset = |at: u64| i64::try_from(at).map_err(io::Error::other);
    let flags = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(&file, flags, offset(from)?, offset(to - from)?).map_err(io::Error::from)
}

/// Truncates the output of an ended system to its beginning and end, and notes it in the file. Returns a sentence for
/// the trial's record if something was removed. A missing file counts as empty.
///
/// # Errors
/// When the file can't be read or rewritten.
pub fn shorten(path: &Path) -> io::Result<Option<String>> {
    shorten_to(path, KEPT)
}

fn shorten_to(path: &Path, kept: u64) -> io::Result<Option<String>> {
    let mut whole = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let length = whole.metadata()?.len();
    let Some(left_out) = length.checked_sub(2 * kept).filter(|bytes| *bytes > 0) else {
        return Ok(None);
    };
    let short = path.with_extension("short");
    let mut file = File::create(&short)?;
    copy(&mut whole, &mut file, kept)?;
    writeln!(
        file,
        "\n[plimsoll: {left_out} bytes are left out here; the first and the last {kept} are kept]"
    )?;
    whole.seek(SeekFrom::Start(length - kept))?;
    copy(&mut whole, &mut file, kept)?;
    drop(file);
    fs::rename(&short, path)?;
    Ok(Some(format!(
        "The system printed {} MiB; its log keeps the first and the last {} MiB.",
        length >> 20,
        kept >> 20
    )))
}

/// Masks secrets in a system's output.
///
/// # Errors
/// When the file can't be read or rewritten.
pub fn mask(path: &Path, secrets: &Secrets) -> io::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let whole = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        read => read?,
    };
    match secrets.masked_bytes(&whole) {
        Some(masked) => fs::write(path, masked),
        None => Ok(()),
    }
}

fn copy(from: &mut File, to: &mut File, mut bytes: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    while bytes > 0 {
        let most = usize::try_from(bytes).unwrap_or(CHUNK).min(CHUNK);
        let read = from.read(&mut buffer[..most])?;
        if read == 0 {
            break;
        }
        to.write_all(&buffer[..read])?;
        bytes -= read as u64;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("system.log");
        assert_eq!(shorten_to(&path, 10).unwrap(), None, "there is none");
        fs::write(&path, "0123456789abcdefghij").unwrap();
        assert_eq!(shorten_to(&path, 10).unwrap(), None, "all fits");
        fs::write(&path, "0123456789 all of this abcdefghij").unwrap();
        assert!(shorten_to(&path, 10).unwrap().is_some());
        let text = fs::read_to_string(&path).unwrap();
        let said = "0123456789\n[plimsoll: 13 bytes are left out here; the first and the last 10 are \
                    kept]\nabcdefghij";
        assert_eq!(text, said);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_long_log_takes_little_room_while_it_grows() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = Output::new(dir.path().join("system.log"));
        let mut file = File::create(&output.path).unwrap();
        for _ in 0..(2 * KEPT + 2 * HOLE) >> 20 {
            file.write_all(&[b'x'; 1 << 20]).unwrap();
        }
        if punch(&output.path, KEPT, KEPT + 4096).is_err() {
            // A file system without holes keeps all of it until the end.
            return;
        }
        let began = Stopwatch::start();
        while output.hole_end == KEPT {
            output.thin();
            assert!(began.elapsed() < Duration::from_secs(60), "no hole is made");
            lab_host::clock::pause(Duration::from_millis(50));
        }
        file.sync_all().unwrap();
        let room = file.metadata().unwrap().blocks() * 512;
        assert!(room < 3 * KEPT, "{room} bytes are on the disk");
        let said = shorten(&output.path).unwrap().unwrap();
        let words = "The system printed 160 MiB; its log keeps the first and the last 16 MiB.";
        assert_eq!(said, words);
        let text = fs::read(&output.path).unwrap();
        assert!(text.len() as u64 > 2 * KEPT && text.iter().all(|byte| *byte != 0));
    }
}
