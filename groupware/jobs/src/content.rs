//! Removes expired uploads, files of abandoned uploads, and content without references.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use groupware_content::{ContentStore, FolderSweep, Found};
use groupware_documents::{
    self as documents, Context, DocumentError, HeldUpload, Reason, Segment, UploadId,
};
use groupware_people::Users;
use groupware_service::Service;
use groupware_store::{CommitError, Snapshot};

use crate::failed::Failed;
use crate::objects;
use crate::runner::{Job, Stop};

/// A callback that reads one user's records.
type Read<'a> = dyn FnMut(&dyn Snapshot, &Arc<str>) -> Result<(), DocumentError> + 'a;

/// The minimum age of a file without a record to be removed: a younger one may be of an upload just beginning.
const ORPHAN_AGE: Duration = Duration::from_secs(3600);
/// The approximate number of contents to check in one pass over all users. The cost of a pass grows with the number of
/// users; each name takes some 60 bytes of memory meanwhile.
const NAMES_AT_ONCE: usize = 100_000;
/// The number of users read within one snapshot.
const USERS_AT_ONCE: usize = 64;

/// Receives the events of a sweep.
pub trait SweepObserver: Send + 'static {
    /// Called when something could not be removed.
    fn failed(&self);

    /// Called when an upload of this mailbox was abandoned.
    fn forgotten(&self, mailbox: &str, id: &UploadId);

    /// Called with the names of all uploads under way.
    fn under_way(&self, all: &HashSet<String>);
}

/// The part to sweep if other servers sweep, too.
#[derive(Debug, Clone)]
pub enum Part {
    /// Everything.
    All,
    /// The data folder and expired uploads.
    Folder,
    /// The contents of an object store.
    Objects,
}

/// The sweep of content and uploads.
#[derive(Debug)]
pub struct ContentSweep<O> {
    /// The users and their records.
    pub service: Service,
    /// The content to sweep.
    pub content: ContentStore,
    /// The time without a chunk after which an upload expires.
    pub upload_lifetime_s: i64,
    /// The time between two sweeps.
    pub interval: Duration,
    /// Receives the events.
    pub observer: O,
    part: Part,
    /// The files of uploads from before the start of the server; `None` after the first sweep.
    left_over: Option<HashSet<String>>,
    told: FailureLog,
    /// The time of the last listing of all objects of an object store.
    looked_at_all: Option<i64>,
}

impl<O> ContentSweep<O> {
    /// Creates a sweep of this content, with uploads expiring after so many seconds. No upload may begin before: files
    /// without a record are taken for those of an earlier server.
    pub fn new(
        service: Service,
        content: ContentStore,
        (upload_lifetime_s, interval): (i64, Duration),
        observer: O,
    ) -> Self {
        // Another server's uploads may be under way. Files that can't be listed now are found once they are old.
        let files = match content.is_shared() {
            true => Vec::new(),
            false => content.upload_files().unwrap_or_default(),
        };
        let left_over = files.into_iter().map(|file| file.name).collect();
        Self {
            service,
            content,
            upload_lifetime_s,
            interval,
            observer,
            part: Part::All,
            left_over: Some(left_over),
            told: FailureLog::default(),
            looked_at_all: None,
        }
    }

    /// Restricts the sweep to one part.
    #[must_use]
    pub fn of(self, part: Part) -> Self {
        Self { part, ..self }
    }
}

/// The state of failure reports. Only the first failure since a sweep without failures is reported: a broken disk would
/// fill the log otherwise.
#[derive(Debug, Default)]
struct FailureLog {
    /// The number of failures of this sweep.
    count: u32,
    is_told: bool,
}

impl<O: SweepObserver> Job for ContentSweep<O> {
    const NAME: &'static str = "content-sweep";

    /// Starts at once: a crash may have left much.
    fn first_pause(&self) -> Duration {
        Duration::ZERO
    }

    fn run(&mut self, stop: &Stop) -> Duration {
        if !matches!(self.part, Part::Objects) {
            self.sweep_folder(stop);
        }
        if !matches!(self.part, Part::Folder) {
            self.sweep_objects(stop);
        }
        self.end();
        self.interval
    }
}

impl<O: SweepObserver> ContentSweep<O> {
    fn note(&mut self, result: Result<(), Failed>, tell: &mut dyn FnMut(&str)) {
        let Err(Failed(words)) = result else { return };
        self.told.count += 1;
        self.observer.failed();
        if !self.told.is_told {
            self.told.is_told = true;
            tell(&words);
        }
    }

    /// Ends a sweep.
    fn end(&mut self) {
        self.told = FailureLog {
            count: 0,
            is_told: self.told.is_told && self.told.count > 0,
        };
    }

    fn sweep_folder(&mut self, stop: &Stop) {
        let left_over = self.left_over.take().unwrap_or_default();
        let swept = self.sweep_uploads(&left_over);
        self.note(swept, &mut warn);
        let mut next = Some(0);
        while let Some(first) = next.filter(|_| !stop.is_asked()) {
            let (last, swept) = self.sweep_content(first, stop);
            self.note(swept, &mut warn);
            next = last.checked_add(1);
        }
    }

    /// Removes expired uploads, and the files of uploads that have no record.
    fn sweep_uploads(&self, left_over: &HashSet<String>) -> Result<(), Failed> {
        let now = self.service.now_s();
        let before = now - i64::try_from(ORPHAN_AGE.as_secs()).unwrap_or(i64::MAX);
        // Listed before the records are read, so that uploads begun meanwhile are not on the list.
        let files = self.content.upload_files()?.into_iter();
        let mut files: HashMap<String, i64> = files
            .map(|file| (file.name, unix_seconds(file.modified)))
            .collect();
        let mut under_way = HashSet::new();
        let mut removed = Ok(());
        let mut expired = Vec::new();
        let users = self.service.auth.directory().keys();
        let read = self.read_each(&users, &mut |snapshot, mailbox| {
            documents::uploads(snapshot, mailbox, &mut |id, HeldUpload { upload, .. }| {
                let written = files.get(id.as_str()).copied();
                if upload.has_expired(now, self.upload_lifetime_s, written) {
                    expired.push((Arc::clone(mailbox), id));
                } else if upload.finished.is_none() {
                    files.remove(id.as_str());
                    under_way.insert(id.to_string());
                }
            })
        });
        // Also if a user's records can't be read: uploads of the users before still expire.
        for (mailbox, id) in expired {
            let Some(segments) = self.give_up(&mailbox, &id)? else {
                files.remove(id.as_str());
                under_way.insert(id.to_string());
                continue;
            };
            self.observer.forgotten(&mailbox, &id);
            files.insert(id.to_string(), i64::MIN);
            // The sweep of segments removes the segments left here; the other uploads follow.
            removed = removed.and(self.remove_segments(&segments));
        }
        read?;
        if matches!(self.part, Part::Folder) {
            self.observer.under_way(&under_way);
        }
        for (name, written) in files {
            if written <= before || left_over.contains(&name) {
                self.content.remove_upload(&name)?;
            }
        }
        removed
    }

    /// Reads the records of each of these users. Each snapshot covers only some users, because it keeps the store from
    /// reclaiming space.
    fn read_each(&self, users: &[Arc<str>], read: &mut Read<'_>) -> Result<(), DocumentError> {
        users.chunks(USERS_AT_ONCE).try_for_each(|some| {
            let store = self.service.store();
            store.read(|snapshot| some.iter().try_for_each(|user| read(snapshot, user)))
        })
    }

    /// Removes an upload unless it has received a chunk since it was read; returns its segments, now without a record.
    fn give_up(&self, mailbox: &str, id: &UploadId) -> Result<Option<Vec<Segment>>, Failed> {
        let now = self.service.now_s();
        let written = self.content.upload_modified(id.as_str()).map(unix_seconds);
        let decision = self.service.store().read(|snapshot| {
            let context = Context {
                snapshot,
                who: documents::Principal::owner(mailbox),
                now,
                bits: 0,
                quota_bytes: u64::MAX,
            };
            let upload = documents::upload(snapshot, mailbox, id)?;
            match upload.has_expired(now, self.upload_lifetime_s, written) {
                true => documents::give_up(&context, id).map(Some),
                false => Ok(None),
            }
        });
        let decision = match decision {
            Ok(Some(decision)) => decision,
            Ok(None) => return Ok(None),
            // Another server has removed it.
            Err(error) if error.reason() == Some(Reason::NotFound) => return Ok(Some(Vec::new())),
            Err(error) => return Err(error.into()),
        };
        match self.service.store().commit_blocking(decision.batch) {
            Ok(_) => Ok(Some(decision.outcome)),
            // Most likely a new chunk has been received: the next sweep checks again.
            Err(CommitError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn remove_segments(&self, segments: &[Segment]) -> Result<(), Failed> {
        let Some(store) = self.content.segments() else {
            return Ok(());
        };
        for segment in segments {
            store.remove(&segment.name)?;
        }
        Ok(())
    }

    /// Removes the segments without an upload: a server stopped between the put of a segment and its record, or before
    /// it removed the segment.
    fn sweep_segments(&self) -> Result<(), Failed> {
        let Some(store) = self.content.segments() else {
            return Ok(());
        };
        // Listed before the records are read, so that segments put meanwhile are not on the list.
        let mut names: HashSet<String> = store.list()?.into_iter().collect();
        let mut revisions = HashMap::new();
        // Another server may have registered users that this one has not read yet.
        let load = |snapshot: &dyn Snapshot| groupware_people::load(snapshot, Users::new(""));
        let users = self.service.store().read(load)?.keys();
        self.read_each(&users, &mut |snapshot, mailbox| {
            documents::uploads(snapshot, mailbox, &mut |id, held| {
                for segment in held.upload.segments.iter().flatten() {
                    names.remove(&segment.name);
                }
                revisions.insert(id, held.revision);
            })
        })?;
        for name in names {
            let Some((id, then)) = documents::segment_of(&name) else {
                continue;
            };
            // A server that put it at this revision may still record it.
            if revisions.get(&id).is_none_or(|now| then < *now) {
                store.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Sweeps as many folders from this one on as fit one pass over all users, and returns the last of them. Users who
    /// register meanwhile can refer only to pinned content.
    fn sweep_content(&self, first: u8, stop: &Stop) -> (u8, Result<(), Failed>) {
        match self.content.sweep_from(first, NAMES_AT_ONCE) {
            Ok(Some(sweep)) => (*sweep.folders().end(), self.sweep_folders(sweep, stop)),
            // Another sweep is running and does the work.
            Ok(None) => (u8::MAX, Ok(())),
            Err(error) => (first, Err(error.into())),
        }
    }

    /// Sweeps the objects of an object store in the same way.
    fn sweep_objects(&mut self, stop: &Stop) {
        let Some(objects) = self.content.objects().cloned() else {
            return;
        };
        let now = self.service.now_s();
        let is_due = |last| now.saturating_sub(last) >= objects::LOOK_AT_ALL_S;
        let all = self.looked_at_all.is_none_or(is_due);
        if all {
            let swept = self.sweep_segments();
            self.note(swept, &mut warn);
        }
        let mut next = Some(0);
        while let Some(first) = next {
            if stop.is_asked() {
                return;
            }
            let (last, swept) = match self.content.hold_alone() {
                Ok(Some(_alone)) => objects::sweep(&self.service, &*objects, (first, all)),
                // A backup is copying the content.
                Ok(None) => return,
                Err(error) => (first, Err(error.into())),
            };
            let has_failed = swept.is_err();
            self.note(swept, &mut warn);
            // If the store is unavailable now, it is for the rest, too.
            if has_failed {
                return;
            }
            next = last.checked_add(1);
        }
        if all {
            self.looked_at_all = Some(now);
        }
    }

    fn sweep_folders(&self, mut sweep: FolderSweep, stop: &Stop) -> Result<(), Failed> {
        if sweep.is_empty() {
            return Ok(());
        }
        let folders = sweep.folders();
        let users = self.service.auth.directory().keys();
        self.read_each(&users, &mut |snapshot, mailbox| {
            documents::kept_content(snapshot, mailbox, &folders, &mut |hash, bytes| {
                sweep.keep(hash, bytes);
            })
        })?;
        let moved = self.move_to_objects(&mut sweep, stop);
        sweep.finish()?;
        moved
    }

    /// Moves content from before the object store existed to it; this sweep removes the content's file.
    fn move_to_objects(&self, sweep: &mut FolderSweep, stop: &Stop) -> Result<(), Failed> {
        let Some(objects) = self.content.objects() else {
            return Ok(());
        };
        let all: Vec<_> = sweep.referenced().collect();
        for (hash, bytes) in all {
            if stop.is_asked() {
                return Ok(());
            }
            // Damaged content stays in place, where it can be found.
            if self.content.verify(hash, bytes)? == Found::Whole {
                let file = self.content.read(hash)?;
                if objects::adopt(&self.service, &**objects, &file, (hash, bytes))? {
                    sweep.let_go(&hash);
                }
            }
        }
        Ok(())
    }
}

fn warn(cause: &str) {
    let message = "what nothing refers to can't be removed, and takes room until the next try";
    tracing::warn!(cause, "{message}");
}

fn unix_seconds(moment: SystemTime) -> i64 {
    let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
