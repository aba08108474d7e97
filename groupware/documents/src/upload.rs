//! Uploads in chunks: what is recorded of them. Only the owner of a database uploads to it.
//!
//! Where the bytes of an upload lie in a file, so does its offset, and a chunk needs no record. Where they lie in an object
//! store, the record lists their [segments](crate::Segment).

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

/// What `Upload-Concat` says of a part.
const PART: &str = "partial";

/// What is recorded of an upload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The bytes that it will have; those that are set aside for it, where that isn't known yet.
    #[serde(rename = "l")]
    pub length: u64,
    /// How long it is not known yet: it may have so many bytes, and its file is laid out for them.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<u64>,
    /// `Upload-Concat` as it was sent: it is a part, or made of parts.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub concat: Option<String>,
    /// When it was begun, seconds since 1970.
    #[serde(rename = "c")]
    pub created: i64,
    /// When it became an attachment.
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<i64>,
    /// Where its bytes lie in an object store as long as it is under way, those that came.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<Vec<Segment>>,
    /// When the last of these was put, seconds since 1970.
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

/// An upload that is asked for.
#[derive(Debug, Clone)]
pub struct NewUpload {
    /// Where it goes.
    pub place: ItemPath,
    /// The file's name.
    pub name: FileName,
    /// Its media type, as its sender said.
    pub media_type: String,
    /// The bytes that it will have, or that are set aside for it at first.
    pub length: u64,
    /// The most that it may have, where its length isn't known yet.
    pub deferred: Option<u64>,
    /// `Upload-Concat` as it was sent, of a part or what is made of parts.
    pub concat: Option<String>,
    /// Whether its bytes are to lie in an object store, and not in a file.
    pub is_segmented: bool,
    /// `Upload-Metadata` as it was sent.
    pub metadata: String,
}

/// What a server read of an upload before it puts more segments.
#[derive(Debug, Clone)]
pub struct HeldUpload {
    /// The record.
    pub upload: Upload,
    /// Its revision.
    pub revision: u64,
}

/// Records a new upload, and sets its length aside.
///
/// # Errors
/// 404 if there is no such document; 507 if the owner's share is used up.
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

/// Records an upload that is made of parts, all of which are whole, in their place: what was set aside for
/// them is for it now.
///
/// # Errors
/// 404 if there is no such document, or a part is gone; 400 if one is no part, or isn't whole as far as is recorded.
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
        // A part whose bytes lie in a file is looked at where the file is.
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

/// Sets so many bytes aside for an upload whose length isn't known yet, unless there are as many; or notes
/// that this is its length.
///
/// # Errors
/// 404 if there is none of this name; 413 if it may not have so many; 409 if more bytes are recorded already; 400 if its
/// length is known and is another; 507 if the owner's share is used up.
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
    // Another server may have taken a chunk meanwhile.
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

/// What is recorded of an upload.
///
/// # Errors
/// 404 if there is none of this name.
pub fn upload(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    id: &UploadId,
) -> Result<Upload, DocumentError> {
    held_upload(snapshot, mailbox, id).map(|held| held.upload)
}

/// Reads an upload together with its revision.
///
/// # Errors
/// 404 if there is none of this name.
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

/// Makes the attachment of an upload that is whole, whose content is pinned until the batch is
/// committed. Done already, there is nothing to do. The record stays for a while, so that a client
/// that missed the answer learns that all is well. The outcome is the segments that nothing needs any more.
///
/// `at` is the offset that the upload must still have in the record, for a server that has the bytes behind it.
///
/// # Errors
/// 404 if there is no such upload, or its document is gone; 409 if another server has taken a chunk; 400 if the document
/// has too many attachments; 503 if content that was put in an object was removed meanwhile.
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
    // What is joined is another one.
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
    // Its length was set aside.
    changes.change_usage(upload.length, 0)?;
    changes.replace((database, unid), Some(&held), Some(&document))?;
    upload.finished = Some(context.now);
    let outcome = upload.segments.take().unwrap_or_default();
    changes.put(keys::upload(id), Some(revision), Some(upload.encode()));
    let mut batch = changes.into_batch();
    objects::refer_to(context.snapshot, (hash, upload.length), placed, &mut batch)?;
    Ok(Decision { batch, outcome })
}

/// Forgets an upload, and frees what was set aside for it. The outcome is the segments that nothing needs any more.
///
/// # Errors
/// 404 if there is none of this name.
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
/// The store's, or when a record is damaged.
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

/// Lists new segments behind the first so many of an upload that was read; takes effect only if nobody has changed it
/// since.
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

    /// The bytes that its file is laid out for.
    pub fn laid_out(&self) -> u64 {
        self.deferred.unwrap_or(self.length)
    }

    /// How many of its bytes lie in an object store; `None` if they lie in a file.
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

    /// Whether it is a part, which becomes no attachment but by being joined with others.
    pub fn is_part(&self) -> bool {
        self.concat.as_deref() == Some(PART)
    }

    /// Whether it was made of parts.
    pub fn is_joined(&self) -> bool {
        self.concat.is_some() && !self.is_part()
    }

    /// Whether it can be joined with others once it is whole.
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

    /// Whether a part at this offset has all its bytes.
    ///
    /// # Errors
    /// 400 if it has not.
    pub fn check_whole(&self, id: &UploadId, offset: u64) -> Result<(), DocumentError> {
        let length = self.length;
        if offset == length {
            return Ok(());
        }
        let message = format!("The part {id} has {offset} of its {length} bytes.");
        Err(DocumentError::refused(Reason::BadRequest, message))
    }

    /// Whether it is too old by `now`; `last_written` is when its file was, if it has any.
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

    /// Where it goes, and as what.
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
