//! Documents in the form of Domino's data service: the whole document, and its line in a list. The
//! line is rendered and stored when its document is written; only this module knows its form.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::time::json_date;
use crate::{Attachment, DatabaseName, Document, Unid, document_path};

/// Returns the document as JSON. With `only`, just these fields, case-insensitively; members that
/// begin with `@` are always included.
pub(crate) fn document(
    document: &Document,
    (mailbox, database, unid): (&str, &DatabaseName, &Unid),
    only: Option<&[String]>,
) -> Vec<u8> {
    let path = document_path(mailbox, database, unid);
    let shown = Shown {
        document,
        path: &path,
        mailbox,
        unid,
        only,
    };
    serde_json::to_vec(&shown).expect("a document always serialises to memory")
}

/// Returns the document's line in the list.
pub(crate) fn line(
    mailbox: &str,
    database: &DatabaseName,
    unid: &Unid,
    document: &Document,
) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Line<'a> {
        #[serde(rename = "@unid")]
        unid: &'a str,
        #[serde(rename = "@href")]
        href: String,
        #[serde(rename = "@created")]
        created: String,
        #[serde(rename = "@modified")]
        modified: String,
        #[serde(rename = "@form", skip_serializing_if = "Option::is_none")]
        form: Option<&'a serde_json::value::RawValue>,
        #[serde(rename = "@attachments")]
        attachments: usize,
    }
    let line = Line {
        unid: unid.as_str(),
        href: document_path(mailbox, database, unid),
        created: json_date(document.created),
        modified: json_date(document.modified),
        form: document
            .fields
            .form()
            .filter(|form| form.get().len() <= 256),
        attachments: document.attachments.len(),
    };
    serde_json::to_vec(&line).expect("a line always serialises to memory")
}

struct Shown<'a> {
    document: &'a Document,
    path: &'a str,
    mailbox: &'a str,
    unid: &'a Unid,
    only: Option<&'a [String]>,
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let document = self.document;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("@href", self.path)?;
        map.serialize_entry("@unid", self.unid.as_str())?;
        map.serialize_entry("@created", &json_date(document.created))?;
        map.serialize_entry("@modified", &json_date(document.modified))?;
        map.serialize_entry(
            "@author",
            document.author.as_deref().unwrap_or(self.mailbox),
        )?;
        if let Some(form) = document.fields.form() {
            map.serialize_entry("@form", form)?;
        }
        for (name, value) in document.fields.iter() {
            let wanted = |only: &[String]| only.iter().any(|it| it.eq_ignore_ascii_case(name));
            if self.only.is_none_or(wanted) {
                map.serialize_entry(name, value)?;
            }
        }
        let attachments = document.attachments.iter();
        let attachments: Vec<_> = attachments
            .map(|attachment| ShownAttachment::new(attachment, self.path))
            .collect();
        map.serialize_entry("@attachments", &attachments)?;
        map.end()
    }
}

#[derive(Serialize)]
struct ShownAttachment<'a> {
    item: &'a str,
    name: &'a str,
    #[serde(rename = "type")]
    media_type: &'a str,
    size: u64,
    blake3: String,
    modified: String,
    href: String,
}

impl<'a> ShownAttachment<'a> {
    fn new(attachment: &'a Attachment, document: &str) -> Self {
        let Attachment {
            item,
            name,
            media_type,
            bytes,
            hash,
            modified,
        } = attachment;
        Self {
            item,
            name,
            media_type,
            size: *bytes,
            blake3: hash.to_string(),
            modified: json_date(*modified),
            href: format!("{document}/{item}/{}", groupware_text::encoded(name)),
        }
    }
}
