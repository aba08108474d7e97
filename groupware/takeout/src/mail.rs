//! A mailbox: an mbox for each folder that has messages.

use std::io::Write;

use groupware_mail::{self as mail, Folder, MailError, Reason, Stored, folders};
use groupware_mailfiles::{Flags, Message, write_mbox};

use crate::name::safe;
use crate::source::{LARGE_BYTES, Source, TakeoutError};
use crate::zip::{Entry, Zip};

/// The number of message heads in memory at once.
const PAGE: usize = 500;

pub(crate) fn write<W: Write>(source: Source<'_>, zip: &mut Zip<W>) -> Result<(), TakeoutError> {
    let Source { store, mailbox, .. } = source;
    let read: Result<_, MailError> = store.read(|snapshot| {
        let own = folders::own(snapshot, mailbox)?.into_iter();
        let own = own.map(|folder| (Folder::Own(folder.unid), folder.name));
        let built_in = Folder::BUILT_IN.into_iter();
        let built_in =
            built_in.map(|folder| (folder, folder.title().unwrap_or_default().to_owned()));
        let used = mail::used_bytes(snapshot, mailbox)?;
        Ok((built_in.chain(own).collect::<Vec<_>>(), used))
    });
    let (folders, used) = read?;
    for (folder, name) in folders {
        if page(source, folder, None)?.is_empty() {
            continue;
        }
        let parts: Vec<String> = name.split('/').map(safe).collect();
        let path = format!("mail/{}.mbox", parts.join("/"));
        let mut entry = zip.entry(&path, source.now_s, used >= LARGE_BYTES)?;
        write_folder(source, folder, &mut entry)?;
        entry.finish()?;
    }
    Ok(())
}

fn page(
    source: Source<'_>,
    folder: Folder,
    after: Option<&Stored>,
) -> Result<Vec<Stored>, MailError> {
    let after = after.map(|held| held.unid);
    source
        .store
        .read(|snapshot| mail::page(snapshot, source.mailbox, (folder, after), PAGE))
}

fn write_folder<W: Write>(
    source: Source<'_>,
    folder: Folder,
    entry: &mut Entry<'_, W>,
) -> Result<(), TakeoutError> {
    let mut held = page(source, folder, None)?;
    loop {
        for held in &held {
            let read: Result<_, MailError> = source.store.read(|snapshot| {
                let held = mail::require(snapshot, source.mailbox, held.unid)?;
                if held.folder != folder {
                    return Ok(None);
                }
                let keywords = mail::keywords(snapshot, source.mailbox, held.unid)?;
                Ok(Some((
                    mail::bytes(snapshot, source.mailbox, &held)?,
                    keywords,
                )))
            });
            let (bytes, keywords) = match read {
                Ok(Some(read)) => read,
                // The message was removed or moved to another folder meanwhile.
                Ok(None)
                | Err(MailError::Refused {
                    reason: Reason::NotFound,
                    ..
                }) => continue,
                Err(error) => return Err(error.into()),
            };
            let message = Message {
                bytes: bytes.to_vec(),
                received_us: Some(held.unid.received_us()),
                flags: flags(held),
                keywords,
            };
            write_mbox(entry, &message)?;
        }
        if held.len() < PAGE {
            return Ok(());
        }
        held = page(source, folder, held.last())?;
    }
}

fn flags(held: &Stored) -> Flags {
    let marks = held.entry.marks;
    Flags {
        read: held.entry.read,
        answered: marks.answered,
        flagged: marks.flagged,
        forwarded: marks.forwarded,
        draft: held.folder == Folder::Drafts,
        trashed: false,
    }
}
