//! Databases: the documents as a JSON array each, and the attached files unchanged.

use std::io::{self, Write};

use groupware_documents::{
    self as documents, At, Attachment, DatabaseName, Document, DocumentError, Fields, Unid,
    documents_after,
};
use serde::Serialize;

use crate::name::safe;
use crate::source::{LARGE_BYTES, Source, TakeoutError};
use crate::zip::Zip;

/// The number of documents in memory at once: one has at most 0.4 MB.
const PAGE: usize = 50;

type Placed = (At, Document);

/// The form of a document in the archive.
#[derive(Serialize)]
struct Line<'a> {
    unid: &'a str,
    /// Seconds since 1970.
    created: i64,
    modified: i64,
    /// The author, if not the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    fields: &'a Fields,
    attachments: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    item: &'a str,
    name: &'a str,
    media_type: &'a str,
    bytes: u64,
    modified: i64,
    /// The path in the archive, relative to the folder of the database.
    file: String,
}

pub(crate) fn write<W: Write>(source: Source<'_>, zip: &mut Zip<W>) -> Result<(), TakeoutError> {
    let used = source.store.read(|snapshot| {
        let left = documents::room(snapshot, source.mailbox, u64::MAX)?;
        Ok::<_, DocumentError>(u64::MAX - left)
    })?;
    let mut next = page(source, None)?;
    while let Some(((database, _), _)) = next.first() {
        let database = database.clone();
        let path = format!("documents/{}/documents.json", safe(database.as_str()));
        let mut file = zip.entry(&path, source.now_s, used >= LARGE_BYTES)?;
        let first = next.clone();
        next = each_of(
            source,
            &database,
            first.clone(),
            |number, ((_, unid), document)| {
                file.write_all(if number == 0 { b"[\n" } else { b",\n" })?;
                let line = line(unid, document);
                Ok(serde_json::to_writer(&mut file, &line).map_err(io::Error::from)?)
            },
        )?;
        file.write_all(b"\n]\n")?;
        file.finish()?;
        each_of(source, &database, first, |_, (place, document)| {
            for attachment in &document.attachments {
                write_attachment(source, zip, (place, attachment))?;
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// Visits all documents of one database, from these on, and returns those of the next database.
fn each_of(
    source: Source<'_>,
    database: &DatabaseName,
    mut page_of: Vec<Placed>,
    mut hand_over: impl FnMut(u64, &Placed) -> Result<(), TakeoutError>,
) -> Result<Vec<Placed>, TakeoutError> {
    let mut number = 0;
    loop {
        for (at, placed) in page_of.iter().enumerate() {
            if placed.0.0 != *database {
                return Ok(page_of.split_off(at));
            }
            hand_over(number, placed)?;
            number += 1;
        }
        match page_of.pop() {
            Some((last, _)) => page_of = page(source, Some(&last))?,
            None => return Ok(page_of),
        }
    }
}

fn page(source: Source<'_>, after: Option<&At>) -> Result<Vec<Placed>, DocumentError> {
    source
        .store
        .read(|snapshot| documents_after(snapshot, source.mailbox, after, PAGE))
}

fn line<'a>(unid: &'a Unid, document: &'a Document) -> Line<'a> {
    let file = |attachment: &'a Attachment| File {
        item: &attachment.item,
        name: &attachment.name,
        media_type: &attachment.media_type,
        bytes: attachment.bytes,
        modified: attachment.modified,
        file: file_path(unid, attachment),
    };
    Line {
        unid: unid.as_str(),
        created: document.created,
        modified: document.modified,
        author: document.author.as_deref(),
        fields: &document.fields,
        attachments: document.attachments.iter().map(file).collect(),
    }
}

fn file_path(unid: &Unid, attachment: &Attachment) -> String {
    format!(
        "{unid}/{}/{}",
        safe(&attachment.item),
        safe(&attachment.name)
    )
}

fn write_attachment<W: Write>(
    source: Source<'_>,
    zip: &mut Zip<W>,
    (at, attachment): (&At, &Attachment),
) -> Result<(), TakeoutError> {
    let (database, unid) = at;
    let path = file_path(unid, attachment);
    let span = (0, attachment.bytes);
    let content = match source.content.content(attachment.hash, span) {
        Ok(content) => content,
        Err(_) if !is_there(source, at, attachment)? => return Ok(()),
        Err(error) => return Err(TakeoutError::Content(path, error)),
    };
    let path = format!("documents/{}/{path}", safe(database.as_str()));
    // Compression adds less than half of the size.
    let is_large = attachment.bytes >= u64::from(u32::MAX) / 3 * 2;
    let mut file = zip.entry(&path, attachment.modified, is_large)?;
    io::copy(&mut content.reader(attachment.bytes), &mut file)?;
    Ok(file.finish()?)
}

/// Checks whether a document still has this attachment: the content of a removed one may be swept.
fn is_there(
    source: Source<'_>,
    (database, unid): &At,
    attachment: &Attachment,
) -> Result<bool, DocumentError> {
    let found = source
        .store
        .read(|snapshot| documents::find(snapshot, source.mailbox, (database, unid)))?;
    Ok(found.is_some_and(|document| document.attachments.contains(attachment)))
}
