//! The paths of documents and attachments.

use crate::{DatabaseName, FileName, ItemPath, Unid};

/// Returns the path of a document.
pub fn document_path(mailbox: &str, database: &DatabaseName, unid: &Unid) -> String {
    format!("/docs/{mailbox}/{database}/api/data/documents/unid/{unid}")
}

/// Returns the path of an attachment, or without a name of its item.
pub fn attachment_path(mailbox: &str, place: &ItemPath, name: Option<&FileName>) -> String {
    let document = document_path(mailbox, &place.database, &place.unid);
    match name {
        Some(name) => format!(
            "{document}/{}/{}",
            place.item,
            groupware_text::encoded(name.as_str())
        ),
        None => format!("{document}/{}", place.item),
    }
}
