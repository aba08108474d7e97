//! The paths that name documents and attachments.

use crate::{DatabaseName, FileName, ItemPath, Unid};

/// The path that names a document.
pub fn document_path(mailbox: &str, database: &DatabaseName, unid: &Unid) -> String {
    format!("/docs/{mailbox}/{database}/api/data/documents/unid/{unid}")
}

/// The path that names an attachment, or without a name the item that it belongs to.
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
