//! One document per registration, as in LS2: a query reads them all.

use std::ops::ControlFlow;

use groupware_store::{Batch, Record, Snapshot, StoreError};

use super::Amount;
use super::keep::{Budget, Change, Keep, Visit};
use super::tally::{Sums, Tally};
use crate::query::{LookupQuery, Path};
use crate::registration::{Content, Head, Registration};
use crate::{Id, LookupError};

const PARTITION: &str = "$lookup/documents";
/// The sums of registrations.
const SUMS: Sums = Sums {
    partition: PARTITION,
    key: b"n",
};
/// The id follows it.
const DOCUMENT: u8 = b'd';
/// The number of documents per read.
const CHUNK: usize = 16;
/// The maximum number of expired registrations that one sweep removes.
const SWEPT: usize = 64;

pub(super) struct Documents;

impl Keep for Documents {
    fn held(&self, snapshot: &dyn Snapshot, owner: Option<&str>) -> Result<Amount, LookupError> {
        SUMS.of(snapshot, owner)
    }

    fn head(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Head>, LookupError> {
        let found = snapshot.get(PARTITION, &key(id))?;
        found
            .map(|found| Head::decode(&mut &found.value[..]))
            .transpose()
    }

    fn get(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Registration>, LookupError> {
        let found = snapshot.get(PARTITION, &key(id))?;
        found.map(|found| decode(id, &found.value)).transpose()
    }

    fn same(
        &self,
        snapshot: &dyn Snapshot,
        fingerprint: [u8; 16],
    ) -> Result<Option<(Id, Head)>, LookupError> {
        let mut same = None;
        each(snapshot, &mut |id, document| {
            let head = Head::decode(&mut &document.value[..])?;
            if head.fingerprint == Some(fingerprint) {
                same = Some((id, head));
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(same)
    }

    fn candidates(
        &self,
        snapshot: &dyn Snapshot,
        query: &LookupQuery,
        visit: &mut Visit<'_>,
    ) -> Result<(), LookupError> {
        // Only an id leads directly to a document.
        if let Some([Path::Name(id)]) = query.paths(|_| false).as_deref() {
            if let Some(found) = self.get(snapshot, *id)? {
                let _ = visit(found);
            }
            return Ok(());
        }
        let mut budget = Budget::of(query);
        each(snapshot, &mut |id, document| {
            budget.spend(1, document.value.len())?;
            Ok(visit(decode(id, &document.value)?))
        })
    }

    fn change(&self, snapshot: &dyn Snapshot, changes: &[Change]) -> Result<Batch, LookupError> {
        let mut batch = Batch::new();
        let mut tally = Tally::default();
        for change in changes {
            let key = key(change.id());
            let found = snapshot.get(PARTITION, &key)?;
            match &found {
                Some(found) => batch.assert_revision(PARTITION, key.clone(), found.revision),
                None => batch.assert_absent(PARTITION, key.clone()),
            };
            match (change, &found) {
                (Change::Put(new), _) => {
                    tally.comes(&new.head);
                    if let Some(found) = &found {
                        tally.goes(&Head::decode(&mut &found.value[..])?);
                    }
                    batch.put(PARTITION, key, encode(&new.head, &new.content));
                }
                (Change::Renew(id, head), Some(found)) => {
                    let old = decode(*id, &found.value)?;
                    batch.put(PARTITION, key, encode(head, &old.content));
                }
                (Change::Remove(_), Some(found)) => {
                    tally.goes(&Head::decode(&mut &found.value[..])?);
                    batch.delete(PARTITION, key);
                }
                (Change::Renew(..) | Change::Remove(_), None) => {}
            }
        }
        tally.write(SUMS, &mut batch);
        Ok(batch)
    }

    /// Reads every document: this layout has no index of expired ones.
    fn sweep(&self, snapshot: &dyn Snapshot, now: i64) -> Result<Option<Batch>, LookupError> {
        let mut ended = Vec::new();
        each(snapshot, &mut |id, document| {
            if !Head::decode(&mut &document.value[..])?
                .lease
                .is_renewable(now)
            {
                ended.push(Change::Remove(id));
            }
            Ok(match ended.len() {
                SWEPT.. => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            })
        })?;
        match ended.is_empty() {
            true => Ok(None),
            false => self.change(snapshot, &ended).map(Some),
        }
    }
}

/// Called with each document.
type Each<'a> = dyn FnMut(Id, &Record) -> Result<ControlFlow<()>, LookupError> + 'a;

/// Visits the documents in small reads, so that only few are in memory at once.
fn each(snapshot: &dyn Snapshot, visit: &mut Each<'_>) -> Result<(), LookupError> {
    let mut from = vec![DOCUMENT];
    loop {
        let mut chunk = Vec::with_capacity(CHUNK);
        let read: Result<(), StoreError> = snapshot.scan(
            PARTITION,
            &from,
            Some(&[DOCUMENT + 1]),
            CHUNK,
            &mut |key, record| {
                chunk.push((key.to_vec(), record));
                ControlFlow::Continue(())
            },
        );
        read?;
        for (key, document) in &chunk {
            let id = key.get(1..).and_then(|id| id.try_into().ok());
            let id = Id::from_bytes(id.ok_or(LookupError::Corrupt)?);
            if visit(id, document)?.is_break() {
                return Ok(());
            }
        }
        match chunk.pop() {
            Some((last, _)) if chunk.len() + 1 == CHUNK => {
                from = last;
                from.push(0);
            }
            _ => return Ok(()),
        }
    }
}

fn key(id: Id) -> Vec<u8> {
    [&[DOCUMENT][..], &id.to_bytes()].concat()
}

fn encode(head: &Head, content: &Content) -> Vec<u8> {
    let mut out = Vec::new();
    head.encode(&mut out);
    content.encode(&mut out);
    out
}

fn decode(id: Id, mut input: &[u8]) -> Result<Registration, LookupError> {
    let head = Head::decode(&mut input)?;
    let content = Content::decode(&mut input)?;
    Ok(Registration { id, head, content })
}
