//! The open uploads: their open files, their hashes up to the offset.
//!
//! One request at a time works on an upload. A later request makes the earlier one stop waiting for
//! its client, which has most likely disconnected, and takes over at the durable offset. Where
//! other servers work on the same folder, this applies to their requests, too.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use groupware_content::{Claim, ContentError, ContentStore, Upload};
use groupware_documents::UploadId;
use groupware_http::{ApiError, Disk};
use groupware_runtime::Caller;
use http::StatusCode;
use tokio::sync::{Notify, OwnedMutexGuard};

use crate::failure::UploadFailure;

/// Uploads between two chunks whose files stay open. Others are reopened, and read to their offset,
/// when they continue.
pub const AT_HAND: usize = 128;
/// Longest wait for the earlier request.
const PATIENCE: Duration = Duration::from_secs(20);

/// The intervals of checking for another server's request, and for its end.
const LOOK: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(50)];

/// All uploads with a request now, or recently.
#[derive(Debug)]
pub struct OpenUploads {
    content: ContentStore,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    claims: AtomicU64,
}

#[derive(Debug, Default)]
struct Slot {
    upload: Arc<tokio::sync::Mutex<Option<Upload>>>,
    /// Requests that wait for this upload.
    waiting: AtomicU32,
    asked: Notify,
    /// The number of the last claim.
    used: AtomicU64,
}

/// The key of an upload among all.
pub fn key(mailbox: &str, id: &UploadId) -> String {
    format!("{mailbox}/{id}")
}

/// The exclusive right to work on an upload.
#[derive(Debug)]
pub(crate) struct Claimed {
    slot: Arc<Slot>,
    /// The claim towards other servers. It is released before other requests here can claim the upload.
    claim: Claim,
    upload: OwnedMutexGuard<Option<Upload>>,
}

impl OpenUploads {
    /// Returns the open uploads of this content.
    pub fn new(content: ContentStore) -> Self {
        Self {
            content,
            slots: Mutex::default(),
            claims: AtomicU64::new(0),
        }
    }

    /// Waits until no other request works on an upload.
    ///
    /// # Errors
    /// 423 if another request does for long.
    pub(crate) async fn claim(&self, caller: &Caller, key: &str) -> Result<Claimed, ApiError> {
        let slot = self.slot(key);
        slot.used.store(self.claims.fetch_add(1, Relaxed), Relaxed);
        let mut upload = self.claim_here(caller, &slot).await?;
        let claim = self.claim_among_servers(caller, name_in(key)).await?;
        // Changes by another server are unknown here.
        if claim.is_shared() && upload.as_ref().is_some_and(|upload| !upload.is_current()) {
            *upload = None;
        }
        Ok(Claimed {
            slot,
            claim,
            upload,
        })
    }

    async fn claim_here(
        &self,
        caller: &Caller,
        slot: &Arc<Slot>,
    ) -> Result<OwnedMutexGuard<Option<Upload>>, ApiError> {
        let upload = Arc::clone(&slot.upload);
        if let Ok(upload) = Arc::clone(&upload).try_lock_owned() {
            return Ok(upload);
        }
        let waiting = Waiting::new(slot);
        slot.asked.notify_one();
        let locked = caller
            .yield_until(tokio::time::timeout(PATIENCE, upload.lock_owned()))
            .await;
        drop(waiting);
        locked.map_err(|_| at_work())
    }

    async fn claim_among_servers(&self, caller: &Caller, name: &str) -> Result<Claim, ApiError> {
        let claim = || self.content.claim(name).map_err(|error| failed(&error));
        if let Some(claim) = claim()? {
            return Ok(claim);
        }
        let _ask = self.content.ask_for(name).map_err(|error| failed(&error))?;
        let claimed = async {
            loop {
                tokio::time::sleep(LOOK[1]).await;
                if let Some(claim) = claim()? {
                    return Ok(claim);
                }
            }
        };
        let claimed = caller.yield_until(tokio::time::timeout(PATIENCE, claimed));
        claimed.await.unwrap_or_else(|_| Err(at_work()))
    }

    /// Returns true if an upload has a request now, or had one recently.
    pub(crate) fn is_at_hand(&self, key: &str) -> bool {
        self.lock().contains_key(key)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn slot(&self, key: &str) -> Arc<Slot> {
        let mut slots = self.lock();
        if let Some(slot) = slots.get(key) {
            return Arc::clone(slot);
        }
        while slots.len() >= AT_HAND && forget_one(&mut slots) {}
        Arc::clone(slots.entry(key.to_owned()).or_default())
    }

    /// Closes all idle uploads but these: another server may have finished or dropped them.
    pub fn keep_only(&self, names: &HashSet<String>) {
        let goes_on = |key: &String| names.contains(name_in(key));
        self.lock()
            .retain(|key, slot| goes_on(key) || !is_idle(slot));
    }

    /// Closes an upload that has ended.
    pub fn forget(&self, key: &str) {
        let mut slots = self.lock();
        // A waiting request keeps the entry, so that no two work on one upload.
        if slots.get(key).is_some_and(is_idle) {
            slots.remove(key);
        }
    }
}

/// The name of an upload's file.
fn name_in(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

fn at_work() -> ApiError {
    ApiError::new(
        StatusCode::LOCKED,
        "Another request is at work on this upload.",
    )
}

fn failed(error: &ContentError) -> ApiError {
    ApiError::fault(500, "The disk failed.", error)
}

/// Returns true if only the table holds it; no request can claim it while the table is locked.
fn is_idle(slot: &Arc<Slot>) -> bool {
    Arc::strong_count(slot) == 1
}

/// Closes the least recently used idle upload. The number of busy ones is bounded elsewhere.
fn forget_one(slots: &mut MutexGuard<'_, HashMap<String, Arc<Slot>>>) -> bool {
    let idle = slots.iter().filter(|(_, slot)| is_idle(slot));
    let oldest = idle.min_by_key(|(_, slot)| slot.used.load(Relaxed));
    let key = oldest.map(|(key, _)| key.clone());
    key.is_some_and(|key| slots.remove(&key).is_some())
}

impl Claimed {
    /// Returns the upload, if it is open.
    pub(crate) fn upload(&mut self) -> Option<&mut Upload> {
        self.upload.as_mut()
    }

    pub(crate) fn put(&mut self, upload: Upload) {
        *self.upload = Some(upload);
    }

    pub(crate) fn take(&mut self) -> Option<Upload> {
        self.upload.take()
    }

    /// Returns the upload at its offset, laid out for so many bytes up to a maximum; opens and reads it if necessary.
    pub(crate) async fn resume(
        &mut self,
        (content, disk): (&ContentStore, &Disk),
        id: &UploadId,
        (length, allowed): (u64, u64),
    ) -> Result<&Upload, UploadFailure> {
        if self.upload.is_none() {
            let (content, name) = (content.clone(), id.to_string());
            let resume = move || content.resume_upload_of(&name, length, allowed);
            *self.upload = Some(disk.work(resume).await??);
        }
        let upload = self.upload.as_ref();
        upload.ok_or_else(|| ApiError::with_status(500, "The upload is gone.").into())
    }

    /// Waits until another request wants this upload.
    pub(crate) async fn asked(&self) {
        // A notification may be left over from a request that has ended.
        while self.slot.waiting.load(Relaxed) == 0 && !self.claim.is_asked_for() {
            let asked = self.slot.asked.notified();
            match self.claim.is_shared() {
                true => _ = tokio::time::timeout(LOOK[0], asked).await,
                false => asked.await,
            }
        }
    }
}

/// Counts a waiting request, also if it is cancelled.
struct Waiting<'a>(&'a Slot);

impl<'a> Waiting<'a> {
    fn new(slot: &'a Slot) -> Self {
        slot.waiting.fetch_add(1, Relaxed);
        Self(slot)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}
