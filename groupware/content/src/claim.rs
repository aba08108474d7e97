//! Uploads that several processes may work on: one at a time, and the one sees that another waits.

use nix::libc;

use crate::among::{Locked, UPLOADS};
use crate::{ContentError, ContentStore};

/// Uploads have as many pairs of bytes.
const PAIRS: u64 = 1 << 60;

/// The right to work on an upload's file. Where one process has the folder to itself, there is nothing to it.
#[derive(Debug)]
pub struct Claim(Option<(ContentStore, u64, Locked)>);

/// Tells whoever works on an upload's file that another process waits for it.
#[derive(Debug)]
pub struct Ask(#[expect(dead_code, reason = "held, not used")] Option<Locked>);

impl ContentStore {
    /// Whether other processes may work on the same folder.
    pub fn is_shared(&self) -> bool {
        self.among().is_some()
    }

    /// The right to work on the file of an upload; `None` while another process has it.
    ///
    /// # Errors
    /// The disk's.
    pub fn claim(&self, upload: &str) -> Result<Option<Claim>, ContentError> {
        let Some(among) = self.among() else {
            return Ok(Some(Claim(None)));
        };
        let at = place(upload);
        let locked = among.lock(at, libc::F_WRLCK);
        let locked = locked.map_err(|error| ContentError::of(&among.path, error))?;
        Ok(locked.map(|locked| Claim(Some((self.clone(), at, locked)))))
    }

    /// Asks another process for the file of an upload, as long as what this gives lives.
    ///
    /// # Errors
    /// The disk's.
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
    /// Whether others may work on the folder, so that somebody may ask.
    pub fn is_shared(&self) -> bool {
        self.0.is_some()
    }

    /// Whether another process asks for the upload.
    pub fn is_asked_for(&self) -> bool {
        let Some((store, at, _)) = &self.0 else {
            return false;
        };
        let among = store.among();
        among.is_some_and(|among| among.is_locked(at + 1).unwrap_or_default())
    }
}

/// The first of the bytes that stand for an upload.
fn place(upload: &str) -> u64 {
    let hash = blake3::hash(upload.as_bytes());
    let first = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    UPLOADS + 2 * (u64::from_le_bytes(first) % PAIRS)
}
