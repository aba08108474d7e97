//! The data of an archive, and the errors of writing it.

use std::io;

use groupware_calendar::CalendarError;
use groupware_content::{ContentError, ContentStore};
use groupware_documents::DocumentError;
use groupware_mail::MailError;
use groupware_store::Store;

/// The size from which an entry's output may reach 4 GiB: no output is six times as large as the stored data.
pub(crate) const LARGE_BYTES: u64 = 512 << 20;

/// The data of an archive.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// All records.
    pub store: &'a Store,
    /// The content of attachments.
    pub content: &'a ContentStore,
    /// The user's account: the name in lower case.
    pub mailbox: &'a str,
    /// The current time in seconds since 1970.
    pub now_s: i64,
}

/// Why an archive could not be finished.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TakeoutError {
    /// The receiver accepts no more bytes.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// The mailbox can't be read.
    #[error("the mail can't be read")]
    Mail(#[from] MailError),
    /// The calendar can't be read.
    #[error("the calendar can't be read")]
    Calendar(#[from] CalendarError),
    /// The documents can't be read.
    #[error("the documents can't be read")]
    Documents(#[from] DocumentError),
    /// The content of an attachment that a document refers to can't be read.
    #[error("the attachment {0} can't be read")]
    Content(String, #[source] ContentError),
}

impl From<TakeoutError> for io::Error {
    fn from(error: TakeoutError) -> Self {
        match error {
            TakeoutError::Write(error) => error,
            error => Self::other(error),
        }
    }
}
