//! The changes of a folder since an earlier state.

use std::collections::BTreeMap;

use groupware_store::Record;
use groupware_store::Snapshot;

use crate::list::{self, Listed};
use crate::numbers::{Head, Note, State, UidCounters, notes};
use crate::{Entry, Folder, MailError, Reason, Unid, keys, limits};

/// A message that left a folder, or has a new UID there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vanished {
    /// Its object id.
    pub unid: Unid,
    /// The UID that it had; `None` if it had none. A client may never have seen the message.
    pub uid: Option<u64>,
}

/// The changes of a folder. The client first removes the vanished messages, then replaces messages
/// with the same id and adds the rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since {
    /// The state of the folder's numbers now.
    pub state: State,
    /// The vanished messages, in the order of the changes.
    pub vanished: Vec<Vanished>,
    /// The added and changed messages, each once, in the order of their last changes.
    pub messages: Vec<Listed>,
}

/// Returns the changes of a folder after a change of this number.
///
/// # Errors
/// [`Reason::Gone`] if they are no longer known: the client resynchronizes; a refusal if the
/// folder is missing; errors of the store.
pub fn changes_since(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    since: u64,
) -> Result<Since, MailError> {
    let changed = Changed::since(snapshot, mailbox, folder, since)?;
    let messages = changed.messages.iter().map(|(key, record)| {
        Ok(Listed {
            unid: list::unid(key)?,
            entry: Entry::decode(key, &record.value)?,
        })
    });
    Ok(Since {
        state: changed.state,
        messages: messages.collect::<Result<_, MailError>>()?,
        vanished: changed.vanished,
    })
}

/// Returns true if there are so many changes that they should be read in the background pool.
///
/// # Errors
/// Errors of the store.
pub fn is_long_since(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    since: u64,
) -> Result<bool, MailError> {
    let count = Head::of(snapshot, mailbox)?.modseq.saturating_sub(since);
    let is_known = count <= u64::from(limits::CHANGES);
    Ok(is_known && count > limits::LOOKED_AT_AT_ONCE as u64)
}

/// The same as a JSON object: `{"modseq", "uidNext", "uidValidity", "vanished": [{"href", "uid"}],
/// "messages": […]}`, with messages in the form of [`list_json`](crate::list_json).
///
/// # Errors
/// As [`changes_since`]; [`Reason::Gone`] also if the response would exceed the maximum size of a list.
pub fn changes_since_json(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    folder: Folder,
    since: u64,
) -> Result<Vec<u8>, MailError> {
    let changed = Changed::since(snapshot, mailbox, folder, since)?;
    let State {
        modseq,
        uid_next,
        uid_validity,
    } = changed.state;
    let mut body = format!("{{\"modseq\":{modseq},\"uidNext\":{uid_next}");
    if let Some(validity) = uid_validity {
        body += &format!(",\"uidValidity\":{validity}");
    }
    // A path has no character that JSON would escape.
    let begin = format!("{{\"href\":\"{}", keys::messages_path(mailbox));
    body += ",\"vanished\":[";
    for (at, Vanished { unid, uid }) in changed.vanished.iter().enumerate() {
        body += if at > 0 { "," } else { "" };
        body += &begin;
        body += &format!("{unid}\"");
        if let Some(uid) = uid {
            body += &format!(",\"uid\":{uid}");
        }
        body.push('}');
    }
    body += "],\"messages\":[";
    let mut body = body.into_bytes();
    for (at, (key, record)) in changed.messages.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        body.extend_from_slice(begin.as_bytes());
        list::push_item(&mut body, key, &record.value)?;
        if body.len() > limits::LIST_BYTES {
            return Err(begin_anew());
        }
    }
    body.extend_from_slice(b"]}");
    Ok(body)
}

fn begin_anew() -> MailError {
    let message = "What has changed since then is not known any more: begin with the whole list.";
    MailError::refused(Reason::Gone, message)
}

/// The changes with the records of the messages.
struct Changed {
    state: State,
    vanished: Vec<Vanished>,
    messages: Vec<(Vec<u8>, Record)>,
}

impl Changed {
    fn since(
        snapshot: &dyn Snapshot,
        mailbox: &str,
        folder: Folder,
        since: u64,
    ) -> Result<Self, MailError> {
        list::check_there(snapshot, mailbox, folder)?;
        let head = Head::of(snapshot, mailbox)?;
        let notes = notes(snapshot, mailbox, head, since)?.ok_or_else(begin_anew)?;
        let notes = notes.into_iter().filter(|note| note.folder == folder);
        let (mut vanished, mut there) = (Vec::new(), BTreeMap::new());
        for Note {
            modseq, unid, gone, ..
        } in notes
        {
            match gone {
                Some(uid) => {
                    vanished.push(Vanished { unid, uid });
                    there.remove(&unid);
                }
                None => {
                    there.insert(unid, modseq);
                }
            }
        }
        let mut there: Vec<(Unid, u64)> = there.into_iter().collect();
        there.sort_unstable_by_key(|(_, modseq)| *modseq);
        let places: Vec<Vec<u8>> = there
            .iter()
            .map(|(unid, _)| keys::entry(folder, *unid))
            .collect();
        let wanted: Vec<(&str, &[u8])> = places.iter().map(|key| (mailbox, &key[..])).collect();
        let records = snapshot.get_many(&wanted)?;
        // A version without a change log has removed messages that are logged as present but are missing.
        let mut messages = Vec::new();
        for (((unid, _), key), record) in there.iter().zip(places).zip(records) {
            match record {
                Some(record) => messages.push((key, record)),
                None => vanished.push(Vanished {
                    unid: *unid,
                    uid: None,
                }),
            }
        }
        Ok(Self {
            state: State::under(head, UidCounters::of(snapshot, mailbox, folder)?, folder),
            vanished,
            messages,
        })
    }
}
