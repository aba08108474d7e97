//! Entries as they are, for a front that shows them rather than sends them on: the same range
//! scans as the lists, without their wire form.

use std::ops::{ControlFlow, Range};

use groupware_store::Snapshot;

use crate::{CalendarError, Entry, keys, limits, mailbox};

/// How far back an event is looked for that lasts into a range: a line is found by its start.
const REACH: i64 = 31 * 86_400;
/// Most lines that are looked at for one range.
const LINES: usize = 10_000;

/// The entries that lie in a range of seconds since 1970, also in part, in the order of their
/// start; at most `most`. One that began more than 31 days before the range is not found.
///
/// # Errors
/// The store's.
pub fn entries(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    range: Range<i64>,
    most: usize,
) -> Result<Vec<Entry>, CalendarError> {
    let mut uids = Vec::new();
    let from = keys::lines_from(range.start.saturating_sub(REACH));
    let to = keys::lines_from(range.end);
    mailbox::scan(snapshot, mailbox, (&from, &to), LINES, |key, _| {
        let uid = key.get(keys::LINE_UID_AT..).unwrap_or_default();
        uids.push(String::from_utf8_lossy(uid).into_owned());
        ControlFlow::Continue(())
    })?;
    // Few more than are wanted: most of what has a line in reach is in the range, too.
    let first = &uids[..uids.len().min(most)];
    mailbox::prefetch_all(snapshot, mailbox, first)?;
    let mut found = Vec::new();
    for uid in uids {
        if let Some(held) = mailbox::load(snapshot, mailbox, &uid)? {
            let details = &held.entry.event.details;
            let is_in = details.end.instant() > range.start;
            if is_in || details.start.instant() >= range.start {
                found.push(held.entry);
            }
        }
        if found.len() >= most {
            break;
        }
    }
    Ok(found)
}

/// The entries behind the one of this UID, or from the first on, in the order of their UIDs; at most
/// `most`.
///
/// # Errors
/// The store's.
pub fn entries_after(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<Entry>, CalendarError> {
    let (mut from, to) = keys::entries();
    if let Some(after) = after {
        from = keys::entry(after);
        // The first key behind it.
        from.push(0);
    }
    let (mut found, mut failure) = (Vec::new(), None);
    mailbox::scan(snapshot, mailbox, (&from, &to), most, |key, record| {
        match Entry::decode(key, &record.value) {
            Ok(entry) => found.push(entry),
            Err(error) => failure = Some(error),
        }
        match failure {
            None => ControlFlow::Continue(()),
            Some(_) => ControlFlow::Break(()),
        }
    })?;
    failure.map_or(Ok(found), Err)
}

/// The unanswered invitations, the one that came in last first, at most `most` of them; and how many there
/// are, counted up to [`limits::NOTICES`].
///
/// # Errors
/// The store's.
pub fn open_invitations(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    most: usize,
) -> Result<(Vec<Entry>, usize), CalendarError> {
    let notices = notices(snapshot, mailbox, limits::NOTICES)?;
    let newest = notices.iter().rev().take(most);
    let found = newest.map(|notice| invitation(snapshot, mailbox, notice));
    Ok((found.collect::<Result<_, _>>()?, notices.len()))
}

/// How many invitations are unanswered, counted up to `most`.
///
/// # Errors
/// The store's.
pub fn count_invitations(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    most: usize,
) -> Result<usize, CalendarError> {
    Ok(notices(snapshot, mailbox, most)?.len())
}

/// The names of the notices in the order they came in.
fn notices(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    most: usize,
) -> Result<Vec<String>, CalendarError> {
    let (from, to) = (keys::notice_lines_from(None), keys::notice_lines_end());
    let name_at = keys::notice_line(0, "").len();
    let mut notices = Vec::new();
    mailbox::scan(snapshot, mailbox, (&from, &to), most, |key, _| {
        let name = key.get(name_at..).unwrap_or_default();
        notices.push(String::from_utf8_lossy(name).into_owned());
        ControlFlow::Continue(())
    })?;
    Ok(notices)
}

/// One entry, whatever its state.
///
/// # Errors
/// 404 if there is none with this UID.
pub fn entry(snapshot: &dyn Snapshot, mailbox: &str, uid: &str) -> Result<Entry, CalendarError> {
    Ok(mailbox::require(snapshot, mailbox, uid)?.entry)
}

/// The entry of an unanswered invitation.
///
/// # Errors
/// 404 if there is no such notice, or it has been answered.
pub fn invitation(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    notice: &str,
) -> Result<Entry, CalendarError> {
    Ok(mailbox::require_notice(snapshot, mailbox, notice)?.entry)
}
