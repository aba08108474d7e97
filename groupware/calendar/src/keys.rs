//! Where a calendar lies in its mailbox, and the paths that name its resources.
//!
//! ```text
//! c/e/{uid}              the entry: state and event; its revision guards all that is derived
//! c/i/{start}/{uid}      derived: the entry's line in the event list, rendered JSON in a short form
//! c/l/{end}/{uid}        derived, of an event that lasts long: how who looks at a later week finds it
//! c/n/{received}/{id}    derived: an invitation's line in the notice list, and which entry it is about
//! c/m/{id}               derived, of a notice whose name doesn't say when it was received: which entry that is
//! c/o/{uid}              derived, of what was brought and is no event: how who looks for tasks finds it
//! ```
//! Times are sixteen bytes that sort as moments do. Every calendar key starts with `c/`.

use std::borrow::Cow;

use groupware_text::push_encoded;

use crate::time::compact_bytes;

/// What a segment of a path may hold besides unreserved characters.
const SEGMENT: &[u8] = b"@";

/// One past the last key of a family: `/` + 1.
const AFTER_SLASH: u8 = b'/' + 1;

/// The first bits of a notice's name: seconds since 1970.
const TIME_BITS: u32 = 40;
/// The next ones, before those that are its own.
const CHECK_BITS: u32 = 64 - TIME_BITS;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Which bytes a segment of a path has as they are, one by one.
static PLAIN: [bool; 256] = {
    let (mut plain, mut at) = ([false; 256], 0);
    while at < 128 {
        let byte = at as u8;
        plain[at] = byte.is_ascii_alphanumeric() || byte == b'-';
        at += 1;
    }
    plain
};

/// An event that lasts longer is also listed by its end: whoever looks at a range looks at what began so
/// long before it.
pub(crate) const LONG_S: i64 = 31 * 86_400;

/// What all keys of a calendar begin with.
pub const PREFIX: &[u8] = b"c/";

/// All records of a calendar: the first key, and the first after.
pub const ALL: (&[u8], &[u8]) = (b"c/", b"c0");

/// Between a UID and what names one of its instances; no UID has it.
const INSTANCE: char = '\u{1}';

/// What finds one instance of a recurring event, which stands for the moment `20260105T090000Z`.
pub fn instance_name(uid: &str, recurrence_id: &str) -> String {
    format!("{uid}{INSTANCE}{recurrence_id}")
}

/// A UID, and what names the instance, if it is about one.
pub(crate) fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once(INSTANCE) {
        Some((uid, id)) => (uid, Some(id)),
        None => (name, None),
    }
}

/// Key of an entry, also of one that is about an instance.
pub(crate) fn entry(name: &str) -> Vec<u8> {
    joined("c/e/", parts(name).0)
}

/// All entries: the first key, and the first after.
pub(crate) fn entries() -> (Vec<u8>, Vec<u8>) {
    (entry(""), vec![b'c', b'/', b'e', AFTER_SLASH])
}

/// Key of an entry's line in the event list.
pub(crate) fn line(start: i64, uid: &str) -> Vec<u8> {
    dated("c/i/", start, uid)
}

/// First key of the event list at or after a moment.
pub(crate) fn lines_from(start: i64) -> Vec<u8> {
    moment("c/i/", start)
}

/// Length of a line's key before the UID begins, or the notice's name, in each list.
pub(crate) const LINE_UID_AT: usize = "c/i/20260105T090000Z/".len();

/// Key of a long event's line in the list by ends.
pub(crate) fn long_line(end: i64, uid: &str) -> Vec<u8> {
    dated("c/l/", end, uid)
}

/// Long events that end at or after a moment: the first key, and the first after.
pub(crate) fn long_lines_from(end: i64) -> (Vec<u8>, Vec<u8>) {
    let from = moment("c/l/", end);
    (from, vec![b'c', b'/', b'l', AFTER_SLASH])
}

/// Key of what leads to an entry that is no event.
pub(crate) fn other(uid: &str) -> Vec<u8> {
    joined("c/o/", uid)
}

/// All that lead to such entries: the first key, and the first after.
pub(crate) fn others() -> (Vec<u8>, Vec<u8>) {
    (other(""), vec![b'c', b'/', b'o', AFTER_SLASH])
}

/// Key of an invitation's line in the notice list.
pub(crate) fn notice_line(received: i64, id: &str) -> Vec<u8> {
    dated("c/n/", received, id)
}

/// First key of the notice list at or after a moment; from the beginning without one.
pub(crate) fn notice_lines_from(received: Option<i64>) -> Vec<u8> {
    match received {
        Some(received) => moment("c/n/", received),
        None => b"c/n/".to_vec(),
    }
}

/// First key after the notice list.
pub(crate) fn notice_lines_end() -> Vec<u8> {
    vec![b'c', b'/', b'n', AFTER_SLASH]
}

/// A new notice's name: 32 upper-case hexadecimal digits, as Domino's look. They say when it was received, so that
/// its line is found by its name.
pub(crate) fn notice_name(bits: u128, received: i64) -> String {
    let own = bits as u64;
    let named = match u64::try_from(received) {
        Ok(time) if time >> TIME_BITS == 0 => {
            let said = time << CHECK_BITS | check(time, own);
            u128::from(said) << 64 | u128::from(own)
        }
        _ => bits,
    };
    upper_hex(named)
}

/// 32 upper-case hexadecimal digits.
pub(crate) fn upper_hex(bits: u128) -> String {
    let mut digits = [0; 32];
    let (pairs, _) = digits.as_chunks_mut::<2>();
    for (pair, byte) in pairs.iter_mut().zip(bits.to_be_bytes()) {
        *pair = [byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]);
    }
    String::from_utf8_lossy(&digits).into_owned()
}

/// Reads what [`upper_hex`] writes, and nothing else.
fn of_upper_hex(text: &str) -> Option<u128> {
    let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
    let half = |digits: &[u8]| {
        digits.iter().try_fold(0_u64, |bits, digit| {
            let value = match digit {
                b'0'..=b'9' => digit - b'0',
                b'A'..=b'F' => digit - b'A' + 10,
                _ => return None,
            };
            Some(bits << 4 | u64::from(value))
        })
    };
    let (upper, lower) = digits.split_at(16);
    Some(u128::from(half(upper)?) << 64 | u128::from(half(lower)?))
}

/// When a notice was received, if its name says so. One in many millions of other names seems to.
pub(crate) fn received(name: &str) -> Option<i64> {
    // As we write it: in capitals.
    let bits = of_upper_hex(name)?;
    let (said, own) = ((bits >> 64) as u64, bits as u64);
    let time = said >> CHECK_BITS;
    let received = i64::try_from(time).ok()?;
    (said == time << CHECK_BITS | check(time, own)).then_some(received)
}

/// What tells a name that says a time from others.
fn check(time: u64, own: u64) -> u64 {
    (time ^ own).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> TIME_BITS
}

/// Key of the pointer from a notice to its entry.
pub(crate) fn notice(id: &str) -> Vec<u8> {
    joined("c/m/", id)
}

/// A key with a time before what it is of.
fn dated(family: &str, second: i64, rest: &str) -> Vec<u8> {
    let time = compact_bytes(second);
    [family.as_bytes(), &time, b"/", rest.as_bytes()].concat()
}

/// The first key of a moment.
fn moment(family: &str, second: i64) -> Vec<u8> {
    [family.as_bytes(), &compact_bytes(second)].concat()
}

fn joined(family: &str, rest: &str) -> Vec<u8> {
    [family.as_bytes(), rest.as_bytes()].concat()
}

/// Path of an event of a mailbox, or of an instance of one, ready to be requested.
pub fn event_path(mailbox: &str, name: &str) -> String {
    let (uid, instance) = parts(name);
    let mut path = resource(mailbox, "events/", uid);
    if let Some(id) = instance {
        path.push('/');
        path.push_str(id);
    }
    path
}

/// Path of a notice of a mailbox, ready to be requested.
pub fn notice_path(mailbox: &str, id: &str) -> String {
    resource(mailbox, "notices/", id)
}

/// Whether an identifier is a segment of a path as it is, and names no instance.
pub(crate) fn is_plain(id: &str) -> bool {
    id.bytes().all(|byte| PLAIN[usize::from(byte)])
}

/// An identifier as a segment of a path.
pub(crate) fn segment(id: &str) -> Cow<'_, str> {
    if is_plain(id) {
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
    fn a_notices_name_says_when_it_was_received() {
        let bits = 0xFFFF_0000_0000_0000_0123_4567_89AB_CDEF;
        for second in [0, 1, 1_767_225_600, (1 << TIME_BITS) - 1] {
            let name = notice_name(bits, second);
            assert!(
                name.len() == 32 && name.ends_with("0123456789ABCDEF"),
                "{name}"
            );
            assert_eq!(received(&name), Some(second));
            assert_eq!(received(&name.to_lowercase()), None);
            assert_eq!(received(&notice_name(bits + 1, second)), Some(second));
        }
        assert_eq!(notice_name(bits, -1), format!("{bits:X}"));
        for other in [
            "",
            "F0",
            "+0000000000000000123456789ABCDEF",
            "DAA66D2C7DDF7442001C35B2663635C7",
            "78DDE6E5FD29F057F3B8F612C323FDFC",
        ] {
            assert_eq!(received(other), None, "{other}");
        }
    }

    #[test]
    fn every_notice_line_lies_in_the_list() {
        let key = notice_line(i64::MAX, "FF");
        assert!(notice_lines_from(None) < key && key < notice_lines_end());
    }
}
