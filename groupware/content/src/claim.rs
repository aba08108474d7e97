//! Uploads that several processes may work on: one at a time, and the holder can see that another waits.

use nix::libc;

use crate::process_locks::{Locked, UPLOADS};
use crate::{ContentError, ContentStore};

/// The number of pairs of bytes for uploads.
const PAIRS: u64 = 1 << 60;

/// The lock of an upload's file. Empty if the process has the folder to itself.
#[derive(Debug)]
pub struct Claim(Option<(ContentStore, u64, Locked)>);

/// Signals to the holder of an upload's lock that another process waits for it.
#[derive(Debug)]
pub struct Ask(#[expect(dead_code, reason = "held, not used")] Option<Locked>);

impl ContentStore {
    /// Returns true if other processes may work on the same folder.
    pub fn is_shared(&self) -> bool {
        self.among().is_some()
    }

    /// Locks the file of an upload; `None` while another process holds it.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn claim(&self, upload: &str) -> Result<Option<Claim>, ContentError> {
        let Some(among) = self.among() else {
            return Ok(Some(Claim(None)));
        };
        let at = place(upload);
        let locked = among.lock(at, libc::F_WRLCK);
        let locked = locked.map_err(|error| ContentError::of(&among.path, error))?;
        Ok(locked.map(|locked| Claim(Some((self.clone(), at, locked)))))
    }

    /// Asks another process for the file of an upload until the result is dropped.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn ask_for(&self, upload: &str) -> Result<Ask, ContentError> {
        let Some(among) = self.among() else {
            return Ok(Ask(None));
        };
        let asked = among.lock(place(upload) + 1, libc::F_RDLCK);
        let asked = asked.map_err(|error| ContentError::of(&among.path, error))?;
        Ok(Ask(asked))
    }
}

impl Claim {
    /// Returns true if other processes may work on the folder, and so may ask.
    pub fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Returns true if another process asks for the upload.
    pub fn is_asked_for(&self) -> bool {
        let Some((store, at, _)) = &self.0 else {
            return false;
        };
        let among = store.among();
        among.is_some_and(|among| among.is_locked(at + 1).unwrap_or_default())
    }
}

/// Returns the first of an upload's bytes.
fn place(upload: &str) -> u64 {
    let hash = blake3::hash(upload.as_bytes());
    let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    UPLOADS + 2 * (u64::from_le_bytes(first) % PAIRS)
}
