//! Where each of several servers has a data folder of its own: in whose folder an upload under way lies, and where its
//! server is reached.
//!
//! An upload's name begins with its folder's mark, so that whoever is asked for one knows without a look whether it is
//! here. Where another folder's server is reached is a record, which that server writes anew every few minutes.

use std::collections::HashSet;
use std::ops::ControlFlow;

use groupware_documents::UploadId;
use groupware_store::{Batch, CommitError, Record, Store, StoreError};

/// No user can be called that.
const PARTITION: &str = "$folders";
/// A server that has said nothing for so long is gone, and its uploads with it.
pub const GONE_S: i64 = 3600;
/// Most servers that are looked at.
const SERVERS: usize = 1000;

/// The data folder of this server among those of the others.
#[derive(Debug, Clone)]
pub struct Folders {
    store: Store,
    mark: u32,
}

/// Who has an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// This server.
    Here,
    /// The one that is reached there, as `host:port`.
    At(String),
    /// One that is gone.
    Gone,
}

/// The folders of other servers, as of a moment.
#[derive(Debug, Clone, Default)]
pub struct OtherFolders(HashSet<u32>);

impl OtherFolders {
    /// Whether an upload lies in one of them.
    pub fn have(&self, id: &UploadId) -> bool {
        mark_of(id).is_some_and(|mark| self.0.contains(&mark))
    }
}

impl Folders {
    /// Of a server whose folder has this name.
    pub fn new(store: Store, name: &str) -> Self {
        let hash = blake3::hash(name.as_bytes());
        let mark = hash.as_bytes().first_chunk::<4>().copied();
        Self {
            store,
            mark: u32::from_be_bytes(mark.unwrap_or_default()),
        }
    }

    /// The bits of a new upload's name: the folder's mark, and random ones behind it.
    pub fn marked(&self, bits: u128) -> u128 {
        let behind = u128::BITS - u32::BITS;
        (bits & (u128::MAX >> u32::BITS)) | (u128::from(self.mark) << behind)
    }

    /// Whether this server has an upload, as far as its name says.
    pub fn is_here(&self, id: &UploadId) -> bool {
        mark_of(id) == Some(self.mark)
    }

    /// Who has an upload.
    ///
    /// # Errors
    /// The store's.
    pub fn holder(&self, id: &UploadId, now: i64) -> Result<Holder, StoreError> {
        let Some(mark) = mark_of(id).filter(|mark| *mark != self.mark) else {
            return Ok(Holder::Here);
        };
        let key = key(mark);
        let record = self.store.read(|snapshot| snapshot.get(PARTITION, &key))?;
        Ok(match record.as_ref().and_then(Line::read) {
            // Nobody has such a folder: it was begun when names had no marks.
            None => Holder::Here,
            Some(line) if line.is_gone(now) => Holder::Gone,
            Some(line) => Holder::At(line.address),
        })
    }

    /// Who takes what belongs together, by the name that it has: each server says the same of it, as long as none
    /// comes or goes.
    ///
    /// # Errors
    /// The store's.
    pub fn chosen(&self, name: &str, now: i64) -> Result<Holder, StoreError> {
        let mut chosen = (weight(self.mark, name), Holder::Here);
        for (mark, _, line) in self.lines()? {
            let weight = weight(mark, name);
            if mark != self.mark && !line.is_gone(now) && weight > chosen.0 {
                chosen = (weight, Holder::At(line.address));
            }
        }
        Ok(chosen.1)
    }

    /// The folders of all others.
    ///
    /// # Errors
    /// The store's.
    pub fn others(&self) -> Result<OtherFolders, StoreError> {
        let marks = self.lines()?.into_iter().map(|(mark, ..)| mark);
        Ok(OtherFolders(marks.filter(|it| *it != self.mark).collect()))
    }

    /// Says where this server is reached; gives where another one was a moment ago that says so of the same folder.
    /// Blocks.
    ///
    /// # Errors
    /// The store's.
    pub fn note(&self, address: &str, now: i64) -> Result<Option<String>, CommitError> {
        let key = key(self.mark);
        let record = self.store.read(|snapshot| snapshot.get(PARTITION, &key))?;
        let mut batch = Batch::new();
        match &record {
            None => batch.assert_absent(PARTITION, key),
            Some(record) => batch.assert_revision(PARTITION, key, record.revision),
        };
        batch.put(PARTITION, key, format!("{now} {address}"));
        match self.store.commit_blocking(batch) {
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
        let before = record.as_ref().and_then(Line::read);
        let another = before.filter(|line| line.address != address && !line.is_gone(now));
        Ok(another.map(|line| line.address))
    }

    /// Forgets folders whose servers have said nothing since then. Blocks.
    ///
    /// # Errors
    /// The store's.
    pub fn forget(&self, since: i64) -> Result<(), CommitError> {
        for (mark, revision, line) in self.lines()? {
            if line.last >= since {
                continue;
            }
            let mut batch = Batch::new();
            batch
                .assert_revision(PARTITION, key(mark), revision)
                .delete(PARTITION, key(mark));
            match self.store.commit_blocking(batch) {
                Ok(_) | Err(CommitError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// What all servers have said, each with its folder's mark and its record's revision.
    fn lines(&self) -> Result<Vec<(u32, u64, Line)>, StoreError> {
        let mut lines = Vec::new();
        self.store.read(|snapshot| {
            snapshot.scan(PARTITION, b"", None, SERVERS, &mut |key, record| {
                let mark = std::str::from_utf8(key).ok().and_then(mark_in);
                if let (Some(mark), Some(line)) = (mark, Line::read(&record)) {
                    lines.push((mark, record.revision, line));
                }
                ControlFlow::Continue(())
            })
        })?;
        Ok(lines)
    }
}

/// What a server says of itself.
#[derive(Debug)]
struct Line {
    /// When, in seconds since 1970.
    last: i64,
    address: String,
}

impl Line {
    fn read(record: &Record) -> Option<Self> {
        let text = std::str::from_utf8(&record.value).ok()?;
        let (last, address) = text.split_once(' ')?;
        Some(Self {
            last: last.parse().ok()?,
            address: address.to_owned(),
        })
    }

    fn is_gone(&self, now: i64) -> bool {
        self.last.saturating_add(GONE_S) < now
    }
}

fn key(mark: u32) -> [u8; 8] {
    let text = format!("{mark:08x}");
    text.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn mark_of(id: &UploadId) -> Option<u32> {
    mark_in(id.as_str())
}

fn mark_in(text: &str) -> Option<u32> {
    u32::from_str_radix(text.get(..8)?, 16).ok()
}

fn weight(mark: u32, name: &str) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&mark.to_be_bytes()).update(name.as_bytes());
    *hasher.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use groupware_store::StoreOptions;

    use super::*;

    const NOW: i64 = 1_000_000;

    fn three() -> [Folders; 3] {
        let store = Store::memory(StoreOptions::default()).unwrap();
        ["one", "two", "three"].map(|name| Folders::new(store.clone(), name))
    }

    fn noted() -> [Folders; 3] {
        let all = three();
        for (folders, address) in all.iter().zip(["1:1", "2:2", "3:3"]) {
            assert_eq!(folders.note(address, NOW).unwrap(), None);
        }
        all
    }

    fn upload(folders: &Folders, bits: u128) -> UploadId {
        UploadId::from_bits(folders.marked(bits))
    }

    #[test]
    fn an_uploads_name_says_who_has_it() {
        let [one, two, three] = noted();
        for bits in [0, 7, u128::MAX] {
            let id = upload(&two, bits);
            assert!(two.is_here(&id) && !one.is_here(&id));
            assert_eq!(two.holder(&id, NOW).unwrap(), Holder::Here);
            for other in [&one, &three] {
                let holder = other.holder(&id, NOW + GONE_S).unwrap();
                assert_eq!(holder, Holder::At("2:2".into()));
                let later = other.holder(&id, NOW + GONE_S + 1).unwrap();
                assert_eq!(later, Holder::Gone);
                assert!(other.others().unwrap().have(&id));
            }
            assert!(!two.others().unwrap().have(&id));
        }
        assert_ne!(upload(&two, 1), upload(&two, 2));
        // One from before names had marks.
        let old = UploadId::from_bits(u128::MAX / 3);
        for folders in [&one, &two, &three] {
            assert_eq!(folders.holder(&old, NOW).unwrap(), Holder::Here);
        }
    }

    #[test]
    fn what_belongs_together_goes_to_one_whoever_is_asked() {
        let all = noted();
        let addresses = ["1:1", "2:2", "3:3"];
        let mut taken = [0; 3];
        for number in 0..60 {
            let name = format!("ada/files/{number}");
            let chosen = all.each_ref().map(|it| it.chosen(&name, NOW).unwrap());
            let here = chosen.iter().position(|holder| *holder == Holder::Here);
            let here = here.expect("one takes it");
            taken[here] += 1;
            for (at, holder) in chosen.iter().enumerate() {
                let expected = Holder::At(addresses[here].into());
                assert!(at == here || *holder == expected, "{at} {holder:?}");
            }
        }
        assert!(taken.iter().all(|count| *count > 5), "{taken:?}");
        // Those that are gone take nothing.
        all[0].note("1:1", NOW + 2 * GONE_S).unwrap();
        for number in 0..20 {
            let name = format!("ada/files/{number}");
            let chosen = all[0].chosen(&name, NOW + 2 * GONE_S).unwrap();
            assert_eq!(chosen, Holder::Here);
        }
    }

    #[test]
    fn who_says_nothing_is_forgotten_and_who_has_a_copy_is_told() {
        let [one, two, _] = noted();
        let id = upload(&two, 5);
        one.note("1:1", NOW + 10).unwrap();
        one.forget(NOW).unwrap();
        assert!(one.others().unwrap().have(&id));
        one.forget(NOW + 1).unwrap();
        assert!(!one.others().unwrap().have(&id));
        assert_eq!(one.lines().unwrap().len(), 1);
        let copy = one.clone();
        let other = copy.note("9:9", NOW + 20).unwrap();
        assert_eq!(other.as_deref(), Some("1:1"));
        assert_eq!(copy.note("9:9", NOW + 21).unwrap(), None);
        assert_eq!(copy.note("8:8", NOW + 22 + GONE_S).unwrap(), None);
    }
}
