//! The lists: events, invitations, notices of one event. They consist of rendered lines; a line is parsed only if the
//! client asks for certain fields, or for iCalendar.

use std::{collections::VecDeque, ops::ControlFlow};

use groupware_store::{ReadError, Snapshot};

use crate::{
    CalendarError, Entry, EventQuery, Format, InvitationQuery, domino,
    domino::{NoticeLine, NoticeLines},
    export, keys, limits, mailbox, time,
};

/// One page of the event list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventPage {
    /// The response body, in the requested format.
    pub body: Vec<u8>,
    /// The number of the page's first entry, from 0; for `Content-Range: items first-last`.
    pub first: usize,
    /// The number of the page's last entry.
    pub last: usize,
}

/// The events that start in the requested range, in the order of their starts; `None` for an empty page, which is a 200
/// response without content type and body. A page ends early if it would exceed [`limits::LIST_BYTES`]; `last` is where
/// to continue.
///
/// # Errors
/// The store's errors.
pub fn events(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    query: &EventQuery,
) -> Result<Option<EventPage>, CalendarError> {
    let (body, found) = match query.format {
        Format::Json => json_events(snapshot, mailbox, query)?,
        Format::ICalendar => icalendar_events(snapshot, mailbox, query)?,
    };
    Ok((found > 0).then(|| EventPage {
        body,
        first: query.start,
        last: query.start + found - 1,
    }))
}

/// The result of adding a part to a response.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Yes,
    /// It doesn't fit, so the page ends before it.
    Full,
}

/// The room for the parts of one response. The first part always fits, so that a client that continues after the last
/// received entry reaches the end.
struct AnswerRoom {
    left: usize,
    any: bool,
}

impl AnswerRoom {
    fn new() -> Self {
        Self {
            left: limits::LIST_BYTES,
            any: false,
        }
    }

    fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left || !self.any;
        if fits {
            self.left = self.left.saturating_sub(bytes);
            self.any = true;
        }
        fits
    }
}

/// Visits the page's lines with their keys until one doesn't fit; returns the number of lines that did.
fn page(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    query: &EventQuery,
    mut visit: impl FnMut(&[u8], &[u8]) -> Result<Taken, CalendarError>,
) -> Result<usize, CalendarError> {
    let from = keys::lines_from(query.since);
    let to = keys::lines_from(query.before);
    let (mut seen, mut found, mut failure) = (0, 0, None);
    let limit = query.start + query.count;
    mailbox::scan(snapshot, mailbox, (&from, &to), limit, |key, record| {
        seen += 1;
        if seen <= query.start {
            return ControlFlow::Continue(());
        }
        match visit(key, &record.value) {
            Ok(Taken::Yes) => {
                found += 1;
                ControlFlow::Continue(())
            }
            Ok(Taken::Full) => ControlFlow::Break(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failure.map_or(Ok(found), Err)
}

fn json_events(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    query: &EventQuery,
) -> Result<(Vec<u8>, usize), CalendarError> {
    const USUAL_LINE_BYTES: usize = 512;
    let mut body = Vec::with_capacity(USUAL_LINE_BYTES * query.count.min(32));
    body.extend_from_slice(br#"{"events":["#);
    let empty = body.len();
    let (mut room, lines) = (AnswerRoom::new(), domino::EventLines::of(mailbox));
    let found = page(snapshot, mailbox, query, |key, stored| {
        let before = body.len();
        if before > empty {
            body.push(b',');
        }
        let begin = body.len();
        lines
            .push(&mut body, name(key)?, stored)
            .map_err(|error| corrupt(key, &error.to_string()))?;
        if !room.take(body.len() - begin) {
            body.truncate(before);
            return Ok(Taken::Full);
        }
        if let Some(fields) = &query.fields {
            let picked = domino::pick_fields(&body[begin..], fields)
                .map_err(|error| corrupt(key, &error.to_string()))?;
            body.truncate(begin);
            body.extend_from_slice(&picked);
        }
        Ok(Taken::Yes)
    })?;
    body.extend_from_slice(b"]}");
    Ok((body, found))
}

/// Whole events as iCalendar; the lines only select them. `fields` does not apply.
fn icalendar_events(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    query: &EventQuery,
) -> Result<(Vec<u8>, usize), CalendarError> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut room = AnswerRoom::new();
    let found = page(snapshot, mailbox, query, |key, _| {
        let held = mailbox::load(snapshot, mailbox, name(key)?)?
            .ok_or_else(|| corrupt(key, "a line without its entry"))?;
        if !room.take(held.bytes) {
            return Ok(Taken::Full);
        }
        entries.push(held.entry);
        Ok(Taken::Yes)
    })?;
    Ok((export::write_icalendar(&entries).into_bytes(), found))
}

/// The name in a line's key: an event or a notice.
fn name(key: &[u8]) -> Result<&str, CalendarError> {
    let name = key.get(keys::LINE_UID_AT..);
    name.and_then(|name| std::str::from_utf8(name).ok())
        .ok_or_else(|| corrupt(key, "no identifier"))
}

/// A list of invitations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invitations {
    /// `{"notices":[…]}`; `None` if there are none, which is a 200 response without content type and body.
    List(Option<Vec<u8>>),
    /// There are more than the limit of this attempt.
    Many,
}

/// The unanswered invitations in the order of receipt, if there are at most `most` to scan. Beyond
/// [`limits::NOTICES`] or [`limits::LIST_BYTES`], only the newest are returned.
///
/// # Errors
/// The store's errors.
pub fn invitations(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    query: &InvitationQuery,
    most: usize,
) -> Result<Invitations, CalendarError> {
    if let Some(uid) = &query.uid {
        return Ok(Invitations::List(invitation_of(
            snapshot, mailbox, uid, query,
        )?));
    }
    let from = keys::notice_lines_from(query.received_since);
    let to = keys::notice_lines_end();
    let since = query.since.map(time::compact);
    let mut newest = Newest::new(limits::NOTICES, limits::LIST_BYTES);
    let (mut seen, mut failure, limit) = (0, None, most.saturating_add(1));
    let lines = NoticeLines::of(mailbox);
    mailbox::scan(snapshot, mailbox, (&from, &to), limit, |key, record| {
        seen += 1;
        let stored = NoticeLine::of(&record.value);
        if since
            .as_ref()
            .is_some_and(|since| stored.start < since.as_bytes())
        {
            return ControlFlow::Continue(());
        }
        let line = name(key).and_then(|id| {
            let whole = lines.whole(id, stored.json);
            whole.map_err(|error| corrupt(key, &error.to_string()))
        });
        match line {
            Ok(line) => {
                newest.push(line);
                ControlFlow::Continue(())
            }
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    match failure {
        Some(error) => Err(error),
        None if seen > most => Ok(Invitations::Many),
        None => Ok(Invitations::List(newest.into_body())),
    }
}

/// The last of the pushed lines, up to the limits of a response.
struct Newest {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    max_lines: usize,
    max_bytes: usize,
}

impl Newest {
    fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            max_lines,
            max_bytes,
        }
    }

    fn push(&mut self, line: Vec<u8>) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.lines.len() > self.max_lines || self.bytes > self.max_bytes {
            let Some(oldest) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= oldest.len();
        }
    }

    fn into_body(self) -> Option<Vec<u8>> {
        if self.lines.is_empty() {
            return None;
        }
        let mut body = Vec::with_capacity(self.bytes + self.lines.len() + 16);
        body.extend_from_slice(br#"{"notices":["#);
        for (at, line) in self.lines.iter().enumerate() {
            if at > 0 {
                body.push(b',');
            }
            body.extend_from_slice(line);
        }
        body.extend_from_slice(b"]}");
        Some(body)
    }
}

/// The invitation to one event, if it is unanswered and within the query's times.
fn invitation_of(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
    query: &InvitationQuery,
) -> Result<Option<Vec<u8>>, CalendarError> {
    if uid.len() > limits::UID_BYTES {
        return Ok(None);
    }
    let Some(held) = mailbox::load(snapshot, mailbox, uid)? else {
        return Ok(None);
    };
    let crate::State::Invited { received, .. } = held.entry.state else {
        return Ok(None);
    };
    let start = held.entry.event.details.start.instant();
    let wanted = query.since.is_none_or(|since| start >= since)
        && query.received_since.is_none_or(|since| received >= since);
    Ok(wanted.then(|| notices_of(mailbox, &held.entry)).flatten())
}

/// The pending notices of one event: its invitation, if that is unanswered.
///
/// # Errors
/// 404 if there is no such event; the store's errors.
pub fn event_notices(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    uid: &str,
) -> Result<Option<Vec<u8>>, CalendarError> {
    let held = mailbox::require(snapshot, mailbox, uid)?;
    Ok(notices_of(mailbox, &held.entry))
}

fn notices_of(mailbox: &str, entry: &Entry) -> Option<Vec<u8>> {
    let id = entry.notice()?;
    let mut body = br#"{"notices":["#.to_vec();
    body.extend_from_slice(&domino::notice_summary(mailbox, id, &entry.event));
    body.extend_from_slice(b"]}");
    Some(body)
}

fn corrupt(key: &[u8], cause: &str) -> CalendarError {
    ReadError::corrupt(key, cause).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_room_for_one_part_at_least() {
        let mut room = AnswerRoom::new();
        assert!(room.take(limits::LIST_BYTES + 1));
        assert!(!room.take(1));
        let mut room = AnswerRoom::new();
        assert!(room.take(limits::LIST_BYTES - 1));
        assert!(room.take(1) && !room.take(1));
    }
}
