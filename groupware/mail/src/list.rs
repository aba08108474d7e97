//! Lists of messages. A folder's own order, from the newest on, is a range of its keys: the cost of
//! a page depends on its size, not on the folder's. Every other order, and a search, reads the
//! newest [`limits::LOOKED_AT`] messages.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use groupware_store::{PrefetchSet, Snapshot};

use crate::entry::Line;
use crate::mailbox;
use crate::numbers::{Head, State, UidCounters};
use crate::query::Sort;
use crate::{Entry, Folder, ListQuery, MailError, Unid, folders, keys, limits};

/// The number of entries that are fetched in one request where the store is remote.
const AT_ONCE: usize = 100;

/// A page of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries of the page.
    pub items: Vec<T>,
    /// The index of its first entry in the whole list, from 0.
    pub first: usize,
    /// The number of entries of the whole list.
    pub total: usize,
}

/// A message in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its object id.
    pub unid: Unid,
    /// Its entry.
    pub entry: Entry,
}

/// A page of a list as a JSON array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPage {
    /// The JSON array.
    pub body: Vec<u8>,
    /// The part of the whole list that it holds.
    pub span: Span,
}

/// The position of a page in the whole list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The number of entries of the page.
    pub items: usize,
    /// The index of its first entry in the whole list, from 0.
    pub first: usize,
    /// The number of entries of the whole list.
    pub total: usize,
}

/// Returns true if a page takes so long to find that it should run in the background pool.
///
/// # Errors
/// Errors of the store.
pub fn is_long(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    query: &ListQuery,
) -> Result<bool, MailError> {
    let most = match (query.is_plain(), query.after) {
        (true, Some(_)) => 0,
        (true, None) => query.start,
        (false, _) => limits::LOOKED_AT,
    };
    if most <= limits::LOOKED_AT_AT_ONCE {
        return Ok(false);
    }
    let messages = mailbox::counts(snapshot, mailbox, folder)?.messages;
    Ok(messages > limits::LOOKED_AT_AT_ONCE as u64)
}

/// Returns a page of a folder.
///
/// # Errors
/// A refusal if the folder is missing; errors of the store.
pub fn list(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    query: &ListQuery,
) -> Result<Page<Listed>, MailError> {
    let mut items = Vec::with_capacity(query.count.min(64));
    let span = page(snapshot, mailbox, folder, query, &mut |key, bytes| {
        items.push(Listed {
            unid: unid(key)?,
            entry: Entry::decode(key, bytes)?,
        });
        Ok(())
    })?;
    Ok(Page {
        items,
        first: span.first,
        total: span.total,
    })
}

/// Returns a page of a folder as a JSON array in Domino's form.
///
/// # Errors
/// As [`list`].
pub fn list_json(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    query: &ListQuery,
) -> Result<JsonPage, MailError> {
    // A path has no character that JSON would escape.
    let begin = format!("{{\"href\":\"{}", keys::messages_path(mailbox));
    let item_bytes = begin.len() + ITEM_BYTES;
    let mut body = Vec::with_capacity(query.count.min(64) * item_bytes);
    body.push(b'[');
    let span = page(snapshot, mailbox, folder, query, &mut |key, bytes| {
        if body.len() > 1 {
            body.push(b',');
        }
        body.extend_from_slice(begin.as_bytes());
        push_item(&mut body, key, bytes)
    })?;
    body.push(b']');
    Ok(JsonPage { body, span })
}

/// The approximate size of an item after its path's prefix, in bytes.
const ITEM_BYTES: usize = 350;

/// Appends the rest of `{"href", "uid", "modseq", "subject", "date", "from", "to", "read", "size",
/// "attachments"}` after the path of all messages, and `"answered", "flagged", "forwarded"` where
/// they are true. The middle is stored in this form, and so is the id in the key.
pub(crate) fn push_item(body: &mut Vec<u8>, key: &[u8], bytes: &[u8]) -> Result<(), MailError> {
    let line = Line::decode(key, bytes)?;
    let summary = line
        .summary
        .strip_prefix(b"{")
        .and_then(|it| it.strip_suffix(b"}"));
    let summary = summary.ok_or_else(|| MailError::corrupt(key, "no summary"))?;
    let name = keys::unid_digits(key).ok_or_else(|| MailError::corrupt(key, "no name"))?;
    for text in [name, b"\",", summary, b",\"read\":", flag(line.read)] {
        body.extend_from_slice(text);
    }
    body.extend_from_slice(b",\"size\":");
    serde_json::to_writer(&mut *body, &line.size).expect("a number serialises to memory");
    for text in [&b",\"attachments\":"[..], flag(line.attachments)] {
        body.extend_from_slice(text);
    }
    let marks = line.marks;
    for (is_set, text) in [
        (marks.answered, &b",\"answered\":true"[..]),
        (marks.flagged, b",\"flagged\":true"),
        (marks.forwarded, b",\"forwarded\":true"),
    ] {
        if is_set {
            body.extend_from_slice(text);
        }
    }
    body.push(b'}');
    Ok(())
}

fn flag(is_set: bool) -> &'static [u8] {
    if is_set { b"true" } else { b"false" }
}

pub(crate) fn unid(key: &[u8]) -> Result<Unid, MailError> {
    keys::unid_of(key).ok_or_else(|| MailError::corrupt(key, "no name"))
}

/// Receives the entries of a page, one by one.
type Take<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<(), MailError>;

fn page(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    query: &ListQuery,
    take: Take<'_>,
) -> Result<Span, MailError> {
    check_there(snapshot, mailbox, folder)?;
    match query.is_plain() {
        true => plain(snapshot, mailbox, folder, query, take),
        false => sorted(snapshot, mailbox, folder, query, take),
    }
}

/// Rejects an own folder that is missing.
pub(crate) fn check_there(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
) -> Result<(), MailError> {
    match folder {
        Folder::Own(unid) if snapshot.get(mailbox, &keys::folder(unid))?.is_none() => {
            Err(MailError::not_found("Folder", &unid.to_string()))
        }
        _ => Ok(()),
    }
}

fn plain(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    query: &ListQuery,
    take: Take<'_>,
) -> Result<Span, MailError> {
    let counts = mailbox::counts(snapshot, mailbox, folder)?;
    let total = usize::try_from(counts.messages).unwrap_or(usize::MAX);
    let mut skip = if query.after.is_some() {
        0
    } else {
        query.start
    };
    let (mut items, mut bytes) = (0, 0);
    if query.after.is_some() || query.start < total {
        let limit = skip.saturating_add(query.count);
        mailbox::scan(
            snapshot,
            mailbox,
            folder,
            query.after,
            limit,
            |key, value| {
                if skip > 0 {
                    skip -= 1;
                    return Ok(ControlFlow::Continue(()));
                }
                bytes += value.len();
                items += 1;
                take(key, value)?;
                Ok(match bytes < limits::LIST_BYTES {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            },
        )?;
    }
    Ok(Span {
        items,
        first: query.start,
        total,
    })
}

/// The sort key of a message, and the key of its entry.
struct Sortable {
    text: String,
    number: i64,
    unid: Unid,
}

fn sorted(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    query: &ListQuery,
    take: Take<'_>,
) -> Result<Span, MailError> {
    let most = query.search_max.unwrap_or(usize::MAX).max(1);
    let mut found = Vec::new();
    mailbox::scan(
        snapshot,
        mailbox,
        folder,
        None,
        limits::LOOKED_AT,
        |key, value| {
            found.extend(sortable(query, key, value)?);
            Ok(match found.len() < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        },
    )?;
    // Stable, so that equal ones stay in order from the newest to the oldest.
    found.sort_by(|a, b| {
        let order = a.number.cmp(&b.number).then_with(|| a.text.cmp(&b.text));
        match (query.sort, query.ascending) {
            // Ids of messages count time downwards.
            (Sort::Received, true) => b.unid.cmp(&a.unid),
            (Sort::Received, false) => Ordering::Equal,
            (_, true) => order,
            (_, false) => order.reverse(),
        }
    });
    let (mut items, mut bytes) = (0, 0);
    if snapshot.is_remote() {
        let mut soon = PrefetchSet::default();
        for one in found
            .iter()
            .skip(query.start)
            .take(query.count.min(AT_ONCE))
        {
            soon.key(mailbox, keys::entry(folder, one.unid));
        }
        snapshot.prefetch(&soon)?;
    }
    for one in found.iter().skip(query.start).take(query.count) {
        let key = keys::entry(folder, one.unid);
        // The same snapshot had it a moment ago.
        let Some(record) = snapshot.get(mailbox, &key)? else {
            continue;
        };
        bytes += record.value.len();
        items += 1;
        take(&key, &record.value)?;
        if bytes >= limits::LIST_BYTES {
            break;
        }
    }
    Ok(Span {
        items,
        first: query.start,
        total: found.len(),
    })
}

fn sortable(query: &ListQuery, key: &[u8], value: &[u8]) -> Result<Option<Sortable>, MailError> {
    let needs_text = query.search.is_some()
        || query.keys.is_some()
        || matches!(query.sort, Sort::Subject | Sort::From);
    let line = Line::decode(key, value)?;
    let mut sortable = Sortable {
        text: String::new(),
        number: match query.sort {
            Sort::Date => line.date_s,
            Sort::Size => i64::try_from(line.size).unwrap_or(i64::MAX),
            Sort::Received | Sort::Subject | Sort::From => 0,
        },
        unid: unid(key)?,
    };
    if !needs_text {
        return Ok(Some(sortable));
    }
    let entry = Entry::decode(key, value)?;
    if query.search.as_ref().is_some_and(|text| !has(&entry, text)) {
        return Ok(None);
    }
    sortable.text = match query.sort {
        Sort::From => entry.summary.from.shown().to_lowercase(),
        Sort::Date => entry.summary.date.to_lowercase(),
        Sort::Size => entry.size.to_string(),
        Sort::Subject | Sort::Received => entry.summary.subject.to_lowercase(),
    };
    let fits = query.keys.as_ref().is_none_or(|keys| match query.exact {
        true => sortable.text == *keys,
        false => sortable.text.starts_with(keys.as_str()),
    });
    Ok(fits.then_some(sortable))
}

/// Returns true if the subject, the author, or a recipient contains this text, which is in lower case.
fn has(entry: &Entry, text: &str) -> bool {
    let people = std::iter::once(&entry.summary.from).chain(&entry.summary.to);
    let mut texts = people
        .flat_map(|person| [&person.name, &person.email])
        .chain([&entry.summary.subject]);
    texts.any(|known| known.to_lowercase().contains(text))
}

/// A folder with its counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderLine {
    /// The folder.
    pub folder: Folder,
    /// Its displayed name.
    pub name: String,
    /// Its counters.
    pub counts: mailbox::Counts,
    /// The state of its UIDs and MODSEQs.
    pub state: State,
}

/// Returns all folders: the built-in ones, then the owner's own by name.
///
/// # Errors
/// Errors of the store.
pub fn all_folders(snapshot: &dyn Snapshot, mailbox: &str) -> Result<Vec<FolderLine>, MailError> {
    let counted = Folder::BUILT_IN.into_iter().map(keys::counts);
    let counted = counted.chain([keys::HEAD.to_vec()]);
    mailbox::prefetch(snapshot, mailbox, counted, true)?;
    let mut own = folders::own(snapshot, mailbox)?;
    let counted = own.iter().map(|own| keys::counts(Folder::Own(own.unid)));
    mailbox::prefetch(snapshot, mailbox, counted, false)?;
    own.sort_by_key(|folder| folder.name.to_lowercase());
    let built_in = Folder::BUILT_IN.into_iter();
    let built_in = built_in.filter_map(|folder| Some((folder, folder.title()?.to_owned())));
    let own = own.into_iter().map(|own| (Folder::Own(own.unid), own.name));
    let head = Head::of(snapshot, mailbox)?;
    let mut lines = Vec::new();
    for (folder, name) in built_in.chain(own) {
        // Counts and numbers of a folder lie in one record.
        let record = snapshot.get(mailbox, &keys::counts(folder))?;
        let value = record.map(|record| record.value).unwrap_or_default();
        lines.push(FolderLine {
            folder,
            name,
            counts: mailbox::Counts::decode(&value),
            state: State::under(head, UidCounters::decode(&value), folder),
        });
    }
    Ok(lines)
}
