//! Entries in their own form, for a front that displays them: the same range scans as the lists, without the wire
//! format.

use std::ops::{ControlFlow, Range};

use groupware_store::Snapshot;

use crate::{CalendarError, Entry, keys, limits, mailbox};

/// The maximum number of lines to scan for one range.
const LINES: usize = 10_000;
/// The maximum number of long events to scan for one range: those that end first.
const LONG: usize = 1000;

/// The bytes of entries after which a page ends.
const PAGE_BYTES: usize = 4 << 20;

/// The scan budget for a range.
#[derive(Debug, Clone, Copy)]
pub struct ScanBudget {
    /// The number of lines; their entries may be out of the range.
    lines: usize,
    /// The bytes of entries.
    bytes: usize,
}

impl ScanBudget {
    /// A short budget, for a thread with other requests.
    pub const QUICK: Self = Self {
        lines: 200,
        bytes: 1 << 20,
    };
    /// The whole range, with no limit besides those of every scan.
    pub const WHOLE: Self = Self {
        lines: usize::MAX,
        bytes: usize::MAX,
    };
}

/// Visits the entries that overlap a range of seconds since 1970, at most `most`. Returns false if the budget didn't
/// suffice; some entries, or none, were visited then.
///
/// # Errors
/// The store's errors.
pub fn entries(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    (range, most): (Range<i64>, usize),
    reach: ScanBudget,
    visit: &mut dyn FnMut(Entry),
) -> Result<bool, CalendarError> {
    let began = range.start.saturating_sub(keys::LONG_S);
    let (from, to) = keys::long_lines_from(range.start);
    let more = reach.lines.saturating_add(1);
    let long = listed(snapshot, mailbox, (&from, &to), LONG.min(more))?;
    let (from, to) = (keys::lines_from(began), keys::lines_from(range.end));
    let lines = listed(snapshot, mailbox, (&from, &to), LINES.min(more))?;
    if long.len() + lines.len() > reach.lines {
        return Ok(false);
    }
    let (mut bytes, mut found) = (0_usize, 0);
    for (uids, is_long) in [(long, true), (lines, false)] {
        // Prefetches few entries too many: most lines in the scan are in the range.
        mailbox::prefetch_all(snapshot, mailbox, &uids[..uids.len().min(most)])?;
        for uid in uids {
            if found == most {
                return Ok(true);
            }
            let Some(held) = mailbox::load(snapshot, mailbox, &uid)? else {
                continue;
            };
            bytes = bytes.saturating_add(held.bytes);
            if bytes > reach.bytes {
                return Ok(false);
            }
            // Long events with a later start have an ordinary line in the scan.
            let is_here = !is_long || held.entry.event.details.start.instant() < began;
            if is_here && is_in(&held.entry, &range) {
                found += 1;
                visit(held.entry);
            }
        }
    }
    Ok(true)
}

fn is_in(entry: &Entry, range: &Range<i64>) -> bool {
    let details = &entry.event.details;
    let (start, end) = (details.start.instant(), details.end.instant());
    start < range.end && (start >= range.start || end > range.start)
}

/// The UIDs of lines in a range of keys, up to a limit.
fn listed(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    range: (&[u8], &[u8]),
    most: usize,
) -> Result<Vec<String>, CalendarError> {
    let mut uids = Vec::new();
    mailbox::scan(snapshot, mailbox, range, most, |key, _| {
        let uid = key.get(keys::LINE_UID_AT..).unwrap_or_default();
        uids.push(String::from_utf8_lossy(uid).into_owned());
        ControlFlow::Continue(())
    })?;
    Ok(uids)
}

/// The entries after that of this UID, or from the first on, in the order of their UIDs; at most `most`, and none after
/// 4 MiB of them. Empty only after the last one.
///
/// # Errors
/// The store's errors.
pub fn entries_after(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<Entry>, CalendarError> {
    let (mut from, to) = keys::entries();
    if let Some(after) = after {
        from = keys::entry(after);
        // The first key after it.
        from.push(0);
    }
    let (mut found, mut failure, mut bytes) = (Vec::new(), None, 0);
    mailbox::scan(snapshot, mailbox, (&from, &to), most, |key, record| {
        bytes += record.value.len();
        match mailbox::decoded(key, &record.value) {
            Ok(entry) => found.push(entry),
            Err(error) => failure = Some(error),
        }
        match failure {
            None if bytes < PAGE_BYTES => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    })?;
    failure.map_or(Ok(found), Err)
}

/// Imported objects that are not events, and so in no list of events: tasks, journals. In the order of their UIDs, from
/// the first after this one; at most `most`, and none after 4 MiB of them.
///
/// # Errors
/// The store's errors.
pub fn others(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<Entry>, CalendarError> {
    let (mut from, to) = keys::others();
    if let Some(after) = after {
        from = keys::other(after);
        from.push(0);
    }
    let uid_at = keys::other("").len();
    let mut uids = Vec::new();
    mailbox::scan(snapshot, mailbox, (&from, &to), most, |key, _| {
        let uid = key.get(uid_at..).unwrap_or_default();
        uids.push(String::from_utf8_lossy(uid).into_owned());
        ControlFlow::Continue(())
    })?;
    mailbox::prefetch_all(snapshot, mailbox, &uids)?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    for uid in uids {
        if bytes >= PAGE_BYTES {
            break;
        }
        if let Some(held) = mailbox::load(snapshot, mailbox, &uid)? {
            bytes += held.bytes;
            found.push(held.entry);
        }
    }
    Ok(found)
}

/// Returns true if [`others`] has any result.
///
/// # Errors
/// The store's errors.
pub fn has_others(snapshot: &dyn Snapshot, mailbox: &str) -> Result<bool, CalendarError> {
    let ((from, to), mut has_any) = (keys::others(), false);
    mailbox::scan(snapshot, mailbox, (&from, &to), 1, |_, _| {
        has_any = true;
        ControlFlow::Break(())
    })?;
    Ok(has_any)
}

/// The unanswered invitations, last received first, at most `most` of them; and their total number, counted up to
/// [`limits::NOTICES`].
///
/// # Errors
/// The store's errors.
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

/// The number of unanswered invitations, counted up to `most`.
///
/// # Errors
/// The store's errors.
pub fn count_invitations(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    most: usize,
) -> Result<usize, CalendarError> {
    Ok(notices(snapshot, mailbox, most)?.len())
}

/// The identifiers of the notices in the order of receipt.
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

/// One entry, in any state.
///
/// # Errors
/// 404 if there is none with this UID.
pub fn entry(snapshot: &dyn Snapshot, mailbox: &str, uid: &str) -> Result<Entry, CalendarError> {
    Ok(mailbox::require(snapshot, mailbox, uid)?.entry)
}

/// The entry of an unanswered invitation.
///
/// # Errors
/// 404 if there is no such notice, or it was answered.
pub fn invitation(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    notice: &str,
) -> Result<Entry, CalendarError> {
    Ok(mailbox::require_notice(snapshot, mailbox, notice)?.entry)
}
