//! A reader's view: the cache until the first miss, then the engine's snapshot.

use std::cell::{Cell, OnceCell, RefCell};
use std::ops::ControlFlow;

use bytes::Bytes;

use super::part::{Part, behind};
use super::{Cache, Found, GroupNumber, Home, LONGEST_BYTES};
use crate::{Engine, Record, Snapshot, StoreError, Walk};

/// The maximum number of records of one scan that are cached.
const MOST_RECORDS: usize = 512;

/// One consistent state of all records.
pub(crate) struct Remembered<'a> {
    cache: &'a Cache,
    engine: &'a dyn Engine,
    /// The latest group that cached data may show.
    at: Cell<GroupNumber>,
    /// The partitions whose cached data was read.
    read: RefCell<Vec<Home>>,
    below: OnceCell<Below<'a>>,
    is_torn: Cell<bool>,
}

/// The engine's snapshot.
struct Below<'a> {
    snapshot: Box<dyn Snapshot + 'a>,
    /// The last group published before the snapshot began.
    began: GroupNumber,
    /// True once something was read from it: the first read takes the snapshot.
    is_taken: Cell<bool>,
}

impl<'a> Remembered<'a> {
    pub(crate) fn new(cache: &'a Cache, engine: &'a dyn Engine) -> Self {
        Self {
            cache,
            engine,
            at: Cell::new(cache.published()),
            read: RefCell::default(),
            below: OnceCell::new(),
            is_torn: Cell::new(false),
        }
    }

    /// Returns true if the reads are not of one state and must be repeated.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn.get()
    }

    /// Counts the read when it is complete.
    pub(crate) fn count(&self) {
        self.cache.count(self.below.get().is_none());
    }

    /// Looks up the cache; `None` if the engine must be read.
    fn remembered<T>(&self, partition: &str, read: impl Fn(&Part) -> Option<T>) -> Option<T> {
        if self.below.get().is_some() {
            return None;
        }
        let mut found = self.cache.look(partition, self.at.get(), &read);
        if matches!(found, Found::Later) && self.read.borrow().is_empty() {
            // Nothing was read yet, so the reader may move to a later group.
            self.at.set(self.cache.published());
            found = self.cache.look(partition, self.at.get(), &read);
        }
        match found {
            Found::Known(found) => {
                self.read.borrow_mut().push(self.cache.home(partition));
                Some(found)
            }
            Found::Unknown | Found::Later => None,
        }
    }

    /// The engine's snapshot, which serves all further reads.
    fn below(&self) -> Result<&Below<'a>, StoreError> {
        if let Some(below) = self.below.get() {
            return Ok(below);
        }
        let began = self.cache.published();
        let below = Below {
            snapshot: self.engine.snapshot()?,
            began,
            is_taken: Cell::new(false),
        };
        Ok(self.below.get_or_init(|| below))
    }

    /// Called after a read from the engine: earlier cached reads must still be valid in its state.
    fn taken(&self, below: &Below<'_>) {
        if below.is_taken.replace(true) {
            return;
        }
        let (read, at) = (self.read.borrow(), self.at.get());
        if read
            .iter()
            .any(|home| self.cache.is_marked_since(*home, at))
        {
            self.is_torn.set(true);
        }
    }

    fn is_to_be_kept(&self, key: &[u8]) -> bool {
        key.starts_with(self.cache.prefix)
    }

    /// Scans the engine and caches the result.
    fn scan_below(
        &self,
        partition: &str,
        (from, to): (&[u8], &[u8]),
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let below = self.below()?;
        let (mut seen, mut is_broken) = (Some(Vec::new()), false);
        let scanned = below
            .snapshot
            .scan(partition, from, Some(to), limit, &mut |key, record| {
                note(&mut seen, key, &record);
                let flow = visit(key, record);
                is_broken = flow.is_break();
                flow
            });
        self.taken(below);
        scanned?;
        let Some(seen) = seen.filter(|_| !is_broken && limit > 0) else {
            return Ok(());
        };
        // A scan that reached its limit knows the range up to and including its last record.
        let last = seen.last().filter(|_| seen.len() >= limit);
        let to = last.map_or_else(|| Bytes::copy_from_slice(to), |(key, _)| behind(key));
        self.cache
            .fill(partition, below.began, (from, &to[..]), seen);
        Ok(())
    }
}

/// Collects a record for the cache, unless there are too many or it is too long.
fn note(seen: &mut Option<Vec<(Bytes, Record)>>, key: &[u8], record: &Record) {
    let Some(list) = seen else {
        return;
    };
    if list.len() >= MOST_RECORDS || record.value.len() > LONGEST_BYTES {
        *seen = None;
        return;
    }
    list.push((Bytes::copy_from_slice(key), record.clone()));
}

impl Snapshot for Remembered<'_> {
    fn get(&self, partition: &str, key: &[u8]) -> Result<Option<Record>, StoreError> {
        if !self.is_to_be_kept(key) {
            let below = self.below()?;
            let found = below.snapshot.get(partition, key);
            self.taken(below);
            return found;
        }
        if let Some(found) = self.remembered(partition, |part| part.get(key)) {
            return Ok(found);
        }
        let below = self.below()?;
        let found = below.snapshot.get(partition, key);
        self.taken(below);
        let found = found?;
        if found
            .as_ref()
            .is_none_or(|it| it.value.len() <= LONGEST_BYTES)
        {
            let records = found.iter().cloned();
            let records = records
                .map(|it| (Bytes::copy_from_slice(key), it))
                .collect();
            let behind = behind(key);
            let span = (key, &behind[..]);
            self.cache.fill(partition, below.began, span, records);
        }
        Ok(found)
    }

    fn scan(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        // The first key after all keys with the prefix doesn't have the prefix, but is a valid end.
        let Some(to) = to
            .filter(|_| self.is_to_be_kept(from))
            .filter(|to| self.ends_within(to))
        else {
            let below = self.below()?;
            let scanned = below.snapshot.scan(partition, from, to, limit, visit);
            self.taken(below);
            return scanned;
        };
        let found = self.remembered(partition, |part| part.range(from, to, limit));
        let Some(found) = found else {
            return self.scan_below(partition, (from, to), limit, visit);
        };
        for (key, record) in found {
            if visit(&key, record).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn measure(
        &self,
        partition: &str,
        from: &[u8],
        to: Option<&[u8]>,
        limit: usize,
        tell: &mut dyn FnMut(&[u8], u64) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let below = self.below()?;
        let measured = below.snapshot.measure(partition, from, to, limit, tell);
        self.taken(below);
        measured
    }

    fn walk(
        &self,
        after: Option<(&str, &[u8])>,
        limit: usize,
        visit: Walk<'_>,
    ) -> Result<(), StoreError> {
        let below = self.below()?;
        let walked = below.snapshot.walk(after, limit, visit);
        self.taken(below);
        walked
    }
}

impl Remembered<'_> {
    /// Returns true if all keys from one with the prefix up to this one have the prefix.
    fn ends_within(&self, to: &[u8]) -> bool {
        let prefix = self.cache.prefix;
        let Some((last, before)) = prefix.split_last() else {
            return true;
        };
        let after = [before, &[last.saturating_add(1)]].concat();
        to <= &after[..]
    }
}
