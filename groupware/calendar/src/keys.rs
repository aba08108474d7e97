//! Where a calendar lies in its mailbox, and the paths that name its resources.
//!
//! ```text
//! c/e/{uid}              the entry: state and event; its revision guards all that is derived
//! c/i/{start}/{uid}      derived: the entry's line in the event list, rendered JSON in a short form
//! c/l/{end}/{uid}        derived, of an event that lasts long: how who looks at a later week finds it
//! c/n/{received}/{id}    derived: an invitation's line in the notice list
//! c/m/{id}               derived: which entry the notice {id} is about
//! ```
//! Times are sixteen bytes that sort as moments do. Every calendar key starts with `c/`.

use std::borrow::Cow;

use groupware_text::push_encoded;

use crate::time::compact;

/// What a segment of a path may hold besides unreserved characters.
const SEGMENT: &[u8] = b"@";

/// One past the last key of a family: `/` + 1.
const AFTER_SLASH: u8 = b'/' + 1;

/// What all keys of a calendar begin with.
pub const PREFIX: &[u8] = b"c/";

/// All records of a calendar: the first key, and the first after.
pub const ALL: (&[u8], &[u8]) = (b"c/", b"c0");

/// Key of an entry.
pub(crate) fn entry(uid: &str) -> Vec<u8> {
    joined("c/e/", uid)
}

/// All entries: the first key, and the first after.
pub(crate) fn entries() -> (Vec<u8>, Vec<u8>) {
    (entry(""), vec![b'c', b'/', b'e', AFTER_SLASH])
}

/// Key of an entry's line in the event list.
pub(crate) fn line(start: i64, uid: &str) -> Vec<u8> {
    joined(&format!("c/i/{}/", compact(start)), uid)
}

/// First key of the event list at or after a moment.
pub(crate) fn lines_from(start: i64) -> Vec<u8> {
    joined("c/i/", &compact(start))
}

/// Length of a line's key before the UID begins, or the notice's name, in each list.
pub(crate) const LINE_UID_AT: usize = "c/i/20260105T090000Z/".len();

/// Key of a long event's line in the list by ends.
pub(crate) fn long_line(end: i64, uid: &str) -> Vec<u8> {
    joined(&format!("c/l/{}/", compact(end)), uid)
}

/// Long events that end at or after a moment: the first key, and the first after.
pub(crate) fn long_lines_from(end: i64) -> (Vec<u8>, Vec<u8>) {
    let from = joined("c/l/", &compact(end));
    (from, vec![b'c', b'/', b'l', AFTER_SLASH])
}

/// Key of an invitation's line in the notice list.
pub(crate) fn notice_line(received: i64, id: &str) -> Vec<u8> {
    joined(&format!("c/n/{}/", compact(received)), id)
}

/// First key of the notice list at or after a moment; from the beginning without one.
pub(crate) fn notice_lines_from(received: Option<i64>) -> Vec<u8> {
    joined("c/n/", &received.map(compact).unwrap_or_default())
}

/// First key after the notice list.
pub(crate) fn notice_lines_end() -> Vec<u8> {
    vec![b'c', b'/', b'n', AFTER_SLASH]
}

/// Key of the pointer from a notice to its entry.
pub(crate) fn notice(id: &str) -> Vec<u8> {
    joined("c/m/", id)
}

fn joined(family: &str, rest: &str) -> Vec<u8> {
    [family.as_bytes(), rest.as_bytes()].concat()
}

/// Path of an event of a mailbox, ready to be requested.
pub fn event_path(mailbox: &str, uid: &str) -> String {
    resource(mailbox, "events/", uid)
}

/// Path of a notice of a mailbox, ready to be requested.
pub fn notice_path(mailbox: &str, id: &str) -> String {
    resource(mailbox, "notices/", id)
}

/// An identifier as a segment of a path.
pub(crate) fn segment(id: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if id.bytes().all(is_plain) {
        return Cow::Borrowed(id);
    }
    let mut encoded = String::with_capacity(id.len() + 24);
    push_encoded(&mut encoded, id, SEGMENT);
    Cow::Owned(encoded)
}

fn resource(mailbox: &str, family: &str, id: &str) -> String {
    let mut path = String::with_capacity(mailbox.len() + family.len() + id.len() + 24);
    path.push_str("/mail/");
    push_encoded(&mut path, mailbox, SEGMENT);
    path.push_str("/api/calendar/");
    path.push_str(family);
    path.push_str(&segment(id));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_hold_one_segment_per_name() {
        assert_eq!(
            event_path("user00001", "a/b c%é"),
            "/mail/user00001/api/calendar/events/a%2Fb%20c%25%C3%A9"
        );
        assert_eq!(
            notice_path("ann@x", "F0"),
            "/mail/ann@x/api/calendar/notices/F0"
        );
        assert_eq!(segment("a@b.c/d"), "a@b.c%2Fd");
    }

    #[test]
    fn a_line_lies_within_its_moment() {
        let key = line(86_401, "uid");
        assert!(lines_from(86_401) <= key && key < lines_from(86_402));
        assert_eq!(&key[LINE_UID_AT..], b"uid");
    }

    #[test]
    fn a_long_line_lies_where_its_end_is_looked_for() {
        let key = long_line(86_401, "uid");
        let lies_in = |end| {
            let (from, to) = long_lines_from(end);
            from <= key && key < to
        };
        assert!(lies_in(86_401) && !lies_in(86_402));
        assert_eq!(&key[LINE_UID_AT..], b"uid");
    }

    #[test]
    fn every_notice_line_lies_in_the_list() {
        let key = notice_line(i64::MAX, "FF");
        assert!(notice_lines_from(None) < key && key < notice_lines_end());
    }
}
