//! Removes the oldest changes from the change log, and the content that only they refer to, so that both stay within
//! their common limits of age and size.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

use groupware_content::{ContentError, ContentHash, Spared, SparedFile};
use groupware_runtime::clock;
use groupware_store::{Segment, segments};

use crate::runner::{Job, Stop};

const PAUSE: Duration = Duration::from_secs(60);

/// The limits of the kept changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The maximum age; older changes are removed.
    pub age: Duration,
    /// The maximum size in bytes, spared content included; the oldest changes beyond it are removed.
    pub bytes: u64,
}

/// The job that applies a [`Retention`].
#[derive(Debug)]
pub struct ChangeRetention {
    changes: PathBuf,
    spared: Spared,
    retention: Retention,
    is_told: bool,
}

impl ChangeRetention {
    /// Creates the job for the log in a folder, and the content that is spared for it.
    pub fn new(changes: PathBuf, spared: Spared, retention: Retention) -> Self {
        Self {
            changes,
            spared,
            retention,
            is_told: false,
        }
    }

    fn remove(&self) -> Result<(), Failed> {
        let mut files = Vec::new();
        for segment in segments(&self.changes)? {
            let begins_us = segment.first_us()?;
            files.push(File { segment, begins_us });
        }
        let spared = self.spared.files()?;
        let gone = decide(&files, &spared, self.retention, clock::unix_micros());
        // The content last: content that a log refers to must exist as long as the log.
        for segment in &gone.segments {
            fs::remove_file(&segment.path)?;
        }
        for hash in gone.content {
            self.spared.remove(hash)?;
        }
        if gone.is_cut_short {
            let folder = self.changes.display();
            let message =
                "content that kept changes lead to is removed: it takes more room than they may";
            tracing::warn!(%folder, "{message}");
        }
        Ok(())
    }
}

impl Job for ChangeRetention {
    const NAME: &'static str = "changes";

    fn first_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn run(&mut self, _: &Stop) -> Duration {
        match self.remove() {
            Ok(()) => self.is_told = false,
            Err(Failed(cause)) => {
                if !self.is_told {
                    tracing::warn!(cause, "old changes can't be removed, and take room");
                }
                self.is_told = true;
            }
        }
        PAUSE
    }
}

struct Failed(String);

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<ContentError> for Failed {
    fn from(error: ContentError) -> Self {
        Self(error.to_string())
    }
}

/// A file of the log, and the time of its first change; `None` if it is empty.
struct File {
    segment: Segment,
    begins_us: Option<i64>,
}

/// The files and content to remove.
#[derive(Debug, Default, PartialEq, Eq)]
struct Gone {
    segments: Vec<Segment>,
    content: Vec<ContentHash>,
    /// True if `content` includes content that the remaining log refers to.
    is_cut_short: bool,
}

/// Selects the files to remove: those that end before the oldest moment to keep, then more until the rest fits. Adds
/// the content that nothing referred to at any moment left. The last file is kept: it is being written.
fn decide(files: &[File], spared: &[SparedFile], retention: Retention, now_us: i64) -> Gone {
    let age_us = i64::try_from(retention.age.as_micros()).unwrap_or(i64::MAX);
    let oldest_us = now_us.saturating_sub(age_us);
    let mut gone = Gone::default();
    let mut log_bytes: u64 = files.iter().map(|file| file.segment.bytes).sum();
    let mut left = files;
    loop {
        let begins_us = left
            .first()
            .and_then(|file| file.begins_us)
            .unwrap_or(now_us);
        let is_lost = |file: &&SparedFile| micros(file) < begins_us;
        let kept_bytes: u64 = spared
            .iter()
            .filter(|file| !is_lost(file))
            .map(|file| file.bytes)
            .sum();
        let ends_us = left.get(1).map(|next| next.begins_us.unwrap_or(now_us));
        let is_old = ends_us.is_some_and(|ends| ends < oldest_us);
        match left.split_first() {
            Some((first, rest))
                if !rest.is_empty() && (is_old || log_bytes + kept_bytes > retention.bytes) =>
            {
                gone.segments.push(first.segment.clone());
                log_bytes -= first.segment.bytes;
                left = rest;
            }
            _ => {
                gone.content
                    .extend(spared.iter().filter(is_lost).map(|file| file.hash));
                let rest = spared.iter().filter(|file| !is_lost(file));
                cut_short(
                    &mut gone,
                    rest,
                    (log_bytes + kept_bytes).saturating_sub(retention.bytes),
                );
                return gone;
            }
        }
    }
}

/// Removes the oldest content: no further file of the log can be removed.
fn cut_short<'a>(gone: &mut Gone, spared: impl Iterator<Item = &'a SparedFile>, mut over: u64) {
    for file in spared {
        if over == 0 {
            return;
        }
        over = over.saturating_sub(file.bytes);
        gone.content.push(file.hash);
        gone.is_cut_short = true;
    }
}

fn micros(file: &SparedFile) -> i64 {
    let since = file.since.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;

    /// Checks how many files and which content are removed. Files have 100 bytes and begin at these seconds; content
    /// has 50 and is lost at these.
    fn check(
        begin: &[i64],
        lost: &[u64],
        (age_s, bytes): (u64, u64),
        expected: (usize, &[usize], bool),
    ) {
        let file = |(number, begin): (usize, &i64)| File {
            segment: Segment {
                path: PathBuf::from(format!("{number}")),
                log: 1,
                first: number as u64 + 1,
                bytes: 100,
            },
            begins_us: (*begin >= 0).then_some(begin * S),
        };
        let files: Vec<_> = begin.iter().enumerate().map(file).collect();
        let spared = |(number, at): (usize, &u64)| SparedFile {
            hash: ContentHash::from_bytes([number as u8; 32]),
            bytes: 50,
            since: UNIX_EPOCH + Duration::from_secs(*at),
        };
        let spared: Vec<_> = lost.iter().enumerate().map(spared).collect();
        let retention = Retention {
            age: Duration::from_secs(age_s),
            bytes,
        };
        let gone = decide(&files, &spared, retention, 1000 * S);
        let content: Vec<_> = gone
            .content
            .iter()
            .map(|hash| usize::from(hash.as_bytes()[0]))
            .collect();
        let found = (gone.segments.len(), &content[..], gone.is_cut_short);
        assert_eq!(found, expected, "{begin:?} {lost:?} {age_s} {bytes}");
    }

    #[test]
    fn the_oldest_go_by_age_and_by_size() {
        let much = 1 << 30;
        check(&[], &[], (100, much), (0, &[], false));
        check(&[100], &[], (100, 0), (0, &[], false));
        // 900 is the oldest moment: the file that contains it stays whole.
        check(&[100, 500, 880, 950], &[], (100, much), (2, &[], false));
        check(
            &[100, 899, 950],
            &[150, 898, 899, 990],
            (100, much),
            (1, &[0, 1], false),
        );
        // By size, including content that is still referred to.
        check(&[100, 200, 300], &[], (9999, 250), (1, &[], false));
        check(&[100, 200, 300], &[150, 250], (9999, 300), (1, &[0], false));
        check(
            &[100, 200, 300],
            &[150, 250, 350],
            (9999, 220),
            (2, &[0, 1], false),
        );
        // No file of the log can be removed.
        check(&[300], &[350, 360, 370], (9999, 160), (0, &[0, 1], true));
        // With a log file that is still empty.
        check(&[100, -1], &[150], (9999, 120), (1, &[0], false));
    }
}
