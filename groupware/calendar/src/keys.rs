//! The keys of a calendar in its account, and the paths of its resources.
//!
//! ```text
//! c/e/{uid}              the entry: state and event; its revision guards all that is derived
//! c/i/{start}/{uid}      derived: the entry's line in the event list, rendered JSON in a compact form
//! c/l/{end}/{uid}        derived, of a long event: finds it for a later range
//! c/n/{received}/{id}    derived: an invitation's line in the notice list, and the entry that it is about
//! c/m/{id}               derived, of a notice whose identifier has no time of receipt: the entry that it is about
//! c/o/{uid}              derived, of an imported object that is not an event: finds it for lists of tasks
//! ```
//! Times are sixteen bytes that sort by time. Every calendar key starts with `c/`.

use std::borrow::Cow;

use groupware_text::push_encoded;

use crate::time::compact_bytes;

/// The characters of a path segment besides the unreserved ones.
const SEGMENT: &[u8] = b"@";

/// The byte after `/`: ends a key family.
const AFTER_SLASH: u8 = b'/' + 1;

/// The first bits of a notice's identifier: seconds since 1970.
const TIME_BITS: u32 = 40;
/// The next bits, a checksum, before the random bits.
const CHECK_BITS: u32 = 64 - TIME_BITS;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// True for each byte that a path segment contains unescaped.
static PLAIN: [bool; 256] = {
    let (mut plain, mut at) = ([false; 256], 0);
    while at < 128 {
        let byte = at as u8;
        plain[at] = byte.is_ascii_alphanumeric() || byte == b'-';
        at += 1;
    }
    plain
};

/// A longer event is also listed by its end: a query of a range starts this much before it.
pub(crate) const LONG_S: i64 = 31 * 86_400;

/// The prefix of all keys of a calendar.
pub const PREFIX: &[u8] = b"c/";

/// All records of a calendar: the first key, and the first key after.
pub const ALL: (&[u8], &[u8]) = (b"c/", b"c0");

/// The separator of a UID and an instance; no UID contains it.
const INSTANCE: char = '\u{1}';

/// The name of the instance of a recurring event with the recurrence moment `20260105T090000Z`.
pub fn instance_name(uid: &str, recurrence_id: &str) -> String {
    format!("{uid}{INSTANCE}{recurrence_id}")
}

/// Splits a name into the UID and the instance, if it has one.
pub(crate) fn parts(name: &str) -> (&str, Option<&str>) {
    match name.split_once(INSTANCE) {
        Some((uid, id)) => (uid, Some(id)),
        None => (name, None),
    }
}

/// The key of an entry, also for the name of an instance.
pub(crate) fn entry(name: &str) -> Vec<u8> {
    joined("c/e/", parts(name).0)
}

/// The range of all entries: the first key, and the first key after.
pub(crate) fn entries() -> (Vec<u8>, Vec<u8>) {
    (entry(""), vec![b'c', b'/', b'e', AFTER_SLASH])
}

/// The key of an entry's line in the event list.
pub(crate) fn line(start: i64, uid: &str) -> Vec<u8> {
    dated("c/i/", start, uid)
}

/// The first key of the event list at or after a moment.
pub(crate) fn lines_from(start: i64) -> Vec<u8> {
    moment("c/i/", start)
}

/// The offset of the UID, or of the notice's identifier, in a line's key of each list.
pub(crate) const LINE_UID_AT: usize = "c/i/20260105T090000Z/".len();

/// The key of a long event's line in the list by ends.
pub(crate) fn long_line(end: i64, uid: &str) -> Vec<u8> {
    dated("c/l/", end, uid)
}

/// The range of long events that end at or after a moment: the first key, and the first key after.
pub(crate) fn long_lines_from(end: i64) -> (Vec<u8>, Vec<u8>) {
    let from = moment("c/l/", end);
    (from, vec![b'c', b'/', b'l', AFTER_SLASH])
}

/// The key of the pointer to an entry that is not an event.
pub(crate) fn other(uid: &str) -> Vec<u8> {
    joined("c/o/", uid)
}

/// The range of all such pointers: the first key, and the first key after.
pub(crate) fn others() -> (Vec<u8>, Vec<u8>) {
    (other(""), vec![b'c', b'/', b'o', AFTER_SLASH])
}

/// The key of an invitation's line in the notice list.
pub(crate) fn notice_line(received: i64, id: &str) -> Vec<u8> {
    dated("c/n/", received, id)
}

/// The first key of the notice list at or after a moment, or of the whole list.
pub(crate) fn notice_lines_from(received: Option<i64>) -> Vec<u8> {
    match received {
        Some(received) => moment("c/n/", received),
        None => b"c/n/".to_vec(),
    }
}

/// The first key after the notice list.
pub(crate) fn notice_lines_end() -> Vec<u8> {
    vec![b'c', b'/', b'n', AFTER_SLASH]
}

/// A new notice's identifier: 32 upper-case hexadecimal digits, as in Domino. It contains the time of receipt, so that
/// it leads to the notice's line.
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

/// Parses the output of [`upper_hex`], and nothing else.
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

/// The time of receipt in a notice's identifier, if it has one. One in many millions of other identifiers seems to.
pub(crate) fn received(name: &str) -> Option<i64> {
    // In upper case, as we write it.
    let bits = of_upper_hex(name)?;
    let (said, own) = ((bits >> 64) as u64, bits as u64);
    let time = said >> CHECK_BITS;
    let received = i64::try_from(time).ok()?;
    (said == time << CHECK_BITS | check(time, own)).then_some(received)
}

/// The checksum that marks an identifier with a time.
fn check(time: u64, own: u64) -> u64 {
    (time ^ own).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> TIME_BITS
}

/// The key of the pointer from a notice to its entry.
pub(crate) fn notice(id: &str) -> Vec<u8> {
    joined("c/m/", id)
}

/// A key with a time before the name.
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

/// The path of an event of an account, or of an instance of one, escaped for a request.
pub fn event_path(mailbox: &str, name: &str) -> String {
    let (uid, instance) = parts(name);
    let mut path = resource(mailbox, "events/", uid);
    if let Some(id) = instance {
        path.push('/');
        path.push_str(id);
    }
    path
}

/// The path of a notice of an account, escaped for a request.
pub fn notice_path(mailbox: &str, id: &str) -> String {
    resource(mailbox, "notices/", id)
}

/// Returns true if an identifier is a valid path segment without escapes, and names no instance.
pub(crate) fn is_plain(id: &str) -> bool {
    id.bytes().all(|byte| PLAIN[usize::from(byte)])
}

/// An identifier as a path segment.
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
