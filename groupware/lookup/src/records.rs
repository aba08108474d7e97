//! The operations of the simple lookup service: register, renew, delete, get, query; single and in bulk.

use std::collections::HashSet;
use std::ops::ControlFlow;

use groupware_store::Snapshot;
use serde::Deserialize;

use crate::context::{Context, Decision};
use crate::layout::Change;
use crate::limits::{BULK, RESULT_BYTES};
use crate::query::Effort;
use crate::record::{NewRecord, Values, not_json};
use crate::registration::{Content, Registration, State};
use crate::render;
use crate::{Id, Layout, Lease, LookupError, LookupQuery, Reason, lease};

/// Registers a record; returns the record with its URI, state, and lease.
///
/// # Errors
/// 403 if the same record is registered, and its lease has not ended.
pub fn register(context: &Context<'_>, new: NewRecord) -> Result<Decision<Vec<u8>>, LookupError> {
    let registration = admit(context, 0, new)?;
    let reply = render::record(&registration);
    context.decide(&[Change::Put(Box::new(registration))], reply)
}

/// Registers the valid ones of several records in one batch; returns the result of each.
///
/// # Errors
/// If there is no room.
pub fn register_bulk(
    context: &Context<'_>,
    all: Vec<Result<NewRecord, LookupError>>,
) -> Result<Decision<Vec<u8>>, LookupError> {
    let (mut changes, mut outcomes) = (Vec::new(), Vec::new());
    let mut prints = HashSet::new();
    for (number, new) in all.into_iter().enumerate() {
        let admitted = new.and_then(|new| {
            let admitted = admit(context, number, new)?;
            match prints.insert(admitted.head.fingerprint) {
                true => Ok(admitted),
                false => Err(duplicate()),
            }
        });
        match admitted {
            Ok(registration) => {
                outcomes.push(Ok(registration.uri()));
                changes.push(Change::Put(Box::new(registration)));
            }
            Err(error) if error.reason().is_some() => outcomes.push(Err(error)),
            Err(error) => return Err(error),
        }
    }
    context.decide(&changes, render::bulk_registered(&outcomes))
}

fn duplicate() -> LookupError {
    LookupError::refused(Reason::Duplicate, "Record already exists")
}

fn admit(
    context: &Context<'_>,
    number: usize,
    new: NewRecord,
) -> Result<Registration, LookupError> {
    let bits = context.bits(number);
    let content = Content {
        record: new.record,
        xml: None,
    };
    let made = context.registration((Id::from_random(bits), bits), content, new.asked_ttl_s);
    if let Some(fingerprint) = made.head.fingerprint
        && let Some((_, head)) = context.keep().same(context.snapshot, fingerprint)?
        && head.lease.is_valid(context.now)
    {
        return Err(duplicate());
    }
    Ok(made)
}

/// Returns the registration at a path, expired or not.
fn find(context: &Context<'_>, kind: &str, id: &str) -> Result<Registration, LookupError> {
    let id = Id::parse(id).ok_or_else(LookupError::not_found)?;
    let found = context.keep().get(context.snapshot, id)?;
    found
        .filter(|found| found.head.kind == kind)
        .ok_or_else(LookupError::not_found)
}

/// Returns the approximate size of a record, expired or not; 0 if it is missing, or its size isn't stored.
///
/// # Errors
/// If the store fails.
pub fn size(snapshot: &dyn Snapshot, layout: Layout, id: &str) -> Result<u64, LookupError> {
    match Id::parse(id) {
        Some(id) => layout.keep().size(snapshot, id),
        None => Ok(0),
    }
}

/// Returns the record, with its URI, state, and lease.
///
/// # Errors
/// 404 if it is missing, or its lease has ended.
pub fn get(context: &Context<'_>, kind: &str, id: &str) -> Result<Vec<u8>, LookupError> {
    let found = find(context, kind, id)?;
    match found.head.lease.is_valid(context.now) {
        true => Ok(render::record(&found)),
        false => Err(LookupError::not_found()),
    }
}

/// Returns one key of the record.
///
/// # Errors
/// 404 if the record or key is missing.
pub fn get_key(
    context: &Context<'_>,
    (kind, id, key): (&str, &str, &str),
) -> Result<Vec<u8>, LookupError> {
    let found = find(context, kind, id)?;
    if !found.head.lease.is_valid(context.now) {
        return Err(LookupError::not_found());
    }
    render::key(&found, key)
        .ok_or_else(|| LookupError::refused(Reason::NotFound, "The record has no such key."))
}

/// Parses the body of a renewal, which may be empty; returns the requested lease.
///
/// # Errors
/// If it isn't an object, or the lease is invalid.
pub fn parse_renewal(body: &[u8]) -> Result<Option<i64>, LookupError> {
    #[derive(Deserialize)]
    struct Renewal {
        ttl: Option<Values>,
    }
    if body.trim_ascii().is_empty() {
        return Ok(None);
    }
    let renewal: Renewal = serde_json::from_slice(body).map_err(|error| not_json(&error))?;
    asked(renewal.ttl)
}

fn asked(ttl: Option<Values>) -> Result<Option<i64>, LookupError> {
    match ttl.map(|Values(values)| values).as_deref() {
        None | Some([]) => Ok(None),
        Some([ttl]) => lease::asked_s(ttl),
        Some(_) => Err(LookupError::bad("A record has one ttl.")),
    }
}

/// Renews the lease of a record; returns the record.
///
/// # Errors
/// 404 if it is missing; 403 if it ended too long ago or belongs to another principal.
pub fn renew(
    context: &Context<'_>,
    (kind, id): (&str, &str),
    asked_ttl_s: Option<i64>,
) -> Result<Decision<Vec<u8>>, LookupError> {
    let mut found = find(context, kind, id)?;
    relet(context, &mut found.head, asked_ttl_s)?;
    let reply = render::record(&found);
    context.decide(&[Change::Renew(found.id, found.head)], reply)
}

pub(crate) fn relet(
    context: &Context<'_>,
    head: &mut crate::registration::Head,
    asked_ttl_s: Option<i64>,
) -> Result<(), LookupError> {
    context.may_change(head)?;
    if !head.lease.is_renewable(context.now) {
        let message = "Failed to secure lease for the renewal record: it has expired.";
        return Err(LookupError::refused(Reason::Lease, message));
    }
    head.lease = Lease::grant(asked_ttl_s, context.now);
    head.state = State::Renewed;
    Ok(())
}

/// A bulk renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRenewal {
    uris: Vec<String>,
    asked_ttl_s: Option<i64>,
}

impl BulkRenewal {
    /// Parses its body: `{"record-uris": […], "ttl": "PT…"}`.
    ///
    /// # Errors
    /// If it is invalid, or names too many records.
    pub fn parse(body: &[u8]) -> Result<Self, LookupError> {
        #[derive(Deserialize)]
        struct Raw {
            #[serde(rename = "record-uris")]
            uris: Values,
            ttl: Option<Values>,
        }
        if body.trim_ascii().is_empty() {
            return Err(LookupError::bad("Request cannot be empty."));
        }
        let raw: Raw = serde_json::from_slice(body).map_err(|error| not_json(&error))?;
        let Values(uris) = raw.uris;
        if uris.len() > BULK {
            return Err(LookupError::bad(format!(
                "A bulk renewal names at most {BULK} records."
            )));
        }
        Ok(Self {
            uris,
            asked_ttl_s: asked(raw.ttl)?,
        })
    }
}

/// Renews the renewable ones of several records in one batch; returns the result of each.
///
/// # Errors
/// If the store fails.
pub fn renew_bulk(
    context: &Context<'_>,
    renewal: &BulkRenewal,
) -> Result<Decision<Vec<u8>>, LookupError> {
    let (mut changes, mut outcomes) = (Vec::new(), Vec::new());
    let mut seen = HashSet::new();
    for uri in &renewal.uris {
        match renew_one(context, uri, renewal.asked_ttl_s) {
            Ok((id, head)) => {
                outcomes.push((uri.as_str(), Ok(())));
                if seen.insert(id) {
                    changes.push(Change::Renew(id, head));
                }
            }
            Err(error) if error.reason().is_some() => outcomes.push((uri, Err(error))),
            Err(error) => return Err(error),
        }
    }
    context.decide(&changes, render::bulk_renewed(&outcomes))
}

fn renew_one(
    context: &Context<'_>,
    uri: &str,
    asked_ttl_s: Option<i64>,
) -> Result<(Id, crate::registration::Head), LookupError> {
    let mut parts = uri.trim_start_matches('/').split('/');
    let (Some("lookup"), Some(kind), Some(id), None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(LookupError::not_found());
    };
    let id = Id::parse(id).ok_or_else(LookupError::not_found)?;
    let head = context.keep().head(context.snapshot, id)?;
    let mut head = head
        .filter(|head| head.kind == kind)
        .ok_or_else(LookupError::not_found)?;
    relet(context, &mut head, asked_ttl_s)?;
    Ok((id, head))
}

/// Deletes a record; returns the record as it was.
///
/// # Errors
/// 404 if it is missing; 403 if it belongs to another principal.
pub fn delete(
    context: &Context<'_>,
    kind: &str,
    id: &str,
) -> Result<Decision<Vec<u8>>, LookupError> {
    let found = find(context, kind, id)?;
    context.may_change(&found.head)?;
    let reply = render::deleted(&found);
    context.decide(&[Change::Remove(found.id)], reply)
}

/// A page of results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    /// A list of records.
    pub body: Vec<u8>,
    /// The start of the next page, if this one was truncated.
    pub next: Option<usize>,
}

/// Returns the valid registrations that match a query.
///
/// # Errors
/// 503 if it would have to read too much.
pub fn query(
    snapshot: &dyn Snapshot,
    layout: Layout,
    query: &LookupQuery,
    now: i64,
) -> Result<Results, LookupError> {
    let mut body = vec![b'['];
    let (mut found, mut next) = (0_usize, None);
    let mut effort = Effort::of(query);
    layout
        .keep()
        .candidates(snapshot, query, &mut |candidate| {
            let is_valid = candidate.head.lease.is_valid(now);
            if !is_valid || !query.matches(&candidate, &mut effort) {
                return match effort.is_spent() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                };
            }
            found += 1;
            if found <= query.skip {
                return ControlFlow::Continue(());
            }
            if found > query.skip.saturating_add(query.max_results) || body.len() > RESULT_BYTES {
                next = Some(found - 1);
                return ControlFlow::Break(());
            }
            if body.len() > 1 {
                body.push(b',');
            }
            render::write_record(&candidate, None, &mut body);
            ControlFlow::Continue(())
        })?;
    if effort.is_spent() {
        return Err(LookupError::too_wide());
    }
    body.push(b']');
    Ok(Results { body, next })
}
