//! Everything in one document, as in LS1: every change rewrites it, every query reads it.

use std::collections::HashMap;
use std::ops::ControlFlow;

use groupware_store::{Batch, MAX_BATCH_BYTES, Record, Snapshot};

use super::Amount;
use super::keep::{Change, Keep, Visit};
use crate::query::LookupQuery;
use crate::registration::{Content, Head, Registration, take};
use crate::{Id, LookupError, Reason};

const PARTITION: &str = "$lookup/single";
const DOCUMENT: &[u8] = b"document";
/// The store's maximum batch, less its keys.
const MAX_DOCUMENT_BYTES: usize = MAX_BATCH_BYTES - 1024;

pub(super) struct SingleDocument;

/// A registration's part of the document: id, length, content.
struct Part<'a> {
    id: Id,
    /// Head and content.
    body: &'a [u8],
}

impl Keep for SingleDocument {
    fn held(&self, snapshot: &dyn Snapshot, owner: Option<&str>) -> Result<Amount, LookupError> {
        let document = read(snapshot)?;
        let mut held = Amount::default();
        for part in parts(&document)? {
            let head = Head::decode(&mut &part.body[..])?;
            if owner.is_none() || head.owner.as_deref() == owner {
                held.add(1, i64::from(head.bytes));
            }
        }
        Ok(held)
    }

    fn head(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Head>, LookupError> {
        let document = read(snapshot)?;
        let part = parts(&document)?.into_iter().find(|part| part.id == id);
        part.map(|part| Head::decode(&mut &part.body[..]))
            .transpose()
    }

    fn get(&self, snapshot: &dyn Snapshot, id: Id) -> Result<Option<Registration>, LookupError> {
        let document = read(snapshot)?;
        let part = parts(&document)?.into_iter().find(|part| part.id == id);
        part.map(|part| part.decode()).transpose()
    }

    fn same(
        &self,
        snapshot: &dyn Snapshot,
        fingerprint: [u8; 16],
    ) -> Result<Option<(Id, Head)>, LookupError> {
        let document = read(snapshot)?;
        for part in parts(&document)? {
            let head = Head::decode(&mut &part.body[..])?;
            if head.fingerprint == Some(fingerprint) {
                return Ok(Some((part.id, head)));
            }
        }
        Ok(None)
    }

    fn candidates(
        &self,
        snapshot: &dyn Snapshot,
        _: &LookupQuery,
        visit: &mut Visit<'_>,
    ) -> Result<(), LookupError> {
        let document = read(snapshot)?;
        for part in parts(&document)? {
            if visit(part.decode()?) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn change(&self, snapshot: &dyn Snapshot, changes: &[Change]) -> Result<Batch, LookupError> {
        let document = read(snapshot)?;
        let mut by_id: HashMap<Id, &Change> =
            changes.iter().map(|change| (change.id(), change)).collect();
        let mut out = Vec::with_capacity(document.as_ref().map_or(0, |old| old.value.len()));
        for part in parts(&document)? {
            match by_id.remove(&part.id) {
                None => put_part(&mut out, part.id, |out| out.extend_from_slice(part.body)),
                Some(Change::Put(new)) => put(&mut out, new),
                Some(Change::Renew(_, head)) => {
                    let content = part.decode()?.content;
                    let id = part.id;
                    put(
                        &mut out,
                        &Registration {
                            id,
                            head: head.clone(),
                            content,
                        },
                    );
                }
                Some(Change::Remove(_)) => {}
            }
        }
        // In the order of the changes: the same changes give the same document.
        for change in changes {
            if let (Some(_), Change::Put(new)) = (by_id.get(&change.id()), change) {
                put(&mut out, new);
            }
        }
        if out.len() > MAX_DOCUMENT_BYTES {
            let most = MAX_BATCH_BYTES >> 20;
            let message = format!(
                "The single document is full: it would have {} MB, and {most} is the most that it \
                 can hold. Remove registrations, or use another layout.",
                out.len().div_ceil(1 << 20)
            );
            return Err(LookupError::refused(Reason::Full, message));
        }
        let mut batch = Batch::new();
        match document {
            Some(old) => batch.assert_revision(PARTITION, DOCUMENT, old.revision),
            None => batch.assert_absent(PARTITION, DOCUMENT),
        };
        batch.put(PARTITION, DOCUMENT, out);
        Ok(batch)
    }

    fn sweep(&self, snapshot: &dyn Snapshot, now: i64) -> Result<Option<Batch>, LookupError> {
        let document = read(snapshot)?;
        let mut ended = Vec::new();
        for part in parts(&document)? {
            if !Head::decode(&mut &part.body[..])?.lease.is_renewable(now) {
                ended.push(Change::Remove(part.id));
            }
        }
        match ended.is_empty() {
            true => Ok(None),
            false => self.change(snapshot, &ended).map(Some),
        }
    }
}

impl Part<'_> {
    fn decode(&self) -> Result<Registration, LookupError> {
        let mut input = self.body;
        let head = Head::decode(&mut input)?;
        let content = Content::decode(&mut input)?;
        let id = self.id;
        Ok(Registration { id, head, content })
    }
}

fn read(snapshot: &dyn Snapshot) -> Result<Option<Record>, LookupError> {
    Ok(snapshot.get(PARTITION, DOCUMENT)?)
}

fn parts(document: &Option<Record>) -> Result<Vec<Part<'_>>, LookupError> {
    let mut input = document
        .as_ref()
        .map_or(&[][..], |document| &document.value[..]);
    let mut parts = Vec::new();
    while !input.is_empty() {
        let id = Id::from_bytes(take(&mut input)?);
        let length = u32::from_le_bytes(take(&mut input)?) as usize;
        let (body, rest) = input.split_at_checked(length).ok_or(LookupError::Corrupt)?;
        parts.push(Part { id, body });
        input = rest;
    }
    Ok(parts)
}

fn put(out: &mut Vec<u8>, registration: &Registration) {
    put_part(out, registration.id, |out| {
        registration.head.encode(out);
        registration.content.encode(out);
    });
}

fn put_part(out: &mut Vec<u8>, id: Id, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend(id.to_bytes());
    let length_at = out.len();
    out.extend([0; 4]);
    write(out);
    let length = out.len() - length_at - 4;
    let length = u32::try_from(length).expect("a registration is far smaller than 4 GB");
    out[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
}
