//! A file that is read from beginning to end, with a progress bar on stderr if that takes a while.

use std::fs::File;
use std::io::{self, IsTerminal, stderr};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use lab_study::Bytes;

use lab_terminal::stderr::say;

/// Shorter reads show no progress.
const QUICK: Duration = Duration::from_secs(2);

/// The file.
pub(crate) struct Watched {
    file: File,
    name: String,
    length: u64,
    /// Not drawn before [`QUICK`] has passed.
    bar: ProgressBar,
    /// Whether the end was reached, or the progress is complete: then the bar is not updated.
    is_quiet: AtomicBool,
}

impl Watched {
    pub(crate) fn new(name: &str, file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::hidden());
        // The template is a constant; a fault in it shows as the default style.
        if let Ok(style) =
            ProgressStyle::with_template("{bar:14} {percent}% of {total_bytes}: {msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(format!("reading {name}"));
        Ok(Self {
            file,
            name: name.to_owned(),
            length,
            bar,
            is_quiet: AtomicBool::new(false),
        })
    }

    fn show(&self, at: u64, is_end: bool) {
        if is_end {
            self.is_quiet.store(true, Ordering::Relaxed);
            self.bar.finish_and_clear();
        } else if !self.bar.is_hidden() {
            self.bar.set_position(at);
        } else if self.bar.elapsed() > QUICK {
            if stderr().is_terminal() {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
            } else {
                say(format_args!(
                    "reading {}, {}",
                    self.name,
                    HumanBytes(self.length)
                ));
                self.is_quiet.store(true, Ordering::Relaxed);
            }
        }
    }
}

impl Bytes for Watched {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = FileExt::read_at(&self.file, buffer, offset)?;
        if !self.is_quiet.load(Ordering::Relaxed) {
            self.show(offset + count as u64, count == 0);
        }
        Ok(count)
    }
}
