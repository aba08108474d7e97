//! Says of this server's data folder that it is there, and forgets those of servers that are gone for good.

use std::time::Duration;

use groupware_runtime::clock;
use groupware_service::{Folders, GONE_S, NOTED_EACH_S};
use groupware_store::CommitError;

use crate::content::LIFETIMES_ELSEWHERE;
use crate::runner::{Job, Stop};

/// Until it is said again.
const PAUSE: Duration = Duration::from_secs(NOTED_EACH_S);
/// The same where the store is away.
const AGAIN: Duration = Duration::from_secs(10);

/// Says it again and again.
#[derive(Debug)]
pub struct FolderNotes {
    folders: Folders,
    address: String,
    upload_lifetime_s: i64,
}

impl FolderNotes {
    /// Of this server, which is reached at this address, and has said so; of uploads that are given up after so many
    /// seconds.
    pub fn new(folders: Folders, address: String, upload_lifetime_s: i64) -> Self {
        Self {
            folders,
            address,
            upload_lifetime_s,
        }
    }

    fn note(&self) -> Result<(), CommitError> {
        let now = clock::unix_seconds();
        if let Some(other) = self.folders.note(&self.address, now)? {
            tracing::error!(
                other,
                "another server has a copy of this data folder: of uploads under way, each has some. Give that one an \
                 empty folder, and start both again"
            );
        }
        // Until then, its uploads may be asked for, and are told to be gone; and as long as there may be some that began
        // when names had no marks, those of servers that are gone are told from them.
        let lives_s = self.upload_lifetime_s.saturating_mul(LIFETIMES_ELSEWHERE);
        let kept_s = GONE_S.saturating_add(lives_s);
        self.folders.forget(now.saturating_sub(kept_s))
    }
}

impl Job for FolderNotes {
    const NAME: &'static str = "folder-notes";

    fn first_pause(&self) -> Duration {
        PAUSE
    }

    fn run(&mut self, _: &Stop) -> Duration {
        match self.note() {
            Ok(()) => PAUSE,
            Err(_) => AGAIN,
        }
    }
}
