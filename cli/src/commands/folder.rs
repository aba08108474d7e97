//! The default folder of a new run: named after the study and the time, and reserved at once, so that two runs that
//! start in the same second don't share it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};

/// The folder of an archive. If it was made for the run and stays empty, as after a failed start, it is removed again.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    is_ours: bool,
}

impl Folder {
    /// A given folder, which exists or is made when the archive is written.
    pub(crate) fn named(path: PathBuf) -> Self {
        Self {
            path,
            is_ours: false,
        }
    }

    /// Makes a new folder in `runs`; if another run has that of this second, the next free one.
    pub(crate) fn new(runs: &Path, study: &str, now: Timestamp) -> Self {
        // A fault of the place is reported when the archive is written.
        let _ = fs::create_dir_all(runs);
        let mut at = now;
        loop {
            let path = runs.join(format!("{study}-{}", at.strftime("%Y%m%d-%H%M%S")));
            let made = fs::create_dir(&path);
            let is_taken = matches!(&made, Err(error) if error.kind() == ErrorKind::AlreadyExists);
            if !is_taken {
                let is_ours = made.is_ok();
                return Self { path, is_ours };
            }
            at += SignedDuration::from_secs(1);
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_ours {
            // This fails for a folder that isn't empty, so nothing is lost.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::Folder;

    #[test]
    fn runs_of_one_second_have_folders_of_their_own() {
        let place = tempfile::tempdir().unwrap();
        let runs = place.path().join("runs");
        let first = Folder::new(&runs, "s", Timestamp::UNIX_EPOCH);
        let second = Folder::new(&runs, "s", Timestamp::UNIX_EPOCH);
        assert_eq!(first.path, runs.join("s-19700101-000000"));
        assert_eq!(second.path, runs.join("s-19700101-000001"));
    }

    #[test]
    fn an_empty_folder_goes_and_a_used_or_named_one_stays() {
        let place = tempfile::tempdir().unwrap();
        let make = || Folder::new(place.path(), "s", Timestamp::UNIX_EPOCH);
        let path = make().path.clone();
        assert!(!path.exists());
        let used = make();
        fs::write(path.join("manifest.json"), "{}").unwrap();
        drop(used);
        assert!(path.join("manifest.json").exists());
        let named = place.path().join("mine");
        fs::create_dir(&named).unwrap();
        drop(Folder::named(named.clone()));
        assert!(named.exists());
    }
}
