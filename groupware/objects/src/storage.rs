//! Stores content in objects and reads it; the records map content to objects.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use groupware_content::{ContentError, ContentHash, ObjectId, Objects, Placed, ReadAt, Segments};
use groupware_documents::begin_object;
use groupware_store::Store;

use crate::bucket::Bucket;
use crate::index::{Index, folder, name, named};
use crate::reading::Reading;
use crate::{Address, Credentials, OpenError, Stats, clock, place};

/// Larger content is put in parts of this size: all stores accept parts of 5 MiB and more, and 10,000 of them.
const PART_BYTES: u64 = 8 << 20;
const PART: usize = PART_BYTES as usize;
/// The folder of the segments of uploads in progress.
const SEGMENTS: &str = "uploads";
/// The maximum age of an outcome that still describes the store's health.
const FRESH: Duration = Duration::from_secs(2);

/// The content of one store of records, in an object store.
#[derive(Debug, Clone)]
pub struct ObjectStorage {
    index: Index,
    bits: fn() -> u128,
}

impl ObjectStorage {
    /// Opens the place in an object store that has the content of these records; a new place must be empty. New names
    /// are made from random bits.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        store: &Store,
        (address, credentials): (&Address, &Credentials),
        bits: fn() -> u128,
    ) -> Result<Arc<Self>, OpenError> {
        let bucket = Bucket::new(address, credentials)?;
        place::check(store, (&bucket, address), bits)?;
        let index = Index {
            bucket: Arc::new(bucket),
            store: store.clone(),
        };
        Ok(Arc::new(Self { index, bits }))
    }

    /// The object store's own name; empty if it has none.
    pub fn server(&self) -> &str {
        self.index.bucket.server.get().map_or("", String::as_str)
    }

    /// Returns true if the object store responds: it did recently, or does now.
    pub fn is_there(&self) -> bool {
        match self.index.bucket.condition.last() {
            Some((ago, is_away)) if ago < FRESH => !is_away,
            _ => self.index.bucket.size(place::NAME).is_ok(),
        }
    }

    /// The counters since it was opened.
    pub fn stats(&self) -> Stats {
        self.index.bucket.condition.stats()
    }

    /// Returns true if a complete object with this content exists.
    fn has(&self, hash: ContentHash, bytes: u64) -> Result<bool, ContentError> {
        let Some(known) = self.index.find(hash)? else {
            return Ok(false);
        };
        let size = self.index.bucket.size(&name(hash, known.id))?;
        Ok(size == Some(bytes))
    }

    fn put_in_parts(
        &self,
        (hash, id): (ContentHash, ObjectId),
        file: &File,
        bytes: u64,
    ) -> Result<(), ContentError> {
        let name = name(hash, id);
        let upload = self.index.bucket.begin_parts(&name)?;
        // The sweep can abort the upload, whenever this call ends. An upload that isn't recorded has no parts yet.
        self.index.commit(begin_object(
            (hash, id),
            clock::unix_seconds(),
            Some(&upload),
        ))?;
        let mut parts = Vec::new();
        let mut at = 0;
        while at < bytes {
            let part = read(file, at, (bytes - at).min(PART_BYTES))?;
            at += part.len() as u64;
            let to = (&*name, &*upload);
            parts.push(self.index.bucket.put_part(to, parts.len(), part)?);
        }
        self.index.bucket.end_parts((&name, &upload), parts, bytes)
    }
}

impl Objects for ObjectStorage {
    /// The record is first: an object without one belongs to no content.
    fn put(&self, hash: ContentHash, file: &File, bytes: u64) -> Result<Placed, ContentError> {
        if self.has(hash, bytes)? {
            return Ok(Placed::Known);
        }
        let id = ObjectId::from_bits((self.bits)());
        let _turn = self.index.bucket.turn()?;
        if bytes > PART_BYTES {
            self.put_in_parts((hash, id), file, bytes)?;
        } else {
            self.index
                .commit(begin_object((hash, id), clock::unix_seconds(), None))?;
            self.index
                .bucket
                .put(&name(hash, id), read(file, 0, bytes)?)?;
        }
        Ok(Placed::New(id))
    }

    fn read(
        &self,
        hash: ContentHash,
        (at, bytes): (u64, u64),
    ) -> Result<Option<Box<dyn ReadAt>>, ContentError> {
        match self.index.find(hash)? {
            None => Ok(None),
            Some(_) => {
                let reading = Reading::begin(self.index.clone(), hash, (at, bytes))?;
                Ok(Some(Box::new(reading)))
            }
        }
    }

    fn remove(
        &self,
        hash: ContentHash,
        id: ObjectId,
        parts: Option<&str>,
    ) -> Result<(), ContentError> {
        self.index.bucket.remove(&name(hash, id), parts)
    }

    fn list(&self, first: u8) -> Result<Vec<(ContentHash, ObjectId)>, ContentError> {
        let names = self.index.bucket.list(&folder(first))?;
        // Objects with other names are not ours, and are left alone.
        Ok(names.iter().filter_map(|name| named(name)).collect())
    }
}

impl Segments for ObjectStorage {
    fn put(
        &self,
        name: &str,
        read: &dyn Fn() -> Result<Vec<u8>, ContentError>,
    ) -> Result<(), ContentError> {
        let _turn = self.index.bucket.turn()?;
        self.index.bucket.put(&segment(name), read()?)
    }

    fn read(
        &self,
        name: &str,
        span: Range<u64>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), ContentError>,
    ) -> Result<(), ContentError> {
        if span.is_empty() {
            return Ok(());
        }
        let mut left = span.end - span.start;
        let mut stream = self.index.bucket.open(&segment(name), span)?;
        while left > 0 {
            let ended = || ContentError::Away("the object ended before its end".into());
            let bytes = self.index.bucket.next(&mut stream)?.ok_or_else(ended)?;
            let too_long = || ContentError::Refused("the object has more bytes".into());
            left = left.checked_sub(bytes.len() as u64).ok_or_else(too_long)?;
            take(&bytes)?;
        }
        Ok(())
    }

    fn has(&self, name: &str) -> Result<bool, ContentError> {
        Ok(self.index.bucket.size(&segment(name))?.is_some())
    }

    fn remove(&self, name: &str) -> Result<(), ContentError> {
        self.index.bucket.remove(&segment(name), None)
    }

    fn list(&self) -> Result<Vec<String>, ContentError> {
        self.index.bucket.list(SEGMENTS)
    }
}

/// The name of a segment's object in the store.
fn segment(name: &str) -> String {
    format!("{SEGMENTS}/{name}")
}

/// Reads bytes of a file.
fn read(file: &File, at: u64, bytes: u64) -> Result<Vec<u8>, ContentError> {
    let count = usize::try_from(bytes).unwrap_or(PART).min(PART);
    let mut read = vec![0; count];
    let filled = file.read_exact_at(&mut read, at);
    filled.map_err(|source| ContentError::Io {
        path: "an upload".into(),
        source,
    })?;
    Ok(read)
}
