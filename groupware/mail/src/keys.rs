//! The keys of an account in its partition, and the paths of its resources.
//!
//! ```text
//! m/i/{folder}/{unid}   a message's entry: flags, size, and what lists show of it
//! m/b/{unid}            its bytes, unless they are in a shared body
//! m/c/{folder}          counters: messages, unread messages, bytes, the last UID, messages with a UID
//! m/f/{unid}            a folder of the owner's own
//! m/g                   rewritten by each change of the own folders
//! m/h                   counters: the last MODSEQ, the second of the first one
//! m/l/{two bytes}       the change log, a ring of the last changes
//! m/s/{unid}            the id of the shared body with the message's bytes
//! m/k/{unid}            its keywords, if it has any
//! m/t                   rewritten by each correction of the numbered messages' count
//! ```
//! A list reads entries only. The partition of shared bodies, whose name no user can have, holds:
//! ```text
//! b/{body}              the bytes
//! h/{body}              counter: the messages that hold them
//! restored              set in restored data: the last account with new numbers since
//! ```

use std::fmt::Display;

use groupware_text::push_encoded;

use crate::{Folder, Unid};

/// The characters that a segment of a path may hold besides unreserved ones.
const SEGMENT: &[u8] = b"@";

/// The partition of the shared bodies.
pub const SHARED: &str = "$mail";

pub(crate) fn entry(folder: Folder, unid: Unid) -> Vec<u8> {
    key("m/i/", format_args!("{folder}/{unid}"))
}

/// The entries of a folder: first key, and first key after them.
pub(crate) fn entries(folder: Folder) -> (Vec<u8>, Vec<u8>) {
    let (from, to) = (format!("m/i/{folder}/"), format!("m/i/{folder}0"));
    (from.into_bytes(), to.into_bytes())
}

/// The entries of all folders: first key, and first key after them.
pub(crate) const ENTRIES: (&[u8], &[u8]) = (b"m/i/", b"m/i0");

/// The folder and the id of the message of an entry's key.
pub(crate) fn entry_of(key: &[u8]) -> Option<(Folder, Unid)> {
    let rest = std::str::from_utf8(key.strip_prefix(ENTRIES.0)?).ok()?;
    let (folder, unid) = rest.split_once('/')?;
    Some((Folder::parse(folder)?, Unid::parse(unid)?))
}

/// The id of the message of an entry's key.
pub(crate) fn unid_of(key: &[u8]) -> Option<Unid> {
    Unid::parse(std::str::from_utf8(unid_digits(key)?).ok()?)
}

/// The same as hexadecimal digits.
pub(crate) fn unid_digits(key: &[u8]) -> Option<&[u8]> {
    let digits = &key[key.len().checked_sub(Unid::DIGITS)?..];
    digits.iter().all(u8::is_ascii_hexdigit).then_some(digits)
}

pub(crate) fn body(unid: Unid) -> Vec<u8> {
    key("m/b/", unid)
}

/// The bytes of all messages with a body of their own: first key, and first key after them.
pub(crate) const BODIES: (&[u8], &[u8]) = (b"m/b/", b"m/b0");

pub(crate) fn counts(folder: Folder) -> Vec<u8> {
    key("m/c/", folder)
}

/// All counters of an account: first key, and first key after them.
pub(crate) const COUNTS: (&[u8], &[u8]) = (b"m/c/", b"m/c0");

pub(crate) fn folder(unid: Unid) -> Vec<u8> {
    key("m/f/", unid)
}

/// The owner's own folders: first key, and first key after them.
pub(crate) const FOLDERS: (&[u8], &[u8]) = (b"m/f/", b"m/f0");

/// Decisions on the list of own folders assert this record's revision, so that the list doesn't change concurrently.
pub(crate) const FOLDER_LIST: &[u8] = b"m/g";

/// The account's MODSEQ counter.
pub(crate) const HEAD: &[u8] = b"m/h";

/// The change log: first key, and first key after it.
pub(crate) const LOG: (&[u8], &[u8]) = (b"m/l/", b"m/l0");

/// The key of the change-log entry at a place in the ring, or the key after its last one.
pub(crate) fn log(place: u64) -> Vec<u8> {
    let place = u16::try_from(place).unwrap_or(u16::MAX);
    [LOG.0, &place.to_be_bytes()].concat()
}

/// Corrections of the counts of numbered messages assert this record, so that they don't run concurrently.
pub(crate) const SETTLED: &[u8] = b"m/t";

pub(crate) fn mark(unid: Unid) -> Vec<u8> {
    key("m/s/", unid)
}

/// The references to shared bodies: first key, and first key after them.
pub(crate) const MARKS: (&[u8], &[u8]) = (b"m/s/", b"m/s0");

pub(crate) fn keywords(unid: Unid) -> Vec<u8> {
    key("m/k/", unid)
}

/// All shared bodies: first key, and first key after them.
pub(crate) const SHARED_BODIES: (&[u8], &[u8]) = (b"b/", b"b0");
/// The number of holders of each of them.
pub(crate) const HOLDERS: (&[u8], &[u8]) = (b"h/", b"h0");

/// Marks data that were restored to an earlier state.
pub(crate) const RESTORED: &[u8] = b"restored";

pub(crate) fn shared_body(body: Unid) -> Vec<u8> {
    key("b/", body)
}

pub(crate) fn holders(body: Unid) -> Vec<u8> {
    key("h/", body)
}

fn key(family: &str, rest: impl Display) -> Vec<u8> {
    format!("{family}{rest}").into_bytes()
}

/// The path of a message, percent-encoded.
pub fn message_path(mailbox: &str, unid: Unid) -> String {
    let mut path = messages_path(mailbox);
    path.push_str(&unid.to_string());
    path
}

/// The common prefix of the paths of all messages of an account.
pub(crate) fn messages_path(mailbox: &str) -> String {
    let mut path = mail_path(mailbox);
    path.push_str("messages/");
    path
}

/// Path of an attachment of a message.
pub fn attachment_path(mailbox: &str, unid: Unid, name: &str) -> String {
    let mut path = message_path(mailbox, unid);
    path.push_str("/attachments/");
    push_encoded(&mut path, name, SEGMENT);
    path
}

/// The path of a folder: a built-in one has a resource of its own.
pub fn folder_path(mailbox: &str, folder: Folder) -> String {
    let mut path = mail_path(mailbox);
    if matches!(folder, Folder::Own(_) | Folder::Archive) {
        path.push_str("folders/");
    }
    path.push_str(&folder.to_string());
    path
}

fn mail_path(mailbox: &str) -> String {
    let mut path = String::with_capacity(mailbox.len() + 80);
    path.push_str("/mail/");
    push_encoded(&mut path, mailbox, SEGMENT);
    path.push_str("/api/mail/");
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_lie_within_their_folder_the_newest_first() {
        let (old, new) = (Unid::new(1, 0), Unid::new(2, 0));
        let (from, to) = entries(Folder::Inbox);
        let (first, second) = (entry(Folder::Inbox, new), entry(Folder::Inbox, old));
        assert!(from < first && first < second && second < to);
        assert_eq!(unid_of(&first), Some(new));
        assert_eq!(entry_of(&first), Some((Folder::Inbox, new)));
        let own = Folder::Own(old);
        assert_eq!(entry_of(&entry(own, new)), Some((own, new)));
        assert_eq!(entry_of(b"m/i/inbox/1"), None);
        assert!(counts(Folder::Inbox).as_slice() > COUNTS.0);
        assert!(counts(Folder::Own(new)).as_slice() < COUNTS.1);
    }

    #[test]
    fn paths_hold_one_segment_per_name() {
        let unid = Unid::parse("FFFA5BD4E0B5F0000000000000000001").unwrap();
        assert_eq!(
            attachment_path("ann@x", unid, "a/b c%é.pdf"),
            "/mail/ann@x/api/mail/messages/FFFA5BD4E0B5F0000000000000000001/attachments/\
             a%2Fb%20c%25%C3%A9.pdf"
        );
        assert_eq!(
            folder_path("ann", Folder::Inbox),
            "/mail/ann/api/mail/inbox"
        );
    }
}
