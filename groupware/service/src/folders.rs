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
/// How often each says that it is there.
pub const NOTED_EACH_S: u64 = 300;
/// One that has said nothing for so long is away, as far as one can tell: it missed to say so twice.
const AWAY_S: i64 = NOTED_EACH_S as i64 * 5 / 2;
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
    /// The server of another folder.
    At {
        /// Where it is reached, as `host:port`.
        address: String,
        /// Its folder's mark, for whoever is reached there to know whether it is meant.
        mark: String,
    },
    /// One that is gone.
    Gone,
    /// Nobody has a folder with such a mark, by what servers say: it began when names had no marks, or in a folder that
    /// was forgotten. It is where its file is.
    Unknown,
}

/// The folders of other servers, as of a moment.
#[derive(Debug, Clone, Default)]
pub struct OtherFolders {
    there: HashSet<u32>,
    gone: HashSet<u32>,
}

impl OtherFolders {
    /// Whether an upload lies in one of them.
    pub fn have(&self, id: &UploadId) -> bool {
        mark_of(id).is_some_and(|mark| self.there.contains(&mark))
    }

    /// Whether an upload lay in one of them whose server is gone for good.
    pub fn had(&self, id: &UploadId) -> bool {
        mark_of(id).is_some_and(|mark| self.gone.contains(&mark))
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

    /// The folder's mark, as names begin with it.
    pub fn mark(&self) -> String {
        text_of(self.mark)
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
        let lines = self.lines()?;
        Ok(match lines.iter().find(|said| said.mark == mark) {
            None => Holder::Unknown,
            Some(said) if said.line.is_gone(now) || said.is_replaced(&lines) => Holder::Gone,
            Some(said) => said.holder(),
        })
    }

    /// Who takes what belongs together, by the name that it has: each server says the same of it, as long as none
    /// comes or goes. One that may be away takes nothing.
    ///
    /// # Errors
    /// The store's.
    pub fn chosen(&self, name: &str, now: i64) -> Result<Holder, StoreError> {
        let mut chosen = (weight(self.mark, name), Holder::Here);
        let lines = self.lines()?;
        for said in &lines {
            let weight = weight(said.mark, name);
            let is_there = !said.line.is_silent(AWAY_S, now) && !said.is_replaced(&lines);
            if said.mark != self.mark && is_there && weight > chosen.0 {
                chosen = (weight, said.holder());
            }
        }
        Ok(chosen.1)
    }

    /// The folders of all others. One that is gone, and for so many seconds more than that, is gone for good.
    ///
    /// # Errors
    /// The store's.
    pub fn others(&self, now: i64, more_s: i64) -> Result<OtherFolders, StoreError> {
        let mut others = OtherFolders::default();
        let most = GONE_S.saturating_add(more_s);
        for said in self.lines()?.iter().filter(|said| said.mark != self.mark) {
            let which = match said.line.is_silent(most, now) {
                true => &mut others.gone,
                false => &mut others.there,
            };
            which.insert(said.mark);
        }
        Ok(others)
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
        for Said {
            mark,
            revision,
            line,
        } in self.lines()?
        {
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

    /// What all servers have said.
    fn lines(&self) -> Result<Vec<Said>, StoreError> {
        let mut lines = Vec::new();
        self.store.read(|snapshot| {
            snapshot.scan(PARTITION, b"", None, SERVERS, &mut |key, record| {
                let mark = std::str::from_utf8(key).ok().and_then(mark_in);
                if let (Some(mark), Some(line)) = (mark, Line::read(&record)) {
                    let revision = record.revision;
                    lines.push(Said {
                        mark,
                        revision,
                        line,
                    });
                }
                ControlFlow::Continue(())
            })
        })?;
        Ok(lines)
    }
}

/// A line, and whose it is.
#[derive(Debug)]
struct Said {
    /// Of the server's folder.
    mark: u32,
    /// Of the record: later ones have higher ones, whatever the servers' clocks say.
    revision: u64,
    line: Line,
}

impl Said {
    /// Whether another has said later that it is reached there: that one listens now, as where a server got a new
    /// folder.
    fn is_replaced(&self, lines: &[Self]) -> bool {
        let is_later = |other: &Self| other.revision > self.revision;
        lines
            .iter()
            .any(|other| is_later(other) && other.line.address == self.line.address)
    }

    fn holder(&self) -> Holder {
        Holder::At {
            address: self.line.address.clone(),
            mark: text_of(self.mark),
        }
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
        self.is_silent(GONE_S, now)
    }

    /// Whether it has said nothing for longer than so many seconds.
    fn is_silent(&self, seconds: i64, now: i64) -> bool {
        self.last.saturating_add(seconds) < now
    }
}

fn key(mark: u32) -> [u8; 8] {
    let text = text_of(mark);
    text.as_bytes().first_chunk().copied().unwrap_or_default()
}

fn text_of(mark: u32) -> String {
    format!("{mark:08x}")
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

    fn at(folders: &Folders, address: &str) -> Holder {
        Holder::At {
            address: address.to_owned(),
            mark: folders.mark(),
        }
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
                assert_eq!(holder, at(&two, "2:2"));
                let later = other.holder(&id, NOW + GONE_S + 1).unwrap();
                assert_eq!(later, Holder::Gone);
                assert!(other.others(NOW + GONE_S + 5, 5).unwrap().have(&id));
            }
            assert!(!two.others(NOW, 5).unwrap().have(&id));
            assert!(id.as_str().starts_with(&two.mark()));
        }
        assert_ne!(upload(&two, 1), upload(&two, 2));
        // One from before names had marks is wherever its file is, which no name says.
        let old = UploadId::from_bits(u128::MAX / 3);
        for folders in [&one, &two, &three] {
            assert_eq!(folders.holder(&old, NOW).unwrap(), Holder::Unknown);
        }
    }

    #[test]
    fn a_server_with_a_new_folder_passes_nothing_on_to_itself() {
        let [old, new, other] = three();
        for (folders, address) in [(&old, "1:1"), (&other, "3:3"), (&new, "1:1")] {
            assert_eq!(folders.note(address, NOW).unwrap(), None);
        }
        let id = upload(&old, 7);
        for folders in [&new, &other] {
            assert_eq!(folders.holder(&id, NOW).unwrap(), Holder::Gone);
            // No other server gives it up meanwhile: the old one may be found again.
            assert!(folders.others(NOW, 0).unwrap().have(&id));
        }
        for number in 0..60 {
            let chosen = |it: &Folders| it.chosen(&format!("ada/{number}"), NOW).unwrap();
            let expected = [
                (Holder::Here, at(&new, "1:1")),
                (at(&other, "3:3"), Holder::Here),
            ];
            let both = (chosen(&new), chosen(&other));
            assert!(expected.contains(&both), "{both:?}");
        }
        // It is elsewhere.
        old.note("4:4", NOW + 1).unwrap();
        assert_eq!(new.holder(&id, NOW + 1).unwrap(), at(&old, "4:4"));
    }

    #[test]
    fn a_server_that_may_be_away_takes_nothing_new() {
        let [one, two, _] = noted();
        let id = upload(&two, 7);
        let is_taken = |now| {
            one.note("1:1", now).unwrap();
            (0..60_u32).any(|number| one.chosen(&number.to_string(), now).unwrap() != Holder::Here)
        };
        assert!(is_taken(NOW + AWAY_S));
        assert!(!is_taken(NOW + AWAY_S + 1));
        // What it has waits for it.
        let holder = one.holder(&id, NOW + AWAY_S + 1).unwrap();
        assert_eq!(holder, at(&two, "2:2"));
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
            let expected = at(&all[here], addresses[here]);
            for (asked, holder) in chosen.iter().enumerate() {
                let is_right = asked == here || *holder == expected;
                assert!(is_right, "{asked} {holder:?}");
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
        let others = |later| one.others(NOW + GONE_S + later, 7).unwrap();
        assert!(others(7).have(&id) && !others(7).had(&id));
        assert!(!others(8).have(&id) && others(8).had(&id));
        one.forget(NOW + 1).unwrap();
        assert!(!others(7).have(&id) && !others(8).had(&id));
        assert_eq!(one.lines().unwrap().len(), 1);
        let copy = one.clone();
        let other = copy.note("9:9", NOW + 20).unwrap();
        assert_eq!(other.as_deref(), Some("1:1"));
        assert_eq!(copy.note("9:9", NOW + 21).unwrap(), None);
        assert_eq!(copy.note("8:8", NOW + 22 + GONE_S).unwrap(), None);
    }
}
