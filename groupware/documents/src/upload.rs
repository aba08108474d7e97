//! Records of uploads in chunks. Only the owner of a database uploads to it.
//!
//! An upload in a file has its offset there, and a chunk needs no record. For an upload in an
//! object store, the record lists the [segments](crate::Segment).

use std::ops::ControlFlow;

use groupware_ids::{ContentHash, Placed};
use groupware_store::{Batch, Snapshot};
use serde::{Deserialize, Serialize};

use crate::mailbox::{self, Changes};
use crate::names::no_upload;
use crate::{
    Context, DatabaseName, Decision, DocumentError, FileName, ItemName, ItemPath, NewAttachment,
    Reason, Segment, Unid, UploadId, access, attach, keys, limits, objects,
};

/// The value of `Upload-Concat` for a part.
const PART: &str = "partial";

/// The record of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// Its length; the reserved bytes as long as that is unknown.
    #[serde(rename = "l")]
    pub length: u64,
    /// The maximum length, as long as the length is unknown; its file is preallocated for it.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<u64>,
    /// `Upload-Concat` as it was sent: it is a part, or concatenated from parts.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub concat: Option<String>,
    /// The time of its creation, seconds since 1970.
    #[serde(rename = "c")]
    pub created: i64,
    /// The time at which it became an attachment.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<i64>,
    /// The received segments of a pending upload in an object store.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<Segment>>,
    /// The time of the last segment, seconds since 1970.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub written: Option<i64>,
    /// `Upload-Metadata` as it was sent.
    #[serde(rename = "m")]
    pub metadata: String,
    #[serde(rename = "d")]
    database: String,
    #[serde(rename = "u")]
    unid: String,
    #[serde(rename = "i")]
    item: String,
    #[serde(rename = "n")]
    name: String,
    #[serde(rename = "t")]
    media_type: String,
}

/// A requested upload.
#[derive(Debug, Clone)]
pub struct NewUpload {
    /// Its target.
    pub place: ItemPath,
    /// The file's name.
    pub name: FileName,
    /// Its media type, according to its sender.
    pub media_type: String,
    /// Its length, or the bytes reserved at first.
    pub length: u64,
    /// The maximum length, if the length is unknown.
    pub deferred: Option<u64>,
    /// `Upload-Concat` as it was sent, for a part or a concatenation.
    pub concat: Option<String>,
    /// Whether its bytes go to an object store, not to a file.
    pub is_segmented: bool,
    /// `Upload-Metadata` as it was sent.
    pub metadata: String,
}

/// The state of an upload that a server read before it puts more segments.
#[derive(Debug, Clone)]
pub struct HeldUpload {
    /// The record.
    pub upload: Upload,
    /// Its revision.
    pub revision: u64,
}

/// Records a new upload, and reserves its length.
///
/// # Errors
/// 404 if the document is missing; 507 if the owner's quota is exhausted.
pub fn begin(context: &Context<'_>, new: &NewUpload) -> Result<Decision<UploadId>, DocumentError> {
    let (database, unid) = (&new.place.database, &new.place.unid);
    access::owner_only(context.who)?;
    mailbox::require(context.snapshot, context.who.mailbox, database, unid)?;
    let id = UploadId::from_bits(context.bits);
    let mut changes = Changes::new(context)?;
    count_one_more(&mut changes)?;
    changes.change_usage(0, new.length)?;
    let upload = Upload::new(new, context.now);
    changes.put(keys::upload(&id), None, Some(upload.encode()));
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: id,
    })
}

fn count_one_more(changes: &mut Changes) -> Result<(), DocumentError> {
    changes.usage.uploads += 1;
    if changes.usage.uploads > limits::UPLOADS {
        let message = "There are too many uploads: finish some, or wait until they expire.";
        return Err(DocumentError::refused(Reason::OverQuota, message));
    }
    Ok(())
}

/// Records an upload that is concatenated from complete parts, and replaces them: it takes over
/// their reservations.
///
/// # Errors
/// 404 if the document or a part is missing; 400 if one is no part, or is incomplete according to its record.
pub fn join(
    context: &Context<'_>,
    new: &NewUpload,
    parts: &[UploadId],
) -> Result<Decision<UploadId>, DocumentError> {
    access::owner_only(context.who)?;
    let (database, unid) = (&new.place.database, &new.place.unid);
    mailbox::require(context.snapshot, context.who.mailbox, database, unid)?;
    let id = UploadId::from_bits(context.bits);
    let mut changes = Changes::new(context)?;
    let mut set_aside = 0;
    let mut segments = Vec::new();
    for part in parts {
        let HeldUpload { upload, revision } =
            held_upload(context.snapshot, context.who.mailbox, part)?;
        upload.check_part()?;
        // The offset of a part in a file is checked with the file.
        if let Some(offset) = upload.offset() {
            upload.check_whole(part, offset)?;
        }
        set_aside += upload.length;
        segments.extend(upload.segments.unwrap_or_default());
        changes.usage.uploads = changes.usage.uploads.saturating_sub(1);
        changes.put(keys::upload(part), Some(revision), None);
    }
    count_one_more(&mut changes)?;
    changes.change_usage(set_aside, new.length)?;
    let mut upload = Upload::new(new, context.now);
    upload.segments = new.is_segmented.then_some(segments);
    changes.put(keys::upload(&id), None, Some(upload.encode()));
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: id,
    })
}

/// Reserves this many bytes for an upload with an unknown length, unless it has as many; or records
/// that this is its length.
///
/// # Errors
/// 404 if it is missing; 413 if the length exceeds its maximum; 409 if more bytes are recorded
/// already; 400 if its length is known and differs; 507 if the owner's quota is exhausted.
pub fn extend(
    context: &Context<'_>,
    id: &UploadId,
    length: u64,
    is_known: bool,
) -> Result<Decision<()>, DocumentError> {
    access::owner_only(context.who)?;
    let HeldUpload {
        mut upload,
        revision,
    } = held_upload(context.snapshot, context.who.mailbox, id)?;
    let Some(most) = upload.deferred else {
        return match is_known && upload.length != length {
            true => Err(DocumentError::bad_request("The upload has another length.")),
            false => Ok(Decision {
                batch: Batch::new(),
                outcome: (),
            }),
        };
    };
    if length > most {
        let message = format!("An attachment has at most {most} bytes.");
        return Err(DocumentError::refused(Reason::TooLarge, message));
    }
    // Another server may have received a chunk meanwhile.
    if let Some(offset) = upload.offset().filter(|offset| *offset > length) {
        let message = format!("The upload has {offset} bytes already: ask for its offset.");
        return Err(DocumentError::refused(Reason::Conflict, message));
    }
    let mut changes = Changes::new(context)?;
    if is_known || length > upload.length {
        changes.change_usage(upload.length, length)?;
        upload.length = length;
        upload.deferred = upload.deferred.filter(|_| !is_known);
        changes.put(keys::upload(id), Some(revision), Some(upload.encode()));
    }
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: (),
    })
}

/// Returns the record of an upload.
///
/// # Errors
/// 404 if it is missing.
pub fn upload(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    id: &UploadId,
) -> Result<Upload, DocumentError> {
    held_upload(snapshot, mailbox, id).map(|held| held.upload)
}

/// Returns the record of an upload with its revision.
///
/// # Errors
/// 404 if it is missing.
pub fn held_upload(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    id: &UploadId,
) -> Result<HeldUpload, DocumentError> {
    let key = keys::upload(id);
    let record = snapshot.get(mailbox, &key)?.ok_or_else(no_upload)?;
    let (upload, revision) = (Upload::decode(&key, &record.value)?, record.revision);
    Ok(HeldUpload { upload, revision })
}

/// Turns a complete upload into an attachment. Its content must be pinned until the batch is
/// committed. Idempotent: the record stays for a while, so that a client that missed the response
/// learns of the success. The outcome is the segments that are no longer needed.
///
/// `at` is the offset that the record must still have, for a server that has the bytes after it.
///
/// # Errors
/// 404 if the upload or its document is missing; 409 if another server has received a chunk; 400 if
/// the document has too many attachments; 503 if the content's object was removed meanwhile.
pub fn finish(
    context: &Context<'_>,
    id: &UploadId,
    (hash, placed): (ContentHash, Placed),
    at: Option<u64>,
) -> Result<Decision<Vec<Segment>>, DocumentError> {
    access::owner_only(context.who)?;
    let HeldUpload {
        mut upload,
        revision,
    } = held_upload(context.snapshot, context.who.mailbox, id)?;
    if let Some(at) = at {
        upload.check_offset(at)?;
    }
    // Only a concatenation becomes an attachment.
    if upload.finished.is_some() || upload.is_part() {
        return Ok(Decision {
            batch: Batch::new(),
            outcome: Vec::new(),
        });
    }
    let (place, file) = upload.attachment(id, (hash, placed))?;
    let (database, unid) = (&place.database, &place.unid);
    let held = mailbox::require(context.snapshot, context.who.mailbox, database, unid)?;
    let mut document = held.document.clone();
    attach::put(&mut document, &file, context.now)?;
    let mut changes = Changes::new(context)?;
    // Its length was reserved.
    changes.change_usage(upload.length, 0)?;
    changes.replace((database, unid), Some(&held), Some(&document))?;
    upload.finished = Some(context.now);
    let outcome = upload.segments.take().unwrap_or_default();
    changes.put(keys::upload(id), Some(revision), Some(upload.encode()));
    let mut batch = changes.into_batch();
    objects::refer_to(context.snapshot, (hash, upload.length), placed, &mut batch)?;
    Ok(Decision { batch, outcome })
}

/// Removes an upload, and releases its reservation. The outcome is the segments that are no longer needed.
///
/// # Errors
/// 404 if it is missing.
pub fn give_up(
    context: &Context<'_>,
    id: &UploadId,
) -> Result<Decision<Vec<Segment>>, DocumentError> {
    access::owner_only(context.who)?;
    let HeldUpload { upload, revision } = held_upload(context.snapshot, context.who.mailbox, id)?;
    let mut changes = Changes::new(context)?;
    if upload.finished.is_none() {
        changes.change_usage(upload.length, 0)?;
    }
    changes.usage.uploads = changes.usage.uploads.saturating_sub(1);
    changes.put(keys::upload(id), Some(revision), None);
    Ok(Decision {
        batch: changes.into_batch(),
        outcome: upload.segments.unwrap_or_default(),
    })
}

/// Visits every upload of a user, with its revision.
///
/// # Errors
/// Errors of the store, or if a record is damaged.
pub fn uploads(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    visit: &mut dyn FnMut(UploadId, HeldUpload),
) -> Result<(), DocumentError> {
    let (from, to) = keys::uploads();
    let mut failure = None;
    snapshot.scan(mailbox, &from, Some(&to), usize::MAX, &mut |key, record| {
        let id = std::str::from_utf8(&key[from.len()..]).unwrap_or_default();
        match (UploadId::parse(id), Upload::decode(key, &record.value)) {
            (Ok(id), Ok(upload)) => visit(
                id,
                HeldUpload {
                    upload,
                    revision: record.revision,
                },
            ),
            (Err(error), _) | (_, Err(error)) => {
                failure = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    failure.map_or(Ok(()), Err)
}

/// Appends new segments to the first `kept` of an upload's; conflicts if the upload was changed
/// since it was read.
pub fn keep_segments(
    (mailbox, id): (&str, &UploadId),
    held: HeldUpload,
    (kept, new): (usize, Vec<Segment>),
    now: i64,
) -> Batch {
    let HeldUpload {
        mut upload,
        revision,
    } = held;
    let segments = upload.segments.get_or_insert_default();
    segments.truncate(kept);
    segments.extend(new);
    upload.written = Some(now);
    let (key, mut batch) = (keys::upload(id), Batch::new());
    batch
        .assert_revision(mailbox, key.clone(), revision)
        .put(mailbox, key, upload.encode());
    batch
}

impl Upload {
    fn new(new: &NewUpload, now: i64) -> Self {
        let ItemPath {
            database,
            unid,
            item,
        } = &new.place;
        Self {
            length: new.length,
            deferred: new.deferred,
            concat: new.concat.clone(),
            created: now,
            finished: None,
            segments: new.is_segmented.then(Vec::new),
            written: None,
            metadata: new.metadata.clone(),
            database: database.as_str().to_owned(),
            unid: unid.as_str().to_owned(),
            item: item.as_str().to_owned(),
            name: new.name.as_str().to_owned(),
            media_type: new.media_type.clone(),
        }
    }

    /// The bytes for which its file is preallocated.
    pub fn laid_out(&self) -> u64 {
        self.deferred.unwrap_or(self.length)
    }

    /// The number of its bytes in an object store; `None` if they are in a file.
    pub fn offset(&self) -> Option<u64> {
        let segments = self.segments.as_ref()?;
        Some(segments.iter().map(|segment| segment.bytes).sum())
    }

    fn check_offset(&self, at: u64) -> Result<(), DocumentError> {
        match self.finished.is_none() && self.offset() == Some(at) {
            true => Ok(()),
            false => {
                let message =
                    "Another server has taken a chunk of this upload: ask for its offset.";
                Err(DocumentError::refused(Reason::Conflict, message))
            }
        }
    }

    /// Returns true for a part, which only becomes an attachment in a concatenation.
    pub fn is_part(&self) -> bool {
        self.concat.as_deref() == Some(PART)
    }

    /// Returns true for a concatenation of parts.
    pub fn is_joined(&self) -> bool {
        self.concat.is_some() && !self.is_part()
    }

    /// Checks that it can be concatenated once it is complete.
    ///
    /// # Errors
    /// 400 if it is no part, or has no length yet.
    pub fn check_part(&self) -> Result<(), DocumentError> {
        match self.is_part() && self.deferred.is_none() {
            true => Ok(()),
            false => Err(DocumentError::bad_request(
                "Only parts of known length are joined.",
            )),
        }
    }

    /// Checks that a part at this offset is complete.
    ///
    /// # Errors
    /// 400 if it isn't.
    pub fn check_whole(&self, id: &UploadId, offset: u64) -> Result<(), DocumentError> {
        let length = self.length;
        if offset == length {
            return Ok(());
        }
        let message = format!("The part {id} has {offset} of its {length} bytes.");
        Err(DocumentError::refused(Reason::BadRequest, message))
    }

    /// Returns true if it has expired by `now`; `last_written` is the last write of its file, if it has one.
    pub fn has_expired(&self, now: i64, lifetime_s: i64, last_written: Option<i64>) -> bool {
        let last = self.finished.or(self.written).or(last_written);
        let last = last.unwrap_or_default();
        last.max(self.created).saturating_add(lifetime_s) <= now
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("an upload always serialises to memory")
    }

    fn decode(key: &[u8], bytes: &[u8]) -> Result<Self, DocumentError> {
        serde_json::from_slice(bytes).map_err(|error| DocumentError::corrupt(key, error))
    }

    /// Returns its target and its attachment.
    fn attachment(
        &self,
        id: &UploadId,
        (hash, placed): (ContentHash, Placed),
    ) -> Result<(ItemPath, NewAttachment), DocumentError> {
        let damaged = |error: DocumentError| DocumentError::corrupt(&keys::upload(id), error);
        let place = ItemPath {
            database: DatabaseName::parse(&self.database).map_err(damaged)?,
            unid: Unid::parse(&self.unid).map_err(damaged)?,
            item: ItemName::parse(&self.item).map_err(damaged)?,
        };
        let file = NewAttachment {
            item: place.item.clone(),
            name: FileName::parse(&self.name).map_err(damaged)?,
            media_type: self.media_type.clone(),
            bytes: self.length,
            hash,
            placed,
        };
        Ok((place, file))
    }
}
