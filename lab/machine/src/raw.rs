//! Measures the disk alone with the data of a trial's sessions: as many bytes in as many chunks, into new files beside
//! the system's data, each chunk synced before the next. It knows no system.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lab_host::clock::Stopwatch;
use lab_study::model::Transfer;

/// Most bytes of a pass: a longer one adds nothing about a disk's rate.
const MOST_BYTES: u64 = 1 << 30;

/// The data of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// The number of files.
    pub files: u64,
    /// The size of a file.
    pub file_bytes: u64,
    /// The size of a chunk.
    pub chunk_bytes: u64,
}

impl Pass {
    /// The bytes of so many sessions, or of as many as fit into the limit of a pass.
    #[must_use]
    pub fn of(transfer: &Transfer, sessions: u32) -> Self {
        let file_bytes = transfer.bytes.clamp(1, MOST_BYTES);
        Self {
            files: u64::from(sessions).clamp(1, MOST_BYTES / file_bytes),
            file_bytes,
            chunk_bytes: transfer.chunk_bytes.clamp(1, file_bytes),
        }
    }

    /// Writes the files into a new folder and keeps them, so that the disk has no other work. `None` when it was
    /// interrupted.
    ///
    /// # Errors
    /// When a file can't be written.
    pub fn write(self, folder: &Path, interrupt: &AtomicBool) -> io::Result<Option<Duration>> {
        fs::create_dir(folder)?;
        let chunk = noise(usize::try_from(self.chunk_bytes).map_err(io::Error::other)?);
        let watch = Stopwatch::start();
        for number in 0..self.files {
            let mut file = File::create_new(folder.join(number.to_string()))?;
            let mut left = self.file_bytes;
            while left > 0 {
                if interrupt.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                let length = left.min(self.chunk_bytes);
                file.write_all(&chunk[..usize::try_from(length).unwrap_or(chunk.len())])?;
                file.sync_data()?;
                left -= length;
            }
        }
        Ok(Some(watch.elapsed()))
    }
}

/// Bytes that neither a disk nor a file system compresses; from Marsaglia's xorshift.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(bytes: u64, chunk_bytes: u64) -> Transfer {
        Transfer {
            place: "p".to_owned(),
            bytes,
            chunk_bytes,
        }
    }

    #[test]
    fn a_pass_has_the_bytes_of_the_sessions_up_to_a_bound() {
        let of = |bytes, chunk, sessions| {
            let pass = Pass::of(&transfer(bytes, chunk), sessions);
            (pass.files, pass.file_bytes, pass.chunk_bytes)
        };
        assert_eq!(of(2 << 20, 256 << 10, 10), (10, 2 << 20, 256 << 10));
        assert_eq!(of(2 << 20, 256 << 10, 100_000), (512, 2 << 20, 256 << 10));
        assert_eq!(of(1 << 40, 1 << 40, 3), (1, 1 << 30, 1 << 30));
    }

    #[test]
    fn whole_files_are_written_and_an_interrupt_ends_it() {
        let folder = tempfile::tempdir().unwrap();
        let pass = Pass::of(&transfer(10_000, 4_096), 3);
        let go_on = AtomicBool::new(false);
        let took = pass.write(&folder.path().join("one"), &go_on).unwrap();
        assert!(took.is_some_and(|took| !took.is_zero()));
        for number in 0..3 {
            let file = folder.path().join(format!("one/{number}"));
            assert_eq!(fs::metadata(file).unwrap().len(), 10_000);
        }
        let stop = AtomicBool::new(true);
        let cut = pass.write(&folder.path().join("two"), &stop).unwrap();
        assert_eq!(cut, None);
    }
}
