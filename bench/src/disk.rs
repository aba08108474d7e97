//! The speed of the disk itself: append 4 KiB and fdatasync, one thread, no store.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::clock::now;

/// Appends of 4 KiB, each followed by fdatasync, per second over about `span`.
pub(crate) fn append_fdatasync_per_s(dir: &Path, span: Duration) -> std::io::Result<f64> {
    let path = dir.join("append.dat");
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let block = [7u8; 4096];
    let begin = now();
    let mut count = 0u32;
    while begin.elapsed() < span {
        file.write_all(&block)?;
        file.sync_data()?;
        count += 1;
    }
    let rate = f64::from(count) / begin.elapsed().as_secs_f64();
    drop(file);
    std::fs::remove_file(&path)?;
    Ok(rate)
}
