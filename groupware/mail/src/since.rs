//! What has changed in a folder since somebody looked last.

use std::collections::BTreeMap;

use groupware_store::Record;
use groupware_store::Snapshot;

use crate::list::{self, Listed};
use crate::numbers::{Handed, Head, Note, State, notes};
use crate::{Entry, Folder, MailError, Reason, Unid, keys, limits};

/// A message that is no longer in a folder, or has got another UID there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vanished {
    /// Its name.
    pub unid: Unid,
    /// The UID that it had; none where it had none. Whoever was there before may never have seen it.
    pub uid: Option<u64>,
}

/// What has changed in a folder. First what has vanished is taken away, then what is there takes the place of what
/// was there with the same name, or is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Since {
    /// How far the folder's numbers are now.
    pub state: State,
    /// What has vanished, in the order of the changes.
    pub vanished: Vec<Vanished>,
    /// What was added or changed, each message once, in the order of their last changes.
    pub messages: Vec<Listed>,
}

/// What has changed in a folder after a change of this number.
///
/// # Errors
/// [`Reason::Gone`] if that isn't known any more: whoever asks begins anew; a refusal if there is no such folder; the
/// store's.
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

/// Whether so much has changed that others should not have to wait for it to be read.
///
/// # Errors
/// The store's.
pub fn is_long_since(
    snapshot: &dyn Snapshot,
    mailbox: &str,
    since: u64,
) -> Result<bool, MailError> {
    let count = Head::of(snapshot, mailbox)?.modseq.saturating_sub(since);
    let is_known = count <= u64::from(limits::CHANGES);
    Ok(is_known && count > limits::LOOKED_AT_AT_ONCE as u64)
}

/// The same as a JSON object: `{"modseq", "uidNext", "uidValidity", "vanished": [{"href", "uid"}], "messages": […]}`,
/// the messages as [`list_json`](crate::list_json) has them.
///
/// # Errors
/// As [`changes_since`]; [`Reason::Gone`] also if the answer would be larger than a list may be.
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
        // What is noted to be there and isn't, a version that leaves no notes has taken away.
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
            state: State::under(head, Handed::of(snapshot, mailbox, folder)?, folder),
            vanished,
            messages,
        })
    }
}
